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
        task += self.parse_text_to_nodes(checking(name) + answer(name))
        return [task]


def checking(name: str) -> str:
    """Give, as Markdown, the file that a reader fills in and the command that checks it."""
    return "Fill in the file and check it, from the folder of the repository:\n\n" + tabs(
        {
            key: f"```{{literalinclude}} /exercises/{name}/answer_{key}.py\n:language: python\n"
            f":caption: docs/exercises/{name}/answer_{key}.py\n```\n\n"
            f"```sh\npython -m conformance grade docs/exercises/{name}/answer_{key}.py\n```\n"
            for key in FRAMEWORKS
        }
    )


def answer(name: str) -> str:
    """Give, as Markdown, the worked answer, folded."""
    worked = {
        key: f"```{{literalinclude}} /exercises/{name}/worked_{key}.py\n:language: python\n```\n" for key in FRAMEWORKS
    }
    return f"::::::{{dropdown}} A worked answer\n{tabs(worked)}::::::\n"


def tabs(content: dict[str, str]) -> str:
    """Give, as Markdown, one tab for each framework."""
    items = [f"::::{{tab-item}} {FRAMEWORKS[key]}\n:sync: {key}\n\n{text}::::\n" for key, text in content.items()]
    return f":::::{{tab-set}}\n:sync-group: fw\n\n{''.join(items)}:::::\n\n"


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("exercise", Exercise)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
