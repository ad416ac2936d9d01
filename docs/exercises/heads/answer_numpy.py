"""Heads: query heads that share key/value heads."""

import numpy as np


def kv_heads(x: np.ndarray, groups: int) -> np.ndarray:
    """Give each query head its key/value head: (*B, Hk * groups, S, D), where head h is head h // groups of x.

    x (*B, Hk, S, D) holds the keys or the values; each of its heads serves `groups` query heads.
    """
    raise NotImplementedError
