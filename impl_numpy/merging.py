"""Merging: partial results over disjoint sets of keys become the result over all of them."""

from __future__ import annotations

import numpy as np

from . import checks
from .arrays import where
from .softmax import close, exponentials


def merge(parts):
    """Join partial results over disjoint sets of keys into the result over all of them.

    parts: sequence of (out (*B, T, Dv), lse (*B, T)). Returns (out, lse) of those shapes and dtypes. Associative
    and commutative up to rounding, with identity (0, -inf); a part with lse -inf saw nothing and has no weight.
    Give a sink to one part alone. Raises TypeError for a wrong type, ValueError for no part or unequal shapes.
    Source: Dao et al. 2023, "Flash-Decoding"; Milakov and Gimelshein 2018, equation 4.
    """
    checks.merge(parts)
    return merge_core(tuple((out, lse) for out, lse in parts))


@np.errstate(all="ignore")
def merge_core(parts):
    """The merged output and lse of checked parts."""
    outs = np.stack([out.astype(lse.dtype) for out, lse in parts])
    lses = np.stack([lse for _, lse in parts])[..., None]
    top = lses.max(axis=0)
    seen = lses != -np.inf
    shares = exponentials(lses, seen, top)
    divisor, lse = close(top, shares.sum(axis=0), seen.any(axis=0))
    out = (shares * where(seen, outs, 0)).sum(axis=0) / divisor
    return out.astype(parts[0][0].dtype), lse[..., 0]
