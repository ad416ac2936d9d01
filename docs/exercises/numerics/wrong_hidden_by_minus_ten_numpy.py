"""Lacks hidden-weights-are-0: hidden scores are -10."""

import numpy as np


def breaks_it():
    """A score of 100: exp(100) is 2.7e43, and infinity in float32."""
    return np.array([[100.0]], np.float32), np.array([[1.0], [0.0]], np.float32)


def softmax(scores, visible):
    """Give weights (*B, T, S) that sum to 1 over the visible keys, and are 0 where nothing is visible."""
    scores = np.where(visible, scores, -10).astype(scores.dtype)
    top = scores.max(axis=-1, keepdims=True)
    top = np.where(top == -np.inf, 0, top)
    numerators = np.exp(scores - top)  # exp(-inf) = 0 where hidden
    total = numerators.sum(axis=-1, keepdims=True)
    return numerators / total * visible.any(axis=-1, keepdims=True)


def weights(q, k, mask):
    """The weights (*B, T, S) of attention, made with your softmax."""
    scores = q @ k.mT / q.shape[-1] ** 0.5
    return softmax(scores, np.broadcast_to(mask, scores.shape))
