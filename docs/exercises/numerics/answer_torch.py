"""Numerics: break a naive softmax, then repair it."""

import torch


def breaks_it() -> tuple[torch.Tensor, torch.Tensor]:
    """Give float32 arrays q (T, D) and k (S, D), finite, of which naive_weights in given_torch.py makes NaN."""
    raise NotImplementedError


def softmax(scores: torch.Tensor, visible: torch.Tensor) -> torch.Tensor:
    """Give weights (*B, T, S) that sum to 1 over the visible keys, and are 0 where nothing is visible.

    scores (*B, T, S), float32, whatever they are where `visible` (*B, T, S), boolean, is False.
    """
    raise NotImplementedError


def weights(q, k, mask):
    """The weights (*B, T, S) of attention, made with your softmax. Leave this as it is."""
    scores = q @ k.mT / q.shape[-1] ** 0.5
    return softmax(scores, torch.as_tensor(mask).expand(scores.shape))
