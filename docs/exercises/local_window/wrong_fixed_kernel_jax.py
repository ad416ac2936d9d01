"""Lacks equal-scores-average: a kernel is added, so that equal scores do not mean equal weights."""

import jax
import jax.numpy as jnp


def window(i, j):
    """True where the key at j is the query's own position i, or next to it."""
    return abs(i - j) <= 1


def local_attention(q, k, v):
    """Give out (*B, T, Dv) and weights (*B, T, T) of attention under that mask."""
    T, D = q.shape[-2:]
    i = jnp.arange(T)
    kernel = jnp.where(i[:, None] == i, 0.5, 0.25)
    scores = jnp.where(window(i[:, None], i), q @ k.mT / D**0.5 + jnp.log(kernel), -jnp.inf)
    weights = jax.nn.softmax(scores, axis=-1)
    return weights @ v, weights
