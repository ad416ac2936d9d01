"""Laws: what has to hold between the outputs of two calls on the same backend, bit for bit or within the budget."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from conformance.adapters.rules import array_names
from conformance.asking import Answer, Arrays
from conformance.compare import Verdict, compare, different_bits, differs, same_bits
from conformance.facts import Given
from conformance.loading import Check

# How many axes follow the leading ones; an array that is not named here (sinks, scale) has no leading axes.
_CORE = {"q": 2, "k": 2, "v": 2, "mask": 2, "bias": 2}


@dataclass(frozen=True)
class _Again:
    """A further call: its arrays, and which part of the first call's outputs it has to give (None: all of them).

    Where it is not `exact` it has to give what is expected of the first call, within the budget. Where it is not
    `compared` it only has to leave the outputs of the first call as they are.
    """

    law: str
    when: str
    arrays: Arrays
    part: slice | None = None
    exact: bool = True
    compared: bool = True


def calls(check: Check) -> list[Arrays]:
    """Give the array arguments of the further calls that the check's laws need."""
    return [again.arrays for again in _again(check)]


def broken(check: Check, answers: Sequence[Answer]) -> Verdict | None:
    """Give the first break of a law, or None if all hold; `answers` are those of the first and the further calls."""
    first, *others = answers
    for again, other in zip(_again(check), others, strict=False):
        if other.raised:
            return differs(again.law, f"the call raises {again.when}: {other.raised.line}")
        for name, output in first.outputs.items() if again.compared else ():
            second = other.outputs.get(name)
            verdict = _other_bits(again, name, output, second) if again.exact else _beyond(again, name, check, second)
            if verdict is not None:
                return verdict
    return None


def _other_bits(again: _Again, name: str, first: Any, second: Any) -> Verdict | None:
    part = first if again.part is None else first[again.part]
    if same_bits(part, second):
        return None
    return _difference(again.law, f"{name}: other bits {again.when}", part, second)


def _beyond(again: _Again, name: str, check: Check, second: Any) -> Verdict | None:
    if name not in check.outputs:
        return None
    verdict = compare(check.case.expect[name], second)
    return None if verdict.ok else replace(verdict, what=again.law, message=f"{name} {again.when}: {verdict.message}")


def _again(check: Check) -> Iterator[_Again]:
    for law in check.case.laws:
        yield from _LAWS[law](check)


def _repeat(check: Check) -> Iterator[_Again]:
    yield _Again("repeat", "when the call is repeated", check.case.arrays)


def _unmoved(check: Check) -> Iterator[_Again]:
    yield _Again("unmoved", "when what is hidden is replaced", check.case.arrays | check.case.instead)


def _kept(check: Check) -> Iterator[_Again]:
    doubled = {name: 2 * check.case.arrays[name] for name in ("q", "k", "v")}
    yield _Again("kept", "with other values", check.case.arrays | doubled, compared=False)


def _alone(check: Check) -> Iterator[_Again]:
    shape = check.case.expect["out"].shape
    core = _CORE | array_names(check.options.get("mask"))
    for i in range(shape[0]):
        arrays = {name: _element(array, i, len(shape), core.get(name)) for name, array in check.case.arrays.items()}
        yield _Again("alone", f"when element {i} of the first axis is computed alone", arrays, slice(i, i + 1))


def _layout(check: Check) -> Iterator[_Again]:
    arrays = {n: a if isinstance(a, Given) else np.array(a, order="F") for n, a in check.case.arrays.items()}
    # A matrix product may add up in another order when its arrays lie otherwise in memory.
    yield _Again("layout", "when the arrays lie in memory column by column", arrays, exact=False)


_LAWS = {"repeat": _repeat, "alone": _alone, "unmoved": _unmoved, "kept": _kept, "layout": _layout}


def _element(array: Any, i: int, axes: int, core: int | None) -> Any:
    """Cut the i-th element from the first leading axis, if the array has that axis and is not broadcast on it."""
    if core is None or isinstance(array, Given) or array.ndim - core < axes - 2 or array.shape[0] == 1:
        return array
    return array[i : i + 1]


def _difference(law: str, message: str, first: Any, second: Any) -> Verdict:
    alike = [isinstance(a, np.ndarray) and (a.dtype, a.shape) == (first.dtype, first.shape) for a in (second, first)]
    if not all(alike):
        return differs(law, message)
    index = tuple(int(i) for i in np.argwhere(different_bits(first, second))[0])
    numbers = {"index": index, "expected": first[index].item(), "got": second[index].item()}
    return differs(law, f"{message}, first at {index}: {numbers['expected']} became {numbers['got']}", **numbers)
