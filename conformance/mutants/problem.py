"""What the steps of an honest attention hand to each other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np


@dataclass(frozen=True)
class Problem:
    """One attention, or one tile of it: q, k, v in the compute dtype with their leading axes broadcast (*B, [H]).

    `mask` (boolean) and `bias` are (*B, [H,] T, S), `sinks` is (..., 1, 1), `rule` a mask rule; each may be None.
    `rows` and `cols` are the positions of the queries and keys, `sizes` the whole (T, S), `dtype` the inputs' own.
    """

    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    mask: np.ndarray | None
    rule: Any
    bias: np.ndarray | None
    is_causal: bool
    scale: float | None
    softcap: float | None
    sinks: np.ndarray | None
    rows: range
    cols: range
    sizes: tuple[int, int]
    dtype: np.dtype

    def tile(self, rows: range, cols: range) -> Problem:
        """The part of the problem that stands at these positions."""
        at, of = slice(rows.start, rows.stop), slice(cols.start, cols.stop)
        pairs = {name: x if x is None else x[..., at, of] for name, x in (("mask", self.mask), ("bias", self.bias))}
        vectors = {"q": self.q[..., at, :], "k": self.k[..., of, :], "v": self.v[..., of, :]}
        return replace(self, **vectors, **pairs, rows=rows, cols=cols)


class Logits(NamedTuple):
    """The steps before the softmax, and which pairs are visible: arrays (*B, [H,] T, S)."""

    scores: Any
    capped: Any
    biased: Any
    masked: Any
    visible: Any


class Rows(NamedTuple):
    """What is known of some rows after some tiles: top and total (..., 1), and the sum acc (..., Dv)."""

    top: Any
    total: Any
    acc: Any
