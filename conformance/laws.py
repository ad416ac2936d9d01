"""Laws: what has to hold, bit for bit, between the outputs of two calls on the same backend."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from conformance.adapter import Backend
from conformance.adapters.rules import array_names
from conformance.asking import Answer, ask, line
from conformance.compare import Verdict, different_bits, differs, same_bits
from conformance.facts import Given
from conformance.loading import Check

# How many axes follow the leading ones; an array that is not named here (sinks, scale) has no leading axes.
_CORE = {"q": 2, "k": 2, "v": 2, "mask": 2, "bias": 2}


def broken(law: str, check: Check, backend: Backend, answer: Answer) -> Verdict | None:
    """Give the first break of the law, or None if it holds; `answer` is that of the check's own call."""
    for when, arrays, outputs in _LAWS[law](check, answer):
        again = ask(backend, check.op, arrays, check.options)
        if again.raised:
            return differs(law, f"the call raises {when}: {line(again.raised)}")
        for name, first in outputs.items():
            if not same_bits(first, again.outputs.get(name)):
                return _difference(law, f"{name}: other bits {when}", first, again.outputs.get(name))
    return None


Call = tuple[str, dict[str, Any], dict[str, Any]]


def _repeat(check: Check, answer: Answer) -> Iterator[Call]:
    yield "when the call is repeated", check.case.arrays, answer.outputs


def _unmoved(check: Check, answer: Answer) -> Iterator[Call]:
    arrays = check.case.arrays | check.case.instead
    yield "when what is hidden is replaced", arrays, answer.outputs


def _alone(check: Check, answer: Answer) -> Iterator[Call]:
    out = answer.outputs["out"]
    core = _CORE | array_names(check.options.get("mask"))
    for i in range(out.shape[0]):
        arrays = {name: _element(array, i, out, core.get(name)) for name, array in check.case.arrays.items()}
        outputs = {name: array[i : i + 1] for name, array in answer.outputs.items()}
        yield f"when element {i} of the first axis is computed alone", arrays, outputs


_LAWS = {"repeat": _repeat, "alone": _alone, "unmoved": _unmoved}


def _element(array: Any, i: int, out: np.ndarray, core: int | None) -> Any:
    """Cut the i-th element from the first leading axis, if the array has that axis and is not broadcast on it."""
    if core is None or isinstance(array, Given) or array.ndim - core < out.ndim - 2 or array.shape[0] == 1:
        return array
    return array[i : i + 1]


def _difference(law: str, message: str, first: Any, second: Any) -> Verdict:
    alike = [isinstance(a, np.ndarray) and (a.dtype, a.shape) == (first.dtype, first.shape) for a in (second, first)]
    if not all(alike):
        return differs(law, message)
    index = tuple(int(i) for i in np.argwhere(different_bits(first, second))[0])
    numbers = {"index": index, "expected": first[index].item(), "got": second[index].item()}
    return differs(law, f"{message}, first at {index}: {numbers['expected']} became {numbers['got']}", **numbers)
