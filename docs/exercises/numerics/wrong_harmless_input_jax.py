"""Lacks breaks-it: exp(10) is no trouble."""

import jax.numpy as jnp


def breaks_it():
    """A score of 100: exp(100) is 2.7e43, and infinity in float32."""
    return jnp.array([[10.0]]), jnp.array([[1.0], [0.0]])


def softmax(scores, visible):
    """Give weights (*B, T, S) that sum to 1 over the visible keys, and are 0 where nothing is visible."""
    scores = jnp.where(visible, scores, -jnp.inf)
    top = scores.max(axis=-1, keepdims=True)
    top = jnp.where(top == -jnp.inf, 0, top)
    numerators = jnp.exp(scores - top)  # exp(-inf) = 0 where hidden
    total = numerators.sum(axis=-1, keepdims=True)
    return numerators / jnp.where(total == 0, 1, total)


def weights(q, k, mask):
    """The weights (*B, T, S) of attention, made with your softmax."""
    scores = q @ k.mT / q.shape[-1] ** 0.5
    return softmax(scores, jnp.broadcast_to(mask, scores.shape))
