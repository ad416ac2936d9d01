"""What attention is: the weights."""

import numpy as np


def weights(q: np.ndarray, k: np.ndarray) -> np.ndarray:
    """Give how much of its attention each query gives to each key: softmax(q k^T / sqrt(D)), (*B, T, S)."""
    D = q.shape[-1]
    scores = q @ k.mT / D**0.5  # (*B, T, S)
    numerators = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return numerators / numerators.sum(axis=-1, keepdims=True)
