"""Wrong merging: without weights, without maximum, with parts that have no keys."""

from __future__ import annotations

import numpy as np

from conformance.mutants.memory import Honest
from conformance.mutants.record import replaces


@replaces("shares", "merge-averages")
def parts_averaged(self, lses):
    """Parts are averaged without the weights of their denominators."""
    return np.ones_like(lses), lses.max(axis=0)


@replaces("joined", "merge-empty-part-counts")
def parts_without_keys_multiplied_by_zero(self, shares, outs):
    """The out of a part without keys is multiplied by 0, and 0 * NaN is NaN."""
    return (shares * outs).sum(axis=0)


@replaces("lse_in", "merge-empty-part-counts")
def parts_without_keys_at_minus_ten(self, lse, dtype):
    """A part with lse = -inf has the weight of e^-10."""
    return np.maximum(lse, -10)


@replaces("shares", "merge-empty-part-nan")
def parts_of_minus_infinity_from_each_other(self, lses):
    """-inf - -inf is computed where no part has a key."""
    top = lses.max(axis=0)
    return np.exp(lses - top), top


@replaces("shares", "maximum-over-all-rows")
def parts_with_one_maximum(self, lses):
    """One maximum is subtracted for all rows."""
    top = np.full_like(lses[0], lses.max(initial=-np.inf))
    return np.exp(lses - self.shift(top)), top


@replaces("shares", "no-maximum-subtracted")
def parts_without_a_maximum(self, lses):
    """exp is taken of lse as it is."""
    return np.exp(lses), np.zeros_like(lses[0])


@replaces("merge", "merge-of-two-only")
def parts_beyond_two_dropped(self, parts):
    """Parts beyond the second are left out."""
    return Honest.merge(self, parts[:2])


@replaces("merged_lse", "merge-without-log")
def lse_as_a_sum_of_lse(self, lses, top, total):
    """The merged lse is the sum of the parts' lse."""
    return lses.sum(axis=0)


@replaces("merged_lse", "merge-without-log")
def lse_of_the_largest_part(self, lses, top, total):
    """The merged lse is that of the largest part."""
    return top


@replaces("lse_in", "lse-in-input-dtype")
def lse_of_parts_rounded(self, lse, dtype):
    """The parts' lse is rounded to the inputs' half type."""
    return lse.astype(dtype).astype(lse.dtype)


@replaces("shares", "visible-nan-swallowed")
def parts_of_nan_without_weight(self, lses):
    """A part whose lse is NaN is taken for one without keys."""
    return Honest.shares(self, np.where(np.isnan(lses), -np.inf, lses))
