"""One tile of queries and one tile of keys, and what a query tile carries from one key tile to the next.

For each of its rows it carries the running maximum `top`, the sum `total` of exp(score - top), the unnormalised
output `acc`, and whether anything was `found`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .arrays import all_finite, product, row_sums
from .attention import blend, cap, scaled_scores
from .masks import reach
from .softmax import close, exponentials, row_top, shift

BLOCK_SIZE = (256, 512)  # a tile of scores stays in the cache of its core
LARGEST = 256 * 512


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
    return x[..., positions.start : positions.stop, :]


def masked_scores(q, k, visible, bias, softcap):
    """Scores of one tile of scaled queries and keys after softcap, bias and mask, -inf where hidden (C1 to C4).

    visible and bias are those of the tile; None is a tile without. The scores lie in the buffer of this thread.
    """
    scores = product(q, k.mT, reuse=True)
    if not all_finite(scores):
        scores = scaled_scores(q, k, 1)
    biased = cap(scores, softcap)
    if bias is not None:
        biased += bias
    if visible is not None:
        np.copyto(biased, -np.inf, where=~visible)
    return biased


def start(q, v, sinks):
    """Rows that have seen no key yet; a sink is in the denominator from the beginning (C7)."""
    shape = (*q.shape[:-1], 1)
    top = np.full(shape, -np.inf, q.dtype) if sinks is None else np.broadcast_to(sinks, shape)
    found = top != -np.inf
    total = exponentials(top, found, top)
    return Rows(top, total, found, np.zeros((*q.shape[:-1], v.shape[-1]), q.dtype))


def extend(state, masked, visible, v):
    """The rows after one more tile of keys: what was summed so far is rescaled to the new maximum.

    In place, so that no tile needs new memory: `masked` becomes the numerators.
    """
    top, total, acc = np.maximum(state.top, row_top(masked)), state.total, state.acc
    if (top != state.top).any():
        shrink = exponentials(state.top, state.found, top)
        total *= shrink
        acc *= shrink
    np.exp(np.subtract(masked, shift(top), out=masked), out=masked)
    total += row_sums(masked)
    acc += blend(masked, v, visible)
    found = True if visible is None else visible.any(axis=-1, keepdims=True)
    return Rows(top, total, state.found | found, acc)


def finish(state):
    """The output and the lse of rows that have seen all their keys."""
    divisor, lse = close(state.top, state.total, state.found)
    return state.acc / divisor, lse[..., 0]
