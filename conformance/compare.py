"""Compare one output with what is expected of it: kind, dtype, shape, non-finite pattern, then the values."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from conformance.loading import Expected


@dataclass(frozen=True)
class Verdict:
    """What a comparison found, in numbers.

    `what` is "equal", or the first thing that differs: "kind", "dtype", "shape", "non-finite" or "values" (a
    broken law puts its own word there). `ratio` is the worst error / budget of all elements, infinite where
    no error can be measured. `index` is the first differing element, or the worst one where none differs;
    `expected`, `got` and `budget` are the numbers there. `message` is one sentence.
    """

    ok: bool
    what: str
    ratio: float
    message: str
    index: tuple[int, ...] | None = None
    expected: Any = None
    got: Any = None
    budget: float | None = None

    def __bool__(self) -> bool:
        raise TypeError("a Verdict has no truth value, lest it be used without its numbers: read its `ok`")


@dataclass(frozen=True)
class Foreign:
    """An output that is no array of the backend's own kind: the name of its type."""

    kind: str


def differs(what: str, message: str, **numbers: Any) -> Verdict:
    """Make the verdict of a difference that no budget measures."""
    return Verdict(False, what, float("inf"), message, **numbers)


def compare(expected: Expected, got: Any) -> Verdict:
    """Judge `got`, an output that was brought to NumPy or is `Foreign`, against `expected`.

    An expected NaN accepts whatever is not finite, but no -inf in an lse; infinities, integers, booleans and text
    must be exact; a finite number must be within its budget. Raises ValueError where the expectation itself is
    broken: a finite number whose budget is no number >= 0.
    """
    if expected.dtype == "text":
        return _compare_text(expected.values, got)
    if not isinstance(got, np.ndarray):
        return differs("kind", f"got a {_kind(got)}, which is not an array of the backend's own kind")
    if not _is_dtype(got, expected.dtype):
        return differs("dtype", f"the dtype is {got.dtype.name}, expected {expected.dtype}")
    if got.shape != tuple(expected.shape):
        return differs("shape", f"the shape is {got.shape}, expected {tuple(expected.shape)}")
    values = np.asarray(expected.values).reshape(got.shape)
    if expected.budget is None:
        return _compare_exactly(values, got)
    budget = np.asarray(expected.budget, np.float64).reshape(got.shape)
    return _compare_values(values, got, budget, expected.is_lse)


def _compare_text(expected: str, got: Any) -> Verdict:
    if not isinstance(got, str):
        return differs("kind", f"got a {_kind(got)}, expected text")
    at = next((at for at, (a, b) in enumerate(zip_longest(expected, got)) if a != b), None)
    if at is None:
        return Verdict(True, "equal", 0.0, "the text is equal")
    message = f"the text differs from character {at} on: expected {expected!r}, got {got!r}"
    return differs("values", message, index=(at,), expected=expected, got=got)


def _kind(got: Any) -> str:
    return got.kind if isinstance(got, Foreign) else type(got).__name__


def _is_dtype(array: np.ndarray, dtype: str) -> bool:
    # Which integer dtype an index has is the framework's choice.
    return array.dtype.kind in "iu" if dtype == "integer" else array.dtype.name == dtype


def _compare_exactly(expected: np.ndarray, got: np.ndarray) -> Verdict:
    wrong = expected != got
    if not wrong.any():
        return Verdict(True, "equal", 0.0, "every element is equal")
    index = _first(wrong)
    a, b = expected[index].item(), got[index].item()
    message = f"{wrong.sum()} of {wrong.size} elements differ, first at {index}: expected {a}, got {b}"
    return differs("values", message, index=index, expected=a, got=b)


def _compare_values(expected: np.ndarray, got: np.ndarray, budget: np.ndarray, is_lse: bool) -> Verdict:
    if not (budget >= 0)[np.isfinite(expected)].all():
        raise ValueError("an error budget is NaN or negative; it must be a number >= 0 wherever a number is due")
    got = got.astype(np.float64)
    wrong = _wrong_pattern(expected, got) | (is_lse & np.isnan(expected) & (got == -np.inf))
    if wrong.any():
        return _verdict("non-finite", np.where(wrong, np.inf, 0.0), expected, got, budget)
    return _verdict("values", _error_ratio(expected, got, budget), expected, got, budget)


def _wrong_pattern(expected: np.ndarray, got: np.ndarray) -> np.ndarray:
    """Tell where one is finite and the other is not, or an expected infinity is another one."""
    return np.where(np.isinf(expected), got != expected, np.isfinite(got) != np.isfinite(expected))


def _error_ratio(expected: np.ndarray, got: np.ndarray, budget: np.ndarray) -> np.ndarray:
    """Give |got - expected| / budget: 0 where both are equal or not finite, infinite over a budget of 0."""
    finite = np.isfinite(expected) & np.isfinite(got)
    error = np.abs(np.subtract(got, expected, where=finite, out=np.zeros(finite.shape)))
    over = np.where(error > 0, np.inf, 0.0)
    return np.divide(error, budget, where=(error > 0) & (budget > 0), out=over)


def _verdict(what: str, ratio: np.ndarray, expected: np.ndarray, got: np.ndarray, budget: np.ndarray) -> Verdict:
    if ratio.size == 0:
        return Verdict(True, "equal", 0.0, "there are no elements to differ")
    worst = float(ratio.max())
    wrong = ratio > 1
    index = _first(wrong if wrong.any() else ratio == worst)
    numbers = (index, expected[index].item(), got[index].item(), budget[index].item())
    at = "at {}: expected {}, got {}, budget {:.3g}".format(index, *told_apart(*numbers[1:3]), numbers[3])
    if wrong.any():
        message = f"{wrong.sum()} of {wrong.size} elements differ, the worst by {worst:.3g} budgets, first {at}"
        return Verdict(False, what, worst, message, *numbers)
    return Verdict(True, "equal", worst, f"the worst error is {worst:.3g} of its budget, {at}", *numbers)


def told_apart(one: float, other: float) -> tuple[str, str]:
    """Write two numbers in nine digits, or in two more than the first that shows that they differ."""
    digits = 9
    while digits < 17 and one != other and f"{one:.{digits}g}" == f"{other:.{digits}g}":
        digits += 1
    digits = digits if digits == 9 else min(digits + 2, 17)
    return f"{one:.{digits}g}", f"{other:.{digits}g}"


def _first(where: np.ndarray) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(np.argmax(where), where.shape))


def same_bits(first: Any, second: Any) -> bool:
    """Tell whether two arrays have the same dtype, shape and bits (NaN equals NaN), or are one text."""
    if not (isinstance(first, np.ndarray) and isinstance(second, np.ndarray)):
        return type(first) is type(second) and first == second
    alike = (first.dtype, first.shape) == (second.dtype, second.shape)
    return alike and not different_bits(first, second).any()


def different_bits(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Tell where two arrays of one dtype and shape differ in any bit; NaN equals NaN."""
    differ = (_bytes(first) != _bytes(second)).any(axis=-1)
    return differ & ~((first != first) & (second != second))


def _bytes(array: np.ndarray) -> np.ndarray:
    return np.frombuffer(array.tobytes(), np.uint8).reshape(*array.shape, array.dtype.itemsize)
