"""A local window of width 3."""

import torch


def window(i: torch.Tensor, j: torch.Tensor) -> torch.Tensor:
    """True where the key at j is the query's own position i, or next to it; i and j are integer arrays (T, S)."""
    raise NotImplementedError


def local_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Give out (*B, T, Dv) and weights (*B, T, T) of attention under that mask.

    q, k (*B, T, D), v (*B, T, Dv), float32.
    """
    raise NotImplementedError
