"""Sums over results that the terminal and the HTML report both show: the matrix and who agrees with whom."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from conformance.loading import Case, Expected
from conformance.results import Result

WRONG = ("differs", "error")
GRAVEST_FIRST = (*WRONG, "known", "pass", "either", "unsupported")


@dataclass(frozen=True)
class Cell:
    """What one backend did with the checks of one clause (or of any other group)."""

    counts: Counter
    ratio: float | None

    @property
    def passed(self) -> int:
        """Count the checks that passed."""
        return self.counts["pass"]

    @property
    def judged(self) -> int:
        """Count the checks that have a verdict: neither unsupported nor implementation-defined."""
        return sum(self.counts[outcome] for outcome in ("pass", *WRONG, "known"))

    @property
    def outcome(self) -> str:
        """Name the gravest outcome that occurs, which decides the cell's colour."""
        return next(outcome for outcome in GRAVEST_FIRST if self.counts[outcome])


def ratio_of(result: Result) -> float | None:
    """Give a result's worst error / budget; None where nothing was measured. A NaN is an infinite error."""
    if result.worst is None or result.worst.ratio is None:
        return None
    return math.inf if math.isnan(result.worst.ratio) else float(result.worst.ratio)


def cell(results: Iterable[Result]) -> Cell:
    """Sum up some results of one backend."""
    results = list(results)
    ratios = [ratio for ratio in map(ratio_of, results) if ratio is not None]
    return Cell(Counter(result.outcome for result in results), max(ratios, default=None))


def matrix(results: Sequence[Result]) -> dict[str, dict[str, Cell]]:
    """Give clause -> backend -> cell, the clause with the gravest outcome and then the largest ratio first."""
    groups: dict[str, dict[str, list[Result]]] = defaultdict(lambda: defaultdict(list))
    for result in results:
        for clause in result.clauses:
            groups[clause][result.backend].append(result)
    table = {clause: {name: cell(group) for name, group in row.items()} for clause, row in groups.items()}
    return dict(sorted(table.items(), key=_worst_first))


def _worst_first(row: tuple[str, dict[str, Cell]]) -> tuple:
    clause, cells = row
    gravest = min(GRAVEST_FIRST.index(cell.outcome) for cell in cells.values())
    return gravest, -max((cell.ratio or 0.0) for cell in cells.values()), clause


def wrong(results: Iterable[Result]) -> list[Result]:
    """Give the results that fail a run, the largest error / budget first."""
    found = [result for result in results if result.outcome in WRONG]
    return sorted(found, key=lambda result: -(math.inf if (ratio := ratio_of(result)) is None else ratio))


def reasons(results: Sequence[Result], outcome: str) -> list[tuple[str, str, list[str]]]:
    """Give backend, reason and checks for the results of that outcome, the most frequent reason first."""
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for result in results:
        if result.outcome == outcome:
            groups[result.backend, result.reason or "no reason given"].append(result.check)
    return [(*key, names) for key, names in sorted(groups.items(), key=lambda item: -len(item[1]))]


def unasked(results: Sequence[Result]) -> list[str]:
    """Name the backends of which the run says nothing: all of them if every check is unsupported, else variants."""
    asked = {result.backend for result in results if result.outcome != "unsupported"}
    backends = dict.fromkeys(result.backend for result in results)
    return [name for name in backends if name not in asked and (":" in name or not asked)]


@dataclass(frozen=True)
class Agreement:
    """How two backends compare on the numbers that both gave, in the units of the case's error budget."""

    first: str
    second: str
    checks: int
    identical: int
    ratio: float
    check: str | None


def agreement(results: Sequence[Result], cases: Sequence[Case]) -> list[Agreement]:
    """Compare the outputs of every two backends with each other, check by check, and keep the largest gap."""
    by_id = {case.id: case for case in cases}
    outputs: dict[str, dict[str, Result]] = defaultdict(dict)
    for result in results:
        if result.outputs and result.outcome not in ("error", "unsupported"):
            outputs[result.backend][result.check] = result
    return [_agreement(outputs[a], outputs[b], by_id) for a, b in combinations(outputs, 2)]


def _agreement(first: dict[str, Result], second: dict[str, Result], cases: dict[str, Case]) -> Agreement:
    gaps = {check: _gap(first[check], second[check], cases[first[check].case]) for check in first if check in second}
    worst = max(gaps, key=gaps.__getitem__, default=None)
    names = [next(iter(side.values())).backend for side in (first, second)]
    same = sum(gap == 0 for gap in gaps.values())
    return Agreement(*names, len(gaps), same, gaps[worst] if worst else 0.0, worst)


def _gap(first: Result, second: Result, case: Case) -> float:
    """Give the largest difference / budget over the outputs that both have; infinite where the kind differs."""
    shared = [name for name in first.outputs if name in second.outputs and name in case.expect]
    gaps = [_gap_of(first.outputs[name], second.outputs[name], case.expect[name]) for name in shared]
    return max(gaps, default=0.0)


def _gap_of(a, b, expected: Expected) -> float:
    if expected.budget is None or np.shape(a) != np.shape(b):
        return 0.0 if np.array_equal(a, b) else math.inf
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    same = (a == b) | (~np.isfinite(a) & ~np.isfinite(b))
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.where(same, 0.0, abs(a - b) / expected.budget).max(initial=0.0))
