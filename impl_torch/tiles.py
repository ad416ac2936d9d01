"""One tile of queries and one tile of keys, and what a query tile carries from one key tile to the next.

For each of its rows it carries the running maximum `top`, the sum `total` of exp(score - top), the unnormalised
output `acc`, and whether anything was `found`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from .arrays import all_finite, finite_part, product, row_sums
from .attention import cap
from .masks import reach
from .softmax import close, exponentials, row_top, shift

BLOCK_SIZE = (512, 1024)  # torch: larger than the cache asks for, since each call of it takes some microseconds
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
    # torch: to hide a part of a tile takes as long as a product, so such a tile is halved.
    halves = [(x,) if rule.covers(rows, x) else (x[: len(x) // 2], x[len(x) // 2 :]) for x in found]
    return [x for both in halves for x in both if x and rule.covers(rows, x) is not False]


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
    scores = product(q, k.mT, reuse="scores")
    if not all_finite(scores):
        q_broken, k_broken = (~x.isfinite().all(dim=-1) for x in (q, k))
        scores.masked_fill_(q_broken[..., :, None] | k_broken[..., None, :], torch.nan)
    biased = cap(scores, softcap)
    if bias is not None:
        biased += bias
    return biased if visible is None else biased.masked_fill_(~visible, -torch.inf)


def start(q, v, sinks):
    """Rows that have seen no key yet; a sink is in the denominator from the beginning (C7)."""
    shape = (*q.shape[:-1], 1)
    top = q.new_full(shape, -torch.inf) if sinks is None else sinks.expand(shape)
    found = top != -torch.inf
    total = exponentials(top, found, top)
    return Rows(top, total, found, q.new_zeros((*q.shape[:-1], v.shape[-1])))


def extend(state, masked, visible, v):
    """The rows after one more tile of keys: what was summed so far is rescaled to the new maximum.

    In place, so that no tile needs new memory: `masked` becomes the numerators.
    """
    top, total, acc = torch.maximum(state.top, row_top(masked)), state.total, state.acc
    if not torch.equal(top, state.top):
        shrink = exponentials(state.top, state.found, top)
        total *= shrink
        acc *= shrink
    numerators = masked.sub_(shift(top)).exp_()
    total += row_sums(numerators)
    v = v if v.stride(0) else v.contiguous()
    blended = product(numerators, v, reuse="blended")
    if not all_finite(blended):
        finite, broken = finite_part(v)
        # torch: MKL rounds by where rows begin, so the finite values stand as `v` does from one multiple of 64 bytes.
        span = 1 + sum((n - 1) * step for n, step in zip(v.shape, v.stride(), strict=True))
        room = v.new_zeros(span + 64)
        begin = (v.data_ptr() - room.data_ptr()) % 64 // v.element_size()
        finite = room.as_strided(v.shape, v.stride(), begin).copy_(finite)
        seen = torch.ones_like(numerators, dtype=torch.bool) if visible is None else visible.expand(numerators.shape)
        reached = seen.to(v.dtype) @ broken.to(v.dtype) > 0
        blended = torch.where(reached, torch.nan, product(numerators, finite, reuse="blended"))
    acc += blended
    # torch: the maximum of bytes is found twenty times as fast as whether any boolean is true.
    found = torch.ones_like(state.found) if visible is None else visible.view(torch.uint8).amax(-1, True) > 0
    return Rows(top, total, state.found | found, acc)


def finish(state):
    """The output and the lse of rows that have seen all their keys."""
    divisor, lse = close(state.top, state.total, state.found)
    if not state.acc.requires_grad:
        return state.acc / divisor, lse[..., 0]
    acc, broken = finite_part(state.acc)
    # torch: divided where that gives a number, so that the other rows give nothing to any gradient.
    whole = divisor > 0
    return torch.where(broken | ~whole, torch.nan, acc / torch.where(whole, divisor, 1)), lse[..., 0]
