"""Functions as other people write them, each with its own habits. They are right, or wrong as their names say."""

from __future__ import annotations

import numpy as np

import impl_numpy


def makes_nothing():
    """No function, and no backend comes of it."""
    return 7


def attention(q, k, v, mask=None, *, scale=None):
    """A right one with few options, which returns the weights too."""
    return impl_numpy.attention(q, k, v, mask, scale=scale)


def everything(q, k, v, **options):
    """A right one with every option, by whatever name."""
    return impl_numpy.attention(q, k, v, **options)


everything.rules = impl_numpy


def with_lse(q, k, v, mask=None):
    """Out and lse."""
    return impl_numpy.flash_attention(q, k, v, mask)


def tiled(q, k, v, block_size=None):
    """Out alone, in tiles if they are given."""
    return impl_numpy.flash_attention(q, k, v, block_size=block_size)[0]


def needs_all(q, k, v, /, mask, is_causal):
    """No defaults."""
    return impl_numpy.attention(q, k, v, mask, is_causal=is_causal)[0]


def four_axes(q, k, v, mask=None):
    """Batches and heads, always."""
    _B, _H, _T, _D = q.shape
    return impl_numpy.attention(q, k, v, mask)[0]


def float32_only(q, k, v):
    """One dtype."""
    if q.dtype != np.float32:
        raise TypeError(f"float32 only, not {q.dtype}")
    return impl_numpy.attention(q, k, v)[0]


def upside_down(q, k, v, mask=None):
    """Wrong: True hides."""
    return impl_numpy.attention(q, k, v, None if mask is None else ~mask.astype(bool))[0]


def raises(q, k, v):
    """Wrong: there is never an answer."""
    raise RuntimeError("no kernel")


def odd_outputs(q, k, v):
    """Right, but nobody can tell what the second output is."""
    out, lse = impl_numpy.flash_attention(q, k, v)
    return out, lse[..., None, None]


def named_outputs(q, k, v):
    """The same with names; the second one is no output of the contract, so it is not judged."""
    return odd_outputs(q, k, v)


named_outputs.outputs = ("out", "extra")


def own_rules(q, k, v, mask=None):
    """Mask rules as values."""
    assert mask is None or isinstance(mask, (np.ndarray, impl_numpy.Mask))
    return impl_numpy.attention(q, k, v, mask)[0]


own_rules.rules = impl_numpy


def queries(query, key, value):
    """Other names."""


def wants_more(q, k, v, window):
    """A required parameter that the contract does not have."""
