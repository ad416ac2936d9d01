"""Each lesson as a notebook for each framework, made from the source of the page: a link at its top leads to them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby, takewhile
from pathlib import Path

import nbformat
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

from .cells import page
from .kernel import FRAMEWORKS

OPENS = re.compile(r"(?P<fence>`{3,}|:{3,})\{(?P<name>[\w-]+)\} *(?P<argument>.*)")
OPTION = re.compile(r":[\w-]+:|: ")
ONLY_ON_THE_PAGE = {"agree", "heatmap", "side_by_side"}
BOXES = {"admonition", "note", "tip", "hint", "important", "warning"}

Cell = nbformat.NotebookNode


def notebook(source: str, framework: str, values: list[str]) -> Cell:
    """Give the page as a notebook: its text, and the code that the framework runs.

    `values` are what the {value} roles of the page gave, in their order. Raises ValueError for a directive that has no
    form in a notebook.
    """
    numbers = iter(values)
    source = re.sub(r"\{value\}`[^`]*`", lambda role: next(numbers, "?"), source)
    needs = "." if framework == "numpy" else f"'.[{framework}]'"
    first = f"*Run this notebook where `impl_{framework}` is installed: `pip install {needs}` in the repository.*"
    cells = [nbformat.v4.new_markdown_cell(first), *_cells(source.splitlines(), framework)]
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"  # not at random, so that a second build gives the same bytes
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel, "language_info": {"name": "python"}})


def _cells(lines: list[str], framework: str) -> Iterator[Cell]:
    """Give the text between two pieces of code as one cell each."""
    for is_text, pieces in groupby(_pieces(lines, framework), lambda piece: isinstance(piece, str)):
        if not is_text:
            yield from pieces
        elif text := "\n".join(pieces).strip():
            yield nbformat.v4.new_markdown_cell(_plain(text))


def _pieces(lines: list[str], framework: str) -> Iterator[str | Cell]:
    """Give the source as lines of text and as cells of code, directives in the form that they have in a notebook."""
    for block in _blocks(lines):
        opens = OPENS.fullmatch(block[0])
        if opens is None:
            yield from block
        else:
            yield from _directive(opens["name"], opens["argument"], block[1:-1], framework)


def _directive(name: str, argument: str, body: list[str], framework: str) -> Iterator[str | Cell]:
    if name == "run":
        if {framework, "shared"} & set(argument.split()):
            yield _code(body)
    elif name == "dropdown":
        yield from _folded(argument, list(_pieces(body, framework)))
    elif name in BOXES:
        yield from ("", f"**{argument or name.capitalize()}.**", "", *_pieces(body, framework), "")
    elif name == "exercise":
        check = f"python -m conformance grade docs/exercises/{argument}/answer_{framework}.py"
        yield from (*_pieces(body, framework), "", f"Check your answer: `{check}`", "")
    elif name not in ONLY_ON_THE_PAGE:
        known = ", ".join(sorted({"run", "exercise", "dropdown", *BOXES, *ONLY_ON_THE_PAGE}))
        raise ValueError(f"{{{name}}} has no form in a notebook; a page with code may have {known}")


def _folded(title: str, pieces: list[str | Cell]) -> Iterator[str | Cell]:
    """A notebook folds text; where code is in it, the title stands above."""
    if all(isinstance(piece, str) for piece in pieces):
        yield from ("<details>", f"<summary>{title}</summary>", "", *pieces, "", "</details>", "")
    else:
        yield from ("", f"**{title}**", "", *pieces)


def _blocks(lines: list[str]) -> Iterator[list[str]]:
    """Cut the source at its fences: a fenced block from fence to fence, any other line by itself."""
    rest = iter(lines)
    for line in rest:
        block = [line]
        if fence := re.match(r"(`{3,}|:{3,})", line):
            for inner in rest:
                block.append(inner)
                if inner.rstrip() == fence[1]:
                    break
        yield block


def _plain(text: str) -> str:
    """Links into this documentation lose their target, roles their name; code between fences stays."""
    parts = re.split(r"(^```.*?^```$)", text, flags=re.DOTALL | re.MULTILINE)
    for at in range(0, len(parts), 2):
        unlinked = re.sub(r"\[([^\]]*)\]\((?!\w+://)[^)]*\)", r"\1", parts[at])
        parts[at] = re.sub(r"\{[\w:-]+\}(`[^`]*`)", r"\1", unlinked)
    return "".join(parts)


def _code(body: list[str]) -> Cell:
    options = list(takewhile(OPTION.match, body))
    code = "\n".join(body[len(options) :]).strip("\n")
    raises = any(line.startswith(":raises:") for line in options)
    return nbformat.v4.new_code_cell(code, metadata={"tags": ["raises-exception"]} if raises else {})


def _keep_source(app: Sphinx, docname: str, source: list[str]) -> None:
    page(app.env).source = source[0]


def _write(app: Sphinx, doctree: nodes.document) -> None:
    """Write the notebooks of a page that has code, and link them below its title."""
    lesson, docname = page(app.env), app.env.docname
    if not any(lesson.spaces.values()):
        return
    folder = Path(app.outdir) / "notebooks"
    links = nodes.paragraph("", "Download as a notebook: ", classes=["notebooks"])
    for framework, label in FRAMEWORKS.items():
        name = f"{docname.replace('/', '-')}-{framework}.ipynb"
        folder.mkdir(parents=True, exist_ok=True)
        made = _made(docname, lesson.source, framework, lesson.values)
        (folder / name).write_text(nbformat.writes(made) + "\n", encoding="utf-8")
        links += nodes.reference("", label, refuri="../" * docname.count("/") + f"notebooks/{name}", internal=False)
        links += nodes.Text(" · ")
    links.pop()
    title = next(doctree.findall(nodes.title))
    title.parent.insert(title.parent.index(title) + 1, links)


def _made(docname: str, source: str, framework: str, values: list[str]) -> Cell:
    try:
        return notebook(source, framework, values)
    except ValueError as error:
        raise ExtensionError(f"{docname}: {error}") from error


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx what this extension adds."""
    app.connect("source-read", _keep_source)
    app.connect("doctree-read", _write)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
