"""One tile of queries and one tile of keys, and what a query tile carries from one key tile to the next.

For each of its rows it carries the running maximum `top`, the sum `total` of exp(score - top), the unnormalised
output `acc`, and whether anything was `found`.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from .arrays import all_finite, product, row_sums, shifted_exp
from .attention import blend, cap, scaled_scores
from .masks import cut, reach, visibility
from .softmax import close, exponentials, row_top, shift

BLOCK_SIZE = (512, 1024)
# numpy: pairs that one operation takes, of several heads together. Between operations a thread waits for Python's lock,
# and is late when it gets it: that would cost more than scores that leave the cache of the core.
LARGEST = 2**19


class Rows(NamedTuple):
    """What is known of some rows so far: top, total, found (*B, [H,] t, 1) and acc (*B, [H,] t, Dv).

    numpy: top=None says that no maximum is subtracted; found is True or False where all rows agree.
    """

    top: Any
    total: Any
    found: Any
    acc: Any


class Pairs:
    """Which pairs are visible and what their bias is, read tile by tile and never as a whole."""

    def __init__(self, mask, rule, bias, shape, dtype):
        """`mask` and `bias` are None or broadcast to `shape` (*B, [H,] T, S); the bias is converted to `dtype`."""
        shape = shape if len(shape) > 2 else (1, *shape)
        self.rule, self.bias, self.dtype = rule, bias, dtype
        self.bare = mask is None and rule is None and bias is None
        self.views = [None if x is None else np.broadcast_to(x, shape) for x in (mask, bias)]

        def limits(seen):
            return np.where(seen, np.array(np.inf, dtype), np.array(-np.inf, dtype))

        def of_rule(rows, cols):
            return np.broadcast_to(limits(rule.tile(rows, cols)), (*shape[:-2], len(rows), len(cols)))

        self.limits, self.of_rule = limits, lru_cache(maxsize=8)(of_rule)  # most heads ask for the same tiles

    def tile(self, heads, rows, cols):
        """The visible pairs and the bias of a tile of some heads; None stands for all visible, and for no bias.

        numpy: booleans are slow, so a visible pair is inf and a hidden one -inf: upper bounds of their scores.
        """
        hides = self.rule is not None and not self.rule.covers(rows, cols)
        mask, bias = (None if x is None else cut(x[heads], rows, cols) for x in self.views)
        bias = None if bias is None else bias.astype(self.dtype, copy=False)
        if mask is None and bias is None:
            return self.of_rule(rows, cols)[heads] if hides else None, None
        visible = self.limits(visibility(mask, None, bias, rows, cols))
        return np.minimum(visible, self.of_rule(rows, cols)[heads]) if hides else visible, bias


def tile_size(block_size, shape):
    """The queries and keys of a tile: where queries are few, the default takes more keys."""
    queries, keys = BLOCK_SIZE
    rows = min(queries, shape[-2]) * (shape[-3] if len(shape) > 2 else 1)
    return tuple(block_size or (queries, max(keys, LARGEST // max(1, 2 * rows))))


def key_tiles(rule, rows, S, size):
    """The tiles of at most `size` keys of which a rule does not hide everything from a range of queries.

    Keys that are hidden in part stand in other tiles than those that are not, so that little has to be masked.
    """
    if rule is None:
        return tiles(S, size)
    keys, strip = reach(rule, rows, S), min(size, max(-(-len(rows) // 2), size // 16))
    strips = [keys[i : i + strip] for i in range(0, len(keys), strip)]
    alike = [(seen, list(some)) for seen, some in groupby(strips, lambda cols: rule.covers(rows, cols))]
    runs = [range(some[0].start, some[-1].stop) for seen, some in alike if seen is not False]
    return [run[i : i + size] for run in runs for i in range(0, len(run), size)]


def tiles(length, size):
    """The position ranges of at most `size` positions that make up `length`."""
    return [range(i, min(i + size, length)) for i in range(0, length, size)]


def part(x, positions):
    """The tile of x (..., n, D) that stands at a range of positions."""
    return x[..., positions.start : positions.stop, :]


def masked_scores(q, k, visible, bias, softcap):
    """Scores of one tile of scaled queries and keys after softcap, bias and mask, -inf where hidden (C1 to C4).

    visible and bias are those of the tile; None is a tile without. The scores lie in the buffer of this thread.
    numpy: fmin takes -inf where a hidden score is NaN, and inf for a visible one, which makes the row NaN as well (E3).
    """
    scores = product(q, k.mT, reuse="scores")
    doubtful = (scores,) if scores.size < q.size + k.size else (q, k)
    if not all(all_finite(x) for x in doubtful):
        scores = scaled_scores(q, k, 1)
    biased = cap(scores, softcap)
    if bias is not None:
        biased += bias
    return biased if visible is None else np.fmin(biased, visible, out=biased)


def start(q, v, sinks):
    """Rows that have seen no key yet; a sink is in the denominator from the beginning (C7)."""
    shape = (*q.shape[:-1], 1)
    top = np.full(shape, -np.inf, q.dtype) if sinks is None else np.broadcast_to(sinks, shape)
    found = False if sinks is None else top != -np.inf
    total = np.zeros(shape, q.dtype) if sinks is None else exponentials(top, found, top)
    return Rows(top, total, found, np.zeros((*q.shape[:-1], v.shape[-1]), q.dtype))


def extend(state, masked, visible, v):
    """The rows after one more tile of keys: what was summed so far is rescaled to the new maximum.

    In place, so that no tile needs new memory: `masked` becomes the numerators.
    """
    top, total, acc = state.top, state.total, state.acc
    if top is not None:
        top = np.maximum(top, row_top(masked))
        shrink = exponentials(state.top, state.found, top)
        total *= shrink
        acc *= shrink
    numerators = np.exp(masked, out=masked) if top is None else shifted_exp(masked, shift(top))
    total += row_sums(numerators)
    blended = product(numerators, v, reuse="blended")
    acc += blended if all_finite(blended) else blend(numerators, v, None if visible is None else visible > 0)
    found = True if visible is None else row_top(visible) > 0
    return Rows(top, total, found is True or state.found | found, acc)


def finish(state):
    """The output and the lse of rows that have seen all their keys."""
    if state.top is None and state.found is True:
        divisor, lse = state.total, np.log(state.total)
    else:
        divisor, lse = close(np.zeros_like(state.total) if state.top is None else state.top, state.total, state.found)
    return np.divide(state.acc, divisor, out=state.acc), lse[..., 0]


def pull_back(q, k, v, bias, softcap, visible, lse, d_out, delta):
    """The gradients of one tile's scaled queries, keys, values, bias and softcap, from those of its rows.

    The weights are computed anew from lse (..., t, 1); delta (..., t, 1) is the sum of out * d_out. What is None has
    None for a gradient. A row whose lse is not finite, empty or lost to NaN, gives nothing to any of them.
    numpy: softcap is a plain number, whose gradient nobody asks for.
    Source: Dao 2023, "FlashAttention-2", algorithm 2.
    """
    found = np.isfinite(lse)
    counted = found if visible is None else (visible > 0) & found
    masked = masked_scores(q, k, visible, bias, softcap)
    weights = shifted_exp(masked, np.where(found, lse, 0))
    np.copyto(weights, 0, where=~counted)
    d_biased = product(d_out, v.mT)
    d_biased -= delta
    d_biased *= weights
    np.copyto(d_biased, 0, where=~counted)
    d_v, d_bias, d_scores = blend(weights.mT, d_out, counted.mT), None if bias is None else d_biased, d_biased
    if softcap is not None:
        slope = 1 - (cap(scaled_scores(q, k, 1), softcap) / softcap) ** 2
        d_scores = np.where(counted, d_biased * slope, 0).astype(q.dtype)
    return blend(d_scores, k, counted), blend(d_scores.mT, q, counted.mT), d_v, d_bias, None
