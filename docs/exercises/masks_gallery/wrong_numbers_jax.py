"""Lacks dtype-kept: zeros and ones are no booleans."""

from worked_jax import chunked, dilated, documents, local, prefix_lm

__all__ = ["chunked", "dilated", "documents", "local", "prefix_lm"]


def causal(i, j):
    return (j <= i) * 1
