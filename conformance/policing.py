"""What facts may not do: share an id, cite what does not exist, wish, leave a flag or a clause without a case."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import numpy as np

from conformance import contract
from conformance.facts import Fact
from conformance.loading import Expected

Stated = dict[str, list[Fact]]


def faults(stated: Stated, flags: dict[str, dict[str, str]]) -> list[str]:
    """Sentences that say what is wrong with the facts, file by file, and with the explanations of the flags."""
    found = [f"{stem}: {fact.id}: {fault}" for stem, some in stated.items() for fact in some for fault in _of(fact)]
    return [*found, *_of_all([fact for some in stated.values() for fact in some], flags)]


def agree(fact: Fact, expect: dict[str, Expected]) -> None:
    """Compare the values that were found on paper with the oracle's, within the budget.

    Raises ValueError that names the fact, the output and both values.
    """
    for name, paper in (fact.paper or {}).items():
        if not _close(paper, expect[name]):
            raise ValueError(f"{fact.id}: {name} is {paper} on paper, the oracle has {expect[name].values}")


def _close(paper: object, output: Expected) -> bool:
    if output.dtype == "text" or output.budget is None:
        return bool(np.array_equal(paper, output.values))
    found = np.asarray(paper, np.float64)
    if found.shape != output.values.shape:
        return False
    finite = np.isfinite(output.values)
    near = np.abs(np.where(finite, found, 0) - np.where(finite, output.values, 0)) <= output.budget
    return bool(np.all(near) and np.array_equal(found[~finite], output.values[~finite], equal_nan=True))


def _of(fact: Fact) -> Iterator[str]:
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", fact.id):
        yield "the id has to be in lower case, words joined by single hyphens"
    if "should" in fact.fact.lower() or not fact.fact.endswith("."):
        yield "a fact is a sentence with a full stop, and says what is, not what should be"
    if not fact.clauses or not fact.flags:
        yield "a fact cites a clause and carries a flag"
    yield from (f"no clause {clause}" for clause in fact.clauses if clause not in contract.CLAUSES)
    yield from (f"no law {law}" for law in fact.laws if law not in contract.LAWS)
    if ("unmoved" in fact.laws) != bool(fact.instead):
        yield "the law unmoved and the arrays of instead go together"
    if len(set(fact.clauses)) < len(fact.clauses) or len(set(fact.flags)) < len(fact.flags):
        yield "a clause or a flag is given twice"


def _of_all(facts: list[Fact], flags: dict[str, dict[str, str]]) -> Iterator[str]:
    for name, count in Counter(fact.id for fact in facts).items():
        if count > 1:
            yield f"{name}: the id is used {count} times"
    used = {flag for fact in facts for flag in fact.flags}
    yield from (f"flags.json: {flag} is used and not explained" for flag in sorted(used - flags.keys()))
    yield from (f"flags.json: {flag} is explained and not used" for flag in sorted(flags.keys() - used))
    if list(flags) != sorted(flags):
        yield "flags.json: the flags are not in alphabetical order"
    for flag, entry in flags.items():
        if set(entry) - {"source"} != {"bug", "effect"}:
            yield f"flags.json: {flag} has to have a bug, an effect and, where there is one, a source"
    cited = {clause for fact in facts for clause in fact.clauses}
    missing = contract.CLAUSES.keys() - cited - set(contract.SHOWN_BY_TESTS)
    yield from (f"clause {clause} is cited by no fact" for clause in sorted(missing))
