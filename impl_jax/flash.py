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
from jax.custom_derivatives import SymbolicZero

from . import arguments, checks
from .arrays import finite_part, for_each, operand
from .attention import SMALL, attention_core, default_scale, prepare
from .masks import cut, split_mask, visibility
from .tiles import extend, finish, key_tiles, masked_scores, part, pull_back, start, tile_size, tiles


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

    Takes what `attention` takes, and block_size = (queries, keys) of a tile, (1024, 512) by default, with more keys
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

put = partial(lax.dynamic_update_slice_in_dim, axis=-2)


@partial(jax.jit, static_argnames=("tile", "shape", "is_causal", "enable_gqa"))
def flash_core(tile, shape, q, k, v, mask, bias, is_causal, scale, softcap, sinks, enable_gqa):
    """The output and the lse of checked arguments, computed tile by tile."""
    dtype = q.dtype
    q, k, v, _, sinks = prepare(shape, q, k, v, None, sinks, enable_gqa)
    scale = default_scale(scale, q)
    out, lse = walk(tile, q, k, v, *split_mask(mask, is_causal), bias, scale, softcap, sinks)
    return out.astype(dtype), lse


def walk(tile, q, k, v, mask, rule, bias, scale, softcap, sinks):
    """The output and the lse of all queries, once each of them has seen its keys tile by tile.

    jax: tiles have one size, so the last ones reach back; what they repeat is hidden. The derivative in forward mode
    is `pull_back` transposed, tile by tile, and what JAX makes of that in reverse mode is `pull_back` again.
    """
    T, S = q.shape[-2], k.shape[-2]
    t, s, dtype = min(tile[0], T), min(tile[1], S), q.dtype
    plan = [(x.start, [y.start for y in key_tiles(rule, x, S, tile[1])]) for x in tiles(T, tile[0])]
    most = max((len(cols) for _, cols in plan), default=0)

    def places(row, col):
        return (jnp.minimum(row, T - t), t), (jnp.minimum(col, S - s), s)

    def seen(row, col, mask, rule, own_bias):
        rows, cols = (first + jnp.arange(size) for first, size in places(row, col))
        if mask is None and rule is None and own_bias is None and T % t == S % s == 0:
            return None
        return visibility(mask, rule, own_bias, rows, cols) & (rows >= row)[:, None] & (cols >= col)

    def cuts(row, col, q, k, v, bias):
        rows, cols = places(row, col)
        own = [None if x is None else part(x, positions) for x, positions in ((q, rows), (k, cols), (v, cols))]
        rows, cols = (first + jnp.arange(size) for first, size in (rows, cols))
        return *own, None if bias is None else cut(bias, rows, cols).astype(dtype)

    @jax.custom_jvp
    def rows_of(q, k, v, mask, rule, bias, softcap, sinks):
        def of_queries(job):
            row, count, cols = job

            def one_more(i, state):
                own_q, own_k, own_v, own_bias = cuts(row, cols[i], q, k, v, bias)
                visible = seen(row, cols[i], mask, rule, own_bias)
                return extend(state, masked_scores(own_q, own_k, visible, own_bias, softcap), visible, own_v)

            state = start(q[..., :t, :], v, sinks)
            return finish(one_more(0, state) if most == 1 else lax.fori_loop(0, count, one_more, state))

        if most == 0:
            return finish(start(q, v, sinks))
        jobs = [(row, len(cols), cols + [0] * (most - len(cols))) for row, cols in plan]
        return for_each(of_queries, [np.array(x, np.int32) for x in zip(*jobs, strict=True)], T)

    def derivative(primals, tangents):
        q, k, v, mask, rule, bias, softcap, sinks = primals
        out, lse = rows_of(*primals)
        dq, dk, dv, _, _, dbias, dsoftcap, dsinks = (None if isinstance(x, SymbolicZero) else x for x in tangents)

        @partial(jax.checkpoint, prevent_cse=False)
        def one_more(sums, first):
            rows, _ = places(*first)
            own_q, own_k, own_v, own_bias = cuts(*first, q, k, v, bias)
            given = (*cuts(*first, dq, dk, dv, dbias), dsoftcap)
            visible, own_lse = seen(*first, mask, rule, own_bias), part(lse, rows)

            def back(d_out, delta):
                gradients = pull_back(own_q, own_k, own_v, own_bias, softcap, visible, own_lse, d_out, delta)
                return [x for x, d in zip(gradients, given, strict=True) if d is not None]

            pushed = jax.linear_transpose(back, part(out, rows), own_lse)([d for d in given if d is not None])
            return [put(x, part(x, rows) + y, rows[0]) for x, y in zip(sums, pushed, strict=True)], None

        pairs = np.array([(row, col) for row, cols in plan for col in cols], np.int32).reshape(-1, 2)
        alive = jnp.isfinite(lse)
        finite = jnp.where(jnp.isfinite(out) & alive, out, 0)
        sums = [jnp.zeros_like(out), jnp.zeros_like(lse)]
        if dsinks is not None:
            sums[1] -= jnp.where(alive, jnp.exp(sinks - jnp.where(alive, lse, 0)), 0) * dsinks
        if not all(d is None for d in (dq, dk, dv, dbias, dsoftcap)) and len(pairs):
            sums, _ = lax.scan(one_more, sums, pairs)
        d_out = jnp.where(jnp.isfinite(out) & alive, sums[0] + finite * sums[1], 0)
        return (out, lse), (d_out, jnp.where(alive, -sums[1], 0))

    rows_of.defjvp(derivative, symbolic_zeros=True)
    q = jnp.where(jnp.isfinite(q), finite_part(q)[0] * scale, jnp.nan)
    out, lse = rows_of(q, k, v, mask, rule, bias, softcap, sinks)
    return out, lse[..., 0]
