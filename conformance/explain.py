"""Explain a wrong output: name the mutants that give the same numbers on the same case."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from conformance.compare import compare
from conformance.judging import judge
from conformance.loading import Case, Check, Expected, checks
from conformance.mutants import Mutant, mutants
from conformance.results import Result

FEW = 3
RELATIVE = 1e-6

Outputs = dict[str, Any]


def looks_like(result: Result, case: Case) -> str | None:
    """Say what a wrong result looks like, or None where no mutant gives it, or more than a few do."""
    if result.outcome != "differs" or not result.outputs.keys() & case.expect.keys():
        return None
    check = next(check for check in checks(case) if check.name == result.check)
    if _is_right(result.outputs, check):  # a law is broken, or an argument was modified: the numbers tell nothing
        return None
    found = suspects(result.outputs, check, recomputed(check))
    return " Or: ".join(f"{mutant.wrong} ({mutant.name})" for mutant in found) if 0 < len(found) <= FEW else None


def suspects(outputs: Outputs, check: Check, candidates: Iterable[tuple[Mutant, Outputs]]) -> list[Mutant]:
    """The mutants whose outputs are these: each number within the case's budget, or 1e-6 of itself."""
    names = [name for name in outputs if name in check.case.expect]
    found = [m for m, theirs in candidates if all(_alike(outputs, theirs, check, name) for name in names)]
    return list(dict.fromkeys(found))


def recomputed(check: Check) -> Iterator[tuple[Mutant, Outputs]]:
    """Each mutant that is wrong on the check by its numbers, with its outputs."""
    routes = [check]
    if check.op == "flash_attention":  # what is wrong in the dense definition may be wrong tile by tile as well
        options = {name: value for name, value in check.options.items() if name != "block_size"}
        routes.append(replace(check, op="attention_steps", options=options))
    for mutant in mutants():
        for route in routes:
            outputs = judge(route, mutant.backend()).outputs
            if not _is_right(outputs, check):
                yield mutant, outputs


def _is_right(outputs: Outputs, check: Check) -> bool:
    expect = check.case.expect
    return all(compare(expect[name], outputs[name]).ok for name in check.outputs if name in outputs)


def _alike(outputs: Outputs, theirs: Outputs, check: Check, name: str) -> bool:
    ours, other = outputs[name], theirs.get(name)
    if not (isinstance(ours, np.ndarray) and isinstance(other, np.ndarray)):
        return type(ours) is type(other) and ours == other
    if (ours.dtype, ours.shape) != (other.dtype, other.shape):
        return False
    return _is_close(ours.astype(np.float64), other.astype(np.float64), check.case.expect[name])


def _is_close(ours: np.ndarray, other: np.ndarray, expected: Expected) -> bool:
    has_budget = expected.budget is not None and ours.shape == expected.shape
    allowed = np.fmax(RELATIVE * np.abs(other), expected.budget if has_budget else 0)
    with np.errstate(invalid="ignore"):
        near = np.abs(ours - other) <= allowed
    return bool((near | (ours == other) | (np.isnan(ours) & np.isnan(other))).all())
