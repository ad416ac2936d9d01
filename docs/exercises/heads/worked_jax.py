"""Heads: query heads that share key/value heads."""

import jax.numpy as jnp


def kv_heads(x, groups):
    """Give each query head its key/value head: (*B, Hk * groups, S, D), where head h is head h // groups of x."""
    h = jnp.arange(x.shape[-3] * groups)  # the query heads
    return x[..., h // groups, :, :]
