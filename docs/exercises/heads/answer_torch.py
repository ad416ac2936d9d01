"""Heads: query heads that share key/value heads."""

import torch


def kv_heads(x: torch.Tensor, groups: int) -> torch.Tensor:
    """Give each query head its key/value head: (*B, Hk * groups, S, D), where head h is head h // groups of x.

    x (*B, Hk, S, D) holds the keys or the values; each of its heads serves `groups` query heads.
    """
    raise NotImplementedError
