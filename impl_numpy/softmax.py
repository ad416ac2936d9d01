"""Softmax and logsumexp over the visible keys; the rule of the empty row lives here and nowhere else.

A row is empty when no key of it is visible (and it has no sink). That is told from visibility, never
from the scores: a visible score may overflow to -inf too, and is then no mask (E1, E5).
"""

from __future__ import annotations

import numpy as np

from .arrays import where


def softmax(masked, visible, sinks=None):
    """Weights and log-denominator of each row, over its visible keys alone (E1, E4).

    masked (..., T, S) in the compute dtype, -inf where hidden; visible (..., T, S) boolean;
    sinks (..., 1, 1): one more logit in the denominator, which has no value (C7).
    Returns weights (..., T, S) and lse (..., T). The row maximum is subtracted before exp (F1):
    Milakov and Gimelshein 2018, "Online normalizer calculation for softmax", equation 2.
    """
    top = row_top(masked)
    found = visible.any(axis=-1, keepdims=True)
    if sinks is not None:
        top = np.maximum(top, sinks)
        found = found | (sinks != -np.inf)
    numerators = exponentials(masked, visible, top)
    total = numerators.sum(axis=-1, keepdims=True)
    if sinks is not None:
        total = total + np.exp(sinks - shift(top))
    divisor, lse = close(top, total, found)
    weights = where(visible, numerators / divisor, 0)  # a NaN row still has no weight at a hidden pair
    return weights, lse[..., 0]


def row_top(masked):
    """The largest score of each row (..., T, 1), -inf where there is none; NaN wins."""
    return masked.max(axis=-1, keepdims=True, initial=-np.inf)


def shift(top):
    """What is subtracted before exp: the row maximum, or 0 where it is -inf (-inf - -inf is NaN)."""
    return where(top != -np.inf, top, 0)


def exponentials(masked, visible, top):
    """exp(score - top) at the visible pairs, exactly 0 at the hidden ones."""
    return where(visible, np.exp(masked - shift(top)), 0)


def close(top, total, found):
    """The divisor of each row and its lse; an empty row is divided by 1 and has lse -inf (E1)."""
    divisor = where(found, total, 1)
    lse = where(found, shift(top) + np.log(divisor), -np.inf)
    return divisor, lse
