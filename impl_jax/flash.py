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

put = partial(lax.dynamic_update_slice_in_dim, axis=-2)


@partial(jax.jit, static_argnames=("tile", "shape", "is_causal", "enable_gqa"))
def flash_core(tile, shape, q, k, v, mask, bias, is_causal, scale, softcap, sinks, enable_gqa):
    """The output and the lse of checked arguments, computed tile by tile."""
    dtype = q.dtype
    q, k, v, _, sinks = prepare(shape, q, k, v, None, sinks, enable_gqa)
    scale = default_scale(scale, q)
    out, lse = walk(tile, q, k, v, *split_mask(mask, is_causal), bias, scale, softcap, sinks)
    return out.astype(dtype), lse[..., 0]


def walk(tile, q, k, v, mask, rule, bias, scale, softcap, sinks):
    """The output and the lse of all queries, once each of them has seen its keys tile by tile.

    jax: tiles have one size, so the last ones reach back; what they repeat is hidden. Large tiles that need no mask
    have a loop of their own. The derivative in forward mode is `pull_back` transposed, tile by tile, and what JAX makes
    of that in reverse mode is `pull_back` again; what belongs to some rows is added to all of them, since reverse mode
    would copy all rows where some are replaced.
    """
    T, S, covers = q.shape[-2], k.shape[-2], rule.covers if rule else lambda rows, cols: True
    t, s = min(tile[0], T), min(tile[1], S)
    plan = [(x, key_tiles(rule, x, S, tile[1])) for x in tiles(T, tile[0])]
    pairs = np.array([(row.start, col.start) for row, cols in plan for col in cols], np.int32).reshape(-1, 2)
    bare = mask is None and bias is None and math.prod(q.shape[:-2]) * t * s > SMALL
    free = [bare and len(x) == t and sum(len(y) == s and covers(x, y) is True for y in cols) for x, cols in plan]
    jobs = [(x.start, n, len(cols), [y.start for y in cols]) for n, (x, cols) in zip(free, plan, strict=True)]

    def own(masks, first, q, k, v, bias, mask=None, rule=None):
        rows, cols = jnp.minimum(first[0], T - t) + jnp.arange(t), jnp.minimum(first[1], S - s) + jnp.arange(s)
        bias = None if bias is None else cut(bias, rows, cols).astype(q.dtype)
        visible = visibility(mask, rule, bias, rows, cols) & (rows >= first[0])[:, None] & (cols >= first[1])
        return rows, visible if masks else None, (part(q, rows), part(k, cols), part(v, cols), bias)

    @jax.custom_jvp
    def rows_of(q, k, v, mask, rule, bias, softcap, sinks):
        def of_queries(job):
            def one_more(i, state, masks=True):
                _, visible, (q_, k_, v_, bias_) = own(masks, (job[0], job[3][i]), q, k, v, bias, mask, rule)
                return extend(state, masked_scores(q_, k_, visible, bias_, softcap), visible, v_)

            state = start(q[..., :t, :], v, sinks)
            if job[3].size == 1:
                return finish(one_more(0, state, masks=not all(free)))
            state = lax.fori_loop(0, job[1], partial(one_more, masks=False), state) if any(free) else state
            return finish(lax.fori_loop(job[1], job[2], one_more, state) if sum(free) < len(pairs) else state)

        return for_each(of_queries, jobs, T) if len(pairs) else finish(start(q, v, sinks))

    @rows_of.defjvp
    def derivative(primals, tangents):
        (q, k, v, mask, rule, bias, softcap, sinks), (out, lse) = primals, rows_of(*primals)
        dq, dk, dv, _, _, dbias, dsoftcap, dsinks = tangents

        def one_more(sums, first):
            rows, visible, given = own(sum(free) < len(pairs), first, q, k, v, bias, mask, rule)
            like = part(out, rows), part(lse, rows)
            push = jax.linear_transpose(partial(pull_back, *given, softcap, visible, like[1]), *like)
            new = push((*own(False, first, dq, dk, dv, dbias)[2], dsoftcap))
            return [x + put(jnp.zeros_like(x), y, rows[0]) for x, y in zip(sums, new, strict=True)], None

        alive, whole = jnp.isfinite(lse), jnp.isfinite(out) & jnp.isfinite(lse)
        of_sinks = 0 if sinks is None else jnp.where(alive, jnp.exp(sinks - jnp.where(alive, lse, 0)), 0) * dsinks
        sums = [jnp.zeros_like(out), jnp.zeros_like(lse) - of_sinks]
        dacc, ddelta = lax.scan(jax.checkpoint(one_more, prevent_cse=False), sums, pairs)[0] if len(pairs) else sums
        return (out, lse), (jnp.where(whole, dacc + jnp.where(whole, out, 0) * ddelta, 0), jnp.where(alive, -ddelta, 0))

    q = jnp.where(jnp.isfinite(q), finite_part(q)[0] * scale, jnp.nan)
    return rows_of(q, k, v, mask, rule, bias, softcap, sinks)
