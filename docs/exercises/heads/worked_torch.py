"""Heads: query heads that share key/value heads."""

import torch


def kv_heads(x, groups):
    """Give each query head its key/value head: (*B, Hk * groups, S, D), where head h is head h // groups of x."""
    h = torch.arange(x.shape[-3] * groups)  # the query heads
    return x[..., h // groups, :, :]
