"""Lacks has-the-shape: the first axis is repeated and not that of the heads."""

import torch


def kv_heads(x, groups):
    """Give each query head its key/value head: (*B, Hk * groups, S, D), where head h is head h // groups of x."""
    return torch.repeat_interleave(x, groups, dim=0)
