"""Causal masking: find the leaks of the three functions in given_torch.py.

Each function below takes nothing and returns float32 arrays q (*B, T, D), k (*B, S, D), v (*B, S, Dv) of at most 128
numbers. Attention itself, with is_causal=True, has to be right on them, and the function in given_torch.py wrong.
"""

import torch

Arrays = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def other_sizes() -> Arrays:
    """Give finite q, k, v on which lower_right lets a query see what comes after it."""
    raise NotImplementedError


def low_scores() -> Arrays:
    """Give finite q, k, v on which low_fill lets a query see what comes after it."""
    raise NotImplementedError


def bad_future() -> Arrays:
    """Give q, k, v on which zero_times lets a query see what comes after it."""
    raise NotImplementedError
