"""Softmax and logsumexp over the visible keys; the rule of the empty row lives here and nowhere else.

A row is empty when no key of it is visible (and it has no sink). That is told from visibility, never
from the scores: a visible score may overflow to -inf too, and is then no mask (E1, E5).
"""

from __future__ import annotations

import torch

from .arrays import guard, where


def softmax(masked, visible, sinks=None):
    """Weights and log-denominator of each row, over its visible keys alone (E1, E4).

    masked (..., T, S) in the compute dtype, -inf where hidden; visible (..., T, S) boolean;
    sinks (..., 1, 1): one more logit in the denominator, which has no value (C7).
    Returns weights (..., T, S) and lse (..., T). The row maximum is subtracted before exp (F1):
    Milakov and Gimelshein 2018, "Online normalizer calculation for softmax", equation 2.
    """
    top = row_top(masked)
    found = visible.any(dim=-1, keepdim=True)
    if sinks is not None:
        top = torch.maximum(top, sinks.detach())
        found = found | (sinks != -torch.inf)
    numerators = exponentials(masked, visible, top)
    total = numerators.sum(dim=-1, keepdim=True)
    if sinks is not None:
        total = total + exponentials(sinks, sinks != -torch.inf, top)
    divisor, lse = close(top, total, found)
    weights = where(visible, numerators / divisor, 0)  # a NaN row still has no weight at a hidden pair
    return weights, lse[..., 0]


def row_top(masked):
    """The largest score of each row (..., T, 1), -inf where there is none; NaN wins."""
    if masked.shape[-1] == 0:  # torch: the maximum of nothing is refused
        return masked.new_full((*masked.shape[:-1], 1), -torch.inf)
    return masked.detach().amax(dim=-1, keepdim=True)  # torch: it cancels out, so it takes no part in the gradient


def shift(top):
    """What is subtracted before exp: the row maximum, or 0 where it is -inf (-inf - -inf is NaN)."""
    return top.clamp(min=torch.finfo(top.dtype).min)  # torch: -inf less the lowest number is -inf, as less 0


def exponentials(masked, visible, top):
    """exp(score - top) at the visible pairs, exactly 0 at the hidden ones."""
    shifted = masked - shift(top)
    # torch: a row that is not finite gives nothing to the gradient: 0 * NaN would reach all that it sees.
    return where(visible, torch.exp(guard(shifted, shifted.isfinite())), 0)


def close(top, total, found):
    """The divisor of each row and its lse; an empty row is divided by 1 and has lse -inf (E1)."""
    divisor = where(found, total, 1)
    lse = where(found, shift(top) + torch.log(divisor), -torch.inf)
    return divisor, lse
