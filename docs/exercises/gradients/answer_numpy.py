"""Gradients by hand."""

import numpy as np


def gradients(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, d_out: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Give dq, dk and dv, the gradients of sum(out * d_out).

    out = softmax(q k^T / sqrt(D)) v, and d_out is G in the lesson. By hand: no autodiff.
    q (*B, T, D), k (*B, S, D), v (*B, S, Dv), d_out (*B, T, Dv), float32.
    """
    raise NotImplementedError
