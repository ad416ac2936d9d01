"""Lacks starts-from-the-mean: the weights sum to 1 over the states."""

import numpy as np

lowest_energy_first = ("pattern", "half", "zero")
steps_to_settle = 2


def update(state, patterns, beta):
    """Take one step of recall: softmax(beta * state @ patterns^T) @ patterns."""
    scores = beta * (state @ patterns.T)  # (*B, N)
    numerators = np.exp(scores - scores.max(axis=0, keepdims=True))
    weights = numerators / numerators.sum(axis=0, keepdims=True)
    return weights @ patterns
