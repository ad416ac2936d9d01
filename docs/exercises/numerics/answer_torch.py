"""Numerics: break a naive softmax, then repair it."""

import torch


def breaks_it() -> tuple[torch.Tensor, torch.Tensor]:
    """Give float32 arrays q (T, D) and k (S, D), finite, of which naive_weights makes NaN.

    naive_weights stands in given_torch.py.
    """
    raise NotImplementedError


def softmax(scores: torch.Tensor, visible: torch.Tensor) -> torch.Tensor:
    """Give weights (*B, T, S) that sum to 1 over the visible keys; all else is 0.

    scores (*B, T, S), float32; visible (*B, T, S), boolean. Where visible is False, a score
    may be anything, NaN too. A row in which nothing is visible has weights of 0.
    """
    raise NotImplementedError


def weights(q, k, mask):
    """The weights (*B, T, S) of attention, made with your softmax. Leave this as it is."""
    scores = q @ k.mT / q.shape[-1] ** 0.5
    return softmax(scores, torch.as_tensor(mask).expand(scores.shape))
