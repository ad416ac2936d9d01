"""Attention over tiles: the same function as `attention` in O(T + S) extra memory.

A query tile walks over the key tiles that its rule reaches, and carries from one to the next what is known of its
rows. Its time is that of the visible tiles, and no T x S array is ever made.
"""

from __future__ import annotations

import itertools
import math

import torch
from torch.utils import _pytree

from . import arguments, checks
from .arrays import all_finite, finite_part, for_each, is_array, is_traced, operand, row_sums
from .attention import default_scale, prepare
from .masks import split_mask
from .tiles import LARGEST, Pairs, extend, finish, key_tiles, masked_scores, part, pull_back, start, tile_size, tiles


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
    all heads together have at most 131072 pairs, they are those of torch itself. Returns
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
    q, scale = (q * scale, 1.0) if is_array(scale) else (q, scale)
    q, k, v = (x if len(shape) > 2 else x[None] for x in (q, k, v))
    out, lse = Walk.apply(tile, q, k, v, *split_mask(mask, is_causal), bias, scale, softcap, sinks)
    return out.reshape(*shape[:-1], v.shape[-1]).to(dtype), lse.reshape(shape[:-1])


class Walk(torch.autograd.Function):
    """The walk, and its gradient: autograd alone would keep the scores of each tile, T x S in all."""

    generate_vmap_rule = True

    @staticmethod
    def forward(tile, q, k, v, mask, rule, bias, scale, softcap, sinks):
        """The output and the lse."""
        q = Walk.batched(q, k, v, mask, rule, bias, softcap, sinks)
        return walk(tile, q, k, v, Walk.pairs(q, k, mask, rule, bias), scale, softcap, sinks)

    @staticmethod
    def setup_context(ctx, inputs, output):
        """Keep the inputs and outputs: the tensors among them apart from the rest, as autograd wants it."""
        leaves, ctx.tree = _pytree.tree_flatten((*inputs, *output))
        ctx.save_for_backward(*(x for x in leaves if is_array(x)))
        ctx.others = [None if is_array(x) else (x,) for x in leaves]

    @staticmethod
    def backward(ctx, d_out, d_lse):
        """The gradients of the inputs, of which the size of a tile, the mask, the rule and the scale have none."""
        kept = iter(ctx.saved_tensors)
        leaves = [next(kept) if other is None else other[0] for other in ctx.others]
        tile, q, k, v, mask, rule, bias, scale, softcap, sinks, out, lse = _pytree.tree_unflatten(leaves, ctx.tree)
        q = Walk.batched(q, k, v, mask, rule, bias, softcap, sinks, d_out, d_lse)
        pairs = Walk.pairs(q, k, mask, rule, bias, needs_bias=ctx.needs_input_grad[6])
        operands = scale, softcap, sinks, out, lse, d_out, d_lse
        d_q, d_k, d_v, d_bias, d_softcap, d_sinks = walk_back(tile, q, k, v, pairs, *operands)
        return None, d_q, d_k, d_v, None, None, d_bias, None, d_softcap, d_sinks

    @staticmethod
    def pairs(q, k, mask, rule, bias, needs_bias=False):
        """The pairs of a problem."""
        pairs = Pairs(mask, rule, bias, (*q.shape[:-1], k.shape[-2]), q.dtype)
        pairs.device, pairs.needs_bias = q.device, needs_bias
        return pairs

    @staticmethod
    def batched(q, *operands):
        """`q`, batched as soon as any operand is: vmap wants that of what is written into."""
        arrays = [x for x in _pytree.tree_leaves((q, *operands)) if is_array(x)]
        if any(map(is_traced, arrays)):
            q = q + sum(torch.zeros_like(x, dtype=q.dtype, device=q.device).sum() for x in arrays)
        return q

    @staticmethod
    def can_be_seen(x):
        """Whether the values of `x` can be seen, and threads can work on them."""
        return x.device.type == "cpu" and not is_traced(x)

    @staticmethod
    def first_good(seen, attempts):
        """The output and the lse of some rows: each number from the first attempt that is good enough for it."""
        out, lse, good, safe = None, None, None, None
        for attempt in attempts:
            state = seen(*attempt)
            new_out, new_lse = finish(state)
            new_out = new_out if attempt[1] == 1 else new_out / attempt[1]
            out = new_out if out is None else torch.where(good, out, new_out)
            lse = new_lse if lse is None else torch.where(safe, lse, new_lse)
            if attempt == attempts[-1] or not lse.numel():
                break
            if all_finite(out) and 0 <= lse.min() and lse.max() < 44:
                break
            # Where the numerators are small, a product with a tiny value may be lost.
            tame, tiny = (state.total < 2.0**64) & (2.0**-64 < state.total), (state.total < 1) & (out.abs() < 2.0**-60)
            found = torch.as_tensor(state.found, device=out.device)
            known = ~found | (state.top is not None)
            safe, good = (known | tame)[..., 0], out.isfinite() & (known | tame & ~tiny)
            if good.all():
                break
        return out, lse

    @staticmethod
    def apart(x):
        """`x`, copied where its heads are one and the same memory."""
        return x if all(n == 1 or step for n, step in zip(x.shape, x.stride(), strict=True)) else x.contiguous()

    @staticmethod
    def rows(out, lse, d_out, d_lse):
        """What `pull_back` takes of some rows: lse, d_out, delta."""
        lse, d_out = lse[..., None], Walk.apart(d_out)
        d_lse = 0 if d_lse is None else d_lse[..., None]
        if all(map(all_finite, (out, lse, d_out))):
            return lse, d_out, row_sums(d_out * out) - d_lse
        alive = lse.isfinite()
        out, d_out = (torch.where(alive & out.isfinite(), x, 0) for x in (out, d_out))
        delta = torch.where(alive, row_sums(d_out * out) - d_lse, 0)
        return torch.where(alive, lse, torch.inf), finite_part(d_out)[0], delta

    @staticmethod
    def piece(x, rows, cols):
        """The tile of an array (..., T, S), where T and S may be 1: a view."""
        x = x if x.shape[-2] == 1 else part(x, rows)
        return x if x.shape[-1] == 1 else part(x.mT, cols).mT

    @staticmethod
    def finite(x):
        """What of `x` is finite: what is not is hidden, or seen by rows that are lost and take no part."""
        return x if all_finite(x) else finite_part(x, alike=True)[0]


def schedule(tile, shape, rule):
    """The jobs: some heads, a range of queries, and the tiles of keys that their rule lets them reach."""
    *lead, T, S = shape
    row_tiles, pairs = tiles(T, tile[0]), max(1, min(tile[0], T) * min(tile[1], S))
    most = max(1, min(LARGEST // pairs, math.prod(lead) * len(row_tiles) // 8))
    outer = itertools.product(*map(range, lead[:-1]))
    some = [(*i, slice(n.start, n.stop)) for i in outer for n in tiles(lead[-1], most)] if lead else [()]
    plan = [(rows, key_tiles(rule, rows, S, tile[1])) for rows in reversed(row_tiles)]
    return [(heads, rows, cols) for rows, cols in plan for heads in some]


def walk(tile, q, k, v, pairs, scale, softcap, sinks):
    """The output and the lse of all queries, once each of them has seen its keys tile by tile.

    A job is one query tile of one head, or of several heads where tiles are small; threads share the jobs.

    torch: where values can be seen, on the CPU, the sums are first taken without the maximum, and again for the rows
    where they come near the limits of exp. Where they overflow then, values were near the largest number: these are
    scaled by a power of 2, which changes no digit. Elsewhere (in torch.compile and vmap, on other devices) this is done
    at once, for all heads together.
    """
    *lead, T, S = shape = (*q.shape[:-1], k.shape[-2])
    small = 0.5 ** (2 * S).bit_length()  # values that are this much smaller have a sum that does not overflow
    attempts = [(True, 1), (True, small)] if Walk.can_be_seen(q) else [(True, small)]
    attempts = [(False, 1), *attempts] if Walk.can_be_seen(q) and sinks is None else attempts
    sinks = None if sinks is None else sinks.expand(*lead, 1, 1)
    out, lse = q.new_empty(*lead, T, v.shape[-1]), q.new_empty(*lead, T, 1)

    def work(job):
        heads, rows, key_ranges = job
        own_q, own_k, own_v = part(q[heads], rows) * scale, k[heads], Walk.apart(v[heads])

        def seen(with_top, shrink):
            state = start(own_q, own_v, None if sinks is None else sinks[heads])
            state = state if with_top else state._replace(top=None)
            for cols in key_ranges:
                visible, bias = pairs.tile(heads, rows, cols)
                masked = masked_scores(own_q, part(own_k, cols), visible, bias, softcap)
                values = part(own_v, cols)
                state = extend(state, masked, visible, values if shrink == 1 else values * shrink)
            return state

        own_out, own_lse = Walk.first_good(seen, attempts)
        part(out[heads], rows).copy_(own_out)
        part(lse[heads], rows).copy_(own_lse[..., None])

    in_threads = Walk.can_be_seen(q) and math.prod(shape) > LARGEST // 4
    jobs = schedule(tile, shape if in_threads else shape[-2:], pairs.rule)
    for_each(work, jobs) if in_threads else [work(job) for job in jobs]
    return out, lse[..., 0]


def walk_back(tile, q, k, v, pairs, scale, softcap, sinks, out, lse, d_out, d_lse):
    """The gradients of queries, keys, values, bias, softcap and sinks, by the same walk with the weights computed anew.

    A job is a head, or several: all of its queries add to its keys.
    """
    *lead, T, _ = shape = (*q.shape[:-1], k.shape[-2])
    # All heads may add to one bias, and to the softcap.
    in_threads = math.prod(shape) > LARGEST // 4 and not (pairs.needs_bias or is_array(softcap))
    in_threads = in_threads and Walk.can_be_seen(q) and not torch.is_grad_enabled()
    jobs = schedule(tile, shape if in_threads else shape[-2:], pairs.rule)
    d_q, d_k, d_v = (q.new_empty(x.shape) if jobs else q.new_zeros(x.shape) for x in (q, k, v))
    d_bias = q.new_zeros(torch.atleast_2d(pairs.bias).shape) if pairs.needs_bias else None
    d_softcap = q.new_zeros(()) if is_array(softcap) else None
    d_sinks = None if sinks is None else q.new_zeros(*lead, 1, 1)

    def work(of_heads):
        heads = of_heads[0][0]
        own_q, own_k, own_v = (Walk.finite(Walk.apart(x[heads])) for x in (q, k, v))
        own_d_q, own_d_k, own_d_v = (x[heads].zero_() for x in (d_q, d_k, d_v))
        of_rows = Walk.rows(*(None if x is None else x[heads] for x in (out, lse, d_out, d_lse)))
        for _, rows, key_ranges in of_heads:
            tile_q, tile_rows = part(own_q, rows) * scale, [part(x, rows) for x in of_rows]
            for cols in key_ranges:
                visible, bias = pairs.tile(heads, rows, cols)
                operands = tile_q, part(own_k, cols), part(own_v, cols), bias, softcap
                *d_tile, d_tile_bias, d_tile_softcap = pull_back(*operands, visible, *tile_rows)
                for d, at, x in zip((own_d_q, own_d_k, own_d_v), (rows, cols, cols), d_tile, strict=True):
                    part(d, at).add_(x)
                if d_bias is not None:
                    d = Walk.piece(d_bias, rows, cols)
                    d.add_(d_tile_bias.sum_to_size(d.shape))
                if d_softcap is not None:
                    d_softcap.add_(d_tile_softcap)
        own_d_q.mul_(scale)
        if d_sinks is not None:  # a sink is a logit without a value
            row_lse, _, delta = of_rows
            own_sinks = sinks.expand(*lead, 1, 1)[heads]
            d_sinks[heads].sub_((torch.exp(own_sinks - row_lse) * delta).sum(dim=-2, keepdim=True))

    some = len(jobs) // max(1, len(tiles(T, tile[0])))
    groups = [jobs[i::some] for i in range(some)]
    for_each(work, groups) if in_threads else [work(group) for group in groups]
    d_bias = None if d_bias is None else d_bias.reshape(pairs.bias.shape)
    return d_q, d_k, d_v, d_bias, d_softcap, None if sinks is None else d_sinks.sum_to_size(sinks.shape)
