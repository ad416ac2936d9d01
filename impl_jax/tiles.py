"""One tile of queries and one tile of keys, and what a query tile carries from one key tile to the next.

For each of its rows it carries the running maximum `top`, the sum `total` of exp(score - top), the unnormalised
output `acc`, and whether anything was `found`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .arrays import all_finite, finite_part, guard, product, row_sums, shifted_exp, where
from .attention import SMALL, cap
from .masks import cut, reach, visibility
from .softmax import close, row_top, shift

BLOCK_SIZE = (512, 512)
LARGEST = 2**21  # scores of all heads at a time: XLA has its threads within one product, which has to be large
PART = 2.0**-24  # of the output is summed up: up to 2**23 values near the largest number do not overflow


class Rows(NamedTuple):
    """What is known of some rows so far: top, total, found (*B, [H,] t, 1) and acc (*B, [H,] t, Dv)."""

    top: Any
    total: Any
    found: Any
    acc: Any


class Pairs:
    """Which pairs are visible and what their bias is, read tile by tile and never as a whole."""

    def __init__(self, mask, rule, bias, shape, dtype):
        """`mask` and `bias` are None or broadcast to `shape` (*B, [H,] T, S); the bias is converted to `dtype`."""
        self.mask, self.rule, self.bias, self.shape, self.dtype = mask, rule, bias, shape, dtype

    def tile(self, heads, rows, cols):
        """The visible pairs and the bias of a tile of some heads; None stands for all visible, and for no bias.

        jax: of all heads; rows and cols are a first position, which is traced, and a length. The last tile reaches back
        to be as long as the others, and those of a rule may begin anywhere: what is repeated is hidden.
        """
        (row, t), (col, s), (T, S) = rows, cols, self.shape[-2:]
        if self.mask is None and self.rule is None and self.bias is None and not (T % t or S % s):
            return None, None
        rows = lax.min(row, np.int32(T - t)) + lax.iota(np.int32, t)
        cols = lax.min(col, np.int32(S - s)) + lax.iota(np.int32, s)
        bias = None if self.bias is None else cut(self.bias, rows, cols).astype(self.dtype)
        visible = visibility(self.mask, self.rule, bias, rows, cols)
        if T % t:
            visible &= lax.expand_dims(rows >= row, [1])
        if S % s or self.rule is not None:
            visible &= cols >= col
        return visible, bias


# jax: a pytree, so that a bias has its derivative and a mask may be traced.
jax.tree_util.register_pytree_node(
    Pairs, lambda x: ((x.mask, x.rule, x.bias), (x.shape, x.dtype)), lambda known, arrays: Pairs(*arrays, *known)
)


def tile_size(block_size, shape):
    """The queries and keys of a tile: where queries are few, the default takes more keys."""
    queries, keys = BLOCK_SIZE
    heads = max(1, math.prod(shape[:-2]))
    pairs = heads * max(1, min(keys, shape[-1]))  # of one query
    # jax: the memory of a tile is new in each call, which costs time as well: short sequences have smaller tiles.
    queries = max(1, min(shape[-2], max(queries // 2, min(queries, shape[-2] // 4)), LARGEST // pairs))
    return tuple(block_size or (queries, max(keys, 0 if shape[-2] > queries else LARGEST // (heads * queries))))


def key_tiles(rule, rows, S, size):
    """The tiles of at most `size` keys of which a rule does not hide everything from a range of queries.

    Those that need no mask come first.
    """
    if rule is None:
        return tiles(S, size)
    keys = reach(rule, rows, S)
    found = [range(i, min(i + size, keys.stop)) for i in range(keys.start, keys.stop, size)]
    found = [cols for cols in found if rule.covers(rows, cols) is not False]
    return sorted(found, key=lambda cols: len(cols) < size or rule.covers(rows, cols) is not True)


def tiles(length, size):
    """The position ranges of at most `size` positions that make up `length`."""
    return [range(i, min(i + size, length)) for i in range(0, length, size)]


def part(x, positions):
    """The tile of x (..., n, D) that stands at a range of positions.

    jax: also at a first position, which may be traced, and a length.
    """
    first, length = positions if isinstance(positions, tuple) else (positions[0], len(positions))
    if length == x.shape[-2]:
        return x
    return lax.dynamic_slice_in_dim(x, first, length, axis=-2, allow_negative_indices=False)


def masked_scores(q, k, visible, bias, softcap):
    """Scores of one tile of scaled queries and keys after softcap, bias and mask, -inf where hidden (C1 to C4).

    visible and bias are those of the tile; None is a tile without.
    """

    def careful():
        return product(q, lax.select(lax.is_finite(k), k, lax.full_like(k, jnp.nan)), of_rows=True)

    if q.shape[-2] >= k.shape[-1] or k.size <= SMALL:
        scores = careful()
    else:  # jax: the scores are fewer than the numbers of the keys, and to look at them spares a copy of the keys
        scores = product(q, k, of_rows=True)
        scores = lax.cond(all_finite(scores), lambda: scores, careful)
    if softcap is not None:
        counted = jnp.isfinite(scores)  # jax: 0 * NaN would reach the gradient of the softcap
        counted = counted if visible is None else counted & visible
        scores = cap(guard(scores, counted), guard(softcap, counted))
    biased = scores if bias is None else scores + bias
    return biased if visible is None else where(visible, biased, -jnp.inf)


def start(q, v, sinks):
    """Rows that have seen no key yet; a sink is in the denominator from the beginning (C7)."""
    sinks = lax.full((1, 1), -jnp.inf, q.dtype) if sinks is None else sinks
    top = jnp.broadcast_to(sinks, (*q.shape[:-1], 1))
    return Rows(top, shifted_exp(top, shift(top)), top != -jnp.inf, lax.full((*q.shape[:-1], v.shape[-1]), 0, q.dtype))


def extend(state, masked, visible, v):
    """The rows after one more tile of keys: what was summed so far is rescaled to the new maximum."""
    top = jnp.maximum(state.top, row_top(masked))
    shrink = shifted_exp(state.top, shift(top))
    # jax: XLA may compute `masked` anew here, with another rounding: nothing may exceed the top. NaN stays. What comes
    # after the exponential would be computed for each of its uses, so that nothing does.
    numerators = shifted_exp(where(~(masked > top), masked, top), shift(top))
    found = True if visible is None else visible.any(axis=-1, keepdims=True)

    def careful():
        finite, broken = finite_part(v)
        seen = jnp.ones(masked.shape[-2:], v.dtype) if visible is None else visible.astype(v.dtype)
        reached = product(seen, broken.astype(v.dtype)) > 0
        return where(~reached, product(numerators, finite * PART), jnp.nan)

    if masked.size * v.shape[-1] <= SMALL:
        blended = careful()
    else:
        blended = product(numerators, v)
        blended = lax.cond(all_finite(blended), lambda: blended * PART, careful)
    total, acc = state.total * shrink + row_sums(numerators), state.acc * shrink + blended
    return Rows(top, total, state.found | found, acc)


def finish(state):
    """The output and the lse of rows that have seen all their keys."""
    divisor, lse = close(state.top, state.total, state.found)
    return state.acc / (divisor * PART), lse


def pull_back(q, k, v, bias, softcap, visible, lse, d_out, delta):
    """The gradients of one tile's scaled queries, keys, values, bias and softcap, from those of its rows.

    q, k, v and d_out are finite. lse, delta (*B, [H,] t, 1); lse is +inf in a row that is empty or lost to NaN, which
    then takes no part; delta is the sum of d_out * out over the features, less the gradient of the lse.
    Source: Dao 2023, "FlashAttention-2", algorithm 2, lines 11 to 16.
    """

    def times(a, b, *axes):
        batch = tuple(range(a.ndim - 2))
        return lax.dot_general(a, b, ((axes[:1], axes[1:]), (batch, batch)), lax.Precision.HIGHEST)

    rows, features = q.ndim - 2, q.ndim - 1
    counted = lse < jnp.inf if visible is None else visible & (lse < jnp.inf)
    # jax: what does not count is chosen away before anything is made of it, so that no derivative meets it either.
    scores = where(counted, times(q, k, features, features), 0)
    capped = cap(scores, softcap)
    shifted = where(counted, capped if bias is None else capped + bias, -jnp.inf) - lse
    # jax: no score exceeds the lse, except by its rounding; the derivative does not notice.
    weights = jnp.exp(shifted - lax.stop_gradient(jnp.maximum(shifted, 0)))
    d_weights = times(d_out, v, features, features)
    d_biased = where(counted, weights * (d_weights - delta), 0)
    d_scores, d_softcap = d_biased, None
    if softcap is not None:
        slope = 1 - (capped / softcap) ** 2
        d_scores, d_softcap = d_biased * slope, (d_biased * (capped - scores * slope) / softcap).sum()
    # jax: (a b)^T is b^T a^T: XLA would take a transposed copy of all scores.
    d_k, d_v = (times(x, y, rows, rows).mT for x, y in ((q, d_scores), (d_out, weights)))
    return times(d_scores, k, features, rows), d_k, d_v, None if bias is None else d_biased, d_softcap
