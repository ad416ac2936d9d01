"""What attention is: the weights."""

import numpy as np


def weights(q: np.ndarray, k: np.ndarray) -> np.ndarray:
    """Give how much of its attention each query gives to each key: softmax(q k^T / sqrt(D)), (*B, T, S).

    q (*B, T, D), k (*B, S, D), float32.
    """
    raise NotImplementedError
