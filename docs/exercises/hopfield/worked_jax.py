"""Retrieval as an energy that falls."""

import jax

lowest_energy_first = ("pattern", "half", "zero")
steps_to_settle = 2


def update(state, patterns, beta):
    """Take one step of recall: softmax(beta * state @ patterns^T) @ patterns."""
    weights = jax.nn.softmax(beta * (state @ patterns.T), axis=-1)  # (*B, N)
    return weights @ patterns
