"""Attention over tiles: the same function as `attention` in O(T + S) extra memory.

A query tile walks over the key tiles that its rule reaches, and carries from one to the next what is known of its
rows. Its time is that of the visible tiles, and no T x S array is ever made.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from . import arguments, checks
from .arrays import finite_part, for_each, operand, row_sums
from .attention import blend, default_scale, prepare
from .masks import cut, split_mask, visibility
from .softmax import exponentials
from .tiles import Rows, extend, finish, key_tiles, masked_scores, part, start, tile_size, tiles


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
    where queries are few. Returns
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

update = lax.dynamic_update_slice_in_dim


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

    jax: reverse mode would keep the scores of each tile, T x S in all. With the final `top` held fixed (it cancels
    out), `total` and `acc` are plain sums over the tiles: their derivative walks again and computes each tile anew.
    Tiles have one size, so the last ones reach back; what they repeat is hidden. And no product of an infinite query
    with its scale may reach the gradient of the scale.
    """
    lengths = q.shape[-2], k.shape[-2]
    sizes = np.minimum(tile, lengths)
    plan = [(x.start, [y.start for y in key_tiles(rule, x, lengths[1], tile[1])]) for x in tiles(lengths[0], tile[0])]
    most = max((len(cols) for _, cols in plan), default=0)

    def tile_of(first, q, k, v, mask, rule, bias, softcap):
        row, col = jnp.minimum(first, lengths - sizes)
        rows, cols = row + jnp.arange(sizes[0]), col + jnp.arange(sizes[1])
        own_bias = None if bias is None else cut(bias, rows, cols).astype(q.dtype)
        visible = visibility(mask, rule, own_bias, rows, cols) & (rows >= first[0])[:, None] & (cols >= first[1])
        return rows, masked_scores(part(q, rows), part(k, cols), visible, own_bias, softcap), visible, part(v, cols)

    @jax.custom_jvp
    def rows_of(*operands):
        def of_queries(job):
            row, count, cols = job

            def one_more(i, state):
                return extend(state, *tile_of(jnp.stack([row, cols[i]]), *operands[:-1])[1:])

            state = start(operands[0][..., : sizes[0], :], operands[2], operands[-1])
            return one_more(0, state) if most == 1 else lax.fori_loop(0, count, one_more, state)

        if most == 0:
            return start(operands[0], operands[2], operands[-1])
        jobs = [(row, len(cols), cols + [0] * (most - len(cols))) for row, cols in plan]
        return for_each(of_queries, [np.array(x, np.int32) for x in zip(*jobs, strict=True)], lengths[0])

    @rows_of.defjvp
    def derivative(primals, tangents):
        state = rows_of(*primals)
        pairs = np.array([(row, col) for row, cols in plan for col in cols], np.int32).reshape(-1, 2)

        def sums(*operands):
            def one_more(sums, first):
                rows, masked, visible, own_v = tile_of(first, *operands[:-1])
                numerators = exponentials(masked, visible, part(state.top, rows))
                new = row_sums(numerators), blend(numerators, own_v, visible)
                return [update(x, part(x, rows) + y, rows[0], -2) for x, y in zip(sums, new, strict=True)], None

            begun = start(operands[0], operands[2], operands[-1])
            zero = [exponentials(begun.top, begun.found, state.top), begun.acc]
            return lax.scan(jax.checkpoint(one_more), zero, pairs)[0] if len(pairs) else zero

        _, (total, acc) = jax.jvp(sums, primals, tangents)
        return state, Rows(jnp.zeros_like(state.top), total, np.zeros(state.found.shape, jax.dtypes.float0), acc)

    q = jnp.where(jnp.isfinite(q), finite_part(q)[0] * scale, jnp.nan)
    return finish(rows_of(q, k, v, mask, rule, bias, softcap, sinks))
