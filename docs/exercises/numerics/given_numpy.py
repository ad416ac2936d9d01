"""A naive softmax, which is to be broken."""

import numpy as np


def naive_weights(q, k):
    """Weights (*B, T, S), computed as the formula is written."""
    scores = q @ k.mT / q.shape[-1] ** 0.5
    numerators = np.exp(scores)
    return numerators / numerators.sum(axis=-1, keepdims=True)
