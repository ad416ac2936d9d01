"""What attention is: the weights."""

import torch


def weights(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """Give how much of its attention each query gives to each key: softmax(q k^T / sqrt(D)), (*B, T, S).

    q (*B, T, D), k (*B, S, D), float32.
    """
    raise NotImplementedError
