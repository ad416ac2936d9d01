"""Attention over tiles: the same function as `attention` in O(T + S) extra memory.

A query tile walks over the key tiles that its rule reaches, and carries from one to the next what is known of its
rows. Its time is that of the visible tiles, and no T x S array is ever made.
"""

from __future__ import annotations

import itertools
from functools import lru_cache

import torch
from torch.utils import _pytree

from . import arguments, checks
from .arrays import finite_part, for_each, guard, is_array, is_traced, operand, product, row_sums
from .attention import blend, cap, default_scale, prepare, scaled_scores
from .masks import split_mask, visibility
from .softmax import exponentials, row_top, shift
from .tiles import LARGEST, Rows, extend, finish, key_tiles, masked_scores, part, start, tile_size, tiles


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

    Takes what `attention` takes, and block_size = (queries, keys) of a tile, (512, 1024) by default, with more keys
    where queries are few. ATTENTION_THREADS, or else OMP_NUM_THREADS, says how many threads work. Returns
    out (*B, [H,] T, Dv) in the inputs' dtype and lse (*B, [H,] T), the log of the softmax denominator, in
    float32 (float64 for float64 inputs). A rule is evaluated tile by tile; tiles that it hides wholly are skipped.
    The gradient takes the same tiles, twice differentiable but not in forward mode; torch.compile unrolls them.
    Raises what `attention` raises, and ValueError for a tile size < 1.
    Source: Dao et al. 2022, "FlashAttention", algorithm 1; Milakov and Gimelshein 2018, algorithm 3.
    """
    shape = checks.attention(q, k, v, mask, bias, is_causal, scale, softcap, sinks, enable_gqa)
    arguments.pair_of_sizes("block_size", block_size)
    scale, softcap, tile = operand(scale), operand(softcap), tile_size(block_size, shape)
    return flash_core(tile, shape, q, k, v, mask, bias, is_causal, scale, softcap, sinks, enable_gqa)


# --- one tile after the other ----------------------------------------------------------------------------


def flash_core(tile, shape, q, k, v, mask, bias, is_causal, scale, softcap, sinks, enable_gqa):
    """The output and the lse of checked arguments, computed tile by tile."""
    dtype, whole = q.dtype, bias is not None and bias.requires_grad  # then its gradient is T x S anyway
    q, k, v, converted, sinks = prepare(shape, q, k, v, bias if whole else None, sinks, enable_gqa)
    bias, scale = converted if whole else bias, default_scale(scale, q)
    out, lse = walk(tile, q, k, v, *split_mask(mask, is_causal), bias, scale, softcap, sinks)
    return out.to(dtype), lse


def walk(tile, q, k, v, mask, rule, bias, scale, softcap, sinks):
    """The output and the lse of all queries, once each of them has seen its keys tile by tile.

    torch: autograd would keep the scores of each tile, T x S in all; `Walk` keeps none.
    """
    mask, bias = (None if x is None else torch.atleast_2d(x) for x in (mask, bias))
    operands = q, k, v, mask, rule, bias, scale, softcap, sinks
    if any(is_array(x) and x.requires_grad for x in operands) or not Walk.can_be_shared(operands):
        return finish(Rows(*Walk.apply(tile, *operands)))
    _, lse, _, out = Walk.shared(True, tile, *operands)
    return out, lse[..., 0]


class Walk(torch.autograd.Function):
    """The walk, and its gradient, which takes the same walk again.

    With the final `top` held fixed (it cancels out), `total` and `acc` are plain sums over the tiles, so that each
    tile can be computed anew and pulled back alone. On the CPU threads share the tiles; within a transform, for a
    second derivative and on other devices, one comes after the other.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(tile, q, k, v, mask, rule, bias, scale, softcap, sinks):
        """The Rows of all queries, as a tuple."""
        options = mask, rule, bias, scale, softcap, sinks
        if Walk.can_be_shared(q, k, v, options):
            return Walk.shared(False, tile, q, k, v, *options)
        states = {rows.start: start(part(q, rows), v, sinks) for rows in tiles(q.shape[-2], tile[0])}
        for rows, cols in Walk.pairs(rule, tile, q, k):
            visible = Walk.visible(q, mask, rule, bias, rows, cols)
            own_q, own_k, own_v, own_bias = Walk.pieces(rows, cols, q, k, v, bias)
            masked = Walk.masked_scores(own_q * scale, own_k, visible, own_bias, softcap)
            states[rows.start] = Walk.extend(states[rows.start], masked, visible, own_v)
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
        q, k, v, mask, rule, bias, scale, softcap, sinks = inputs
        # Within vmap, what is added to in place must be batched as soon as anything is, and then d_acc is.
        zero = torch.zeros_like(d_acc).sum()
        needs = ctx.needs_input_grad[1:]
        gradients = [torch.zeros_like(x) + zero if need else None for x, need in zip(inputs, needs, strict=True)]
        d_q, d_k, d_v, _, _, d_bias, *d_numbers, d_sinks = gradients
        plain = softcap is None and not torch.is_grad_enabled() and all(x is None for x in (d_bias, *d_numbers))
        if plain and Walk.can_be_shared(inputs, d_total, d_acc):
            Walk.shared_gradients(tile, *inputs[:-2], top, d_total, d_acc, d_q, d_k, d_v)
            k = part(k, range(0))  # no pair is left for what follows
        for rows, cols in Walk.pairs(rule, tile, q, k):
            visible = Walk.visible(q, mask, rule, bias, rows, cols)
            operands = *Walk.pieces(rows, cols, q, k, v, bias), scale, softcap
            pulled = Walk.pull_back(operands, visible, *(part(x, rows) for x in (top, d_total, d_acc)))
            for d, x in zip((*Walk.pieces(rows, cols, d_q, d_k, d_v, d_bias), *d_numbers), pulled, strict=True):
                if d is not None:
                    d.add_(x)
        if d_sinks is not None:
            d_sinks.add_((d_total * exponentials(sinks, sinks != -torch.inf, top)).sum_to_size(sinks.shape))
        return None, *gradients

    @staticmethod
    def pairs(rule, tile, q, k):
        """The pairs of a query tile and a key tile of which the rule does not hide everything."""
        T, S = q.shape[-2], k.shape[-2]
        return [(rows, cols) for rows in tiles(T, tile[0]) for cols in key_tiles(rule, rows, S, tile[1])]

    @staticmethod
    def visible(q, mask, rule, bias, rows, cols):
        """Which pairs of a tile are visible: (*B, [H,] t, s)."""
        bias = None if bias is None else Walk.piece(bias, rows, cols).to(q.dtype)
        positions = (torch.arange(x.start, x.stop, device=q.device) for x in (rows, cols))
        return visibility(mask, rule, bias, *positions).expand(*q.shape[:-2], len(rows), len(cols))

    @staticmethod
    def pieces(rows, cols, q, k, v, bias):
        """What one tile takes of each operand: views of them; None stays None."""
        q, k, v = (None if x is None else part(x, at) for x, at in ((q, rows), (k, cols), (v, cols)))
        return q, k, v, None if bias is None else Walk.piece(bias, rows, cols)

    @staticmethod
    def piece(x, rows, cols):
        """The tile of an array (..., T, S), where T and S may be 1: a view."""
        x = x if x.shape[-2] == 1 else part(x, rows)
        return x if x.shape[-1] == 1 else part(x.mT, cols).mT

    @staticmethod
    def pull_back(operands, visible, top, d_total, d_acc):
        """The gradients of one tile's part in `total` and `acc`; None for what is no tensor."""
        variables = {i: x for i, x in enumerate(operands) if is_array(x)}

        def sums(variables):
            q, k, v, bias, scale, softcap = (variables.get(i, x) for i, x in enumerate(operands))
            masked = Walk.masked_scores(q * scale, k, visible, bias, softcap)
            numerators = exponentials(masked, visible, top)
            return numerators.sum(dim=-1, keepdim=True), blend(numerators, v, visible)

        (gradients,) = torch.func.vjp(sums, variables)[1]((d_total, d_acc))
        return [gradients.get(i) for i in range(len(operands))]

    @staticmethod
    def masked_scores(q, k, visible, bias, softcap):
        """What `masked_scores` gives, without anything in place."""
        scores = scaled_scores(q, k, 1)
        capped = cap(guard(scores, visible), guard(softcap, visible))
        return torch.where(visible, capped if bias is None else capped + bias.to(capped.dtype), -torch.inf)

    @staticmethod
    def extend(state, masked, visible, v):
        """What `extend` gives, without anything in place."""
        top = torch.maximum(state.top, row_top(masked))
        shrink, numerators = exponentials(state.top, state.found, top), exponentials(masked, visible, top)
        total = state.total * shrink + row_sums(numerators)
        found = state.found | visible.any(dim=-1, keepdim=True)
        return Rows(top, total, found, state.acc * shrink + blend(numerators, v, visible))

    @staticmethod
    def can_be_shared(*operands):
        """Whether the values of the operands can be seen and lie where the threads work."""
        arrays = [x for x in _pytree.tree_leaves(operands) if is_array(x)]
        return all(x.device.type == "cpu" and not is_traced(x) for x in arrays)

    @staticmethod
    def shared(finished, tile, q, k, v, mask, rule, bias, scale, softcap, sinks):
        """The Rows of all queries; if finished, lse stands for total and out for acc.

        A job is one query tile of one head, or of several heads where tiles are small. Nothing is done outside of the
        jobs: the threads of torch itself would go on waiting for more when they are done, and be in the way.
        """
        lead, T, S, shape = q.shape[:-2] or (1,), q.shape[-2], k.shape[-2], q.shape[:-1]
        top, total = q.new_empty(2, *lead, T, 1)
        state = Rows(top, total, torch.empty_like(top, dtype=torch.bool), q.new_empty(*lead, T, v.shape[-1]))
        tile_of = Walk.tiles_of(q, k, mask, rule, bias)
        q, k, v = (x.expand(*lead, *x.shape[-2:]) for x in (q, k, v))
        sinks = None if sinks is None else sinks.expand(*lead, 1, 1)

        def work(job):
            heads, rows = job
            own_q, own_k, own_v = part(q[heads], rows) * scale, k[heads], v[heads]
            own = start(own_q, own_v, None if sinks is None else sinks[heads])
            for cols in key_tiles(rule, rows, S, tile[1]):
                visible, own_bias = tile_of(heads, rows, cols)
                masked = masked_scores(own_q, part(own_k, cols), visible, own_bias, softcap)
                own = extend(own, masked, visible, part(own_v, cols))
            if finished:
                out, lse = finish(own)
                own = own._replace(acc=out, total=lse[..., None])
            for whole, x in zip(state, own, strict=True):
                part(whole[heads], rows)[...] = x

        size = max(1, LARGEST // max(1, min(tile[0], T) * min(tile[1], S)))
        for_each(work, [(heads, rows) for rows in reversed(tiles(T, tile[0])) for heads in Walk.heads(lead, size)])
        return tuple(x.reshape(*shape, x.shape[-1]) for x in state)

    @staticmethod
    def heads(lead, size):
        """Indices of the leading axes that give at most `size` heads each."""
        outer = itertools.product(*map(range, lead[:-1]))
        return [(*index, slice(some.start, some.stop)) for index in outer for some in tiles(lead[-1], size)]

    @staticmethod
    def tiles_of(q, k, mask, rule, bias):
        """A function that gives the visible pairs and the bias of a tile of some heads; None is a tile without."""
        lead, T, S = q.shape[:-2] or (1,), q.shape[-2], k.shape[-2]
        mask, bias = (None if x is None else x.expand(*lead, T, S) for x in (mask, bias))

        @lru_cache(maxsize=8)  # most heads ask for the same tiles
        def of_rule(rows, cols):
            seen = rule.tile(*(torch.arange(x.start, x.stop) for x in (rows, cols)))
            return seen.expand(*lead, *seen.shape[-2:])

        def tile_of(heads, rows, cols):
            hides = rule is not None and not rule.covers(rows, cols)
            if not hides and mask is None and bias is None:
                return None, None
            if mask is None and bias is None:
                return of_rule(rows, cols)[heads], None
            own_mask, own_bias = (None if x is None else Walk.piece(x[heads], rows, cols) for x in (mask, bias))
            own_bias = None if bias is None else own_bias.to(q.dtype)
            visible = visibility(own_mask, None, own_bias, *(torch.arange(x.start, x.stop) for x in (rows, cols)))
            return visible & of_rule(rows, cols)[heads] if hides else visible, own_bias

        return tile_of

    @staticmethod
    def shared_gradients(tile, q, k, v, mask, rule, bias, scale, top, d_total, d_acc, *d_qkv):
        """Add the gradients of q, k and v to d_qkv. A job is a head, since all its queries add to its keys."""
        lead, tile_of = q.shape[:-2] or (1,), Walk.tiles_of(q, k, mask, rule, bias)
        # What is not finite is hidden, or seen by rows that are lost: those take no part.
        q, k, v, d_total, d_acc = (finite_part(x)[0] for x in (q, k, v, d_total, d_acc))
        arrays = q, k, v, shift(top), ~(top < torch.inf), d_total, d_acc, *d_qkv
        arrays = [None if x is None else x.expand(*lead, *x.shape[-2:]) for x in arrays]
        q, k, v, top, lost, d_total, d_acc, *d_qkv = arrays

        def work(heads):
            for rows, cols in Walk.pairs(rule, tile, q, k):
                visible, own_bias = tile_of(heads, rows, cols)
                own_q, own_top, own_lost, *d_own = (part(x[heads], rows) for x in (q, top, lost, d_total, d_acc))
                own_q, own_k, own_v = own_q * scale, part(k[heads], cols), part(v[heads], cols)
                numerators = masked_scores(own_q, own_k, visible, own_bias, None).sub_(own_top).exp_()
                numerators.masked_fill_(own_lost, 0)
                d_scores = product(d_own[1], own_v.mT, reuse="d_scores").add_(d_own[0]).mul_(numerators)
                if visible is not None:
                    d_scores.masked_fill_(~visible, 0)
                sums = (d_scores, own_k * scale, rows), (d_scores.mT, own_q, cols), (numerators.mT, d_own[1], cols)
                for d, (left, right, at) in zip(d_qkv, sums, strict=True):
                    if d is not None:
                        part(d[heads], at).add_(product(left, right, reuse="sums"))

        for_each(work, Walk.heads(lead, 1))
