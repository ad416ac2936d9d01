"""Three causal attentions that leak, each on inputs of its own kind."""

import numpy as np


def lower_right(q, k, v):
    """The triangle ends at the last query and the last key."""
    i, j = np.indices((q.shape[-2], k.shape[-2]))
    visible = j - j.max() <= i - i.max()
    return softmax(np.where(visible, scores(q, k), np.float32(-np.inf))) @ v


def low_fill(q, k, v):
    """Hidden scores are -10,000."""
    return softmax(np.where(triangle(q, k), scores(q, k), np.float32(-1e4))) @ v


def zero_times(q, k, v):
    """Hidden weights are exactly 0, and multiplied with the hidden values."""
    return softmax(np.where(triangle(q, k), scores(q, k), np.float32(-np.inf))) @ v


def triangle(q, k):
    """True where key <= query, (T, S)."""
    i, j = np.indices((q.shape[-2], k.shape[-2]))
    return j <= i


def scores(q, k):
    """Scaled scores (*B, T, S)."""
    return q @ k.mT / q.shape[-1] ** 0.5


def softmax(scores):
    """Weights (*B, T, S)."""
    numerators = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return numerators / numerators.sum(axis=-1, keepdims=True)
