"""The arithmetics in which the oracle can be evaluated: Python floats, or mpmath with many digits.

The third one, which follows the rounding errors, is in tracked.py. All have the same methods, so that the
oracle is written once. Numbers of one arithmetic are added, subtracted, multiplied and divided by operators.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import ml_dtypes
import mpmath

from conformance.facts import dtype_of


@dataclass(frozen=True)
class Format:
    """A floating-point format: its unit roundoff, its largest number, and its smallest two positive ones."""

    unit: float
    largest: float
    smallest_normal: float
    smallest: float


@cache
def format_of(dtype: str) -> Format:
    """The format of a floating dtype, given by its name."""
    info = ml_dtypes.finfo(dtype_of(dtype))
    # ml_dtypes counts eps from 1 to the next number; the unit roundoff is half of it.
    return Format(
        unit=float(info.eps) / 2,
        largest=float(info.max),
        smallest_normal=float(info.smallest_normal),
        smallest=float(info.smallest_subnormal),
    )


class Plain:
    """Python floats, summed without rounding errors by math.fsum; ``dtype`` is the compute dtype it judges."""

    def __init__(self, dtype: str = "float32"):
        self.format = format_of(dtype)

    def number(self, x: float) -> Any:
        """An input, which every implementation has exactly."""
        return float(x)

    def parameter(self, x: float) -> Any:
        """A number that an implementation first rounds to the compute dtype: scale, softcap, beta."""
        return self.number(x)

    def value(self, x: Any) -> Any:
        """The number itself, without what the arithmetic knows about its error."""
        return x

    def is_nan(self, x: Any) -> bool:
        return self.value(x) != self.value(x)

    def total(self, terms: list[Any]) -> Any:
        return math.fsum(terms)

    def dot(self, xs: list[Any], ys: list[Any]) -> Any:
        return self.total([x * y for x, y in zip(xs, ys, strict=True)])

    def scaled_dot(self, scale: Any, xs: list[Any], ys: list[Any]) -> Any:
        """scale times dot(xs, ys), wherever an implementation puts the scale."""
        return scale * self.dot(xs, ys)

    def biased(self, score: Any, bias: Any) -> Any:
        """A score with its bias."""
        return score + bias

    def held(self, x: Any) -> Any:
        """A score as the compute dtype holds it: infinite beyond the largest number."""
        if abs(self.value(x)) <= self.format.largest or self.is_nan(x):
            return x
        return self.number(math.copysign(math.inf, self.value(x)))

    def tanh(self, x: Any) -> Any:
        return math.tanh(x)

    def sqrt(self, x: Any) -> Any:
        return math.sqrt(x)

    def exponentials(self, logits: list[Any], top: Any) -> list[Any]:
        """exp(logit - top) for each logit; ``top`` is the value of the largest."""
        return [self._exp(logit - top) for logit in logits]

    def shares(self, terms: list[Any], whole: Any) -> list[Any]:
        """Each term's part of their sum: the softmax weights."""
        return [term / whole for term in terms]

    def recomputed(self, weights: list[Any], logits: list[Any], lse: Any) -> list[Any]:
        """Weights that an implementation may find again as exp(logit - lse)."""
        return weights

    def log_sum(self, logits: list[Any], top: Any, whole: Any) -> Any:
        """The log of the softmax denominator of the logits, where ``whole`` is its sum with ``top`` taken out."""
        return top + self._log(whole)

    def either(self, one: Any, other: Any) -> Any:
        """One number that may be computed in two ways."""
        return one

    def _exp(self, x: Any) -> Any:
        return math.exp(x)

    def _log(self, x: Any) -> Any:
        return math.log(x)


class Precise(Plain):
    """mpmath with ``digits`` decimal digits: for float64, whose errors Python's floats cannot measure."""

    def __init__(self, dtype: str = "float64", digits: int = 50):
        super().__init__(dtype)
        self._context = mpmath.MPContext()
        self._context.dps = digits

    def number(self, x: float) -> Any:
        return self._context.mpf(x)

    def total(self, terms: list[Any]) -> Any:
        return self._context.fsum(terms)

    def _exp(self, x: Any) -> Any:
        return self._context.exp(x)

    def _log(self, x: Any) -> Any:
        return self._context.log(x)

    def tanh(self, x: Any) -> Any:
        return self._context.tanh(x)

    def sqrt(self, x: Any) -> Any:
        return self._context.sqrt(x)
