"""Online softmax: joining two halves."""

import jax


def merge(out0: jax.Array, lse0: jax.Array, out1: jax.Array, lse1: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Give out and lse over all keys, from those over the first and those over the other keys.

    out0, out1 (*B, T, Dv), lse0, lse1 (*B, T), float32; lse is the log of the softmax denominator, and -inf where a
    query sees no key.
    """
    raise NotImplementedError
