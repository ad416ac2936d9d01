"""Wrong axes: heads that are tiled or reshaped, arguments and layouts that are exchanged, shapes that are refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from conformance.mutants.memory import Honest
from conformance.mutants.record import replaces

# --- heads ---


@replaces("repeated", "heads-tiled")
def heads_a_b_a_b(self, x, groups):
    """Key/value heads are tiled, a b a b, instead of repeated, a a b b."""
    return np.tile(x, (groups, 1, 1))


@replaces("accepted", "heads-read-as-batch")
def heads_of_keys_taken_for_the_batch(self, op, arrays, options):
    """With enable_gqa keys and values (Hk, S, D) are read as (B, S, D) where Hk = B."""
    q, k = arrays.get("q"), arrays.get("k")
    if not options.get("enable_gqa") or np.ndim(q) != 4 or np.ndim(k) != 3 or len(q) != len(k):
        return arrays, options
    return arrays | {name: arrays[name][:, None] for name in ("k", "v") if np.ndim(arrays[name]) == 3}, options


@replaces("accepted", "heads-read-as-batch")
def samples_taken_for_heads(self, op, arrays, options):
    """With enable_gqa keys and values (B, 1, S, D) are read as (B, S, D), so that samples meet heads where H = B."""
    q, k, v = (arrays.get(name) for name in ("q", "k", "v"))
    if not options.get("enable_gqa") or {np.ndim(x) for x in (q, k, v)} != {4}:
        return arrays, options
    if q.shape[:2] != (len(k), len(k)) or {k.shape[:2], v.shape[:2]} != {(len(q), 1)}:
        return arrays, options
    return arrays | {"k": k[:, 0], "v": v[:, 0]}, options | {"enable_gqa": False}


@replaces("split_heads", "heads-reshaped")
def heads_split_without_a_transpose(self, x, heads):
    """Features are split into heads by a reshape alone."""
    *lead, T, E = x.shape
    return x.reshape(*lead, heads, T, E // heads)


@replaces("merge_heads", "heads-reshaped")
def heads_joined_without_a_transpose(self, x):
    """Heads are joined by a reshape alone."""
    *lead, H, T, D = x.shape
    return x.reshape(*lead, T, H * D)


@replaces("split_heads", "heads-interleaved")
def heads_of_every_second_feature(self, x, heads):
    """Head h takes every H-th feature instead of neighbouring ones."""
    *lead, T, E = x.shape
    return np.moveaxis(x.reshape(*lead, T, E // heads, heads), -1, -3)


@replaces("merge_heads", "heads-interleaved")
def heads_joined_feature_by_feature(self, x):
    """The first features of all heads come first, then the second ones."""
    *lead, H, T, D = x.shape
    return np.moveaxis(x, -3, -1).reshape(*lead, T, D * H)


@replaces("accepted", "dtype-changed")
def heads_in_float32(self, op, arrays, options):
    """Splitting, joining and repeating heads give float32."""
    return {name: x.astype(np.float32) if name == "x" else x for name, x in arrays.items()}, options


@replaces("accepted", "dtype-changed")
def heads_in_float64(self, op, arrays, options):
    """Splitting, joining and repeating heads give float64."""
    return {name: x.astype(np.float64) if name == "x" else x for name, x in arrays.items()}, options


# --- exchanged ---


@replaces("prepare", "keys-and-values-swapped")
def values_asked_keys_returned(self, *arrays, **options):
    """k and v are exchanged."""
    p = Honest.prepare(self, *arrays, **options)
    return replace(p, k=p.v, v=p.k)


@replaces("prepare", "queries-and-keys-swapped")
def keys_ask_queries(self, *arrays, **options):
    """q and k are exchanged where T = S."""
    p = Honest.prepare(self, *arrays, **options)
    return replace(p, q=p.k, k=p.q) if p.q.shape == p.k.shape else p


def turned(x):
    """The head axis and the time axis exchanged."""
    return x.swapaxes(-3, -2) if x.ndim > 2 else x


@replaces("attention", "layout-swapped")
def heads_taken_for_times(self, q, k, v, mask=None, **options):
    """The head axis and the time axis are exchanged."""
    out, weights = Honest.attention(self, turned(q), turned(k), turned(v), mask, **options)
    return turned(out), weights


# --- leading axes ---


@replaces("attention", "leading-axis-lost")
def weights_without_the_axes_of_values(self, q, k, v, mask=None, **options):
    """Weights do not get the leading axes that only the values have."""
    out, weights = Honest.attention(self, q, k, v, mask, **options)
    return out, weights[(0,) * (weights.ndim - max(q.ndim, k.ndim))]


@replaces("accepted", "leading-axis-lost")
def leading_axes_of_one_dropped(self, op, arrays, options):
    """Leading axes of 1 that keys and values have and queries have not are dropped."""
    axes = np.ndim(arrays.get("q"))
    dropped = {
        name: x[(0,) * (x.ndim - axes)]
        for name, x in arrays.items()
        if name in ("k", "v") and axes > 1 and np.ndim(x) > axes and set(x.shape[:-axes]) == {1}
    }
    return arrays | dropped, options


@replaces("attention", "leading-axis-lost")
def axes_of_queries_where_nothing_is(self, q, k, v, mask=None, **options):
    """Without queries or without keys the outputs have the leading axes of the queries alone."""
    out, weights = Honest.attention(self, q, k, v, mask, **options)
    if weights.shape[-1] and weights.shape[-2]:
        return out, weights
    return tuple(np.zeros((*q.shape[:-1], x.shape[-1]), x.dtype) for x in (out, weights))


# --- refused ---


@replaces("prepare", "leading-axes-not-broadcast")
def leading_axes_have_to_be_equal(self, q, k, v, mask=None, **options):
    """Leading axes of 1, or missing ones, are refused."""
    end = -3 if options.get("enable_gqa") and k.shape[-3] > 1 else -2
    if len({x.shape[:end] for x in (q, k, v)}) > 1:
        raise ValueError("q, k and v must have the same leading axes")
    return Honest.prepare(self, q, k, v, mask, **options)


@replaces("accepted", "empty-axis-rejected")
def arrays_of_nothing_refused(self, op, arrays, options):
    """An array without elements, or a mask without queries or keys, is refused."""
    if 0 in (options.get("T"), options.get("S")) or any(np.size(x) == 0 for x in arrays.values()):
        raise ValueError("an axis of size 0")
    return arrays, options


@replaces("top", "empty-axis-rejected")
def maximum_of_no_keys(self, p, masked):
    """The maximum of a row without keys raises."""
    return masked.max(axis=-1, keepdims=True) if p.sinks is None else Honest.top(self, p, masked)


@replaces("split_heads", "empty-axis-rejected")
def heads_split_with_an_unknown_size(self, x, heads):
    """A size that is left to reshape cannot be found when another is 0."""
    return x.reshape(*x.shape[:-1], heads, -1).swapaxes(-3, -2)
