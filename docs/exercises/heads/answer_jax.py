"""Heads: query heads that share key/value heads."""

import jax


def kv_heads(x: jax.Array, groups: int) -> jax.Array:
    """Give each query head its key/value head: (*B, Hk * groups, S, D), where head h is head h // groups of x.

    x (*B, Hk, S, D) holds the keys or the values; each of its heads serves `groups` query heads.
    """
    raise NotImplementedError
