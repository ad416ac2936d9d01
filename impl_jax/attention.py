"""Attention by its definition: five named steps, dense, every intermediate at hand.

Letters: *B leading batch axes, H query heads, Hk key/value heads, T queries, S keys, D features of
queries and keys, Dv features of values. q (*B, [H,] T, D), k (*B, [Hk,] S, D), v (*B, [Hk,] S, Dv).
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from . import checks
from .arrays import all_finite, compute_dtype, finite_part, guard, operand, product, where
from .masks import split_mask, visibility
from .softmax import softmax

SMALL = 2**16


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
    # jax: the lse too, so that `flash_attention` in one small tile is the same program, compiled once for both.
    scale, softcap, wanted = operand(scale), operand(softcap), ("out", "weights", "lse")
    steps = attention_core(wanted, shape, q, k, v, mask, bias, is_causal, scale, softcap, sinks, enable_gqa)
    return steps[:2]


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


@partial(jax.jit, static_argnames=("wanted", "shape", "is_causal", "enable_gqa"))
def attention_core(wanted, shape, q, k, v, mask, bias, is_causal, scale, softcap, sinks, enable_gqa):
    """The wanted steps of checked arguments, as a tuple in the inputs' dtype; the lse keeps its own (A2)."""
    steps, _ = compute_steps(shape, q, k, v, mask, bias, is_causal, scale, softcap, sinks, enable_gqa)
    rounded = Steps(*(x.astype(q.dtype) for x in steps))._replace(lse=steps.lse)
    return tuple(getattr(rounded, name) for name in wanted)


def compute_steps(shape, q, k, v, mask, bias, is_causal, scale, softcap, sinks, enable_gqa):
    """The five steps of the contract (C1 to C5) on checked arguments, unrounded, and which pairs are visible."""
    q, k, v, bias, sinks = prepare(shape, q, k, v, bias, sinks, enable_gqa)
    mask, rule = split_mask(mask, is_causal)
    visible = jnp.broadcast_to(visibility(mask, rule, bias, jnp.arange(shape[-2]), jnp.arange(shape[-1])), shape)

    scores = scaled_scores(q, k, default_scale(scale, q))
    counted = visible & jnp.isfinite(scores)  # jax: 0 * NaN would reach the gradient of the softcap
    capped = cap(guard(scores, counted), guard(softcap, counted))
    biased = capped if bias is None else capped + bias
    masked = where(visible, biased, -jnp.inf)
    weights, lse = softmax(masked, visible, sinks)
    out = blend(weights, v, visible)
    return Steps(scores, capped, biased, masked, weights, lse, out), visible


def prepare(shape, q, k, v, bias, sinks, enable_gqa):
    """The arrays in the compute dtype, with their heads repeated and their leading axes broadcast (B1, B2, B5)."""
    dtype = compute_dtype(q)
    # jax: converted first, so that the gradients of the copies are summed before they are rounded.
    q, k, v = (x.astype(dtype) for x in (q, k, v))
    if enable_gqa:
        groups = q.shape[-3] // k.shape[-3] if k.shape[-3] else 1
        k, v = jnp.repeat(k, groups, axis=-3), jnp.repeat(v, groups, axis=-3)
    q, k, v = (jnp.broadcast_to(x, shape[:-2] + x.shape[-2:]) for x in (q, k, v))
    bias = None if bias is None else bias.astype(dtype)
    sinks = None if sinks is None else sinks.astype(dtype)[..., None, None]
    return q, k, v, bias, sinks


def default_scale(scale, q):
    """1 / sqrt(D) unless a scale is given; an explicit 0 is a scale (B4)."""
    return jnp.asarray(q.shape[-1] ** -0.5 if scale is None else scale, q.dtype)


def scaled_scores(q, k, scale):
    """scale * q k^T (..., T, S); NaN where the query or the key is not finite (C1, E3).

    The scale goes onto the queries, so that no product grows larger than the score itself.
    """
    (q, q_broken), (k, k_broken) = finite_part(q), finite_part(k)
    # jax: put back as NaN, which the product itself carries to its pairs and its derivative leaves alone.
    return product(where(~q_broken, q * scale, jnp.nan), where(~k_broken, k, jnp.nan).mT)


def cap(scores, softcap):
    """softcap * tanh(scores / softcap): scores squeezed into (-softcap, softcap), if it is given (C2)."""
    if softcap is None:
        return scores
    softcap = softcap.astype(scores.dtype)
    return softcap * jnp.tanh(scores / softcap)


def blend(weights, v, visible):
    """weights @ v (..., T, Dv) over the visible pairs: a NaN in v reaches the rows that see it and no other.

    0 * NaN is NaN, so a hidden value would leak through a plain product (E2). The product is taken with
    what is finite; a feature that a row sees and that is not finite is then made NaN (E3).
    """
    finite, broken = finite_part(v)
    # jax: chosen, so that an empty row gives nothing to any gradient, whatever comes back to it.
    blended = where(visible.any(axis=-1, keepdims=True), product(weights, finite), 0)

    def spoilt():
        reached = product(visible.astype(v.dtype), broken.astype(v.dtype)) > 0
        return where(~reached, jnp.zeros_like(blended), jnp.nan)

    # jax: a branch spares the second product, but takes longer to compile than a small product to compute.
    small = blended.size * v.shape[-2] <= SMALL
    blended += spoilt() if small else lax.cond(all_finite(v), lambda: jnp.zeros_like(blended), spoilt)
    return guard(blended, jnp.isfinite(blended))  # jax: a row that is lost gives nothing to any gradient
