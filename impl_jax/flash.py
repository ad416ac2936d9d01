"""Attention over tiles: the same function as `attention` in O(T + S) extra memory.

A query tile walks over the key tiles that its rule reaches, and carries from one to the next what is known of its
rows. Its time is that of the visible tiles, and no T x S array is ever made.
"""

from __future__ import annotations

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from . import arguments, checks
from .arrays import finite_part, for_each, operand, row_sums, where
from .attention import SMALL, attention_core, default_scale, prepare
from .masks import split_mask
from .tiles import Pairs, Rows, extend, finish, key_tiles, masked_scores, part, pull_back, start, tile_size, tiles


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

    Takes what `attention` takes, and block_size = (queries, keys) of a tile, (512, 512) by default, with more keys
    where heads or queries are few. Returns
    out (*B, [H,] T, Dv) in the inputs' dtype and lse (*B, [H,] T), the log of the softmax denominator, in
    float32 (float64 for float64 inputs). A rule is evaluated tile by tile; tiles that it hides wholly are skipped.
    Raises what `attention` raises, and ValueError for a tile size < 1.
    Source: Dao et al. 2022, "FlashAttention", algorithm 1; Milakov and Gimelshein 2018, algorithm 3.
    """
    shape = checks.attention(q, k, v, mask, bias, is_causal, scale, softcap, sinks, enable_gqa)
    arguments.pair_of_sizes("block_size", block_size)
    scale, softcap, tile = operand(scale), operand(softcap), tile_size(block_size, shape)
    if math.prod(shape) <= SMALL and shape[-2] <= tile[0] and shape[-1] <= tile[1]:
        # jax: what fits into one small tile is the same program as that of `attention`, and compiled once for both.
        wanted = ("out", "weights", "lse")
        out, _, lse = attention_core(wanted, shape, q, k, v, mask, bias, is_causal, scale, softcap, sinks, enable_gqa)
        return out, lse
    return flash_core(tile, shape, q, k, v, mask, bias, is_causal, scale, softcap, sinks, enable_gqa)


# --- one tile after the other ----------------------------------------------------------------------------

GROUPS = 4  # of heads, in problems with more than LARGE products of two numbers
LARGE = 2**24


@partial(jax.jit, static_argnames=("tile", "shape", "is_causal", "enable_gqa"))
def flash_core(tile, shape, q, k, v, mask, bias, is_causal, scale, softcap, sinks, enable_gqa):
    """The output and the lse of checked arguments, computed tile by tile.

    jax: the scale goes onto the queries here, so that JAX has its derivative. XLA has few threads within an operation,
    but runs loops that need nothing of each other at the same time: large problems are cut into groups of heads.
    """
    (mask, rule), dtype = split_mask(mask, is_causal), q.dtype
    q, k, v, _, sinks = prepare(shape, q, k, v, None, sinks, enable_gqa)
    finite, broken = finite_part(q)
    q = where(~broken, finite * default_scale(scale, q), jnp.nan)
    bias = None if bias is None else jnp.atleast_2d(bias)
    softcap = None if softcap is None else jnp.asarray(softcap, q.dtype)

    @jax.custom_jvp
    def attend(*given):
        return walk(tile, *given)

    @attend.defjvp
    def derivative(given, tangents):
        # jax: forward mode is `walk_back` transposed; reverse mode, which transposes once more, is `walk_back` again.
        results, (*dqkv, dpairs, _, dsoftcap, dsinks) = attend(*given), tangents
        push = jax.linear_transpose(partial(walk_back, tile, *given, *results), *results)
        return results, push((*dqkv, dpairs.bias, dsoftcap, dsinks))

    def of_heads(heads):
        def own(x):
            shared = x is None or len(heads) == count or x.ndim < 3 or x.shape[-3] == 1
            return x if shared else lax.slice_in_dim(x, heads.start, heads.stop, axis=x.ndim - 3)

        own_q, own_k, own_v, own_mask, own_bias, own_sinks = map(own, (q, k, v, mask, bias, sinks))
        pairs = Pairs(own_mask, rule, own_bias, (*own_q.shape[:-1], shape[-1]), q.dtype)
        return attend(own_q, own_k, own_v, pairs, None, softcap, own_sinks)

    count, shared = math.prod(shape[-3:-2]), bias is not None or any(x.lead() for x in (rule.leaves() if rule else []))
    few = shape[-2] < q.shape[-1] or math.prod(shape) * q.shape[-1] < LARGE  # jax: to copy keys for few queries is slow
    alone = shared or few or jax.default_backend() != "cpu"
    groups = tiles(count, count if alone else -(-count // GROUPS)) if count else [range(0)]
    outs, lses = zip(*for_each(of_heads, groups), strict=True)
    out, lse = (x[0] if len(x) == 1 else lax.concatenate(x, len(shape) - 3) for x in (outs, lses))
    return out.astype(dtype), lse[..., 0]


def schedule(tile, shape, rule):
    """The jobs: some heads, a range of queries, and the tiles of keys that their rule lets them reach.

    jax: a job is a loop, in which all heads see one tile after the other: the rule that it needs, and the first query
    and the first key of each tile. Large tiles of which the rule hides nothing have a loop of their own without it.
    """
    places = [(rows, cols) for rows in tiles(shape[-2], tile[0]) for cols in key_tiles(rule, rows, shape[-1], tile[1])]
    t, s = min(tile[0], shape[-2]), min(tile[1], shape[-1])
    large = rule is not None and math.prod(shape[:-2]) * t * s > SMALL

    def free(rows, cols):
        return large and (len(rows), len(cols)) == (t, s) and rule.covers(rows, cols) is True

    loops = (None, [x for x in places if free(*x)]), (rule, [x for x in places if not free(*x)])
    firsts = [(needed, [(rows.start, cols.start) for rows, cols in some]) for needed, some in loops]
    return [(..., needed, tuple(np.array(some, np.int32).T)) for needed, some in firsts if some]


def walk(tile, q, k, v, pairs, scale, softcap, sinks):
    """The output and the lse of all queries, once each of them has seen its keys tile by tile."""
    t, s = min(tile[0], q.shape[-2]), min(tile[1], k.shape[-2])

    def one_more(pairs, state, first):
        rows, cols = zip(first, (t, s), strict=True)
        visible, bias = pairs.tile(..., rows, cols)
        masked = masked_scores(part(q, rows), part(k, cols), visible, bias, softcap)
        own = extend(Rows(*(part(x, rows) for x in state)), masked, visible, part(v, cols))
        return Rows(*map(partial(put, first[0]), state, own)), None

    def put(row, whole, own):
        return lax.dynamic_update_slice_in_dim(whole, own, row, axis=-2, allow_negative_indices=False)

    state = start(q, v, sinks)
    for _, rule, firsts in schedule(tile, pairs.shape, pairs.rule):
        needed = Pairs(pairs.mask, rule, pairs.bias, pairs.shape, pairs.dtype)
        state, _ = lax.scan(partial(one_more, needed), state, firsts)
    return finish(state)


def walk_back(tile, q, k, v, pairs, scale, softcap, sinks, out, lse, d_out, d_lse):
    """The gradients of queries, keys, values, bias, softcap and sinks, by the same walk with the weights computed anew.

    jax: linear in d_out and d_lse, so that JAX can transpose it.
    """
    t, s, zero = min(tile[0], q.shape[-2]), min(tile[1], k.shape[-2]), np.int32(0)
    alive = jnp.isfinite(lse)
    d_out = where(alive & jnp.isfinite(out), d_out, 0)
    delta = where(alive, row_sums(finite_part(out)[0] * d_out) - d_lse, 0)
    lse = where(alive, lse, jnp.inf)
    q, k, v = (finite_part(x)[0] for x in (q, k, v))

    def add(total, new, row=zero, col=zero):  # where the total was broadcast, the sum over the copies
        new = new.sum(axis=tuple(range(new.ndim - total.ndim)))
        new = new.sum(axis=tuple(i for i, n in enumerate(total.shape) if n < new.shape[i]), keepdims=True)
        first = ([zero] * total.ndim + [row, col])[-total.ndim :] if total.ndim else []
        # jax: added to all of it, since the transpose of a replacement would copy all of it.
        return total + lax.dynamic_update_slice(jnp.zeros_like(total), new, first, allow_negative_indices=False)

    @partial(jax.checkpoint, prevent_cse=False, static_argnums=0)
    def one_more(pairs, sums, first):
        rows, cols = zip(first, (t, s), strict=True)
        visible, bias = pairs.tile(..., rows, cols)
        own_q, *of_rows = (part(x, rows) for x in (q, lse, d_out, delta))
        new = pull_back(own_q, part(k, cols), part(v, cols), bias, softcap, visible, *of_rows)
        places = first[:1], first[1:], first[1:], first, ()
        return [x if x is None else add(x, y, *at) for x, y, at in zip(sums, new, places, strict=True)], None

    sums = [None if x is None else jnp.zeros(x.shape, q.dtype) for x in (q, k, v, pairs.bias, softcap)]
    for _, rule, firsts in schedule(tile, pairs.shape, pairs.rule):
        needed = Pairs(pairs.mask, rule, pairs.bias, pairs.shape, pairs.dtype)
        sums, _ = lax.scan(partial(one_more, needed), sums, firsts)
    d_q, d_k, d_v, d_bias, d_softcap = sums
    d_bias = None if d_bias is None else d_bias.astype(pairs.bias.dtype)
    d_sinks = None if sinks is None else add(jnp.zeros_like(sinks), -where(alive, jnp.exp(sinks - lse), 0) * delta)
    return d_q, d_k, d_v, d_bias, d_softcap, d_sinks
