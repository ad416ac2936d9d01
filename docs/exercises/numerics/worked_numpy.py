"""Numerics: break a naive softmax, then repair it."""

import numpy as np


def breaks_it():
    """A score of 100: exp(100) is 2.7e43, and infinity in float32."""
    return np.array([[100.0]], np.float32), np.array([[1.0], [0.0]], np.float32)


def softmax(scores, visible):
    """Give weights (*B, T, S) that sum to 1 over the visible keys, and are 0 where nothing is visible."""
    scores = np.where(visible, scores, -np.inf).astype(scores.dtype)
    top = scores.max(axis=-1, keepdims=True)
    top = np.where(top == -np.inf, 0, top)
    numerators = np.exp(scores - top)  # exp(-inf) = 0 where hidden
    total = numerators.sum(axis=-1, keepdims=True)
    return numerators / np.where(total == 0, 1, total)


def weights(q, k, mask):
    """The weights (*B, T, S) of attention, made with your softmax."""
    scores = q @ k.mT / q.shape[-1] ** 0.5
    return softmax(scores, np.broadcast_to(mask, scores.shape))
