"""A naive softmax, which is to be broken."""

import torch


def naive_weights(q, k):
    """Weights (*B, T, S), computed as the formula is written."""
    scores = q @ k.mT / q.shape[-1] ** 0.5
    numerators = torch.exp(scores)
    return numerators / numerators.sum(dim=-1, keepdim=True)
