"""Gradients by hand."""

import numpy as np


def gradients(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, d_out: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Give dq, dk and dv, the gradients of sum(out * d_out) where out = softmax(q k^T / sqrt(D)) v.

    q (*B, T, D), k (*B, S, D), v (*B, S, Dv), d_out (*B, T, Dv), float32. By hand: no autodiff.
    """
    raise NotImplementedError
