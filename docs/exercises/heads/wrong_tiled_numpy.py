"""Lacks neighbours-share: the heads come as 0 1 0 1."""

import numpy as np


def kv_heads(x, groups):
    """Give each query head its key/value head: (*B, Hk * groups, S, D), where head h is head h % x.shape[-3] of x."""
    h = np.arange(x.shape[-3] * groups)  # the query heads
    return x[..., h % x.shape[-3], :, :]
