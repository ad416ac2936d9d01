"""Attention over tiles: the same function as `attention` in O(T + S) extra memory.

A query tile walks over the key tiles that its rule reaches, and carries from one to the next what is known of its
rows. Its time is that of the visible tiles, and no T x S array is ever made.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from . import arguments, checks
from .arrays import for_each, operand
from .attention import default_scale, prepare
from .masks import cut, split_mask, visibility
from .tiles import LARGEST, extend, finish, key_tiles, masked_scores, part, start, tile_size, tiles


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

    Takes what `attention` takes, and block_size = (queries, keys) of a tile, (256, 512) by default, with more keys
    where queries are few. ATTENTION_THREADS, or else OMP_NUM_THREADS, says how many threads work. Returns
    out (*B, [H,] T, Dv) in the inputs' dtype and lse (*B, [H,] T), the log of the softmax denominator, in
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
    out, lse = walk(tile, q, k, v, *split_mask(mask, is_causal), bias, scale, softcap, sinks)
    return out.astype(dtype, copy=False), lse


def walk(tile, q, k, v, mask, rule, bias, scale, softcap, sinks):
    """The output and the lse of all queries, once each of them has seen its keys tile by tile.

    A job is one query tile of one head, or of several heads where tiles are small; threads share the jobs. The
    whole of the mask and the bias is never converted nor broadcast in memory.

    numpy: the maximum of a row is needed only where exp would overflow without it, or lose everything. To find and
    subtract it takes a tenth of the time, so the sums are first taken without, and again for the rows where they come
    near the limits. Where they overflow then, values were near the largest number: these are scaled by a power of 2,
    which changes no digit.
    """
    T, S, lead = q.shape[-2], k.shape[-2], q.shape[:-2] or (1,)
    out, lse = np.empty((*lead, T, v.shape[-1]), q.dtype), np.empty((*lead, T), q.dtype)
    of_one_head = [None if x is None else np.atleast_2d(x).shape[-2:] for x in (q, k, v, sinks)] + [(T, S), (T, S)]
    operands = zip((q, k, v, sinks, mask, bias), of_one_head, strict=True)
    views = [None if x is None else np.broadcast_to(x, (*lead, *sizes)) for x, sizes in operands]
    power = 2.0 ** -(2 * S).bit_length()  # numpy: values that are this much smaller have a sum that does not overflow
    # Most heads ask for the same tiles.
    tiles_of = lru_cache(8)(lambda rows: key_tiles(rule, rows, S, tile[1]))
    of_rule = lru_cache(8)(lambda *tile: np.broadcast_to(rule.tile(*tile), (*lead, *map(len, tile))))

    @np.errstate(all="ignore")
    def work(job):
        heads, rows = job
        own_q, own_k, own_v, own_sinks, own_mask, own_bias = (None if x is None else x[heads] for x in views)
        own_q = part(own_q, rows) * scale

        def seen(state, shrink=1):
            for cols in tiles_of(rows):
                bias_there = None if bias is None else cut(own_bias, rows, cols).astype(q.dtype, copy=False)
                visible, hides = None, rule is not None and not rule.covers(rows, cols)
                if hides or mask is not None or bias is not None:
                    visible = visibility(own_mask, None, bias_there, rows, cols)
                    visible = visible & of_rule(rows, cols)[heads] if hides else visible
                masked = masked_scores(own_q, part(own_k, cols), visible, bias_there, softcap)
                values = part(own_v, cols)
                state = extend(state, masked, visible, values if shrink == 1 else values * shrink)
            return state

        begun = start(own_q, own_v, own_sinks)
        sums = seen(begun._replace(top=None, total=np.exp(begun.top)))
        own_out, own_lse = finish(sums)
        safe = np.logical_not(sums.found) | (2.0**-64 < sums.total) & (sums.total < 2.0**64)
        small = sums.found & (sums.total < 1)  # where the numerators are small, a product with a tiny value may be lost
        least = np.where(small, 2.0**-60, -1)
        good = safe & (least < np.abs(own_out)) & (np.abs(own_out) < np.inf)
        for shrink in (1, power):
            if not good.all():
                new_out, new_lse = finish(seen(start(own_q, own_v, own_sinks), shrink))
                own_out = np.where(good, own_out, new_out / shrink)
                own_lse = np.where(safe[..., 0], own_lse, new_lse)
                good = np.isfinite(own_out)
        part(out[heads], rows)[...], lse[heads][..., rows.start : rows.stop] = own_out, own_lse

    row_tiles, pairs = tiles(T, tile[0]), max(1, min(tile[0], T) * min(tile[1], S))
    most = max(1, min(LARGEST // pairs, math.prod(lead) * len(row_tiles) // 8))  # numpy: some jobs for each thread
    heads = [(*i, slice(n.start, n.stop)) for i in np.ndindex(lead[:-1]) for n in tiles(lead[-1], most)]
    for_each(work, [(some, rows) for rows in reversed(row_tiles) for some in heads])
    return out.reshape(*q.shape[:-1], v.shape[-1]), lse.reshape(q.shape[:-1])
