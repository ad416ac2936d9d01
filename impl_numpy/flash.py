"""Attention over tiles: the same function as `attention` in O(T + S) extra memory.

A query tile walks over the key tiles that its rule reaches, and carries from one to the next what is known of its
rows. Its time is that of the visible tiles, and no T x S array is ever made.
"""

from __future__ import annotations

import math
from collections import defaultdict
from functools import reduce

import numpy as np

from . import arguments, checks
from .arrays import all_finite, for_each, operand
from .attention import default_scale, prepare
from .masks import cut, split_mask
from .tiles import (
    LARGEST,
    Pairs,
    Rows,
    extend,
    finish,
    key_tiles,
    masked_scores,
    part,
    pull_back,
    start,
    tile_size,
    tiles,
)


def flash_attention(
    q,
    k,
    v,
    mask=None,
    *,
    bias=None,
    is_causal=False,
    scale=None,
    softcap=None,
    sinks=None,
    enable_gqa=False,
    block_size=None,
):
    """Do what `attention` does tile by tile, and never hold a T x S array.

    Takes what `attention` takes, and block_size = (queries, keys) that a tile has at most, (512, 1024) by default,
    with more keys where queries are few. ATTENTION_THREADS, or else OMP_NUM_THREADS, says how many threads work.
    Returns out (*B, [H,] T, Dv) in the inputs' dtype and lse (*B, [H,] T), the log of the softmax denominator, in
    float32 (float64 for float64 inputs). A rule is evaluated tile by tile; tiles that it hides wholly are skipped.
    Raises what `attention` raises, and ValueError for a tile size < 1.
    Source: Dao et al. 2022, "FlashAttention", algorithm 1; Milakov and Gimelshein 2018, algorithm 3.
    """
    shape = checks.attention(q, k, v, mask, bias, is_causal, scale, softcap, sinks, enable_gqa)
    arguments.pair_of_sizes("block_size", block_size)
    scale, softcap, tile = operand(scale), operand(softcap), tile_size(block_size, shape)
    return flash_core(tile, shape, q, k, v, mask, bias, is_causal, scale, softcap, sinks, enable_gqa)


# --- one tile after the other ----------------------------------------------------------------------------


def flash_core(tile, shape, q, k, v, mask, bias, is_causal, scale, softcap, sinks, enable_gqa):
    """The output and the lse of checked arguments, computed tile by tile."""
    dtype, scale = q.dtype, default_scale(scale, q)
    q, k, v, _, sinks = prepare(shape, q, k, v, None, sinks, enable_gqa)
    pairs = Pairs(*split_mask(mask, is_causal), bias, shape, q.dtype)
    out, lse = walk(tile, q, k, v, pairs, scale, softcap, sinks)
    return out.astype(dtype, copy=False), lse


def schedule(tile, shape, rule):
    """The jobs: some heads, a range of queries, and the tiles of keys that their rule lets them reach.

    numpy: several heads where tiles are small, but so few that there are some jobs for each thread. The last queries,
    which often see the most keys, come first.
    """
    (T, S), lead = shape[-2:], shape[:-2] or (1,)
    of_rows = [(rows, key_tiles(rule, rows, S, tile[1])) for rows in reversed(tiles(T, tile[0]))]
    pairs = max(1, min(tile[0], T) * min(tile[1], S))
    most = max(1, min(LARGEST // pairs, math.prod(lead) * len(of_rows) // 8))
    heads = [(*i, slice(some.start, some.stop)) for i in np.ndindex(lead[:-1]) for some in tiles(lead[-1], most)]
    return [(some, rows, cols) for rows, cols in of_rows for some in heads]


def walk(tile, q, k, v, pairs, scale, softcap, sinks):
    """The output and the lse of all queries, once each of them has seen its keys tile by tile.

    Threads share the jobs.

    numpy: the maximum of a row is needed only where exp would overflow without it, or lose everything. To find and
    subtract it takes a tenth of the time, so the sums are first taken without, and again for the rows where they come
    near the limits. Where they overflow then, values were near the largest number: these are scaled by a power of 2,
    which changes no digit.
    """
    shape, lead = (*q.shape[:-1], k.shape[-2]), q.shape[:-2] or (1,)
    out, lse = (np.zeros((*lead, shape[-2], n), q.dtype) for n in (v.shape[-1], 1))
    views = [None if x is None else np.broadcast_to(x, (*lead, *x.shape[-2:])) for x in (q, k, v, sinks)]
    # What is computed in vain at the edges of a rule, and the memory of a bias, grow with the queries of a tile.
    tile = tile[0] if pairs.bare else -(-tile[0] // 2), tile[1]
    small = 2.0 ** -(2 * shape[-1]).bit_length()  # the sum of values that are so much smaller does not overflow

    def seen(job, acc=None, power=1):
        """The rows of a job once they have seen their keys; given `acc`, where to sum up, they have no maximum."""
        heads, rows, reached = job
        own_q, own_k, own_v, own_sinks = (None if x is None else x[heads] for x in views)
        own_q, own_v = part(own_q, rows) * scale, own_v if power == 1 else own_v * power
        state = start(own_q, own_v if acc is None else own_v[..., :0], own_sinks)
        state = state if acc is None else Rows(None, np.exp(state.top), state.found, acc)

        def one_more(state, cols):
            visible, bias = pairs.tile(heads, rows, cols)
            masked = masked_scores(own_q, part(own_k, cols), visible, bias, softcap)
            return extend(state, masked, visible, part(own_v, cols))

        return reduce(one_more, reached, state)  # a function, since a loop would keep a tile while it makes the next

    def corrected(job, sums, own_out, own_lse):
        """What was found without a maximum, taken anew where it may have lost digits or overflown."""
        safe = np.logical_not(sums.found) | (2.0**-64 < sums.total) & (sums.total < 2.0**64)
        # Where the numerators are small, a product with a tiny value may be lost.
        least = np.where(sums.found & (sums.total < 1), 2.0**-60, -1)
        good = safe & (least < np.abs(own_out)) & (np.abs(own_out) < np.inf)
        for power in (1, small):
            if not good.all():
                new_out, new_lse = finish(seen(job, power=power))
                own_out = np.where(good, own_out, new_out / power)
                own_lse = np.where(safe[..., 0], own_lse, new_lse)
                good = np.isfinite(own_out)
        return own_out, own_lse

    @np.errstate(all="ignore")
    def work(job):
        heads, rows, _ = job
        own_out, own_lse = part(out[heads], rows), part(lse[heads], rows)[..., 0]
        sums = seen(job, own_out)
        _, own_lse[...] = finish(sums)
        if not (sums.total.min() >= 1 and sums.total.max() < 2.0**64 and all_finite(own_out)):
            own_out[...], own_lse[...] = corrected(job, sums, own_out, own_lse)

    for_each(work, schedule(tile, shape, pairs.rule))
    return out.reshape(*shape[:-1], v.shape[-1]), lse.reshape(shape[:-1])


@np.errstate(all="ignore")
def walk_back(tile, q, k, v, pairs, scale, softcap, sinks, out, lse, d_out, d_lse):
    """The gradients of queries, keys, values, bias, softcap and sinks, by the same walk with the weights computed anew.

    numpy: a job is some heads, all queries of which add to its keys; a bias gets one job, so that its order is one.
    Tiles have half as many queries, since more than one array of pairs is held. Nobody asks for the gradients of
    softcap and sinks, which are None.
    """
    shape, lead = (*q.shape[:-1], k.shape[-2]), q.shape[:-2] or (1,)
    delta = (d_out * out).sum(axis=-1, keepdims=True) - (0 if d_lse is None else d_lse[..., None])
    q, k, v, *of_rows = (x.reshape(*lead, *x.shape[-2:]) for x in (q, k, v, lse[..., None], d_out, delta))
    d_q, d_k, d_v = (np.zeros(x.shape, x.dtype) for x in (q, k, v))
    d_bias = None if pairs.bias is None else np.zeros((1,) * (q.ndim - pairs.bias.ndim) + pairs.bias.shape, q.dtype)

    def add_to_bias(heads, rows, cols, d):
        """Add the gradient of a tile, summed where heads, rows or columns share a bias."""
        outer = (min(i, n - 1) for i, n in zip(heads, d_bias.shape[:-3], strict=False))
        there = cut(d_bias[(*outer, heads[-1] if d_bias.shape[-3] > 1 else slice(1))], rows, cols)
        there += d.sum(axis=tuple(i for i, n in enumerate(there.shape) if n == 1), keepdims=True)

    @np.errstate(all="ignore")
    def work(jobs):
        for heads, rows, cols in ((heads, rows, cols) for heads, rows, reached in jobs for cols in reached):
            visible, bias = pairs.tile(heads, rows, cols)
            own_q, *own_rows = (part(x[heads], rows) for x in (q, *of_rows))
            own_k, own_v = (part(x[heads], cols) for x in (k, v))
            *d_qkv, d, _ = pull_back(own_q * scale, own_k, own_v, bias, softcap, visible, *own_rows)
            for whole, at, x in zip((d_q, d_k, d_v), (rows, cols, cols), d_qkv, strict=True):
                part(whole[heads], at)[...] += x
            if bias is not None:
                add_to_bias(heads, rows, cols, d)

    jobs, of_heads = schedule((-(-tile[0] // 2), tile[1]), shape, pairs.rule), defaultdict(list)
    for job in jobs:
        of_heads[str(job[0])].append(job)
    for_each(work, list(of_heads.values()) if d_bias is None else [jobs])
    return d_q * scale, d_k, d_v, d_bias, None, None
