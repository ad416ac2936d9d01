"""Numerics: break a naive softmax, then repair it."""

import torch


def breaks_it():
    """A score of 100: exp(100) is 2.7e43, and infinity in float32."""
    return torch.tensor([[100.0]]), torch.tensor([[1.0], [0.0]])


def softmax(scores, visible):
    """Give weights (*B, T, S) that sum to 1 over the visible keys, and are 0 where nothing is visible."""
    scores = torch.where(visible, scores, -torch.inf)
    top = scores.amax(dim=-1, keepdim=True)
    top = torch.where(top == -torch.inf, 0, top)
    numerators = torch.exp(scores - top)  # exp(-inf) = 0 where hidden
    total = numerators.sum(dim=-1, keepdim=True)
    return numerators / torch.where(total == 0, 1, total)


def weights(q, k, mask):
    """The weights (*B, T, S) of attention, made with your softmax."""
    scores = q @ k.mT / q.shape[-1] ** 0.5
    return softmax(scores, torch.as_tensor(mask).expand(scores.shape))
