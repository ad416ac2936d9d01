"""Lacks hidden-changes-nothing: a share of 0 is multiplied with NaN."""

import numpy as np


def merge(out0, lse0, out1, lse1):
    """Give out and lse over all keys, from those over the first and those over the other keys."""
    top = np.maximum(lse0, lse1)  # (*B, T)
    top = np.where(top == -np.inf, 0, top)
    share0, share1 = np.exp(lse0 - top), np.exp(lse1 - top)
    total = share0 + share1
    divisor = np.where(total == 0, 1, total)
    out = weighed(share0 / divisor, out0) + weighed(share1 / divisor, out1)
    return out, top + np.log(total)


def weighed(share, out):
    """share (*B, T) times out (*B, T, Dv), and 0 where the share is 0, whatever stands in out."""
    share = share[..., None]
    return share * out
