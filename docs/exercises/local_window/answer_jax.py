"""A local window of width 3."""

import jax


def window(i: jax.Array, j: jax.Array) -> jax.Array:
    """True where the key at j is the query's own position i, or next to it; i and j are integer arrays (T, S)."""
    raise NotImplementedError


def local_attention(q: jax.Array, k: jax.Array, v: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Give out (*B, T, Dv) and weights (*B, T, T) of attention under that mask.

    q, k (*B, T, D), v (*B, T, Dv), float32.
    """
    raise NotImplementedError
