"""What is beyond a fixed size is left out, or counted anew from 0."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from conformance.mutants.memory import Honest
from conformance.mutants.record import replaces


@replaces("scores", "size-limit")
def features_beyond_128_unread(self, p):
    """Features of queries and keys beyond 128 are not read."""
    return Honest.scores(self, replace(p, q=p.q[..., :128], k=p.k[..., :128], scale=self.scale(p)))


@replaces("blend", "size-limit")
def value_features_beyond_64_unread(self, weights, v, visible):
    """Features of values beyond 64 stay 0."""
    return Honest.blend(self, weights, np.where(np.arange(v.shape[-1]) < 64, v, 0), visible)


@replaces("visible", "size-limit")
def causal_anew_after_64_queries(self, p):
    """From query 64 on is_causal hides a query's own position."""
    seen = Honest.visible(self, p)
    rows, cols = np.arange(p.rows.start, p.rows.stop)[:, None], np.arange(p.cols.start, p.cols.stop)
    return seen & ((rows < 64) | (cols != rows)) if p.is_causal else seen


@replaces("prepare", "size-limit")
def sinks_of_sixteen_heads(self, *arrays, **options):
    """Heads beyond 16 get the sinks of the first ones."""
    p = Honest.prepare(self, *arrays, **options)
    return replace(p, sinks=p.sinks[np.arange(len(p.sinks)) % 16]) if p.sinks is not None and p.sinks.ndim > 2 else p
