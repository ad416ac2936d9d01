"""The directive {exercise}: the task, the file to fill in, the command that checks it, and the answer, folded."""

from __future__ import annotations

from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from .kernel import FRAMEWORKS


class Exercise(SphinxDirective):
    """Show the exercise of that folder of docs/exercises; the content of the directive is the task."""

    has_content = True
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        self.assert_has_content()
        name = self.arguments[0]
        files = [f"exercises/{name}/{kind}_{key}.py" for kind in ("answer", "worked") for key in FRAMEWORKS]
        if missing := [file for file in files if not (Path(self.env.srcdir) / file).exists()]:
            raise self.error(f"the exercise {name} lacks {', '.join(missing)}")
        task = nodes.container(classes=["exercise"])
        self.state.nested_parse(self.content, self.content_offset, task)
        given = list((Path(self.env.srcdir) / "exercises" / name).glob("given_*.py"))
        task += self.parse_text_to_nodes(checking(name, given=bool(given)) + answer(name))
        return [task]


def checking(name: str, given: bool) -> str:
    """Give, as Markdown, the file that a reader fills in, what it is about, and the command that checks it."""
    kinds = ("given", "answer") if given else ("answer",)
    files = {key: "".join(included(name, f"{kind}_{key}.py") for kind in kinds) for key in FRAMEWORKS}
    command = "```sh\npython -m conformance grade docs/exercises/{}/answer_{}.py\n```\n"
    said = "Fill in the file `answer_….py` and check it, from the folder of the repository:\n\n"
    return said + tabs({key: files[key] + command.format(name, key) for key in FRAMEWORKS})


def answer(name: str) -> str:
    """Give, as Markdown, the worked answer, folded."""
    worked = {key: included(name, f"worked_{key}.py") for key in FRAMEWORKS}
    return f"::::::{{dropdown}} A worked answer\n{tabs(worked)}::::::\n"


def included(name: str, file: str) -> str:
    """Give, as Markdown, a file of the exercise with its path."""
    path = f"exercises/{name}/{file}"
    return f"```{{literalinclude}} /{path}\n:language: python\n:caption: docs/{path}\n```\n\n"


def tabs(content: dict[str, str]) -> str:
    """Give, as Markdown, one tab for each framework."""
    items = [f"::::{{tab-item}} {FRAMEWORKS[key]}\n:sync: {key}\n\n{text}::::\n" for key, text in content.items()]
    return f":::::{{tab-set}}\n:sync-group: fw\n\n{''.join(items)}:::::\n\n"


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx what this extension adds."""
    app.add_directive("exercise", Exercise)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
