"""Explain a wrong output: name the mutants that give the same numbers on the same case."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from conformance import tally
from conformance.compare import compare
from conformance.judging import judge
from conformance.loading import Case, Check, Expected, checks
from conformance.mutants import Mutant, mutants
from conformance.results import Result

FEW = 3
RELATIVE = 1e-6
PART = 0.1  # of its error may stay unexplained in a number, which tells small errors apart

Outputs = dict[str, Any]


def looks_like(result: Result, case: Case, passed: Sequence[Check] = ()) -> str | None:
    """Say what a wrong result looks like, or None where no mutant gives it, or more than a few do.

    `passed` are checks that the same backend has passed: a mutant that they reject is none that it looks like, unless
    they reject every one.
    """
    if result.outcome != "differs" or not result.outputs.keys() & case.expect.keys():
        return None
    check = next(check for check in checks(case) if check.name == result.check)
    if _is_right(result.outputs, check):  # a law is broken, or an argument was modified: the numbers tell nothing
        return None
    found = suspects(result.outputs, check, recomputed(check))
    alike = [one for one in passed if one.op == check.op]
    found = [mutant for mutant in found if not _is_refuted(mutant, alike)] or found
    return " Or: ".join(f"{mutant.wrong} ({mutant.name})" for mutant in found) if 0 < len(found) <= FEW else None


def suspects(outputs: Outputs, check: Check, candidates: Iterable[tuple[Mutant, Outputs]]) -> list[Mutant]:
    """The mutants whose outputs are these, the nearest first, and of equally near ones those of the case's flags.

    A number may be off by what rounding explains, or by 1e-6 of itself, if that is little beside its error.
    """
    names = [name for name in outputs if name in check.case.expect]
    found: dict[Mutant, float] = {}
    for mutant, theirs in candidates:
        distance = max(_distance(outputs, theirs, check, name) for name in names)
        if distance < np.inf:
            found[mutant] = min(distance, found.get(mutant, np.inf))
    return sorted(found, key=lambda mutant: (found[mutant], not {*mutant.flags} & {*check.case.flags}))


def recomputed(check: Check) -> Iterator[tuple[Mutant, Outputs]]:
    """Each mutant that is wrong on the check by its numbers, with its outputs."""
    routes = [check]
    if check.op == "flash_attention":  # what is wrong in the dense definition may be wrong tile by tile as well
        options = {name: value for name, value in check.options.items() if name != "block_size"}
        routes.append(replace(check, op="attention_steps", options=options))
    for mutant in mutants():
        if "run-dependent-bits" in mutant.flags:  # what changes from call to call has no numbers of its own
            continue
        for route in routes:
            outputs = judge(route, mutant.backend()).outputs
            if not _is_right(outputs, check):
                yield mutant, outputs


def _is_right(outputs: Outputs, check: Check) -> bool:
    expect = check.case.expect
    return all(compare(expect[name], outputs[name]).ok for name in check.outputs if name in outputs)


def _is_refuted(mutant: Mutant, passed: Sequence[Check]) -> bool:
    """Tell whether one of the checks that carry a flag of the mutant rejects it."""
    flagged = (one for one in passed if {*mutant.flags} & {*one.case.flags})
    return any(judge(one, mutant.backend()).outcome in tally.WRONG for one in flagged)


def _distance(outputs: Outputs, theirs: Outputs, check: Check, name: str) -> float:
    """Give the largest part of itself by which a number is another: 0 within rounding, infinite where it is too far."""
    ours, other = outputs[name], theirs.get(name)
    if not (isinstance(ours, np.ndarray) and isinstance(other, np.ndarray)):
        return 0.0 if type(ours) is type(other) and ours == other else np.inf
    if (ours.dtype, ours.shape) != (other.dtype, other.shape):
        return np.inf
    return _largest(ours.astype(np.float64), other.astype(np.float64), check.case.expect[name])


def _largest(ours: np.ndarray, other: np.ndarray, expected: Expected) -> float:
    is_judged = expected.budget is not None and ours.shape == expected.shape
    with np.errstate(invalid="ignore", divide="ignore"):
        gap = np.abs(ours - other)
        part = RELATIVE * np.abs(other)
        rounding = 2 * expected.budget if is_judged else 0  # two right numbers may be that far apart
        allowed = np.fmax(rounding, np.fmin(part, PART * np.abs(ours - expected.values)) if is_judged else part)
        same = (gap <= rounding) | (ours == other) | (np.isnan(ours) & np.isnan(other))
        distance = np.where(same, 0, np.where(gap <= allowed, gap / np.abs(other), np.inf))
    return float(distance.max(initial=0))
