"""Lacks uses-beta: the scores are scaled as in attention."""

import numpy as np

lowest_energy_first = ("pattern", "half", "zero")
steps_to_settle = 2


def update(state, patterns, beta):
    """Take one step of recall: softmax(beta * state @ patterns^T) @ patterns."""
    scores = (state @ patterns.T) / patterns.shape[-1] ** 0.5  # (*B, N)
    numerators = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = numerators / numerators.sum(axis=-1, keepdims=True)
    return weights @ patterns
