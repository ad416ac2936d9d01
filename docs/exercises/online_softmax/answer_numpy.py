"""Online softmax: joining two halves."""

import numpy as np


def merge(out0: np.ndarray, lse0: np.ndarray, out1: np.ndarray, lse1: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Give out and lse over all keys, from those over the first and those over the other keys.

    out0, out1 (*B, T, Dv), lse0, lse1 (*B, T), float32; lse is the log of the softmax denominator, and -inf where a
    query sees no key.
    """
    raise NotImplementedError
