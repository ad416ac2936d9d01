"""Lacks inputs-unchanged: the caller's queries are scaled."""

import torch


def weights(q, k):
    q /= q.shape[-1] ** 0.5
    return torch.softmax(q @ k.mT, dim=-1)
