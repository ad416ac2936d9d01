"""The gradient of attention.

It is derived by hand.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from . import checks
from .arrays import operand
from .attention import default_scale, prepare
from .flash import walk, walk_back
from .masks import split_mask
from .tiles import Pairs, tile_size


class Gradients(NamedTuple):
    """The gradients of sum(out * d_out), each with the shape and dtype of its input; dbias is None without a bias."""

    dq: Any
    dk: Any
    dv: Any
    dbias: Any


def attention_vjp(
    q,
    k,
    v,
    d_out,
    mask=None,
    *,
    bias=None,
    is_causal=False,
    scale=None,
    softcap=None,
    sinks=None,
    enable_gqa=False,
):
    """Pull d_out, the gradient of the output, back to q, k, v and the bias.

    d_out (*B, [H,] T, Dv) in the inputs' dtype; the rest as in `attention`. Returns Gradients(dq, dk, dv, dbias).
    What is hidden takes no part: an empty row, and a key that no query sees, have gradients of exactly 0.
    Raises what `attention` raises, and the same for d_out.

    With S the scores, P the weights and dX the gradient of X, at the visible pairs:

        out = P v                          dv = P^T d_out              dP = d_out v^T
        P_ij = exp(S_ij) / sum_l exp(S_il)   dS_ij = P_ij (dP_ij - sum_l P_il dP_il)
        biased = capped + bias             dbias = dS                  dcapped = dS
        capped = c tanh(scores / c)        dscores = dcapped (1 - (capped / c)^2)
        scores = scale q k^T               dq = scale dscores k        dk = scale dscores^T q

    A sink only makes the weights smaller: it has no value, so it adds nothing to sum_l P_il dP_il.
    Where an input was broadcast, its gradient is the sum over the copies.
    numpy: no T x S array is held. Each tile computes its weights anew, P_ij = exp(biased_ij - lse_i), and
    sum_l P_il dP_il = sum_l P_il d_out_i v_l = d_out_i out_i is known of a row before any of its tiles.
    Source: Dao et al. 2022, "FlashAttention", appendix B.2, equations for dV, dP, dS, dQ, dK; Dao 2023,
    "FlashAttention-2", algorithm 2.
    """
    shape = checks.attention(q, k, v, mask, bias, is_causal, scale, softcap, sinks, enable_gqa)
    checks.output_gradient(d_out, v, shape)
    scale, softcap = operand(scale), operand(softcap)
    return vjp_core(shape, q, k, v, d_out, mask, bias, is_causal, scale, softcap, sinks, enable_gqa)


def vjp_core(shape, q, k, v, d_out, mask, bias, is_causal, scale, softcap, sinks, enable_gqa):
    """The gradients of checked arguments."""
    inputs, scale, tile = (q, k, v, bias), default_scale(scale, q), tile_size(None, shape)
    q, k, v, _, sinks = prepare(shape, q, k, v, None, sinks, enable_gqa)
    pairs = Pairs(*split_mask(mask, is_causal), bias, shape, q.dtype)
    d_out, given = d_out.astype(q.dtype, copy=False), (tile, q, k, v, pairs, scale, softcap, sinks)
    d_q, d_k, d_v, d_bias, *_ = walk_back(*given, *walk(*given), d_out, None)
    if enable_gqa:
        heads = inputs[1].shape[-3]
        split = heads, shape[-3] // max(1, heads)
        d_k, d_v = (d.reshape(*d.shape[:-3], *split, *d.shape[-2:]).sum(axis=-3) for d in (d_k, d_v))

    def summed(d, x):
        """The gradient of `x`, summed over the copies that broadcasting made of it."""
        d = d.sum(axis=tuple(range(d.ndim - x.ndim)))
        d = d.sum(axis=tuple(i for i, size in enumerate(x.shape) if size == 1), keepdims=True)
        return np.asarray(d, x.dtype)  # numpy: a sum over every axis is no array

    found = zip((d_q, d_k, d_v, d_bias), inputs, strict=True)
    return Gradients(*(None if x is None else summed(d, x) for d, x in found))
