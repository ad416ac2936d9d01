"""Running error analysis: numbers that carry a bound on their rounding error. budget.py says why each bound holds."""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import Any

from conformance.arithmetic import Format, Plain, Precise

# Errors in units in the last place that the OpenCL C specification allows in single precision.
ULPS = {"divide": 2.5, "exp": 3.0, "log": 3.0, "sqrt": 3.0, "tanh": 5.0}

SCALE_PLACES = 3  # on the queries, on the keys, on the scores
BASE_TWO = 2  # the constant log2(e) and the product with it, where exp2 stands for exp
ROUNDED_SHIFT = 1  # the row maximum, scaled and rounded before it is subtracted


class Tracked:
    """A value, and how far from it a number can be that was computed with rounding errors."""

    __slots__ = ("error", "format", "value")

    def __init__(self, value: Any, error: float, format: Format):
        self.value = value
        # No distance is measured to NaN or infinity.
        self.error = error if math.isfinite(value) else 0.0
        self.format = format

    def __neg__(self) -> Tracked:
        return Tracked(-self.value, self.error, self.format)

    def __add__(self, other: Tracked) -> Tracked:
        return self._rounded(self.value + other.value, self.error + other.error)

    def __sub__(self, other: Tracked) -> Tracked:
        return self + -other

    def __mul__(self, other: Tracked) -> Tracked:
        return self._rounded(self.value * other.value, product_error(self, other))

    def __truediv__(self, other: Tracked) -> Tracked:
        ratio = self.value / other.value
        error = (self.error + size(ratio) * other.error) / size(other.value)
        return self._rounded(ratio, error, ulps(ULPS["divide"]))

    def _rounded(self, value: Any, error: float, roundings: float = 1.0) -> Tracked:
        return Tracked(value, error + rounding(value, self.format, roundings), self.format)


class Following(Plain):
    """The arithmetic of tracked numbers for one compute dtype; float64 is followed in mpmath."""

    def __init__(self, dtype: str = "float32"):
        super().__init__(dtype)
        self._exact = Precise(dtype) if dtype == "float64" else Plain(dtype)

    def number(self, x: float) -> Tracked:
        return Tracked(self._exact.number(x), 0.0, self.format)

    def parameter(self, x: float) -> Tracked:
        return self._with(self._exact.number(x), rounding(x, self.format))

    def value(self, x: Tracked) -> Any:
        return x.value

    def total(self, terms: list[Tracked]) -> Tracked:
        value = self._exact.total([term.value for term in terms])
        error = sum(term.error for term in terms)
        sizes = sum(size(term.value) + term.error for term in terms)
        return self._with(value, error + gamma(len(terms) - 1, self.format) * sizes)

    def dot(self, xs: list[Tracked], ys: list[Tracked]) -> Tracked:
        value = self._exact.dot([x.value for x in xs], [y.value for y in ys])
        return self._with(value, self._dot_error(xs, ys, len(xs)))

    def scaled_dot(self, scale: Tracked, xs: list[Tracked], ys: list[Tracked]) -> Tracked:
        plain = self._exact.dot([x.value for x in xs], [y.value for y in ys])
        inner = self._dot_error(xs, ys, len(xs) + SCALE_PLACES + BASE_TWO)
        error = size(scale.value) * inner + scale.error * (size(plain) + inner)
        return self._with(scale.value * plain, error + self._scaled_underflow(scale, xs, ys))

    def biased(self, score: Tracked, bias: Tracked) -> Tracked:
        folded = self._with(bias.value, rounding(bias.value, self.format, BASE_TWO))
        return score + folded

    def tanh(self, x: Tracked) -> Tracked:
        value = self._exact.tanh(x.value)
        nearest = max(size(x.value) - x.error, 0.0)
        slope = 1.0 - math.tanh(nearest) ** 2
        return self._with(value, slope * x.error + rounding(value, self.format, ulps(ULPS["tanh"])))

    def sqrt(self, x: Tracked) -> Tracked:
        value = self._exact.sqrt(x.value)
        error = x.error / size(value) if value else math.sqrt(x.error)
        return self._with(value, error + rounding(value, self.format, ulps(ULPS["sqrt"])))

    def exponentials(self, logits: list[Tracked], top: Any) -> list[Tracked]:
        exact = self._exact.exponentials([logit.value for logit in logits], top)
        highest = sorted(logit.value + logit.error for logit in logits)
        terms = []
        for logit, value in zip(logits, exact, strict=True):
            rescales = len(logits) - 1 - bisect_left(highest, logit.value - logit.error)
            error = exponent_spread(float(logit.value - top), self._exponent_error(logit, top))
            roundings = ulps(ULPS["exp"]) + rescales * (ulps(ULPS["exp"]) + 1)
            terms.append(self._with(value, error + rounding(value, self.format, roundings)))
        return terms

    def shares(self, terms: list[Tracked], whole: Tracked) -> list[Tracked]:
        """Numerator and denominator are made of the same terms: what is wrong with one is wrong in both."""
        values = self._exact.shares([term.value for term in terms], whole.value)
        carried = sum(term.error for term in terms)
        roundings = 3 * len(terms) + ulps(ULPS["divide"])  # additions below, rescalings below and above the line
        weights = []
        for term, value in zip(terms, values, strict=True):
            own, others = (1 - size(value)) * term.error, size(value) * (carried - term.error)
            error = (own + others) / least_sum(whole)
            weights.append(self._with(value, error + rounding(value, self.format, roundings)))
        return weights

    def recomputed(self, weights: list[Tracked], logits: list[Tracked], lse: Tracked) -> list[Tracked]:
        top = max((logit.value for logit in logits), default=0.0)
        of_lse = ulps(ULPS["log"]) * size(lse.value - top) + (1 + BASE_TWO) * size(lse.value)
        again = []
        for weight, logit in zip(weights, logits, strict=True):
            roundings = of_lse + size(logit.value - lse.value) + ulps(ULPS["exp"])
            again.append(self._with(weight.value, weight.error + rounding(weight.value, self.format, roundings)))
        return again

    def log_sum(self, logits: list[Tracked], top: Any, whole: Tracked) -> Tracked:
        value = self._exact.log_sum([logit.value for logit in logits], top, whole.value)
        log = rounding(value - top, self.format, ulps(ULPS["log"]))
        # The sum relative to the top never shows that the top itself is off: where that is much, it counts alone.
        carried = max(whole.error / least_sum(whole), moved_log_sum(logits, top))
        return self._with(value, carried + log + rounding(value, self.format, 1 + BASE_TWO))

    def either(self, one: Tracked, other: Tracked) -> Tracked:
        return self._with(one.value, max(one.error, other.error))

    def _with(self, value: Any, error: float) -> Tracked:
        return Tracked(value, error, self.format)

    def _dot_error(self, xs: list[Tracked], ys: list[Tracked], roundings: int) -> float:
        carried = sum(map(product_error, xs, ys))
        sizes = sum(size(x.value * y.value) for x, y in zip(xs, ys, strict=True)) + carried
        flushed = self.format.smallest_normal * sum(1 for x, y in zip(xs, ys, strict=True) if x.value and y.value)
        return carried + gamma(roundings, self.format) * sizes + flushed

    def _scaled_underflow(self, scale: Tracked, xs: list[Tracked], ys: list[Tracked]) -> float:
        """The scale may meet either factor, or their product, where the result is flushed to zero."""
        if not scale.value:
            return 0.0
        factors = [(x.value, y.value) for x, y in zip(xs, ys, strict=True) if x.value and y.value]
        return self.format.smallest_normal * sum(1 + size(x) + size(y) for x, y in factors)

    def _exponent_error(self, logit: Tracked, top: Any) -> float:
        larger = max(size(logit.value), size(top))
        moved = (BASE_TWO + ROUNDED_SHIFT) * larger + size(logit.value - top)
        return logit.error + self.format.unit * moved


def size(x: Any) -> float:
    """The absolute value as a float."""
    return abs(float(x))


def ulps(count: float) -> float:
    """That many units in the last place, in units of the roundoff: an ulp is at most twice the roundoff."""
    return 2.0 * count


def gamma(count: int, format: Format) -> float:
    """n u / (1 - n u), which bounds the relative error of n roundings (Higham 2002, lemma 3.1)."""
    return max(count, 0) * format.unit / (1.0 - count * format.unit)


def rounding(value: Any, format: Format, roundings: float = 1.0) -> float:
    """The error of so many roundings of a value, and of its being flushed to zero; 0 is exact."""
    return roundings * format.unit * size(value) + (format.smallest_normal if value else 0.0)


def least_sum(whole: Tracked) -> float:
    """How small a computed softmax denominator can be: its largest term is 1, since the maximum is subtracted."""
    return max(1.0, float(whole.value) - whole.error)


def product_error(one: Tracked, other: Tracked) -> float:
    """How far the exact product of two inexact numbers can be from that of their values."""
    return size(one.value) * other.error + size(other.value) * one.error + one.error * other.error


def moved_log_sum(logits: list[Tracked], top: Any) -> float:
    """How far log(sum(exp(logits))) moves when each logit moves by its error, up or down."""
    places = [(float(logit.value - top), logit.error) for logit in logits]

    def log_sum(direction: int) -> float:
        moved = [x + direction * error for x, error in places]
        highest = max(moved)
        return highest + math.log(sum(math.exp(x - highest) for x in moved))

    return max(log_sum(1) - log_sum(0), log_sum(0) - log_sum(-1))


def exponent_spread(x: float, error: float) -> float:
    """How far exp(x) can move, x being off by the error, as long as exp(x) stays at or below 1."""
    if x == -math.inf:
        return 0.0
    rise = min(error, -x)
    upward = math.exp(x) * math.expm1(rise) if rise < 1.0 else math.exp(x + rise)
    return max(upward, -math.exp(x) * math.expm1(-error))
