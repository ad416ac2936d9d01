"""Lacks energy-falls: the sign is wrong, so that the state goes to what is far."""

import torch

lowest_energy_first = ("pattern", "half", "zero")
steps_to_settle = 2


def update(state, patterns, beta):
    """Take one step of recall: softmax(beta * state @ patterns^T) @ patterns."""
    weights = torch.softmax(-beta * (state @ patterns.T), dim=-1)  # (*B, N)
    return weights @ patterns
