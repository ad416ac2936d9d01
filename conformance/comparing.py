"""Compare files of results that were made in different places, for example one framework in each.

It needs NumPy alone: python -m conformance.comparing A.jsonl B.jsonl, or python -m conformance compare.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

from conformance import tally
from conformance.loading import Case, digest, load_cases
from conformance.results import Header, Result, read

# Two right answers are at most a budget each from what is expected, hence two from each other.
LARGEST_GAP = 2.0
FULL_DIFFERENCES = 20


@dataclass(frozen=True)
class Run:
    """One file: `name` tells it from the others."""

    name: str
    header: Header
    results: list[Result]


def load(paths: Sequence[Path], cases: Sequence[Case]) -> list[Run]:
    """Read the files. Raises ValueError where there are not two, or they were not made with these same cases."""
    if len(paths) < 2:
        raise ValueError("give two files of results or more; python -m conformance run --json FILE.jsonl writes one")
    runs = [Run(path.name, *read(path)) for path in paths]
    own = digest(list(cases))
    for run in runs:
        if run.header.suite != own:
            raise ValueError(
                f"{run.name} was made with other cases ({run.header.suite[:12]}) than those here ({own[:12]}): "
                "make all files with the same version of the suite"
            )
    names = [run.header.backend for run in runs]
    # Where one backend ran twice, the files' names tell the runs apart.
    named = [run if names.count(run.header.backend) > 1 else replace(run, name=run.header.backend) for run in runs]
    return [replace(run, results=[replace(r, backend=run.name) for r in run.results]) for run in named]


def introduction(run: Run) -> str:
    """Say in one line what ran."""
    info = run.header.info
    versions = [f"{name} {version}" for name, version in info.get("versions", {}).items()]
    settings = [f"{name} {value}" for name, value in info.items() if name != "versions"]
    return f"{run.name}: {len(run.results)} checks, {run.header.started}; {', '.join([*versions, *settings])}"


def closeness(pair: tally.Agreement) -> str:
    """Say in one line how close the outputs of two runs are."""
    far = f"the largest gap is {pair.ratio:.3g} budgets, in {pair.check}" if pair.ratio else "no gap"
    return f"{pair.first} and {pair.second}: {pair.checks} checks, {pair.identical} of them equal; {far}"


def agreements(runs: Sequence[Run], cases: Sequence[Case]) -> list[tally.Agreement]:
    """Compare the outputs of every two runs, but for those that a ledger lists."""
    return tally.agreement([result for run in runs for result in run.results if result.outcome != "known"], cases)


def differences(runs: Sequence[Run]) -> Iterator[str]:
    """Name the checks that went wrong in one run and not in another, with the reason."""
    for a, b in combinations(runs, 2):
        others = {result.check: result for result in b.results if result.outcome != "unsupported"}
        for one in a.results:
            pair = [one, others.get(one.check, one)]
            wrong = [result for result in pair if result.outcome in tally.WRONG]
            if one.outcome != "unsupported" and len(wrong) == 1:
                yield f"{one.check}: {a.name} {pair[0].outcome}, {b.name} {pair[1].outcome}: {wrong[0].reason}"


def main(paths: Sequence[str]) -> int:
    """Print the comparison. Exit code: 0 all agree, 1 some do not, 2 the files cannot be compared."""
    cases = load_cases()
    try:
        runs = load([Path(path) for path in paths], cases)
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    pairs, outcomes = agreements(runs, cases), list(differences(runs))
    print(*map(introduction, runs), *map(closeness, pairs), *outcomes[:FULL_DIFFERENCES], sep="\n")
    if rest := outcomes[FULL_DIFFERENCES:]:
        print(f"and {len(rest)} more checks that went wrong in one and not in another")
    return 1 if outcomes or any(pair.ratio > LARGEST_GAP for pair in pairs) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
