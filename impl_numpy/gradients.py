"""The gradient of attention.

It is derived by hand.
"""

from __future__ import annotations

import itertools
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from . import checks
from .arrays import for_each, operand
from .attention import default_scale, prepare
from .flash import walk
from .masks import cut, split_mask, visibility
from .tiles import LARGEST, key_tiles, part, pull_back, tile_size, tiles


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
    """The gradients of checked arguments.

    numpy: a job is some heads, all queries of which add to its keys; a bias gets one job, so that its order is one.
    """
    inputs, scale, (mask, rule) = (q, k, v), default_scale(scale, q), split_mask(mask, is_causal)
    q, k, v, _, sinks = prepare(shape, q, k, v, None, sinks, enable_gqa)
    (T, S), lead, tile, dtype = shape[-2:], shape[:-2] or (1,), tile_size(None, shape), q.dtype
    out, lse = walk(tile, q, k, v, mask, rule, bias, scale, softcap, sinks)
    d_out = d_out.astype(dtype, copy=False)
    delta = (d_out * out).sum(axis=-1, keepdims=True)
    q, k, v, d_out, lse, delta = (x.reshape(*lead, *x.shape[-2:]) for x in (q, k, v, d_out, lse[..., None], delta))
    pairs = [None if x is None else np.broadcast_to(x, (*lead, T, S)) for x in (mask, bias)]
    dq, dk, dv = (np.zeros(x.shape, dtype) for x in (q, k, v))
    dbias = None if bias is None else np.zeros((*[1] * (q.ndim - bias.ndim), *bias.shape), dtype)
    of_rule = lru_cache(8)(lambda *tile: np.broadcast_to(rule.tile(*tile), (*lead, *map(len, tile))))

    def summed(d, x, groups=1):
        if groups > 1:
            d = d.reshape(*d.shape[:-3], x.shape[-3], groups, *d.shape[-2:]).sum(axis=-3)
        d = d.sum(axis=tuple(range(d.ndim - x.ndim)))
        copied = tuple(i for i, size in enumerate(x.shape) if size == 1 and d.shape[i] != 1)
        return np.asarray(d.sum(axis=copied, keepdims=True), x.dtype)  # a sum over every axis is no array

    @np.errstate(all="ignore")
    def work(job):
        pieces = [(rows, cols) for rows in tiles(T, tile[0]) for cols in key_tiles(rule, rows, S, tile[1])]
        for heads, (rows, cols) in itertools.product(job, pieces):
            own_mask, own_bias = (None if x is None else cut(x[heads], rows, cols) for x in pairs)
            own_bias = None if bias is None else own_bias.astype(dtype, copy=False)
            hides = rule is not None and not rule.covers(rows, cols)
            unmasked = not hides and mask is None and bias is None
            visible = None if unmasked else visibility(own_mask, None, own_bias, rows, cols)
            visible = visible & of_rule(rows, cols)[heads] if hides else visible
            own_q, *of_rows = (part(x[heads], rows) for x in (q, lse, d_out, delta))
            own_k, own_v = (part(x[heads], cols) for x in (k, v))
            d_q, d_k, d_v, d_bias, _ = pull_back(own_q * scale, own_k, own_v, own_bias, softcap, visible, *of_rows)
            for whole, at, d in ((dq, rows, d_q * scale), (dk, cols, d_k), (dv, cols, d_v)):
                part(whole[heads], at)[...] += d
            if bias is not None:
                shared = tuple(at if n > 1 else slice(0, 1) for at, n in zip(heads, dbias.shape, strict=False))
                cut(dbias[shared], rows, cols)[...] += summed(d_bias, cut(dbias[shared], rows, cols))

    most = max(1, min(LARGEST // max(1, min(tile[0], T) * min(tile[1], S)), lead[-1] // 4))
    slices = itertools.product(*(tiles(n, 1) for n in lead[:-1]), tiles(lead[-1], most))
    heads = [tuple(slice(some.start, some.stop) for some in axes) for axes in slices]
    for_each(work, [[some] for some in heads] if bias is None else [heads])
    groups = shape[-3] // inputs[1].shape[-3] if enable_gqa and inputs[1].shape[-3] else 1
    dq, dk, dv = map(summed, (dq, dk, dv), inputs, (1, groups, groups))
    return Gradients(dq, dk, dv, None if bias is None else summed(dbias, bias))
