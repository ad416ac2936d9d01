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
from .arrays import all_finite, finite_part, for_each, is_array, is_traced, operand, row_sums
from .attention import default_scale, prepare
from .masks import split_mask, visibility
from .tiles import LARGEST, extend, finish, key_tiles, masked_scores, part, pull_back, start, tile_size, tiles


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

    Takes what `attention` takes, and block_size = (queries, keys) of a tile, (256, 1024) by default, with more keys
    where queries are few. ATTENTION_THREADS, or else OMP_NUM_THREADS, says how many threads work; where
    T * S <= 131072, they are those of torch itself. Returns
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
    if is_array(scale):
        q, scale = q * scale, 1.0
    mask, bias = (None if x is None else torch.atleast_2d(x) for x in (mask, bias))
    return Walk.apply(tile, q, k, v, mask, rule, bias, scale, softcap, sinks)


class Walk(torch.autograd.Function):
    """The walk, and its gradient, which takes the same walk again.

    Where values can be seen, on the CPU, threads share the jobs, and each product is written over the last one.
    Elsewhere (in torch.compile and vmap, on other devices, for a second derivative) one tile of all heads comes after
    the other; there each check for NaN answers that there may be some.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(tile, q, k, v, mask, rule, bias, scale, softcap, sinks):
        """The output and the lse. A job is one query tile of one head, or of several heads where tiles are small."""
        lead, T, S = q.shape[:-2] or (1,), q.shape[-2], k.shape[-2]
        seen = Walk.can_be_seen(q, k, v, mask, rule, bias, softcap, sinks)
        q = q if seen else q + Walk.zero(q, k, v, mask, rule, bias, softcap, sinks)
        shared = seen and T * S > LARGEST  # the threads of torch itself do the rest faster
        out, lse = q.new_empty(*lead, T, v.shape[-1]), q.new_empty(*lead, T, 1)
        tile_of = Walk.tiles_of(shared, q, k, mask, rule, bias)
        wide_q, wide_k, wide_v = (x.expand(*lead, *x.shape[-2:]) for x in (q, k, v))
        wide_sinks = None if sinks is None else sinks.expand(*lead, 1, 1)
        small = 0.5 ** (2 * S).bit_length()

        def work(job, shrink=1 if seen else small):
            heads, rows = job
            own_q, own_k, own_v = part(wide_q[heads], rows) * scale, wide_k[heads], Walk.apart(wide_v[heads])
            state = start(own_q, own_v, None if sinks is None else wide_sinks[heads])
            for cols in key_tiles(rule, rows, S, tile[1]):
                visible, own_bias = tile_of(heads, rows, cols)
                masked = masked_scores(own_q, part(own_k, cols), visible, own_bias, softcap)
                values = part(own_v, cols) if shrink == 1 else part(own_v, cols) * shrink
                state = extend(state, masked, visible, values)
            own_out, own_lse = finish(state)
            if shrink == 1 and not all_finite(own_out):  # the sum of the largest values is beyond them, their mean not
                return work(job, small)
            part(out[heads], rows)[...] = own_out if shrink == 1 else own_out / shrink
            part(lse[heads], rows)[...] = own_lse[..., None]

        each = min(4 * LARGEST // max(1, min(tile[0], T) * min(tile[1], S)), lead[-1] // 4)
        jobs = [(heads, rows) for rows in reversed(tiles(T, tile[0])) for heads in Walk.heads(lead, each, shared)]
        Walk.each(shared, work, jobs)
        return out.reshape(*q.shape[:-1], v.shape[-1]), lse.reshape(q.shape[:-1])

    @staticmethod
    def setup_context(ctx, inputs, output):
        """Keep the inputs and outputs: the tensors among them apart from the rest, as autograd wants it."""
        leaves, ctx.tree = _pytree.tree_flatten((*inputs, *output))
        ctx.save_for_backward(*(x for x in leaves if is_array(x)))
        ctx.others = [None if is_array(x) else (x,) for x in leaves]

    @staticmethod
    def backward(ctx, d_out, d_lse):
        """The gradients of the inputs, of which the size of a tile, the mask, the rule and the scale have none.

        A job is a head, or several: all of its queries add to its keys.
        """
        kept = iter(ctx.saved_tensors)
        leaves = [next(kept) if other is None else other[0] for other in ctx.others]
        tile, q, k, v, mask, rule, bias, scale, softcap, sinks, out, lse = _pytree.tree_unflatten(leaves, ctx.tree)
        needs_bias, _, needs_softcap, needs_sinks = ctx.needs_input_grad[6:]
        operands = k, v, mask, rule, bias, softcap, sinks, d_out, d_lse
        lead, T, S = q.shape[:-2] or (1,), q.shape[-2], k.shape[-2]
        seen = Walk.can_be_seen(q, *operands) and not torch.is_grad_enabled()
        q = q if seen else q + Walk.zero(q, *operands)
        shared = seen and T * S > LARGEST and not (needs_bias or needs_softcap)  # all heads may add to one bias
        tile_of = Walk.tiles_of(shared, q, k, mask, rule, bias)
        d_qkv = [q.new_empty(*lead, *x.shape[-2:]) for x in (q, k, v)]
        d_bias, d_softcap = q.new_zeros(bias.shape) if needs_bias else None, q.new_zeros(()) if needs_softcap else None
        wide_q, wide_k, wide_v = (x.expand(*lead, *x.shape[-2:]) for x in (q, k, v))
        of_rows = [x.expand(*lead, *x.shape[-2:]) for x in (out, lse[..., None], d_out, d_lse[..., None])]

        def work(heads):
            all_q, own_k, own_v = (Walk.finite(Walk.apart(x[heads])) for x in (wide_q, wide_k, wide_v))
            own_d_q, own_d_k, own_d_v = (x[heads].zero_() for x in d_qkv)
            for rows in tiles(T, tile[0]):
                own_q = part(all_q, rows) * scale
                own_rows = Walk.rows(*(part(x[heads], rows) for x in of_rows))
                for cols, visible, own_bias in Walk.pieces(tile_of, heads, rows, key_tiles(rule, rows, S, tile[1])):
                    operands = own_q, part(own_k, cols), part(own_v, cols), own_bias, softcap
                    *d_tile, d_own_bias, d_own_softcap = pull_back(*operands, visible, *own_rows)
                    for d, at, x in zip((own_d_q, own_d_k, own_d_v), (rows, cols, cols), d_tile, strict=True):
                        part(d, at).add_(x)
                    if needs_bias:
                        d = Walk.piece(d_bias, rows, cols)
                        d.add_(d_own_bias.sum_to_size(d.shape))
                    if needs_softcap:
                        d_softcap.add_(d_own_softcap)
            own_d_q.mul_(scale)

        Walk.each(shared, work, Walk.heads(lead, LARGEST // max(1, T * S), shared))
        d_q, d_k, d_v = (d.reshape(x.shape) for d, x in zip(d_qkv, (q, k, v), strict=True))
        d_sinks = Walk.d_sinks(sinks, *of_rows) if needs_sinks else None
        return None, d_q, d_k, d_v, None, None, d_bias, None, d_softcap, d_sinks

    @staticmethod
    def apart(x):
        """`x`, copied where its heads are one and the same memory."""
        return x if all(n == 1 or step for n, step in zip(x.shape, x.stride(), strict=True)) else x.contiguous()

    @staticmethod
    def rows(out, lse, d_out, d_lse):
        """What `pull_back` takes of some rows: lse, d_out, delta."""
        alive = lse.isfinite()
        counts = alive & out.isfinite()
        out, d_out = (torch.where(counts, x, 0) for x in (out, d_out))
        delta = torch.where(alive, row_sums(d_out * out) - d_lse, 0)
        return torch.where(alive, lse, torch.inf), Walk.finite(d_out), delta

    @staticmethod
    def d_sinks(sinks, *of_rows):
        """The gradient of the sinks: a sink is a logit without a value, and d_weight is 0."""
        lse, _, delta = Walk.rows(*of_rows)
        return -(torch.exp(sinks - lse) * delta).sum_to_size(sinks.shape)

    @staticmethod
    def finite(x):
        """What of `x` is finite: what is not is hidden, or seen by rows that are lost and take no part."""
        return x if all_finite(x) else finite_part(x, alike=True)[0]

    @staticmethod
    def piece(x, rows, cols):
        """The tile of an array (..., T, S), where T and S may be 1: a view."""
        x = x if x.shape[-2] == 1 else part(x, rows)
        return x if x.shape[-1] == 1 else part(x.mT, cols).mT

    @staticmethod
    def pieces(tile_of, heads, rows, tiles):
        """The tiles of some rows, those of which only the last keys are hidden in part cut in two."""
        for cols in tiles:
            visible, bias = tile_of(heads, rows, cols)
            edge = len(cols) if visible is None else visible.shape[-1]
            if edge < len(cols):
                yield cols[:-edge], None, None
            yield cols[-edge:], visible, bias

    @staticmethod
    def tiles_of(shared, q, k, mask, rule, bias):
        """A function that gives the visible pairs and the bias of a tile of some heads; None is a tile without.

        Where a rule hides only of the last keys, as many as there are rows, the visible pairs are theirs alone.
        """
        lead, T, S = q.shape[:-2] or (1,), q.shape[-2], k.shape[-2]
        mask, bias = (None if x is None else x.expand(*lead, T, S) for x in (mask, bias))

        def of_rule(rows, cols):
            seen = rule.tile(*(torch.arange(x.start, x.stop, device=q.device) for x in (rows, cols)))
            return seen.expand(*lead, *seen.shape[-2:])

        of_rule = lru_cache(maxsize=8)(of_rule) if shared else of_rule  # most heads ask for the same tiles

        def tile_of(heads, rows, cols):
            hides = rule is not None and not rule.covers(rows, cols)
            if mask is None and bias is None:
                if not hides:
                    return None, None
                before, edge = cols[: -len(rows)], cols[-len(rows) :]
                edge = edge if before and rule.covers(rows, before) else cols
                return of_rule(rows, edge)[heads], None
            own_mask, own_bias = (None if x is None else Walk.piece(x[heads], rows, cols) for x in (mask, bias))
            own_bias = None if bias is None else own_bias.to(q.dtype)
            positions = (torch.arange(x.start, x.stop, device=q.device) for x in (rows, cols))
            visible = visibility(own_mask, None, own_bias, *positions)
            return visible & of_rule(rows, cols)[heads] if hides else visible, own_bias

        return tile_of

    @staticmethod
    def heads(lead, size, shared):
        """Indices of the leading axes that give at most `size` heads each, but one at least; all if not shared."""
        if not shared:
            return [...]
        outer = itertools.product(*map(range, lead[:-1]))
        return [(*index, slice(some.start, some.stop)) for index in outer for some in tiles(lead[-1], max(1, size))]

    @staticmethod
    def each(shared, work, jobs):
        """work(job) for each job, in threads if they are shared."""
        if shared:
            return for_each(work, jobs)
        for job in jobs:
            work(job)

    @staticmethod
    def can_be_seen(*operands):
        """Whether the values of the operands can be seen, and threads can work on them."""
        arrays = [x for x in _pytree.tree_leaves(operands) if is_array(x)]
        return all(x.device.type == "cpu" and not is_traced(x) for x in arrays)

    @staticmethod
    def zero(q, *operands):
        """0 as a tensor that is batched as soon as any operand is: vmap wants that of what is written into."""
        arrays = [x for x in _pytree.tree_leaves((q, *operands)) if is_array(x)]
        return sum(torch.zeros_like(x, dtype=q.dtype, device=q.device).sum() for x in arrays)
