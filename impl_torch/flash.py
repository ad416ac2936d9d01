"""Attention over tiles: the same function as `attention` in O(T + S) extra memory.

A query tile walks over the key tiles and carries, for each of its rows, the running maximum `top`, the
sum `total` of exp(score - top), the unnormalised output `acc`, and whether anything was `found`.
Partial results over disjoint sets of keys are merged by the same arithmetic.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch.utils import _pytree

from . import arguments, checks
from .arrays import finite_part, guard, is_array, operand
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
    The gradient takes the same tiles, twice differentiable but not in forward mode; torch.compile unrolls them.
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


def flash_core(tile, shape, q, k, v, mask, bias, is_causal, scale, softcap, sinks, enable_gqa):
    """The output and the lse of checked arguments, computed tile by tile."""
    dtype = q.dtype
    q, k, v, bias, sinks = prepare(shape, q, k, v, bias, sinks, enable_gqa)
    scale = default_scale(scale, q)
    out, lse = finish(walk(tile, q, k, v, *split_mask(mask, is_causal), bias, scale, softcap, sinks))
    return out.to(dtype), lse


def walk(tile, q, k, v, mask, rule, bias, scale, softcap, sinks):
    """The Rows of all queries, once each of them has seen its keys tile by tile.

    torch: autograd would keep the scores of each tile, T x S in all; `Walk` keeps none.
    """
    bias = None if bias is None else torch.atleast_2d(bias)
    return Rows(*Walk.apply(tile, q, k, v, mask, rule, bias, scale, softcap, sinks))


class Walk(torch.autograd.Function):
    """The walk, and its gradient, which takes the same walk again.

    With the final `top` held fixed (it cancels out), `total` and `acc` are plain sums over the tiles, so that each
    tile can be computed anew and pulled back alone.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(tile, q, k, v, mask, rule, bias, scale, softcap, sinks):
        """The Rows of all queries, as a tuple."""
        states = {rows.start: start(part(q, rows), v, sinks) for rows in tiles(q.shape[-2], tile[0])}
        for rows, cols in tiles_in_sight(rule, tile, q.shape[-2], k.shape[-2]):
            masked, visible = masked_scores(q, k, mask, rule, bias, scale, softcap, rows, cols)
            states[rows.start] = extend(states[rows.start], masked, visible, part(v, cols))
        nothing = start(part(q, range(0)), v, sinks)
        return tuple(torch.cat(columns, dim=-2) for columns in zip(nothing, *states.values(), strict=True))

    @staticmethod
    def setup_context(ctx, inputs, output):
        """Keep the inputs and the maximum: the tensors among them apart from the rest, as autograd wants it."""
        leaves, ctx.tree = _pytree.tree_flatten((*inputs, output[0]))
        ctx.save_for_backward(*(x for x in leaves if is_array(x)))
        ctx.others = [None if is_array(x) else (x,) for x in leaves]

    @staticmethod
    def backward(ctx, d_top, d_total, d_found, d_acc):
        """The gradients of the inputs, of which the size of a tile, the mask and the rule have none."""
        kept = iter(ctx.saved_tensors)
        leaves = [next(kept) if other is None else other[0] for other in ctx.others]
        tile, *inputs, top = _pytree.tree_unflatten(leaves, ctx.tree)
        q, k, v, mask, rule, *options, sinks = inputs
        # Within vmap, what is added to in place must be batched as soon as anything is, and then d_acc is.
        zero = torch.zeros_like(d_acc).sum()
        needs = ctx.needs_input_grad[1:]
        gradients = [torch.zeros_like(x) + zero if need else None for x, need in zip(inputs, needs, strict=True)]
        *d_qkv, _, _, d_bias, d_scale, d_softcap, d_sinks = gradients

        for rows, cols in tiles_in_sight(rule, tile, q.shape[-2], k.shape[-2]):
            positions = (torch.arange(x.start, x.stop, device=q.device) for x in (rows, cols))
            visible = visibility(mask, rule, options[0], *positions).expand(*q.shape[:-2], len(rows), len(cols))
            state = (part(x, rows) for x in (top, d_total, d_acc))
            pulled = Walk.pull_back(Walk.pieces(rows, cols, q, k, v, *options), visible, *state)
            for d, x in zip(Walk.pieces(rows, cols, *d_qkv, d_bias, d_scale, d_softcap), pulled, strict=True):
                if d is not None:
                    d.add_(x)
        if d_sinks is not None:
            d_sinks.add_((d_total * exponentials(sinks, sinks != -torch.inf, top)).sum_to_size(sinks.shape))
        return None, *gradients

    @staticmethod
    def pieces(rows, cols, q, k, v, bias, scale, softcap):
        """What one tile takes of each operand: views of them; None stays None."""
        if bias is not None and bias.shape[-2] != 1:
            bias = part(bias, rows)
        if bias is not None and bias.shape[-1] != 1:
            bias = part(bias.mT, cols).mT
        q, k, v = (None if x is None else part(x, at) for x, at in ((q, rows), (k, cols), (v, cols)))
        return q, k, v, bias, scale, softcap

    @staticmethod
    def pull_back(operands, visible, top, d_total, d_acc):
        """The gradients of one tile's part in `total` and `acc`; None for what is no tensor."""
        variables = {i: x for i, x in enumerate(operands) if is_array(x)}

        def sums(variables):
            q, k, v, *options = (variables.get(i, x) for i, x in enumerate(operands))
            masked, _ = masked_scores(q, k, visible, None, *options, range(q.shape[-2]), range(k.shape[-2]))
            numerators = exponentials(masked, visible, top)
            return numerators.sum(dim=-1, keepdim=True), blend(numerators, v, visible)

        (gradients,) = torch.func.vjp(sums, variables)[1]((d_total, d_acc))
        return [gradients.get(i) for i in range(len(operands))]


def tiles_in_sight(rule, tile, T, S):
    """The pairs of a query tile and a key tile of which the rule does not hide everything."""
    pairs = ((rows, cols) for rows in tiles(T, tile[0]) for cols in tiles(S, tile[1]))
    return [(rows, cols) for rows, cols in pairs if rule is None or rule.covers(rows, cols) is not False]


def tiles(length, size):
    """The position ranges of at most `size` positions that make up `length`."""
    return [range(i, min(i + size, length)) for i in range(0, length, size)]


def part(x, positions):
    """The tile of x (..., n, D) that stands at a range of positions."""
    return x[..., positions.start : positions.stop, :]


def masked_scores(q, k, mask, rule, bias, scale, softcap, rows, cols):
    """Scores of one tile after scale, softcap, bias and mask, and which pairs are visible (C1 to C4)."""
    scores = scaled_scores(part(q, rows), part(k, cols), scale)
    rows, cols = (torch.arange(x.start, x.stop, device=q.device) for x in (rows, cols))
    visible = visibility(mask, rule, bias, rows, cols).expand(scores.shape)
    capped = cap(guard(scores, visible), guard(softcap, visible))
    biased = capped if bias is None else capped + cut(bias, rows, cols)
    return torch.where(visible, biased, -torch.inf), visible


def start(q, v, sinks):
    """Rows that have seen no key yet; a sink is in the denominator from the beginning (C7)."""
    shape = (*q.shape[:-1], 1)
    top = q.new_full(shape, -torch.inf) if sinks is None else sinks.expand(shape)
    found = top != -torch.inf
    total = exponentials(top, found, top)
    return Rows(top, total, found, q.new_zeros((*q.shape[:-1], v.shape[-1])))


def extend(state, masked, visible, v):
    """The rows after one more tile of keys: what was summed so far is rescaled to the new maximum."""
    top = torch.maximum(state.top, row_top(masked))
    shrink = exponentials(state.top, state.found, top)
    numerators = exponentials(masked, visible, top)
    total = state.total * shrink + numerators.sum(dim=-1, keepdim=True)
    acc = state.acc * shrink + blend(numerators, v, visible)
    return Rows(top, total, state.found | visible.any(dim=-1, keepdim=True), acc)


def finish(state):
    """The output and the lse of rows that have seen all their keys."""
    divisor, lse = close(state.top, state.total, state.found)
    acc, broken = finite_part(state.acc)
    # torch: divided where that gives a number, so that the other rows give nothing to any gradient.
    whole = divisor > 0
    return torch.where(broken | ~whole, torch.nan, acc / torch.where(whole, divisor, 1)), lse[..., 0]


def merge_core(parts):
    """The merged output and lse of checked parts."""
    outs = torch.stack([out.to(lse.dtype) for out, lse in parts])
    lses = torch.stack([lse for _, lse in parts])[..., None]
    top = lses.detach().amax(dim=0)
    seen = lses != -torch.inf
    shares = exponentials(lses, seen, top)
    divisor, lse = close(top, shares.sum(dim=0), seen.any(dim=0))
    out = (shares * torch.where(seen, outs, 0)).sum(dim=0) / divisor
    return out.to(parts[0][0].dtype), lse[..., 0]
