"""Retrieval, search, recall, merging and heads that are right, every step a method like those of honest.Attention."""

from __future__ import annotations

import numpy as np

from conformance.mutants.honest import Attention
from impl_numpy import checks


class Honest(Attention):
    """Every operation of the contract. It passes every case."""

    # --- retrieval ---

    def retrieve(self, query, keys, values=None, *, mask=None, scale=None, top_k=None):
        """Output, weights and index."""
        values = keys if values is None else values
        checks.retrieve(query, keys, values, mask, scale, top_k)
        p = self.prepare(query, keys, values, mask, scale=scale)
        *_, masked, visible = self.logits(p)
        order = self.best_first(masked, visible)
        if top_k is None:
            weights, _ = self.softmax(p, masked, visible)
            output, index = self.blend(weights, p.v, visible), self.index(p, visible, order)
        else:
            output, weights, index = self.best(p, masked, visible, order[..., :top_k])
        return self.rounded(output, p.dtype), self.rounded(weights, p.dtype), index

    def best_first(self, scores, visible):
        """All keys of each row: visible numbers, then visible NaN, then what is hidden; the lowest index in a tie."""
        rank = np.where(visible, np.where(np.isnan(scores), 1, 0), 2)
        return np.lexsort((-scores, rank), axis=-1)

    def index(self, p, visible, order):
        """The best key of each row."""
        if not visible.shape[-1]:
            return np.full(visible.shape[:-1], -1)
        return self.named(order, visible)[..., 0]

    def named(self, order, visible):
        """The indices of keys, -1 where a key is hidden."""
        return np.where(np.take_along_axis(visible, order, -1), order, -1)

    def best(self, p, masked, visible, kept):
        """Output, weights and index of the kept keys (*B, T, n), which share all the weight."""
        chosen = np.zeros_like(visible)
        np.put_along_axis(chosen, kept, np.take_along_axis(visible, kept, -1), -1)
        weights, _ = self.softmax(p, np.where(chosen, masked, -np.inf), chosen)
        output = self.blend(weights, p.v, chosen)
        return output, np.take_along_axis(weights, kept, -1), self.named(kept, visible)

    # --- search ---

    def search(self, query, keys, k, *, mask=None, metric="dot"):
        """Scores and indices."""
        shape = checks.search(query, keys, k, mask, metric)
        p = self.prepare(query, keys, keys, mask)
        visible = np.broadcast_to(self.visible(p), shape)
        nearness = getattr(self, metric)(p.q, p.k)
        order = self.first_found(nearness, visible, k)
        scores = np.where(np.take_along_axis(visible, order, -1), np.take_along_axis(nearness, order, -1), -np.inf)
        return self.rounded(-scores if metric == "euclidean" else scores, p.dtype), self.named(order, visible)

    def first_found(self, nearness, visible, k):
        """The k keys that are returned."""
        return self.best_first(nearness, visible)[..., :k]

    def dot(self, query, keys):
        """Products, larger is nearer."""
        return query @ keys.mT

    def cosine(self, query, keys):
        """Cosines."""
        return self.unit(query) @ self.unit(keys).mT

    def unit(self, x):
        """Vectors of length 1, or 0."""
        length = np.sqrt((x * x).sum(axis=-1, keepdims=True))
        return x / np.where(length == 0, 1, length)

    def euclidean(self, query, keys):
        """Distances with a minus, so that larger is nearer."""
        return -np.sqrt(((query[..., :, None, :] - keys[..., None, :, :]) ** 2).sum(axis=-1))

    # --- recall ---

    def recall(self, state, patterns, *, beta=1.0, steps=1):
        """The last state, and the energies (steps + 1, *B)."""
        checks.recall(state, patterns, beta, steps)
        dtype, beta = state.dtype, float(beta)
        state, patterns = self.widened(state, dtype), self.widened(patterns, dtype)
        states = [state]
        for _ in range(self.updates(steps)):
            states.append(self.update(states[-1], patterns, beta, dtype))
        energies = self.stacked([self.energy(state, patterns, beta) for state in states])
        return self.rounded(states[-1], dtype), self.rounded(energies, dtype)

    def updates(self, steps):
        """How many updates are made."""
        return steps

    def similarities(self, state, patterns, beta):
        """The scores of the patterns (*B, N)."""
        return beta * (state @ patterns.mT)

    def update(self, state, patterns, beta, dtype):
        """softmax(beta state patterns^T) patterns."""
        scores = self.similarities(state, patterns, beta)
        terms = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return (terms / terms.sum(axis=-1, keepdims=True)) @ patterns

    def energy(self, state, patterns, beta):
        """-lse(beta state patterns^T) / beta + |state|^2 / 2."""
        scores = self.similarities(state, patterns, beta)
        top = scores.max(axis=-1)
        lse = top + np.log(np.exp(scores - top[..., None]).sum(axis=-1))
        return -lse / beta + self.square(state)

    def square(self, state):
        """Half the squared length."""
        return (state * state).sum(axis=-1) / 2

    def stacked(self, energies):
        """The energies of all steps, the steps on the first axis."""
        return np.stack(energies)

    # --- merging ---

    def merge(self, parts):
        """Out and lse."""
        checks.merge(parts)
        dtype = parts[0][0].dtype
        outs = np.stack([self.widened(out, dtype) for out, _ in parts])
        lses = np.stack([self.lse_in(lse, dtype) for _, lse in parts])[..., None]
        shares, top = self.shares(lses)
        total = shares.sum(axis=0)
        out = self.joined(shares, outs) / np.where(total == 0, 1, total)
        return self.rounded(out, dtype), self.merged_lse(lses, top, total)[..., 0]

    def lse_in(self, lse, dtype):
        """The lse of a part as it is computed with."""
        return lse

    def shares(self, lses):
        """exp(lse - top) of each part, and the largest lse of each row."""
        top = lses.max(axis=0)
        return np.exp(lses - self.shift(top)), top

    def joined(self, shares, outs):
        """The sum of the parts that have a share or a NaN."""
        return np.where(shares == 0, 0, shares * outs).sum(axis=0)

    def merged_lse(self, lses, top, total):
        """The lse of the whole."""
        return np.where(total == 0, -np.inf, self.shift(top) + np.log(total))

    # --- heads ---

    def split_heads(self, x, heads):
        """Neighbouring features for each head."""
        checks.split_heads(x, heads)
        *lead, T, E = x.shape
        return x.reshape(*lead, T, heads, E // heads).swapaxes(-3, -2).copy()

    def merge_heads(self, x):
        """The heads side by side."""
        checks.merge_heads(x)
        *lead, H, T, D = x.shape
        return x.swapaxes(-3, -2).copy().reshape(*lead, T, H * D)

    def repeat_kv(self, x, groups):
        """Each head for a group of neighbours."""
        checks.repeat_kv(x, groups)
        return self.repeated(x, groups)
