"""The reference, made from the sources: functions side by side, and the public names with their docstrings."""

from __future__ import annotations

import ast
import re
import textwrap
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx_design.shared import create_component

from .cells import tab
from .kernel import FRAMEWORKS
from .sources import HEAD, definition, files, pieces

CODE = re.compile(r"`([^`]+)`|(\(\*?[A-Z\[][A-Za-z, \[\]+]*\)|\(\))")  # what is quoted, and shapes: (*B, [H,] T, D)


def section(title: nodes.Node, anchor: str, *content: nodes.Node) -> nodes.section:
    """Give a section with an anchor of its own choice, not one that is made of its title."""
    return nodes.section("", nodes.title("", "", title), *content, ids=[anchor])


class SideBySide(SphinxDirective):
    """Show a file of the implementations in tabs, a section for each name; or only the named functions."""

    required_arguments = 1
    optional_arguments = 100

    def run(self) -> list[nodes.Node]:
        file, *names = self.arguments
        if file not in files():
            raise self.error(f"the implementations have no file {file}; they have {', '.join(files())}")
        known = dict.fromkeys(name for key in FRAMEWORKS for name in pieces(f"impl_{key}", file))
        if unknown := set(names) - set(known):
            raise self.error(f"{file} has no {', '.join(sorted(unknown))}; it has {', '.join(known)}")
        if names:
            return [self.tabs(file, name) for name in names]
        return [section(self.title(name), name, self.tabs(file, name)) for name in known]

    def title(self, name: str) -> nodes.Node:
        return nodes.Text("The head of the file") if name == HEAD else nodes.literal(name, name)

    def tabs(self, file: str, name: str) -> nodes.Node:
        found = {key: pieces(f"impl_{key}", file).get(name) for key in FRAMEWORKS}
        tabs = [
            tab(FRAMEWORKS[key], key, [nodes.literal_block(code, code, language="python")])
            for key, code in found.items()
            if code
        ]
        return create_component("tab-set", children=tabs, classes=["sd-tab-set", "side-by-side"])


class Api(SphinxDirective):
    """Show public names: how each is called, and its docstring."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        return [self.entry(name) for name in self.arguments[0].split()]

    def entry(self, name: str) -> nodes.Node:
        try:
            file, node = definition("impl_numpy", name)
        except ValueError as error:
            raise self.error(str(error)) from error
        call = signature(node)
        uri = f"{relative(self.env, side_by_side(file))}#{name}"
        link = nodes.paragraph("", "", nodes.reference("", "The three sources, side by side", refuri=uri))
        methods = [
            nodes.definition_list_item(
                "", nodes.term("", "", nodes.literal("", signature(method))), nodes.definition("", *documented(method))
            )
            for method in getattr(node, "body", [])
            if isinstance(node, ast.ClassDef) and isinstance(method, ast.FunctionDef) and method.name[0] != "_"
        ]
        listed = [nodes.definition_list("", *methods)] if methods else []
        block = nodes.literal_block(call, call, language="python")
        return section(nodes.literal(name, name), name, block, *documented(node), *listed, link)


def signature(node: ast.FunctionDef | ast.ClassDef) -> str:
    """Give a definition as it is called: parameters and defaults of a function, fields of a class."""
    if isinstance(node, ast.FunctionDef):
        parameters = ast.unparse(node.args).removeprefix("self").removeprefix(", ")
        return textwrap.fill(f"{node.name}({parameters})", 84, subsequent_indent=" " * (len(node.name) + 1))
    fields = [ast.unparse(line.target) for line in node.body if isinstance(line, ast.AnnAssign)]
    return f"{node.name}({', '.join(fields)})" if fields else node.name


def documented(node: ast.FunctionDef | ast.ClassDef) -> list[nodes.Node]:
    """Give a docstring as paragraphs, what is indented as it stands; what it raises and its source begin new ones."""
    text = re.sub(r"\n(?=(Returns?|Raises|Source:) )", "\n\n", ast.get_docstring(node) or "")
    return [_block(part) for part in text.split("\n\n") if part]


def _block(part: str) -> nodes.Node:
    if part.startswith(" "):
        code = textwrap.dedent(part)
        return nodes.literal_block(code, code, language="text")
    text = nodes.paragraph()
    for at, words in enumerate(CODE.split(" ".join(part.split()))):
        if words:
            text += nodes.literal("", words) if at % 3 else nodes.Text(words)
    return text


def side_by_side(file: str) -> str:
    """Name the page that shows the file."""
    return f"side_by_side/{file.removesuffix('.py').strip('_')}"


def relative(env: Any, target: str) -> str:
    """Give the address of a page as seen from the one that is being read."""
    return "../" * env.docname.count("/") + f"{target}.html"


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx what this extension adds."""
    app.add_directive("side_by_side", SideBySide)
    app.add_directive("api", Api)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
