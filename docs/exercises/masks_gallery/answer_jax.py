"""A gallery of masks: True where the query at i may attend to the key at j.

i and j are integer arrays (T, S): i[t, s] = t and j[t, s] = s.
"""

import jax


def causal(i: jax.Array, j: jax.Array) -> jax.Array:
    """The query sees its own position and what was before."""
    raise NotImplementedError


def local(i: jax.Array, j: jax.Array, width: int) -> jax.Array:
    """The query sees `width` keys, an odd number, itself in the middle."""
    raise NotImplementedError


def prefix_lm(i: jax.Array, j: jax.Array, length: int) -> jax.Array:
    """Every query sees the first `length` keys, and the others as if causal."""
    raise NotImplementedError


def dilated(i: jax.Array, j: jax.Array, step: int) -> jax.Array:
    """The query sees every `step`-th key before and after it, counted from itself."""
    raise NotImplementedError


def chunked(i: jax.Array, j: jax.Array, size: int) -> jax.Array:
    """Positions are cut into chunks of `size`; the query sees its own chunk."""
    raise NotImplementedError


def documents(i: jax.Array, j: jax.Array, ids: jax.Array) -> jax.Array:
    """Position p belongs to the document ids[p]; the query sees its own document."""
    raise NotImplementedError
