"""Wrong precision, dtype and kind; calls that depend on chance, on the rest of the batch, or change their inputs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from conformance.mutants.memory import Honest
from conformance.mutants.record import replaces


def kept(x, dtype):
    """An array rounded to a dtype, and back in its own."""
    return x.astype(dtype).astype(x.dtype)


# --- half types ---


@replaces("scores", "half-precision-scores")
def scores_in_half_precision(self, p):
    """Scores are rounded to the inputs' half type."""
    return kept(Honest.scores(self, p), p.dtype)


@replaces("scores", "half-precision-scores")
def products_in_half_precision(self, p):
    """Products are rounded to the inputs' half type, where they overflow, before they are scaled."""
    return self.scale(p) * kept(Honest.scores(self, replace(p, scale=1.0)), p.dtype)


@replaces("softmax", "half-precision-weights")
def weights_in_half_precision(self, p, masked, visible):
    """Weights are rounded to the inputs' half type before they meet the values."""
    weights, lse = Honest.softmax(self, p, masked, visible)
    return kept(weights, p.dtype), lse


@replaces("total", "half-precision-sums")
def denominator_in_half_precision(self, p, numerators, top):
    """The denominator is added up in the inputs' half type."""
    sums = np.cumsum(numerators.astype(p.dtype), axis=-1)
    return sums[..., -1:].astype(top.dtype) if sums.shape[-1] else Honest.total(self, p, numerators, top)


@replaces("softmax", "half-precision-weights", "half-precision-sums")
def softmax_in_the_input_dtype(self, p, masked, visible):
    """Every step of the softmax is taken in the inputs' dtype."""
    top = self.top(p, masked).astype(p.dtype)
    numerators = np.where(visible, np.exp(masked.astype(p.dtype) - self.shift(top).astype(p.dtype)), 0)
    total = np.cumsum(numerators.astype(p.dtype), axis=-1)[..., -1:]
    weights = self.divided(numerators.astype(p.dtype), total, visible)
    return weights.astype(masked.dtype), Honest.softmax(self, p, masked, visible)[1]


@replaces("widened", "float64-in-float32")
def everything_in_float32(self, x, dtype):
    """float64 inputs are computed in float32."""
    return x.astype(np.float32)


@replaces("blend", "values-overflow")
def values_summed_before_the_division(self, weights, v, visible):
    """The largest weight is made 1, and divided out again after the values were added up."""
    top = weights.max(axis=-1, keepdims=True, initial=0)
    return Honest.blend(self, weights / np.where(top == 0, 1, top), v, visible) * top


# --- what is returned ---


@replaces("rounded", "dtype-changed")
def outputs_in_the_compute_dtype(self, x, dtype):
    """Half types come back as float32."""
    return x


@replaces("rounded", "dtype-changed")
def outputs_in_float64(self, x, dtype):
    """Every output is float64."""
    return x.astype(np.float64)


@replaces("rounded", "dtype-changed")
def outputs_as_lists(self, x, dtype):
    """Lists are returned instead of arrays."""
    return x.astype(dtype).tolist()


@replaces("accepted", "input-modified")
def queries_scaled_in_place(self, op, arrays, options):
    """The queries are scaled where they lie."""
    q = arrays.get("q")
    if not isinstance(q, np.ndarray) or q.ndim < 2 or q.dtype.kind in "iubc" or "scale" in {**arrays, **options}:
        return arrays, options
    q *= 0.5
    return arrays, options | {"scale": 2 * q.shape[-1] ** -0.5}


@replaces("accepted", "input-modified")
def masked_bias_in_place(self, op, arrays, options):
    """-inf is written into the caller's bias where the mask hides."""
    bias, mask = arrays.get("bias"), arrays.get("mask")
    if isinstance(bias, np.ndarray) and isinstance(mask, np.ndarray) and bias.shape[-1:] == mask.shape:
        bias[..., mask == 0] = -np.inf
    return arrays, options


@replaces("attention", "dtype-changed")
def zeros_in_the_compute_dtype(self, q, k, v, mask=None, **options):
    """Without queries or without keys the outputs are float32 zeros, also for half types."""
    out, weights = Honest.attention(self, q, k, v, mask, **options)
    return (out, weights) if weights.size else tuple(self.widened(x, x.dtype) for x in (out, weights))


@replaces("attention", "output-shares-memory")
def value_of_one_key_as_it_lies(self, q, k, v, mask=None, **options):
    """The value of a single key is returned as a view, since its weight is 1."""
    out, weights = Honest.attention(self, q, k, v, mask, **options)
    is_copy = v.shape[-2] == 1 and (weights == 1).all() and v.shape[:-2] == out.shape[:-2]
    return np.broadcast_to(v, out.shape) if is_copy else out, weights


@replaces("split_heads", "output-shares-memory")
def heads_as_a_view(self, x, heads):
    """Heads are a view of the features."""
    *lead, T, E = x.shape
    return x.reshape(*lead, T, heads, E // heads).swapaxes(-3, -2)


@replaces("merge", "output-shares-memory")
def single_part_as_it_is(self, parts):
    """A single part is returned as it is."""
    return parts[0] if len(parts) == 1 else Honest.merge(self, parts)


def in_a_workspace(self, made):
    """Outputs in arrays that are kept for the next call of these shapes; None is none."""
    self.space = getattr(self, "space", {})
    kept = [x if x is None else self.space.setdefault((i, x.shape, x.dtype), x) for i, x in enumerate(made)]
    for old, new in zip(kept, made, strict=True):
        if new is not None:
            old[...] = new
    return tuple(kept)


@replaces("attention", "output-overwritten")
def outputs_in_a_workspace(self, q, k, v, mask=None, **options):
    """Outputs lie in a workspace, which the next call of these shapes uses again."""
    return in_a_workspace(self, Honest.attention(self, q, k, v, mask, **options))


@replaces("attention_vjp", "output-overwritten")
def gradients_in_a_workspace(self, q, k, v, d_out, mask=None, **options):
    """Gradients lie in a workspace, which the next call of these shapes uses again."""
    return in_a_workspace(self, Honest.attention_vjp(self, q, k, v, d_out, mask, **options))


@replaces("accepted", "layout-misread")
def memory_read_row_by_row(self, op, arrays, options):
    """An array is read in the order of its memory, whatever its strides."""
    read = {name: x.ravel(order="K").reshape(x.shape) for name, x in arrays.items() if isinstance(x, np.ndarray)}
    return arrays | read, options


# --- the same bits ---


@replaces("blend", "run-dependent-bits")
def sums_in_another_order_each_time(self, weights, v, visible):
    """Every other call adds the values up from the last key to the first, times 1 + 2^-20 to be seen."""
    self.calls = getattr(self, "calls", 0) + 1
    return Honest.blend(self, weights, v, visible) * (1 + (self.calls % 2) * 2.0**-20)


@replaces("blend", "batch-dependent-bits")
def sums_in_another_order_beside_others(self, weights, v, visible):
    """The values are added up from the last key to the first when the batch has more than one element."""
    if len(weights) == 1 or weights.ndim < 3:
        return Honest.blend(self, weights, v, visible)
    return Honest.blend(self, weights[..., ::-1], v[..., ::-1, :], visible[..., ::-1])


@replaces("prepare", "batch-dependent-bits")
def features_in_another_order_for_shared_keys(self, q, k, v, mask=None, **options):
    """Features are added up from the last to the first when a batch of queries shares its keys."""
    p = Honest.prepare(self, q, k, v, mask, **options)
    is_shared = q.ndim > 2 and len(q) > 1 and (k.ndim < q.ndim or len(k) == 1)
    return replace(p, q=p.q[..., ::-1].copy(), k=p.k[..., ::-1].copy()) if is_shared else p
