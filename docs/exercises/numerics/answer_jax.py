"""Numerics: break a naive softmax, then repair it."""

import jax
import jax.numpy as jnp


def breaks_it() -> tuple[jax.Array, jax.Array]:
    """Give float32 arrays q (T, D) and k (S, D), finite, of which naive_weights in given_jax.py makes NaN."""
    raise NotImplementedError


def softmax(scores: jax.Array, visible: jax.Array) -> jax.Array:
    """Give weights (*B, T, S) that sum to 1 over the visible keys, and are 0 where nothing is visible.

    scores (*B, T, S), float32, whatever they are where `visible` (*B, T, S), boolean, is False.
    """
    raise NotImplementedError


def weights(q, k, mask):
    """The weights (*B, T, S) of attention, made with your softmax. Leave this as it is."""
    scores = q @ k.mT / q.shape[-1] ** 0.5
    return softmax(scores, jnp.broadcast_to(mask, scores.shape))
