"""A local window of width 3."""

import numpy as np


def window(i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """True where the key at j is the query's own position i, or next to it; i and j are integer arrays (T, S)."""
    raise NotImplementedError


def local_attention(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Give out (*B, T, Dv) and weights (*B, T, T) of attention under that mask.

    q, k (*B, T, D), v (*B, T, Dv), float32.
    """
    raise NotImplementedError
