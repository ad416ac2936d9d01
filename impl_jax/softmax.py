"""Softmax and logsumexp over the visible keys; the rule of the empty row lives here and nowhere else.

A row is empty when no key of it is visible (and it has no sink). That is told from visibility, never
from the scores: a visible score may overflow to -inf too, and is then no mask (E1, E5).
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax

from .arrays import guard, where


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
        top = jnp.maximum(top, sinks)
        found = found | (sinks != -jnp.inf)
    numerators = exponentials(masked, visible, top)
    total = numerators.sum(axis=-1, keepdims=True)
    if sinks is not None:
        total = total + exponentials(sinks, True, top)
    divisor, lse = close(top, total, found)
    weights = where(visible, numerators / divisor, 0)  # a NaN row still has no weight at a hidden pair
    return weights, lse[..., 0]


def row_top(masked):
    """The largest score of each row (..., T, 1), -inf where there is none; NaN wins."""
    # jax: a constant for the derivative, like what is subtracted.
    return lax.stop_gradient(masked).max(axis=-1, keepdims=True, initial=-jnp.inf)


def shift(top):
    """What is subtracted before exp: the row maximum, or 0 where it is -inf (-inf - -inf is NaN)."""
    # jax: a constant for the derivative, since neither the weights nor the lse depend on it.
    return lax.stop_gradient(where(top != -jnp.inf, top, 0))


def exponentials(masked, visible, top):
    """exp(score - top) at the visible pairs, exactly 0 at the hidden ones."""
    # jax: XLA may compute `masked` anew here, with another rounding, or subtract from a product that it never rounds.
    # With huge scores that is noise where 0 is due: nothing may exceed the top, and the derivative does not notice.
    limit = lax.stop_gradient(top) + (masked - lax.stop_gradient(masked))
    shifted = where(masked <= top, masked, limit) - shift(top)
    # jax: a row that is lost gives nothing to any gradient; 0 * NaN would reach the keys that it sees.
    return where(visible, jnp.exp(guard(shifted, jnp.isfinite(shifted))), 0)


def close(top, total, found):
    """The divisor of each row and its lse; an empty row is divided by 1 and has lse -inf (E1)."""
    divisor = where(found, total, 1)
    lse = where(found, shift(top) + jnp.log(divisor), -jnp.inf)
    return divisor, lse
