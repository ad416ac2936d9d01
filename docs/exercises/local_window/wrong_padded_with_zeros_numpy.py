"""Lacks rows-sum-to-1: zeros are padded at both ends, and take their share of the weight."""

import numpy as np
from worked_numpy import window

__all__ = ["window"]


def local_attention(q, k, v):
    T, D = q.shape[-2:]
    padding = [(0, 0)] * (k.ndim - 2) + [(1, 1), (0, 0)]
    k = np.pad(k, padding)
    i, j = np.indices((T, T + 2))
    scores = np.where((i <= j) & (j <= i + 2), q @ k.mT / D**0.5, -np.inf)
    numerators = np.exp(scores)
    weights = (numerators / numerators.sum(axis=-1, keepdims=True)).astype(q.dtype)[..., 1:-1]
    return weights @ v, weights
