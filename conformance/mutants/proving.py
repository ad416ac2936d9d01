"""Prove the cases by the mutants: which of them are rejected, by how many checks, and how plainly."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from string import ascii_letters

from rich.console import Console
from rich.progress import track
from rich.table import Table
from rich.text import Text

from conformance import report, tally
from conformance.judging import judge
from conformance.loading import Case, Check, checks
from conformance.mutants import Mutant, mutants
from conformance.results import Result


@dataclass(frozen=True)
class Trial:
    """What became of a mutant on some checks."""

    mutant: Mutant
    results: tuple[Result, ...]

    @property
    def rejected(self) -> list[Result]:
        """The results of the checks that noticed."""
        return [result for result in self.results if result.outcome in tally.WRONG]

    @property
    def strongest(self) -> float | None:
        """The largest error / budget that is finite; infinity if none is, None if no check noticed."""
        ratios = [math.inf if (ratio := tally.ratio_of(result)) is None else ratio for result in self.rejected]
        return max((ratio for ratio in ratios if ratio < math.inf), default=max(ratios, default=None))


def by_flag(cases: Iterable[Case]) -> dict[str, list[Check]]:
    """The checks of the cases that carry each flag."""
    carriers: dict[str, list[Check]] = defaultdict(list)
    for case in cases:
        for flag in case.flags:
            carriers[flag] += checks(case)
    return carriers


def is_rejected(mutant: Mutant, some: Iterable[Check]) -> bool:
    """Tell whether one of the checks notices; those after it are not run."""
    return any(judge(check, mutant.backend()).outcome in tally.WRONG for check in some)


def unearned(cases: Sequence[Case]) -> set[tuple[str, str]]:
    """The ids of cases, each with a flag that it carries and no mutant of that flag for it to reject."""
    carriers = by_flag(cases)
    left = {(case.id, flag) for case in cases for flag in case.flags if case.verdict != "either"}
    for mutant in mutants():
        for flag in mutant.flags:
            some = [check for check in carriers[flag] if (check.case.id, flag) in left]
            left -= {(check.case.id, flag) for check in some if is_rejected(mutant, [check])}
    return left


def attempt(mutant: Mutant, some: Iterable[Check]) -> Trial:
    """Run all of the checks on the mutant."""
    return Trial(mutant, tuple(judge(check, mutant.backend()) for check in some))


def show(cases: Sequence[Case], console: Console, *, full: bool) -> bool:
    """Run the mutants and print what became of them; tell whether each was rejected.

    A mutant meets the checks that carry its flags; with `full` it meets all checks, and the matrix is drawn.
    """
    carriers = by_flag(cases)
    every = [check for case in cases for check in checks(case)]
    found = [
        attempt(mutant, every if full else _flagged(mutant, carriers))
        for mutant in track(mutants(), "mutants", console=Console(stderr=True), transient=True)
    ]
    console.print(overview(found))
    if full:
        console.print(*matrix(found, cases), sep="\n")
    survivors = [trial.mutant.name for trial in found if not trial.rejected]
    console.print(Text(f"\n{len(found)} mutants, not rejected: {', '.join(survivors) or 'none'}", "bold"))
    return not survivors


def _flagged(mutant: Mutant, carriers: dict[str, list[Check]]) -> list[Check]:
    """The checks that carry a flag of the mutant, each once."""
    return list({check.name: check for flag in mutant.flags for check in carriers[flag]}.values())


def overview(trials: Iterable[Trial]) -> Table:
    """List mutants: what is wrong, the flags, how many checks noticed, and the largest error / budget of them."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("mutant, and what is wrong", overflow="fold", ratio=2)
    table.add_column("flags", overflow="fold", ratio=1)
    for name in ("rejected by", "error/budget"):
        table.add_column(name, justify="right", no_wrap=True)
    for trial in trials:
        words = Text.assemble((trial.mutant.name, "bold"), "\n", (trial.mutant.wrong, "dim"))
        noticed = Text(f"{len(trial.rejected)} of {len(trial.results)}", "green" if trial.rejected else "bold red")
        table.add_row(words, " ".join(trial.mutant.flags), noticed, report.ratio(trial.strongest))
    return table


def matrix(trials: Sequence[Trial], cases: Sequence[Case]) -> Iterator[Text]:
    """Draw mutants x case files, the number of checks that noticed in each cell, 9 for more; then the files."""
    files = dict.fromkeys(case.file for case in cases)
    letters = dict(zip(files, ascii_letters, strict=False))
    file_of = {case.id: case.file for case in cases}
    rows = {trial.mutant.name: Counter(file_of[result.case] for result in trial.rejected) for trial in trials}
    width = max(map(len, rows)) + 1
    yield Text("\n" + " " * width + "".join(letters.values()), "bold")
    for name, row in rows.items():
        cells = "".join(str(min(row[file], 9)) if file in row else "." for file in letters)
        yield Text.assemble((name.ljust(width), "dim"), cells)
    for file, letter in letters.items():
        noticed = [row for row in rows.values() if row[file]]
        alone = sum(len(row) == 1 for row in noticed)
        yield Text.assemble((letter, "bold"), f" {file}: rejects {len(noticed)} mutants, {alone} of them alone")
