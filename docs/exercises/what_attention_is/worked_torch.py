"""What attention is: the weights."""

import torch


def weights(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """Give how much of its attention each query gives to each key: softmax(q k^T / sqrt(D)), (*B, T, S)."""
    D = q.shape[-1]
    scores = q @ k.mT / D**0.5  # (*B, T, S)
    return torch.softmax(scores, dim=-1)
