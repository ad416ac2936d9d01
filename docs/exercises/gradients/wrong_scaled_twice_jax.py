"""Lacks dq-is-right: dq has the scale twice."""

import jax


def gradients(q, k, v, d_out):
    """Give dq, dk and dv, the gradients of sum(out * d_out) where out = softmax(q k^T / sqrt(D)) v."""
    scale = q.shape[-1] ** -0.5
    P = jax.nn.softmax(scale * (q @ k.mT), axis=-1)  # (*B, T, S)
    dv = P.mT @ d_out
    dP = d_out @ v.mT  # (*B, T, S)
    dS = P * (dP - (P * dP).sum(axis=-1, keepdims=True))
    return scale**2 * dS @ k, scale * dS.mT @ q, dv
