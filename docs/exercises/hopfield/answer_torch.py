"""Retrieval as an energy that falls."""

import torch

# The three states "zero", "half" and "pattern", the one of the lowest energy first. The patterns are the rows of
# 4 * eye(4), "half" and "pattern" are a half and the whole of the first one, and beta is 1.
lowest_energy_first = ...

# How many updates move "half" by more than 1e-3 in some coordinate, before it stays where it is?
steps_to_settle = ...


def update(state: torch.Tensor, patterns: torch.Tensor, beta: float) -> torch.Tensor:
    """Take one step of recall: softmax(beta * state @ patterns^T) @ patterns.

    state (*B, D), patterns (N, D), float32.
    """
    raise NotImplementedError
