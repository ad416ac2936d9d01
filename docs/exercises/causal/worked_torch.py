"""Causal masking: the leaks of the three functions in given_torch.py."""

import torch


def column(*numbers):
    """Vectors of one feature, (n, 1)."""
    return torch.tensor(numbers, dtype=torch.float32)[:, None]


def other_sizes():
    """One query and two keys: aligned at the lower right, query 0 sees key 1."""
    return column(0), column(0, 0), column(1, 2)


def low_scores():
    """Query 0 gives its own key the score -20,000, and the hidden one -10,000."""
    return column(200, 0), column(-100, 0), column(1, 2)


def bad_future():
    """Key 1 has no number for a value: 0 * NaN is NaN in query 0, too."""
    return column(0, 0), column(0, 0), column(1, float("nan"))
