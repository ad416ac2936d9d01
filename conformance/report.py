"""The report on a terminal: the matrix, who agrees with whom, each failure with what is needed to act on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from shlex import quote

import numpy as np
from rich.console import Console, Group
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from conformance import explain, tally
from conformance.contract import CLAUSES
from conformance.loading import Case, Check, checks
from conformance.results import Result

STYLES = {
    "pass": "green",
    "differs": "bold red",
    "error": "bold red",
    "known": "yellow",
    "either": "cyan",
    "unsupported": "bright_black",
}
MEANINGS = {
    "pass": "every error is within its budget",
    "differs": "a wrong answer",
    "error": "no answer, or the wrong kind of error",
    "known": "differs as its ledger says",
    "either": "implementation-defined, shown only",
    "unsupported": "cannot be asked of this backend",
}
FULL_FAILURES = 20
FULL_REASONS = 12


def show(
    results: Sequence[Result],
    cases: Sequence[Case],
    flags: dict[str, dict],
    problems: Sequence[str],
    console: Console,
) -> None:
    """Print the whole report of a run: `flags` are those of loading.load_flags, `problems` those of ledgers."""
    console.print(matrix(results), legend(), sep="\n")
    if pairs := tally.agreement(results, cases):
        console.print(agreement(pairs))
    not_judged(tally.reasons(results, "unsupported"), console)
    _failures(results, {case.id: case for case in cases}, flags, console)
    for problem in problems:
        console.print(Text(problem, "red"))
    console.print(summary(results, problems))


def matrix(results: Sequence[Result]) -> Table:
    """Draw clause x backend, the worst clause first; a cell has passed/judged and the worst error / budget."""
    backends = list(dict.fromkeys(result.backend for result in results))
    table = Table(box=None, pad_edge=False, header_style="bold", title="Clauses, the worst first", title_justify="left")
    table.add_column("clause", no_wrap=True)
    table.add_column("", max_width=60)  # may shrink; the text itself stays on one line
    for backend in backends:
        table.add_column(short(backend), justify="right", no_wrap=True)
    for clause, row in tally.matrix(results).items():
        cells = [_cell(row[backend]) if backend in row else Text() for backend in backends]
        table.add_row(clause, Text(CLAUSES[clause], "dim", no_wrap=True, overflow="ellipsis"), *cells)
    return table


def short(backend: str) -> str:
    """Name a backend in a column: of a path only its last part, so that there is room for the clauses."""
    return backend.rsplit("/", 1)[-1]


def _cell(cell: tally.Cell) -> Text:
    if not cell.judged:
        return Text(cell.outcome, STYLES[cell.outcome])
    numbers = f"{cell.passed}/{cell.judged}"
    return Text.assemble((numbers, STYLES[cell.outcome]), (f" {ratio(cell.ratio):>5}", "dim"))


def ratio(value: float | None) -> str:
    """Write an error / budget for people: two decimals, or as many digits as a large one needs."""
    if value is None:
        return ""
    if value < 100:
        return f"{value:.2f}"
    return "inf" if value == float("inf") else f"{value:.0e}"


def legend() -> Text:
    """Explain the colours and the numbers of the matrix."""
    words = [("passed/judged and the worst error as a part of its budget; ", "dim")]
    for outcome, meaning in MEANINGS.items():
        words += [(outcome, STYLES[outcome]), (f" {meaning}   ", "dim")]
    return Text.assemble(*words)


def agreement(pairs: Sequence[tally.Agreement]) -> Table:
    """Draw how far every two backends are apart."""
    table = Table(box=None, pad_edge=False, header_style="bold", title="\nWho agrees with whom", title_justify="left")
    table.add_column("backends", overflow="fold")
    for name in ("checks", "equal", "gap / budget"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("where it is largest", overflow="fold")
    for pair in pairs:
        numbers = str(pair.checks), str(pair.identical), ratio(pair.ratio)
        table.add_row(f"{pair.first} · {pair.second}", *numbers, Text(pair.check or "", "dim"))
    return table


def not_judged(groups: Sequence[tuple[str, str, list[str]]], console: Console) -> None:
    """Print why checks were not judged, by the groups of tally.reasons."""
    if groups:
        console.print("\n[bold]Not judged[/]")
    for backend, reason, names in groups[:FULL_REASONS]:
        console.print(Text.assemble((f"{len(names):5} ", "bold"), (f"{backend}: ", "dim"), reason))
    if rest := sum(len(names) for _, _, names in groups[FULL_REASONS:]):
        console.print(Text.assemble((f"{rest:5} ", "bold"), "for other reasons, which --report lists"))


def _failures(results: Sequence[Result], cases: dict[str, Case], flags: dict, console: Console) -> None:
    found = tally.wrong(results)
    for result in found[:FULL_FAILURES]:
        names = {one.check for one in results if one.outcome == "pass" and one.backend == result.backend}
        passed = [check for case in cases.values() for check in checks(case) if check.name in names]
        console.print(failure(result, cases[result.case], flags, passed))
        console.print(Text(reproduce(result), "bold"), soft_wrap=True)  # whole, to be copied
    if rest := found[FULL_FAILURES:]:
        console.print(Text(f"\nand {len(rest)} more:", "bold"))
        for result in rest:
            console.print(f"[red]{result.outcome}[/] {reproduce(result)}", soft_wrap=True)
    if len(found) > 1:
        console.print(Text(f"\n{kinds(found)}", "bold"))


def kinds(found: Sequence[Result]) -> str:
    """Say in one line what differs how often: one wrong dtype can be behind all of it."""
    kind = [one.worst.what if one.worst is not None else one.reason.partition(":")[0] for one in found]
    return "What differs: " + ", ".join(f"{name} {many} times" for name, many in Counter(kind).most_common(5))


def failure(result: Result, case: Case, flags: dict[str, dict], passed: Sequence[Check] = ()) -> Panel:
    """Say all that is known of one failure; the command that repeats it is printed below.

    `passed` are checks that the backend has passed, by which explanations are ruled out.
    """
    lines = [Text(case.fact)]
    lines += [Text.assemble((clause, "bold"), f" {CLAUSES[clause]}") for clause in case.clauses]
    lines += [Text.assemble(("catches ", "dim"), _bug(flag, flags)) for flag in case.flags]
    lines += [Text(f"{result.op}({arguments(case)})", "dim"), Text(result.reason, "red")]
    if alike := explain.looks_like(result, case, passed):
        lines.append(Text.assemble(("looks like: ", "dim"), (alike, "yellow")))
    title = f"[bold red]{result.outcome}[/] {escape(result.backend)} · {escape(result.check)}"
    return Panel(Group(*lines), title=title, title_align="left", border_style="red")


def _bug(flag: str, flags: dict[str, dict]) -> str:
    return f"{flag}: {flags[flag]['bug']}" if flag in flags else flag


def arguments(case: Case) -> str:
    """Write a case's arguments in one line: arrays by dtype and shape, options by value."""
    given = [f"{name}: {_argument(value)}" for name, value in case.arrays.items()]
    return ", ".join([*given, *(f"{name}={value!r}" for name, value in case.options.items())])


def _argument(value) -> str:
    return f"{value.dtype.name} {value.shape}" if isinstance(value, np.ndarray) else repr(value.value)


def reproduce(result: Result) -> str:
    """Give the command that runs this one check on this one backend."""
    return f"python -m conformance run --backend {quote(result.backend)} -k {result.check}"


def summary(results: Sequence[Result], problems: Sequence[str]) -> Text:
    """Give the outcome of the run in one line."""
    style = "bold red" if problems or tally.wrong(results) else "bold green"
    return Text(f"{verdict(results, problems)}: {counts(results)}.", style)


def verdict(results: Sequence[Result], problems: Sequence[str]) -> str:
    """Say whether the run failed, and of what."""
    bad = len(tally.wrong(results))
    said = f"{bad} of {len(results)} checks went wrong" if bad else "Nothing differs"
    if not problems:
        return said
    many = f"{len(problems)} problems" if len(problems) > 1 else "1 problem"
    return f"{said}, and there is more: {many}" if bad else f"The run failed for {many}, though no check went wrong"


def counts(results: Sequence[Result]) -> str:
    """Count the outcomes that occur."""
    found = Counter(result.outcome for result in results)
    return ", ".join(f"{found[outcome]} {outcome}" for outcome in STYLES if found[outcome])
