"""Attention by its definition: five named steps, dense, every intermediate at hand.

Letters: *B leading batch axes, H query heads, Hk key/value heads, T queries, S keys, D features of
queries and keys, Dv features of values. q (*B, [H,] T, D), k (*B, [Hk,] S, D), v (*B, [Hk,] S, Dv).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from . import checks
from .arrays import compute_dtype, finite_part, guard, is_array, operand, product, where
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


def attention_core(wanted, shape, q, k, v, mask, bias, is_causal, scale, softcap, sinks, enable_gqa):
    """The wanted steps of checked arguments, as a tuple in the inputs' dtype; the lse keeps its own (A2)."""
    steps, _ = compute_steps(shape, q, k, v, mask, bias, is_causal, scale, softcap, sinks, enable_gqa)
    rounded = Steps(*(x.to(q.dtype) for x in steps))._replace(lse=steps.lse)
    return tuple(getattr(rounded, name) for name in wanted)


def compute_steps(shape, q, k, v, mask, bias, is_causal, scale, softcap, sinks, enable_gqa):
    """The five steps of the contract (C1 to C5) on checked arguments, unrounded, and which pairs are visible."""
    q, k, v, bias, sinks = prepare(shape, q, k, v, bias, sinks, enable_gqa)
    mask, rule = split_mask(mask, is_causal)
    rows, cols = (torch.arange(n, device=q.device) for n in shape[-2:])
    visible = visibility(mask, rule, bias, rows, cols).expand(shape)

    scores = scaled_scores(q, k, default_scale(scale, q))
    capped = cap(guard(scores, visible), guard(softcap, visible))
    biased = capped if bias is None else capped + bias
    masked = where(visible, biased, -torch.inf)
    weights, lse = softmax(masked, visible, sinks)
    out = blend(weights, v, visible)
    return Steps(scores, capped, biased, masked, weights, lse, out), visible


def prepare(shape, q, k, v, bias, sinks, enable_gqa):
    """The arrays in the compute dtype, with their heads repeated and their leading axes broadcast (B1, B2, B5)."""
    dtype = compute_dtype(q)
    # torch: converted first, so that the gradients of the copies are summed before they are rounded.
    q, k, v = (x.to(dtype) for x in (q, k, v))
    if enable_gqa:
        groups = q.shape[-3] // k.shape[-3] if k.shape[-3] else 1
        k, v = k.repeat_interleave(groups, dim=-3), v.repeat_interleave(groups, dim=-3)
    q, k, v = (x.expand(shape[:-2] + x.shape[-2:]) for x in (q, k, v))
    bias = None if bias is None else bias.to(dtype)
    sinks = None if sinks is None else sinks.to(dtype)[..., None, None]
    return q, k, v, bias, sinks


def default_scale(scale, q):
    """1 / sqrt(D) unless a scale is given; an explicit 0 is a scale (B4)."""
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    return scale.to(q) if is_array(scale) else scale


def scaled_scores(q, k, scale):
    """scale * q k^T (..., T, S); NaN where the query or the key is not finite (C1, E3).

    The scale goes onto the queries, so that no product grows larger than the score itself.
    """
    (q, q_broken), (k, k_broken) = finite_part(q), finite_part(k)
    scores = product(q * scale, k.mT)
    broken = q_broken.any(dim=-1)[..., :, None] | k_broken.any(dim=-1)[..., None, :]
    return torch.where(broken, torch.nan, scores)


def cap(scores, softcap):
    """softcap * tanh(scores / softcap): scores squeezed into (-softcap, softcap), if it is given (C2)."""
    if softcap is None:
        return scores
    softcap = softcap.to(scores) if is_array(softcap) else softcap
    return softcap * torch.tanh(scores / softcap)


def blend(weights, v, visible):
    """weights @ v (..., T, Dv) over the visible pairs: a NaN in v reaches the rows that see it and no other.

    0 * NaN is NaN, so a hidden value would leak through a plain product (E2). The product is taken with
    what is finite; a feature that a row sees and that is not finite is then made NaN (E3).
    """
    (weights, spoilt), (v, broken) = finite_part(weights), finite_part(v)
    lost = spoilt.any(dim=-1, keepdim=True) | (product(visible.to(v.dtype), broken.to(v.dtype)) > 0)
    seen = visible.any(dim=-1, keepdim=True)
    # torch: chosen, not added, so that rows which are lost or empty give nothing to any gradient (0 * NaN again).
    return torch.where(lost, torch.nan, torch.where(seen, product(weights, v), 0))
