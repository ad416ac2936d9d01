"""One tile of queries and one tile of keys, and what a query tile carries from one key tile to the next.

For each of its rows it carries the running maximum `top`, the sum `total` of exp(score - top), the unnormalised
output `acc`, and whether anything was `found`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from .arrays import guard, row_sums
from .attention import blend, cap, scaled_scores
from .masks import reach
from .softmax import close, exponentials, row_top

BLOCK_SIZE = (512, 512)
LARGEST = 512 * 512


class Rows(NamedTuple):
    """What is known of some rows so far: top, total, found (*B, [H,] t, 1) and acc (*B, [H,] t, Dv)."""

    top: Any
    total: Any
    found: Any
    acc: Any


def tile_size(block_size, shape):
    """The queries and keys of a tile: where queries are few, the default takes more keys."""
    queries, keys = BLOCK_SIZE
    return tuple(block_size or (queries, max(keys, LARGEST // max(1, min(queries, shape[-2])))))


def key_tiles(rule, rows, S, size):
    """The tiles of at most `size` keys of which a rule does not hide everything from a range of queries."""
    if rule is None:
        return tiles(S, size)
    keys = reach(rule, rows, S)
    found = [range(i, min(i + size, keys.stop)) for i in range(keys.start, keys.stop, size)]
    return [cols for cols in found if rule.covers(rows, cols) is not False]


def tiles(length, size):
    """The position ranges of at most `size` positions that make up `length`."""
    return [range(i, min(i + size, length)) for i in range(0, length, size)]


def part(x, positions):
    """The tile of x (..., n, D) that stands at a range of positions."""
    return lax.dynamic_slice_in_dim(x, positions[0], len(positions), axis=-2)


def masked_scores(q, k, visible, bias, softcap):
    """Scores of one tile of scaled queries and keys after softcap, bias and mask, -inf where hidden (C1 to C4).

    visible and bias are those of the tile; bias=None is a tile without.
    """
    scores = scaled_scores(q, k, 1)
    counted = visible & jnp.isfinite(scores)  # jax: 0 * NaN would reach the gradient of the softcap
    capped = cap(guard(scores, counted), guard(softcap, counted))
    biased = capped if bias is None else capped + bias.astype(q.dtype)
    return jnp.where(visible, biased, -jnp.inf)


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
    total = state.total * shrink + row_sums(numerators)
    acc = state.acc * shrink + blend(numerators, v, visible)
    return Rows(top, total, state.found | visible.any(axis=-1, keepdims=True), acc)


def finish(state):
    """The output and the lse of rows that have seen all their keys."""
    divisor, lse = close(state.top, state.total, state.found)
    # jax: divided where that gives a number, so that a row that is lost gives nothing to any gradient.
    whole = divisor > 0
    return jnp.where(whole, state.acc / jnp.where(whole, divisor, 1), jnp.nan), lse[..., 0]
