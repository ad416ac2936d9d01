"""Gradients by hand."""

import jax


def gradients(q: jax.Array, k: jax.Array, v: jax.Array, d_out: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Give dq, dk and dv, the gradients of sum(out * d_out) where out = softmax(q k^T / sqrt(D)) v.

    q (*B, T, D), k (*B, S, D), v (*B, S, Dv), d_out (*B, T, Dv), float32. By hand: no autodiff.
    """
    raise NotImplementedError
