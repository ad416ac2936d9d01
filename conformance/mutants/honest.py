"""A small attention in NumPy that is right, and whose every step is a method, so that a mutant can replace one.

It goes the plainest way: what is hidden is taken out product by product before anything is added up, so that it
holds T x S x Dv numbers at a time. Only small cases are computed with it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import impl_numpy
from conformance.mutants.problem import Logits, Problem, Rows
from impl_numpy import arguments, checks


class Attention:
    """The operations on q, k and v, and the functions that make mask rules.

    What has to be refused is refused by the checks of impl_numpy, in their words.
    """

    causal = staticmethod(impl_numpy.causal)
    window = staticmethod(impl_numpy.window)
    prefix = staticmethod(impl_numpy.prefix)
    padding = staticmethod(impl_numpy.padding)
    segments = staticmethod(impl_numpy.segments)
    dilated = staticmethod(impl_numpy.dilated)
    chunked = staticmethod(impl_numpy.chunked)

    def local(self, width):
        """A window of that width, the query in its middle."""
        impl_numpy.local(width)
        return self.window((width - 1) // 2, (width - 1) // 2)

    # --- the operations ---

    def attention(self, q, k, v, mask=None, **options):
        """Out and weights."""
        *_, weights, _, out = self.attention_steps(q, k, v, mask, **options)
        return out, weights

    def attention_steps(self, q, k, v, mask=None, **options):
        """Every step: scores, capped, biased, masked, weights, lse, out."""
        p = self.prepare(q, k, v, mask, **options)
        *steps, visible = self.logits(p)
        weights, lse = self.softmax(p, steps[-1], visible)
        *steps, out = (self.rounded(x, p.dtype) for x in (*steps, weights, self.blend(weights, p.v, visible)))
        return *steps, self.lse_out(p, lse), out

    def flash_attention(self, q, k, v, mask=None, *, block_size=None, **options):
        """Out and lse, tile by tile."""
        arguments.pair_of_sizes("block_size", block_size)
        p = self.prepare(q, k, v, mask, **options)
        height, width = block_size or (256, 512)
        parts = [self.walk(p, rows, self.tiles(p.sizes[1], width)) for rows in self.tiles(p.sizes[0], height)]
        outs, lses = zip(*parts or [self.walk(p, range(0), [])], strict=True)
        return self.rounded(np.concatenate(outs, -2), p.dtype), self.lse_out(p, np.concatenate(lses, -1))

    def attention_vjp(self, q, k, v, d_out, mask=None, **options):
        """The gradients dq, dk, dv, and dbias if there is a bias."""
        p = self.prepare(q, k, v, mask, **options)
        checks.output_gradient(d_out, v, (*p.q.shape[:-1], p.k.shape[-2]))
        gradients = self.gradients(p, d_out.astype(p.q.dtype))
        groups = p.q.shape[-3] // k.shape[-3] if options.get("enable_gqa") and k.shape[-3] else 1
        dq, dk, dv = (self.summed(g, x, n) for g, x, n in zip(gradients, (q, k, v), (1, groups, groups), strict=False))
        bias = options.get("bias")
        return dq, dk, dv, None if bias is None else self.summed(gradients[3], bias, 1)

    # --- from the arguments to the problem ---

    def accepted(self, op: str, arrays: dict[str, Any], options: dict[str, Any]) -> tuple[dict, dict]:
        """The call as it is taken; a mutant may bend here what is to be refused."""
        return arrays, options

    def refused(self, error: Exception) -> Exception:
        """The error that the caller gets to see."""
        return error

    def prepare(
        self, q, k, v, mask=None, *, bias=None, is_causal=False, scale=None, softcap=None, sinks=None, enable_gqa=False
    ) -> Problem:
        """Check the arguments, widen them to the compute dtype, repeat their heads, broadcast their leading axes."""
        shape = checks.attention(q, k, v, mask, bias, is_causal, scale, softcap, sinks, enable_gqa)
        dtype, (T, S) = q.dtype, shape[-2:]
        if enable_gqa and k.shape[-3]:
            k, v = (self.repeated(x, q.shape[-3] // k.shape[-3]) for x in (k, v))
        q, k, v = (self.widened(np.broadcast_to(x, (*shape[:-2], *x.shape[-2:])), dtype) for x in (q, k, v))
        rule, mask = (mask, None) if isinstance(mask, impl_numpy.Mask) else (None, mask)
        mask = None if mask is None else np.broadcast_to(self.booleans(mask), shape)
        bias = None if bias is None else np.broadcast_to(self.widened(bias, dtype), shape)
        sinks = None if sinks is None else self.widened(sinks, dtype)[..., None, None]
        scale, softcap = (None if x is None else float(x) for x in (scale, softcap))
        return Problem(q, k, v, mask, rule, bias, is_causal, scale, softcap, sinks, range(T), range(S), (T, S), dtype)

    def widened(self, x, dtype):
        """An array in the compute dtype of inputs of that dtype, row by row in memory, also where it was broadcast."""
        return x.astype(np.float64 if dtype == np.float64 else np.float32, order="C")

    def rounded(self, x, dtype):
        """A result in the inputs' dtype."""
        return x.astype(dtype)

    def booleans(self, mask):
        """A mask of 0 and 1 as booleans."""
        return mask == 1

    def repeated(self, x, groups):
        """Key/value heads, each for a group of neighbouring query heads."""
        return np.repeat(x, groups, axis=-3)

    # --- the steps ---

    def logits(self, p: Problem) -> Logits:
        """Scores, capped, biased, masked and visible, in this order."""
        visible = np.broadcast_to(self.visible(p), (*p.q.shape[:-1], p.k.shape[-2]))
        scores = self.scores(p)
        capped = self.capped(p, scores)
        biased = self.biased(p, capped)
        return Logits(scores, capped, biased, self.masked(biased, visible), visible)

    def scale(self, p):
        """The factor of the scores."""
        return p.q.shape[-1] ** -0.5 if p.scale is None else p.scale

    def scores(self, p):
        """The scaled products of queries and keys; what is not finite in either makes a NaN of them."""
        finite = np.isfinite(p.q).all(axis=-1)[..., :, None] & np.isfinite(p.k).all(axis=-1)[..., None, :]
        return np.where(finite, (self.scale(p) * p.q) @ p.k.mT, np.nan)

    def capped(self, p, scores):
        """Scores squeezed between -softcap and softcap."""
        return scores if p.softcap is None else p.softcap * np.tanh(scores / p.softcap)

    def biased(self, p, capped):
        """Capped scores and bias."""
        return capped if p.bias is None else capped + p.bias

    def visible(self, p):
        """Which pairs the mask, the rule, is_causal and the bias all allow."""
        seen = np.ones((len(p.rows), len(p.cols)), bool)
        seen = seen if p.mask is None else seen & p.mask
        seen = seen if p.rule is None else seen & self.ruled(p, p.rule)
        seen = seen & self.ruled(p, self.causal_rule(p)) if p.is_causal else seen
        return seen if p.bias is None else seen & (p.bias != -np.inf)

    def ruled(self, p, rule):
        """A rule at the positions of the problem."""
        return rule.tile(p.rows, p.cols)

    def causal_rule(self, p):
        """The rule that is_causal=True stands for."""
        return self.causal()

    def masked(self, biased, visible):
        """-inf where hidden."""
        return np.where(visible, biased, -np.inf)

    def softmax(self, p, masked, visible):
        """Weights and lse."""
        top = self.top(p, masked)
        numerators = self.exponentials(masked, visible, top)
        total = self.total(p, numerators, top)
        return self.divided(numerators, total, visible), self.lse(p, top, total)[..., 0]

    def top(self, p, masked):
        """The maximum of each row, its sink included (..., 1)."""
        top = masked.max(axis=-1, keepdims=True, initial=-np.inf)
        return top if p.sinks is None else np.maximum(top, p.sinks)

    def shift(self, top):
        """What is subtracted before exp: -inf - -inf would be NaN."""
        return np.where(top == -np.inf, 0, top)

    def exponentials(self, masked, visible, top):
        """The numerators, 0 where hidden."""
        return np.where(visible, np.exp(masked - self.shift(top)), 0)

    def total(self, p, numerators, top):
        """The denominator (..., 1)."""
        total = numerators.sum(axis=-1, keepdims=True)
        return total if p.sinks is None else total + np.exp(p.sinks - self.shift(top))

    def divided(self, numerators, total, visible):
        """The weights; an empty row has a total of 0 and is divided by 1."""
        return np.where(visible, numerators / np.where(total == 0, 1, total), 0)

    def lse(self, p, top, total):
        """The log of the denominator, -inf in an empty row (..., 1)."""
        return np.where(total == 0, -np.inf, self.shift(top) + np.log(total))

    def lse_out(self, p, lse):
        """The lse as it is returned, in the compute dtype."""
        return lse

    def blend(self, weights, v, visible):
        """The weighted values, of which those that are hidden are not even multiplied."""
        return np.where(visible[..., None], weights[..., None] * v[..., None, :, :], 0).sum(axis=-2)

    # --- tile by tile ---

    def tiles(self, length: int, size: int) -> list[range]:
        """Ranges of at most `size` positions."""
        return [range(start, min(start + size, length)) for start in range(0, length, size)]

    def walk(self, p: Problem, rows: range, tiles: list[range]):
        """Out and lse of some rows."""
        share = self.share(p)
        p = replace(p, v=p.v * share)
        state = self.start(p.tile(rows, range(0)))
        for cols in tiles:
            tile = p.tile(rows, cols)
            *_, masked, visible = self.logits(tile)
            state = self.extend(tile, state, masked, visible)
        out = state.acc / np.where(state.total == 0, 1, state.total)
        return out / share, self.lse(p, state.top, state.total)[..., 0]

    def share(self, p: Problem) -> float:
        """What the values are multiplied by while they are summed up, so that no sum of them overflows."""
        return 2.0 ** -(2 * p.sizes[1]).bit_length()

    def start(self, tile):
        """Rows that have seen no key; a sink is in the denominator from the beginning."""
        hidden = np.full((*tile.q.shape[:-1], 1), -np.inf, tile.q.dtype)
        top = self.top(tile, hidden)
        acc = np.zeros((*tile.q.shape[:-1], tile.v.shape[-1]), tile.q.dtype)
        return Rows(top, self.total(tile, np.zeros_like(hidden), top), acc)

    def extend(self, tile, state, masked, visible):
        """The rows after one more tile: what was summed is rescaled to the new maximum."""
        top = np.maximum(state.top, self.top(replace(tile, sinks=None), masked))
        shrink = self.shrink(state.top, top)
        numerators = self.exponentials(masked, visible, top)
        total = state.total * shrink + numerators.sum(axis=-1, keepdims=True)
        return Rows(top, total, state.acc * shrink + self.blend(numerators, tile.v, visible))

    def shrink(self, old, new):
        """What the earlier sums are multiplied by."""
        return np.exp(old - self.shift(new))

    # --- gradients ---

    def gradients(self, p, d_out):
        """The gradients of the broadcast q, k, v and bias."""
        scores, capped, _, masked, visible = self.logits(p)
        weights, _ = self.softmax(p, masked, visible)
        d_biased = self.d_softmax(weights, self.d_weights(p, d_out, visible), visible)
        d_scores = self.d_scaled(p, self.d_capped(p, scores, capped, d_biased, visible))
        dq = self.blend(d_scores, p.k, visible)
        return dq, self.blend(d_scores.mT, p.q, visible.mT), self.blend(weights.mT, d_out, visible.mT), d_biased

    def d_weights(self, p, d_out, visible):
        """The gradient of the weights, 0 where hidden."""
        return np.where(visible, d_out @ p.v.mT, 0)

    def d_softmax(self, weights, d_weights, visible):
        """The gradient of the scores from that of the weights."""
        mean = (weights * d_weights).sum(axis=-1, keepdims=True)
        return np.where(visible, weights * (d_weights - mean), 0)

    def d_capped(self, p, scores, capped, d_biased, visible):
        """The gradient before the cap: times its slope."""
        return d_biased if p.softcap is None else np.where(visible, d_biased * (1 - (capped / p.softcap) ** 2), 0)

    def d_scaled(self, p, d_scores):
        """The gradient before the scale."""
        return self.scale(p) * d_scores

    def summed(self, gradient, x, groups):
        """A gradient summed over the copies of x, in its shape and dtype."""
        if groups > 1:
            *lead, H, T, D = gradient.shape
            gradient = gradient.reshape(*lead, H // groups, groups, T, D).sum(axis=-3)
        gradient = gradient.sum(axis=tuple(range(gradient.ndim - x.ndim)))
        copied = tuple(i for i, size in enumerate(x.shape) if size == 1)
        return np.asarray(gradient.sum(axis=copied, keepdims=True), x.dtype)
