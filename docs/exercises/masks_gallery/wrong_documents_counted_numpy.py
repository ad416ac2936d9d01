"""Lacks values: documents are counted by their changes, so that one that comes back is another one."""

import numpy as np
from worked_numpy import causal, chunked, dilated, local, prefix_lm

__all__ = ["causal", "chunked", "dilated", "local", "prefix_lm"]


def documents(i, j, ids):
    number = np.cumsum(np.diff(ids, prepend=ids[:1]) != 0)
    return number[i] == number[j]
