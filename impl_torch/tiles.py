"""One tile of queries and one tile of keys, and what a query tile carries from one key tile to the next.

For each of its rows it carries the running maximum `top`, the sum `total` of exp(score - top), the unnormalised
output `acc`, and whether anything was `found`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch.nn.functional import pad

from .arrays import all_finite, finite_part, is_array, product, row_sums, shifted_exp
from .attention import cap
from .masks import reach, visibility
from .softmax import close, row_top, shift

BLOCK_SIZE = (256, 1024)  # torch: more keys than the cache asks for, since each call of it takes some microseconds
LARGEST = 2**19  # torch: pairs of one job, of several heads together, since each call takes some microseconds as well


class Rows(NamedTuple):
    """What is known of some rows so far: top, total, found (*B, [H,] t, 1) and acc (*B, [H,] t, Dv).

    torch: top=None says that no maximum is subtracted; found is True or False where all rows agree.
    """

    top: Any
    total: Any
    found: Any
    acc: Any


class Pairs:
    """Which pairs are visible and what their bias is, read tile by tile and never as a whole."""

    device = None  # torch: that of the queries, on which the positions of a rule are made
    needs_bias = False  # torch: whether somebody asks for the gradient of the bias

    def __init__(self, mask, rule, bias, shape, dtype):
        """`mask` and `bias` are None or broadcast to `shape` (*B, [H,] T, S); the bias is converted to `dtype`."""
        self.mask, self.rule, self.bias, self.shape, self.dtype = mask, rule, bias, shape, dtype

        def of_rule(rows, cols, device):
            seen = rule.tile(*(torch.arange(x.start, x.stop, device=device) for x in (rows, cols)))
            limits = torch.where(seen, torch.inf, -torch.inf).to(dtype)
            return limits.expand(*shape[:-2], *seen.shape[-2:])

        # Most heads ask for the same tiles.
        self.of_rule = of_rule if torch.compiler.is_compiling() else lru_cache(maxsize=8)(of_rule)

    def tile(self, heads, rows, cols):
        """The visible pairs and the bias of a tile of some heads; None stands for all visible, and for no bias.

        torch: booleans are slow, so a visible pair is inf and a hidden one -inf: upper bounds of their scores.
        Where a rule alone hides, and of the last keys alone, the visible pairs are those of these keys.
        """
        hides = self.rule is not None and not self.rule.covers(rows, cols)
        if self.mask is None and self.bias is None:
            before, edge = cols[: -len(rows)], cols[-len(rows) :]
            edge = edge if hides and before and self.rule.covers(rows, before) else cols
            return self.of_rule(rows, edge, self.device)[heads] if hides else None, None
        wide = (None if x is None else x.expand(self.shape)[heads] for x in (self.mask, self.bias))
        mask, bias = (None if x is None else part(part(x, rows).mT, cols).mT for x in wide)
        bias = None if bias is None else bias.to(self.dtype)
        seen = visibility(mask, None, bias, *(torch.arange(len(x), device=self.device) for x in (rows, cols)))
        visible = torch.where(seen, torch.inf, -torch.inf).to(self.dtype)
        return torch.minimum(visible, self.of_rule(rows, cols, self.device)[heads]) if hides else visible, bias


def tile_size(block_size, shape):
    """The queries and keys of a tile: where queries are few, the default takes more keys."""
    queries, keys = BLOCK_SIZE
    return tuple(block_size or (queries, max(keys, LARGEST // 4 // max(1, min(queries, shape[-2])))))


def key_tiles(rule, rows, S, size):
    """The tiles of at most `size` keys of which a rule does not hide everything from a range of queries."""
    if rule is None:
        return tiles(S, size)
    keys, n = reach(rule, rows, S), min(len(rows), size)
    if not keys:
        return []
    # What is hidden in part on the left is a tile of its own, since to hide a part of a tile takes time.
    left = n if rule.covers(rows, keys[:n]) is None else 0
    others = (keys[left:][i : i + size] for i in range(0, len(keys) - left, size))
    return [cols for cols in (keys[:left], *others) if cols and rule.covers(rows, cols) is not False]


def tiles(length, size):
    """The position ranges of at most `size` positions that make up `length`."""
    return [range(i, min(i + size, length)) for i in range(0, length, size)]


def part(x, positions):
    """The tile of x (..., n, D) that stands at a range of positions."""
    return x if len(positions) == x.shape[-2] else x[..., positions.start : positions.stop, :]


def masked_scores(q, k, visible, bias, softcap):
    """Scores of one tile of scaled queries and keys after softcap, bias and mask, -inf where hidden (C1 to C4).

    visible and bias are those of the tile; None is a tile without. torch: visible may be that of the last keys alone,
    where all keys before are visible.
    """
    scores = product(q, k.mT, reuse="scores")
    if not all(map(all_finite, (scores,) if scores.numel() < k.numel() else (q, k))):
        q_broken, k_broken = (~x.isfinite().all(dim=-1) for x in (q, k))
        scores = torch.where(q_broken[..., :, None] | k_broken[..., None, :], torch.nan, scores)
    biased = cap(scores, softcap)
    if bias is not None:
        biased = biased + bias
    if visible is not None:
        edge = biased[..., -visible.shape[-1] :]
        edge.clamp_(max=visible) if all_finite(edge) else edge.masked_fill_(visible < 0, -torch.inf)
    return biased


def start(q, v, sinks):
    """Rows that have seen no key yet; a sink is in the denominator from the beginning (C7)."""
    shape = (*q.shape[:-1], 1)
    top = q.new_full(shape, -torch.inf) if sinks is None else sinks.expand(shape)
    total = q.new_zeros(shape) if sinks is None else torch.exp(top - shift(top))
    found = False if sinks is None else top != -torch.inf
    return Rows(top, total, found, q.new_zeros((*q.shape[:-1], v.shape[-1])))


def extend(state, masked, visible, v):
    """The rows after one more tile of keys: what was summed so far is rescaled to the new maximum.

    In place, so that no tile needs new memory: `masked` becomes the numerators.
    """
    top, total, acc = state.top, state.total, state.acc
    if top is not None:
        top = torch.maximum(top, row_top(masked))
        shrink = torch.exp(state.top - shift(top))
        total, acc = total * shrink, acc.mul_(shrink)
    numerators = shifted_exp(masked, None if top is None else shift(top))
    sums, blended = row_sums(numerators), product(numerators, v, reuse="blended")
    if not all_finite(blended):
        finite, broken = finite_part(v, alike=True)
        seen = torch.ones_like(numerators)
        if visible is not None:
            seen[..., -visible.shape[-1] :].copy_(visible > 0)
        reached = seen @ broken.to(v.dtype) > 0
        blended = torch.where(reached, torch.nan, product(numerators, finite, reuse="blended"))
    all_found = state.found is True or visible is None or visible.shape[-1] < masked.shape[-1]
    found = all_found or state.found | (visible.amax(dim=-1, keepdim=True) > 0)
    return Rows(top, total + sums, found, acc.add_(blended))


def finish(state):
    """The output and the lse of rows that have seen all their keys."""
    top, total, found = state.top, state.total, state.found
    if found is True:
        lse = total.log() if top is None else total.log() + shift(top)
        return state.acc.div_(total), lse[..., 0]
    top = torch.zeros_like(total) if top is None else top
    divisor, lse = close(top, total, torch.as_tensor(found, device=total.device))
    return state.acc.div_(divisor), lse[..., 0]


def pull_back(q, k, v, bias, softcap, visible, lse, d_out, delta):
    """The gradients of one tile's scaled queries, keys, values, bias and softcap, from those of its rows.

    q, k, v and d_out are finite. lse (..., t, 1) is +inf in a row that is empty or lost to NaN, which then takes no
    part; delta (..., t, 1) is sum(d_out * out) - d_lse. Returns (d_q, d_k, d_v, d_bias, d_softcap), None for what
    is None. Source: Dao 2023, "FlashAttention-2", algorithm 2, lines 11 to 16.
    """
    if not all_finite(lse):
        missing = k.shape[-2] - (0 if visible is None else visible.shape[-1])
        wide = lse.new_full((), torch.inf) if visible is None else pad(visible, (missing, 0), value=torch.inf)
        visible = torch.where(lse < torch.inf, wide, -torch.inf).expand(*lse.shape[:-1], k.shape[-2])

    def hide(x, value):
        """What is hidden is chosen away before anything is made of it, so that no derivative meets it either (E2)."""
        if visible is not None:
            edge = x[..., -visible.shape[-1] :]
            finite = value != 0 and all_finite(edge)
            edge.clamp_(max=visible) if finite else edge.masked_fill_(visible < 0, value)
        return x

    scores = product(q, k.mT, reuse="scores")
    capped = scores if softcap is None else cap(hide(scores, 0), softcap)
    slope = None if softcap is None else 1 - (capped / softcap) ** 2
    curve = (capped - scores * slope) / softcap if is_array(softcap) else None
    biased = capped if softcap is None and bias is None else capped + (0 if bias is None else bias)
    weights = shifted_exp(hide(biased, -torch.inf), lse)
    d_v = product(weights.mT, d_out, reuse="d_v")
    d_weights = product(d_out, v.mT, reuse="d_weights")
    if visible is not None and not all_finite(d_weights[..., -visible.shape[-1] :]):
        d_weights = hide(d_weights, 0)
    d_biased = d_weights.sub_(delta).mul_(weights)
    if not all_finite(delta):  # a NaN that comes back to a row is for what it sees alone
        d_biased = hide(d_biased, 0)
        seen = hide(torch.ones_like(weights), 0) > 0
        d_v = torch.where((seen & ~delta.isfinite()).any(dim=-2)[..., None], torch.nan, d_v)
    d_softcap = None if curve is None else (d_biased * curve).sum()
    d_scores = d_biased if softcap is None else d_biased * slope
    d_q, d_k = product(d_scores, k, reuse="d_q"), product(d_scores.mT, q, reuse="d_k")
    return d_q, d_k, d_v, None if bias is None else d_biased, d_softcap
