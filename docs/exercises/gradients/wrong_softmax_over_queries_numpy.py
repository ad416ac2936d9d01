"""Lacks dv-sums-to-d-out: the weights of a query do not sum to 1."""

import numpy as np


def gradients(q, k, v, d_out):
    """Give dq, dk and dv, the gradients of sum(out * d_out) where out = softmax(q k^T / sqrt(D)) v."""
    scale = q.shape[-1] ** -0.5
    P = softmax(scale * (q @ k.mT))  # (*B, T, S)
    dv = P.mT @ d_out
    dP = d_out @ v.mT  # (*B, T, S)
    dS = P * (dP - (P * dP).sum(axis=-1, keepdims=True))
    return scale * dS @ k, scale * dS.mT @ q, dv


def softmax(scores):
    """Weights (*B, T, S) that sum to 1 over the keys."""
    numerators = np.exp(scores - scores.max(axis=-2, keepdims=True))
    return numerators / numerators.sum(axis=-2, keepdims=True)
