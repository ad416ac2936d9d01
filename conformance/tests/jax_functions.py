"""Functions of impl_jax and their variables, for the tests of JAX's transforms."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

import impl_jax
from conformance.adapter import find

# Programs are compiled as quickly as when the cases are run, and in 64 bits.
find("jax")

H, T, S = 4, 5, 7
TILE = (3, 4)


def dense(*arrays, **options):
    """`out` and `lse` by the definition."""
    steps = impl_jax.attention_steps(*arrays, **options)
    return steps.out, steps.lse


def tiled(*arrays, **options):
    """`out` and `lse` over tiles."""
    return impl_jax.flash_attention(*arrays, block_size=TILE, **options)


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def qkv():
    return normal(2, H, T, 3), normal(2, 2, S, 3, seed=1), normal(2, 2, S, 6, seed=2)


def holes():
    """A mask with an empty row, and with a key that no query of its sequence sees."""
    mask = normal(2, 1, T, S, seed=3) > -0.5
    mask[0, 0, 1] = False
    mask[1, :, :, 2] = False
    return mask


def variables():
    """q, k, v, a bias, the sinks, a scale and a softcap: all that has a gradient."""
    return tuple(map(jnp.asarray, (*qkv(), normal(H, T, S, seed=4), normal(H, seed=5), 0.7, 1.3)))


def everything(attend, mask=None, rows=slice(None)):
    """A function of these variables, for some of the rows; the lse of an empty row is left out."""

    def function(q, k, v, bias, sinks, scale, softcap):
        seen = jnp.asarray(holes()) if mask is None else mask
        numbers = {"scale": scale, "softcap": softcap}
        out, lse = attend(q, k, v, seen, bias=bias, sinks=sinks, enable_gqa=True, **numbers)
        return out[:, :, rows], jnp.where(lse == -jnp.inf, 0, lse)[:, :, rows]

    return function


def loss(attend, *args):
    return lambda *given: sum(jnp.sin(x).sum() for x in everything(attend, *args)(*given))


def same(left, right, **near):
    pairs = zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True)
    return all(np.allclose(a, b, equal_nan=True, **near) for a, b in pairs)


def same_bits(left, right):
    pairs = zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True)
    return all(np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in pairs)


def query_and_keys():
    return jnp.asarray(normal(2, T, 3)), jnp.asarray(normal(2, S, 3, seed=1))
