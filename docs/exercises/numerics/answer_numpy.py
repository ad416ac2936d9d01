"""Numerics: break a naive softmax, then repair it."""

import numpy as np


def breaks_it() -> tuple[np.ndarray, np.ndarray]:
    """Give float32 arrays q (T, D) and k (S, D), finite, of which naive_weights makes NaN.

    naive_weights stands in given_numpy.py.
    """
    raise NotImplementedError


def softmax(scores: np.ndarray, visible: np.ndarray) -> np.ndarray:
    """Give weights (*B, T, S) that sum to 1 over the visible keys; all else is 0.

    scores (*B, T, S), float32; visible (*B, T, S), boolean. Where visible is False, a score
    may be anything, NaN too. A row in which nothing is visible has weights of 0.
    """
    raise NotImplementedError


def weights(q, k, mask):
    """The weights (*B, T, S) of attention, made with your softmax. Leave this as it is."""
    scores = q @ k.mT / q.shape[-1] ** 0.5
    return softmax(scores, np.broadcast_to(mask, scores.shape))
