"""The directives of a lesson: {run} runs code and shows it in tabs, {agree} compares the tabs, {value} is a number.

Code runs when the page is read. Whatever goes wrong is an error of the build, with the page and the line.
"""

from __future__ import annotations

from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util.docutils import SphinxDirective, SphinxRole
from sphinx_design.shared import create_component

from .kernel import FRAMEWORKS, CellError, Output, Page, is_here

TOLERANCE = 1e-6


class Cell(nodes.container):
    """A piece of code with its output, of the framework in its attribute; Tabs joins neighbours."""


class Run(SphinxDirective):
    """Run the code for the named frameworks; `shared` runs it for all three and shows it once."""

    has_content = True
    required_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar = {"alt": directives.unchanged, "raises": directives.unchanged, "hide": directives.flag}

    def run(self) -> list[nodes.Node]:
        self.assert_has_content()
        names = self.arguments[0].split()
        if names == ["shared"]:
            return self.shared()
        if unknown := set(names) - set(FRAMEWORKS):
            raise self.error(f"unknown: {', '.join(unknown)}; {{run}} takes shared, or some of {', '.join(FRAMEWORKS)}")
        return [self.cell(name, self.output(name)) for name in names]

    def shared(self) -> list[nodes.Node]:
        """Show what NumPy's namespace gives; in the others the code has to print the same."""
        outputs = {name: self.output(name) for name in FRAMEWORKS if is_here(name)}
        shown = outputs["numpy"]
        for name, output in outputs.items():
            if output.text != shown.text:
                raise self.error(f"shared code prints in NumPy:\n{shown.text}\nin {FRAMEWORKS[name]}:\n{output.text}")
        return [nodes.container("", *self.shown(shown), classes=["cell"])]

    def output(self, framework: str) -> Output:
        if not is_here(framework) and self.config.cells_may_lack_frameworks:
            return Output(f"Not run here: {FRAMEWORKS[framework]} is not installed.\n", None)
        alt = " ".join(self.options.get("alt", "").split())
        line = self.lineno + self.content_offset + 1
        try:
            return page(self.env).run("\n".join(self.content), framework, line, alt, self.options.get("raises"))
        except CellError as error:
            raise self.error(str(error)) from error

    def cell(self, framework: str, output: Output) -> nodes.Node:
        return Cell("", *self.shown(output), framework=framework, classes=["cell"])

    def shown(self, output: Output) -> list[nodes.Node]:
        code, text = "\n".join(self.content), output.text.rstrip("\n")
        shown = [] if "hide" in self.options else [nodes.literal_block(code, code, language="python")]
        if text:
            raised = ["raised"] if "raises" in self.options else []  # a message is a sentence, which may wrap
            shown.append(nodes.literal_block(text, text, language="text", classes=["output", *raised]))
        if output.figure:
            shown.append(nodes.raw("", f'<figure class="drawn">{output.figure}</figure>', format="html"))
        return shown


class Agree(SphinxDirective):
    """Fail unless the frameworks agree about the variables; say how closely they do."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar = {"tolerance": directives.unchanged}

    def run(self) -> list[nodes.Node]:
        tolerance = float(self.options.get("tolerance", TOLERANCE))
        line = nodes.paragraph(classes=["agreement"])
        line += nodes.Text("The three tabs agree. Largest difference: ")
        for at, name in enumerate(self.arguments[0].split()):
            try:
                largest = page(self.env).difference(name, tolerance)
            except CellError as error:
                raise self.error(str(error)) from error
            line += [nodes.Text(", " if at else ""), nodes.literal(name, name), nodes.Text(f" {largest:.1e}")]
        line += nodes.Text(f" (at most {tolerance:g} is allowed).")
        return [line]


class Value(SphinxRole):
    """A number of NumPy's namespace in the text: {value}`weights[0, 2]:.3f`."""

    def run(self) -> tuple[list[nodes.Node], list[Any]]:
        try:
            text = page(self.env).text(f"{{{self.text}}}")
        except CellError as error:
            return [], [self.inliner.reporter.error(str(error), line=self.lineno)]
        page(self.env).values.append(text)
        return [nodes.inline(text, text, classes=["value"])], []


class Tabs(SphinxTransform):
    """Join neighbouring cells into tab sets; a framework that comes again begins a new set."""

    default_priority = 300

    def apply(self, **kwargs: Any) -> None:
        for cell in list(self.document.findall(Cell)):
            place, before = cell.parent, cell.parent.index(cell) - 1
            tabs = place[before] if before >= 0 else None
            label = FRAMEWORKS[cell["framework"]]
            if isinstance(tabs, TabSet) and label not in (item[0].astext() for item in tabs):
                place.remove(cell)
                tabs += tab(label, cell["framework"], cell.children)
            else:
                place.replace(cell, TabSet("", tab(label, cell["framework"], cell.children), classes=["sd-tab-set"]))


class TabSet(nodes.container):
    """A tab set of sphinx-design that neighbouring cells may still join."""

    def __init__(self, *arguments: Any, **attributes: Any) -> None:
        super().__init__(*arguments, is_div=True, design_component="tab-set", **attributes)


def tab(label: str, sync: str, content: list[nodes.Node]) -> nodes.Element:
    """Give one tab, which is shown when its framework is chosen in any other set."""
    title = nodes.rubric(label, label, classes=["sd-tab-label"], sync_id=sync, sync_group="fw")
    body = create_component("tab-content", children=content, classes=["sd-tab-content"])
    return create_component("tab-item", children=[title, body], classes=["sd-tab-item"])


def page(env: Any) -> Page:
    """Give the namespaces of the page that is being read."""
    if "cells" not in env.temp_data:
        env.temp_data["cells"] = Page(env.docname)
    return env.temp_data["cells"]


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx what this extension adds."""
    app.add_config_value("cells_may_lack_frameworks", False, "env", bool)
    app.add_directive("run", Run)
    app.add_directive("agree", Agree)
    app.add_role("value", Value())
    app.add_transform(Tabs)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
