"""The contract and its cases: the page that lists the cases by clause, and what each clause of the contract links."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from html import escape
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util.docutils import SphinxDirective

from conformance.contract import CLAUSES, SHOWN_BY_TESTS
from conformance.loading import Case, load_cases

from .reference import relative, section, side_by_side
from .sources import HEAD, citations

CASES_PAGE = "reference/cases"


class Cases(SphinxDirective):
    """List every case, below the first clause that it cites, with a link from the other ones."""

    def run(self) -> list[nodes.Node]:
        cases = by_clause()
        return [section(nodes.Text(clause), clause, *self.listed(clause, cases[clause])) for clause in CLAUSES]

    def listed(self, clause: str, cases: list[Case]) -> list[nodes.Node]:
        own = "".join(
            f'<li id="{case.id}"><code>{case.id}</code> {escape(case.fact)}</li>'
            for case in cases
            if case.clauses[0] == clause
        )
        others = ", ".join(f'<a href="#{case.id}">{case.id}</a>' for case in cases if case.clauses[0] != clause)
        also = f"<p>Also: {others}.</p>" if others else ""
        line = nodes.paragraph("", CLAUSES[clause], classes=["clause"])
        return [line, nodes.raw("", f'<ul class="cases">{own}</ul>{also}', format="html")]


def by_clause() -> dict[str, list[Case]]:
    """Give the cases that cite each clause."""
    found: dict[str, list[Case]] = defaultdict(list)
    for case in load_cases():
        for clause in case.clauses:
            found[clause].append(case)
    return found


class Clauses(SphinxTransform):
    """Below each clause of the contract: how many cases show it, and which functions cite it."""

    default_priority = 500

    def apply(self, **kwargs: Any) -> None:
        if self.env.docname != "contract":
            return
        cases = by_clause()
        for part in list(self.document.findall(nodes.section)):
            clause = part[0].astext()
            if clause in CLAUSES:
                part += nodes.paragraph("", "", *self.links(clause, len(cases[clause])), classes=["clause"])

    def links(self, clause: str, count: int) -> Iterator[nodes.Node]:
        if clause in SHOWN_BY_TESTS and not count:
            yield nodes.Text("Shown by tests of each implementation")
        else:
            label = f"{count} case{'s' * (count != 1)}"
            yield nodes.reference("", label, refuri=f"{relative(self.env, CASES_PAGE)}#{clause}")
        for file, name in citations().get(clause, []):
            label = file if name == HEAD else name
            yield nodes.Text(" · ")
            yield nodes.reference(
                "", "", nodes.literal(label, label), refuri=f"{relative(self.env, side_by_side(file))}#{name}"
            )


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx what this extension adds."""
    app.add_directive("cases", Cases)
    app.add_transform(Clauses)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
