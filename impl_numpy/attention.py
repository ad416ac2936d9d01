"""Attention by its definition: five named steps, dense, every intermediate at hand.

Letters: *B leading batch axes, H query heads, Hk key/value heads, T queries, S keys, D features of
queries and keys, Dv features of values. q (*B, [H,] T, D), k (*B, [Hk,] S, D), v (*B, [Hk,] S, Dv).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from . import checks
from .arrays import all_finite, compute_dtype, finite_part, guard, operand, product, where
from .masks import split_mask, visibility
from .softmax import softmax


class Steps(NamedTuple):
    """Every intermediate of attention: arrays (*B, [H,] T, S), lse (*B, [H,] T) and out (*B, [H,] T, Dv)."""

    scores: Any
    capped: Any
    biased: Any
    masked: Any
    weights: Any
    lse: Any
    out: Any


# --- the public functions --------------------------------------------------------------------------------


def attention(
    q, k, v, mask=None, *, bias=None, is_causal=False, scale=None, softcap=None, sinks=None, enable_gqa=False
):
    """Blend values by how well their keys match each query: softmax(scale * q k^T) v, over the visible pairs.

    q (*B, [H,] T, D), k (*B, [Hk,] S, D), v (*B, [Hk,] S, Dv) of one floating dtype; mask (True = may attend)
    and bias broadcast to (*B, [H,] T, S); sinks (H,) or (). Returns out (*B, [H,] T, Dv) and weights
    (*B, [H,] T, S) in that dtype. A row with no visible key gives 0. Half types are computed in float32.
    Raises TypeError for a wrong type or dtype, ValueError for a wrong shape or value.
    Source: Vaswani et al. 2017, "Attention Is All You Need", equation 1.
    """
    shape = checks.attention(q, k, v, mask, bias, is_causal, scale, softcap, sinks, enable_gqa)
    scale, softcap, wanted = operand(scale), operand(softcap), ("out", "weights")
    return attention_core(wanted, shape, q, k, v, mask, bias, is_causal, scale, softcap, sinks, enable_gqa)


def attention_steps(
    q, k, v, mask=None, *, bias=None, is_causal=False, scale=None, softcap=None, sinks=None, enable_gqa=False
):
    """Do what `attention` does and return every step of it, for teaching and debugging.

    Takes and raises what `attention` does. Returns Steps(scores, capped, biased, masked, weights, lse, out):
    all in the inputs' dtype, but lse in float32 (float64 for float64 inputs).
    Source: Vaswani et al. 2017, equation 1; softcap from Gemma Team 2024, "Gemma 2", section 2.
    """
    shape = checks.attention(q, k, v, mask, bias, is_causal, scale, softcap, sinks, enable_gqa)
    scale, softcap, wanted = operand(scale), operand(softcap), Steps._fields
    steps = attention_core(wanted, shape, q, k, v, mask, bias, is_causal, scale, softcap, sinks, enable_gqa)
    return Steps(*steps)


# --- the definition, in the compute dtype ----------------------------------------------------------------


@np.errstate(all="ignore")
def attention_core(wanted, shape, q, k, v, mask, bias, is_causal, scale, softcap, sinks, enable_gqa):
    """The wanted steps of checked arguments, as a tuple in the inputs' dtype; the lse keeps its own (A2)."""
    steps, _ = compute_steps(shape, q, k, v, mask, bias, is_causal, scale, softcap, sinks, enable_gqa)
    rounded = Steps(*(x.astype(q.dtype) for x in steps))._replace(lse=steps.lse)
    return tuple(getattr(rounded, name) for name in wanted)


def compute_steps(shape, q, k, v, mask, bias, is_causal, scale, softcap, sinks, enable_gqa):
    """The five steps of the contract (C1 to C5) on checked arguments, unrounded, and which pairs are visible."""
    q, k, v, bias, sinks = prepare(shape, q, k, v, bias, sinks, enable_gqa)
    mask, rule = split_mask(mask, is_causal)
    visible = np.broadcast_to(visibility(mask, rule, bias, range(shape[-2]), range(shape[-1])), shape)

    scores = scaled_scores(q, k, default_scale(scale, q))
    capped = cap(guard(scores, visible), guard(softcap, visible))
    biased = capped if bias is None else capped + bias
    masked = where(visible, biased, -np.inf)
    weights, lse = softmax(masked, visible, sinks)
    out = blend(weights, v, visible)
    return Steps(scores, capped, biased, masked, weights, lse, out), visible


def prepare(shape, q, k, v, bias, sinks, enable_gqa):
    """The arrays in the compute dtype, with their heads repeated and their leading axes broadcast (B1, B2, B5)."""
    dtype = compute_dtype(q)
    if enable_gqa:
        groups = q.shape[-3] // k.shape[-3] if k.shape[-3] else 1
        k, v = np.repeat(k, groups, axis=-3), np.repeat(v, groups, axis=-3)
    # numpy: order "C", for another kernel adds up in another order where an axis lies elsewhere in memory (F3)
    q, k, v = (np.ascontiguousarray(x.astype(dtype, copy=False)) for x in (q, k, v))
    q, k, v = (np.broadcast_to(x, shape[:-2] + x.shape[-2:]) for x in (q, k, v))
    bias = None if bias is None else np.asarray(bias).astype(dtype, copy=False)
    sinks = None if sinks is None else sinks.astype(dtype)[..., None, None]
    return q, k, v, bias, sinks


def default_scale(scale, q):
    """1 / sqrt(D) unless a scale is given; an explicit 0 is a scale (B4)."""
    return q.shape[-1] ** -0.5 if scale is None else scale


def scaled_scores(q, k, scale):
    """scale * q k^T (..., T, S); NaN where the query or the key is not finite (C1, E3).

    The scale goes onto the queries, so that no product grows larger than the score itself.
    """
    (q, q_broken), (k, k_broken) = finite_part(q), finite_part(k)
    scores = product(q * scale, k.mT)
    broken = q_broken.any(axis=-1)[..., :, None] | k_broken.any(axis=-1)[..., None, :]
    return np.where(broken, np.nan, scores).astype(q.dtype)


def cap(scores, softcap):
    """softcap * tanh(scores / softcap): scores squeezed into (-softcap, softcap), if it is given (C2)."""
    if softcap is None:
        return scores
    return softcap * np.tanh(scores / softcap)


def blend(weights, v, visible):
    """weights @ v (..., T, Dv) over the visible pairs: a NaN in v reaches the rows that see it and no other.

    0 * NaN is NaN, so a hidden value would leak through a plain product (E2). The product is taken with
    what is finite; a feature that a row sees and that is not finite is then made NaN (E3). visible=None: all pairs.
    """
    blended = product(weights, v)
    if all_finite(blended):
        return blended
    finite, broken = finite_part(v)
    visible = np.ones(weights.shape, bool) if visible is None else visible
    reached = product(visible.astype(v.dtype), broken.astype(v.dtype)) > 0
    return np.where(reached, np.nan, product(weights, finite)).astype(v.dtype)
