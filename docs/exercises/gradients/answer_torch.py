"""Gradients by hand."""

import torch


def gradients(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, d_out: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Give dq, dk and dv, the gradients of sum(out * d_out).

    out = softmax(q k^T / sqrt(D)) v, and d_out is G in the lesson. By hand: no autodiff.
    q (*B, T, D), k (*B, S, D), v (*B, S, Dv), d_out (*B, T, Dv), float32.
    """
    raise NotImplementedError
