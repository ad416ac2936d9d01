"""Print what was found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from conformance.grading.finding import NOT_STARTED, RIGHT, WRONG, Finding

COLOURS = {RIGHT: "green", WRONG: "red", NOT_STARTED: "yellow"}
INDENT = " " * 13


def show(title: str, findings: Sequence[Finding], console: Console) -> None:
    """Print every finding, and in the last line what comes of them together."""
    console.print(Text(title, "bold"))
    for finding in findings:
        console.print(Text.assemble((f"{finding.outcome:12} ", COLOURS[finding.outcome]), finding.task))
        for line in _lines(finding):
            console.print(Text(INDENT + line), soft_wrap=True)
    outcome = together(findings)
    console.print(Text.assemble((outcome, f"bold {COLOURS[outcome]}"), _counts(findings)))


def _counts(findings: Sequence[Finding]) -> str:
    counts = {each: sum(finding.outcome == each for finding in findings) for each in COLOURS}
    words = ", ".join(f"{count} {each}" for each, count in counts.items() if count)
    return f": {words}" if len(findings) > 1 else ""


def _lines(finding: Finding) -> Iterator[str]:
    yield finding.said
    for heading, text in finding.notes:
        for number, line in enumerate(text.splitlines()):
            yield f"{heading if number == 0 else '':8} {line}"


def together(findings: Sequence[Finding]) -> str:
    """Give the outcome of the exercise: wrong if any task is, else not started if any is, else right."""
    outcomes = {finding.outcome for finding in findings}
    return next(each for each in (WRONG, NOT_STARTED, RIGHT) if each in outcomes)
