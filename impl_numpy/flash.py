"""Attention over tiles: the same function as `attention` in O(T + S) extra memory.

A query tile walks over the key tiles that its rule reaches, and carries from one to the next what is known of its
rows. Its time is that of the visible tiles, and no T x S array is ever made.
"""

from __future__ import annotations

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
    """
    T, S, lead = q.shape[-2], k.shape[-2], q.shape[:-2] or (1,)
    out, lse = np.empty((*lead, T, v.shape[-1]), q.dtype), np.empty((*lead, T), q.dtype)
    seen = None if rule is None else lru_cache(maxsize=8)(rule.tile)  # most heads ask for the same tiles

    def of_heads(x, heads):
        """The heads of an array that broadcasts to (*lead, n, m), as a view; None stays None."""
        return None if x is None else np.broadcast_to(x, (*lead, *np.atleast_2d(x).shape[-2:]))[heads]

    @np.errstate(all="ignore")
    def work(job):
        heads, rows = job
        own_q, own_k, own_v, own_sinks = (of_heads(x, heads) for x in (part(q, rows), k, v, sinks))
        state = start(own_q, own_v, own_sinks)
        for cols in key_tiles(rule, rows, S, tile[1]):
            own_mask, own_bias = (of_heads(x if x is None else cut(x, rows, cols), heads) for x in (mask, bias))
            own_bias = None if bias is None else own_bias.astype(q.dtype, copy=False)
            hides = rule is not None and not rule.covers(rows, cols)
            visible = None
            if hides or mask is not None or bias is not None:
                visible = visibility(own_mask, None, own_bias, rows, cols)
                visible = visible & of_heads(seen(rows, cols), heads) if hides else visible
            masked = masked_scores(own_q * scale, part(own_k, cols), visible, own_bias, softcap)
            state = extend(state, masked, visible, part(own_v, cols))
        out[heads][..., rows.start : rows.stop, :], lse[heads][..., rows.start : rows.stop] = finish(state)

    heads_of_a_job = max(1, LARGEST // max(1, min(tile[0], T) * min(tile[1], S)))
    heads = [(*i, slice(n.start, n.stop)) for i in np.ndindex(lead[:-1]) for n in tiles(lead[-1], heads_of_a_job)]
    for_each(work, [(some, rows) for rows in reversed(tiles(T, tile[0])) for some in heads])
    return out.reshape(*q.shape[:-1], v.shape[-1]), lse.reshape(q.shape[:-1])
