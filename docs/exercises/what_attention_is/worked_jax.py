"""What attention is: the weights."""

import jax


def weights(q: jax.Array, k: jax.Array) -> jax.Array:
    """Give how much of its attention each query gives to each key: softmax(q k^T / sqrt(D)), (*B, T, S)."""
    D = q.shape[-1]
    scores = q @ k.mT / D**0.5  # (*B, T, S)
    return jax.nn.softmax(scores, axis=-1)
