"""Attention over tiles: the same function as `attention` in O(T + S) extra memory.

A query tile walks over the key tiles and carries, for each of its rows, the running maximum `top`, the
sum `total` of exp(score - top), the unnormalised output `acc`, and whether anything was `found`.
Partial results over disjoint sets of keys are merged by the same arithmetic.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from . import arguments, checks
from .arrays import finite_part, guard, operand
from .attention import blend, cap, default_scale, prepare, scaled_scores
from .masks import cut, split_mask, visibility
from .softmax import close, exponentials, row_top

BLOCK_SIZE = (256, 512)


class Rows(NamedTuple):
    """What is known of some rows so far: top, total, found (*B, [H,] t, 1) and acc (*B, [H,] t, Dv)."""

    top: Any
    total: Any
    found: Any
    acc: Any


# --- the public functions --------------------------------------------------------------------------------


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

    Takes what `attention` takes, and block_size = (queries, keys) of a tile, (256, 512) by default. Returns
    out (*B, [H,] T, Dv) in the inputs' dtype and lse (*B, [H,] T), the log of the softmax denominator, in
    float32 (float64 for float64 inputs). A rule is evaluated tile by tile; tiles that it hides wholly are skipped.
    Raises what `attention` raises, and ValueError for a tile size < 1.
    Source: Dao et al. 2022, "FlashAttention", algorithm 1; Milakov and Gimelshein 2018, algorithm 3.
    """
    shape = checks.attention(q, k, v, mask, bias, is_causal, scale, softcap, sinks, enable_gqa)
    arguments.pair_of_sizes("block_size", block_size)
    scale, softcap, tile = operand(scale), operand(softcap), tuple(block_size or BLOCK_SIZE)
    return flash_core(tile, shape, q, k, v, mask, bias, is_causal, scale, softcap, sinks, enable_gqa)


def merge(parts):
    """Join partial results over disjoint sets of keys into the result over all of them.

    parts: sequence of (out (*B, T, Dv), lse (*B, T)). Returns (out, lse) of those shapes and dtypes. Associative
    and commutative up to rounding, with identity (0, -inf); a part with lse -inf saw nothing and has no weight.
    Give a sink to one part alone. Raises TypeError for a wrong type, ValueError for no part or unequal shapes.
    Source: Dao et al. 2023, "Flash-Decoding"; Milakov and Gimelshein 2018, equation 4.
    """
    checks.merge(parts)
    return merge_core(tuple((out, lse) for out, lse in parts))


# --- one tile after the other ----------------------------------------------------------------------------


@partial(jax.jit, static_argnames=("tile", "shape", "is_causal", "enable_gqa"))
def flash_core(tile, shape, q, k, v, mask, bias, is_causal, scale, softcap, sinks, enable_gqa):
    """The output and the lse of checked arguments, computed tile by tile."""
    dtype = q.dtype
    q, k, v, bias, sinks = prepare(shape, q, k, v, bias, sinks, enable_gqa)
    scale = default_scale(scale, q)
    out, lse = finish(walk(tile, q, k, v, *split_mask(mask, is_causal), bias, scale, softcap, sinks))
    return out.astype(dtype), lse


def walk(tile, q, k, v, mask, rule, bias, scale, softcap, sinks):
    """The Rows of all queries, once each of them has seen its keys tile by tile.

    jax: reverse mode would keep the scores of each tile, T x S in all. With the final `top` held fixed (it cancels
    out), `total` and `acc` are plain sums over the tiles: their derivative walks again and computes each tile anew.
    """
    lengths = q.shape[-2], k.shape[-2]
    sizes = np.minimum(tile, lengths)
    firsts = [(rows.start, cols.start) for rows, cols in tiles_in_sight(rule, tile, *lengths)]
    # jax: tiles have one size, so the last ones reach back; what they repeat is hidden.
    firsts = np.array(firsts, np.int32).reshape(-1, 2)
    places = firsts, np.minimum(firsts, lengths - sizes).astype(np.int32)

    def over_tiles(take, state, q, k, v, mask, rule, bias, scale, softcap, sinks):
        def one_tile(state, place):
            first, at = place
            rows, cols = at[0] + jnp.arange(sizes[0]), at[1] + jnp.arange(sizes[1])
            masked, visible = masked_scores(q, k, mask, rule, bias, scale, softcap, rows, cols)
            visible = visible & (rows >= first[0])[:, None] & (cols >= first[1])
            masked = jnp.where(visible, masked, -jnp.inf)
            new = take(rows, [part(x, rows) for x in state], masked, visible, part(v, cols))
            return [lax.dynamic_update_slice_in_dim(x, y, at[0], -2) for x, y in zip(state, new, strict=True)], None

        return lax.scan(jax.checkpoint(one_tile), state, places)[0] if len(firsts) else state

    @jax.custom_jvp
    def rows_of(*operands):
        def take(rows, state, masked, visible, v):
            return extend(Rows(*state), masked, visible, v)

        return Rows(*over_tiles(take, [*start(operands[0], operands[2], operands[-1])], *operands))

    @rows_of.defjvp
    def derivative(primals, tangents):
        state = rows_of(*primals)

        def take(rows, sums, masked, visible, v):
            numerators = exponentials(masked, visible, part(state.top, rows))
            return sums[0] + numerators.sum(axis=-1, keepdims=True), sums[1] + blend(numerators, v, visible)

        def sums(*operands):
            begun = start(operands[0], operands[2], operands[-1])
            return over_tiles(take, [exponentials(begun.top, begun.found, state.top), begun.acc], *operands)

        _, (total, acc) = jax.jvp(sums, primals, tangents)
        return state, Rows(jnp.zeros_like(state.top), total, np.zeros(state.found.shape, jax.dtypes.float0), acc)

    return rows_of(q, k, v, mask, rule, bias, scale, softcap, sinks)


def tiles_in_sight(rule, tile, T, S):
    """The pairs of a query tile and a key tile of which the rule does not hide everything."""
    pairs = ((rows, cols) for rows in tiles(T, tile[0]) for cols in tiles(S, tile[1]))
    return [(rows, cols) for rows, cols in pairs if rule is None or rule.covers(rows, cols) is not False]


def tiles(length, size):
    """The position ranges of at most `size` positions that make up `length`."""
    return [range(i, min(i + size, length)) for i in range(0, length, size)]


def part(x, positions):
    """The tile of x (..., n, D) that stands at a range of positions."""
    return lax.dynamic_slice_in_dim(x, positions[0], len(positions), axis=-2)


def masked_scores(q, k, mask, rule, bias, scale, softcap, rows, cols):
    """Scores of one tile after scale, softcap, bias and mask, and which pairs are visible (C1 to C4)."""
    scores = scaled_scores(part(q, rows), part(k, cols), scale)
    visible = jnp.broadcast_to(visibility(mask, rule, bias, rows, cols), scores.shape)
    counted = visible & jnp.isfinite(scores)  # jax: 0 * NaN would reach the gradient of the softcap
    capped = cap(guard(scores, counted), guard(softcap, counted))
    biased = capped if bias is None else capped + cut(bias, rows, cols)
    return jnp.where(visible, biased, -jnp.inf), visible


def start(q, v, sinks):
    """Rows that have seen no key yet; a sink is in the denominator from the beginning (C7)."""
    shape = (*q.shape[:-1], 1)
    top = jnp.full(shape, -jnp.inf, q.dtype) if sinks is None else jnp.broadcast_to(sinks, shape)
    found = top != -jnp.inf
    total = exponentials(top, found, top)
    return Rows(top, total, found, jnp.zeros((*q.shape[:-1], v.shape[-1]), q.dtype))


def extend(state, masked, visible, v):
    """The rows after one more tile of keys: what was summed so far is rescaled to the new maximum."""
    top = jnp.maximum(state.top, row_top(masked))
    shrink = exponentials(state.top, state.found, top)
    numerators = exponentials(masked, visible, top)
    total = state.total * shrink + numerators.sum(axis=-1, keepdims=True)
    acc = state.acc * shrink + blend(numerators, v, visible)
    return Rows(top, total, state.found | visible.any(axis=-1, keepdims=True), acc)


def finish(state):
    """The output and the lse of rows that have seen all their keys."""
    divisor, lse = close(state.top, state.total, state.found)
    # jax: divided where that gives a number, so that a row that is lost gives nothing to any gradient.
    acc, broken = finite_part(state.acc)
    whole = ~broken & (divisor > 0)
    return jnp.where(whole, acc / jnp.where(divisor > 0, divisor, 1), jnp.nan), lse[..., 0]


@jax.jit
def merge_core(parts):
    """The merged output and lse of checked parts."""
    outs = jnp.stack([out.astype(lse.dtype) for out, lse in parts])
    lses = jnp.stack([lse for _, lse in parts])[..., None]
    top = lses.max(axis=0)
    seen = lses != -jnp.inf
    shares = exponentials(lses, seen, top)
    divisor, lse = close(top, shares.sum(axis=0), seen.any(axis=0))
    out = (shares * jnp.where(seen, outs, 0)).sum(axis=0) / divisor
    return out.astype(parts[0][0].dtype), lse[..., 0]
