"""Wrong gradients: a factor, a term or a sum that is missing, and what is hidden that pulls all the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from conformance.mutants.memory import Honest
from conformance.mutants.record import replaces


@replaces("d_scaled", "gradient-without-scale")
def gradient_lacks_the_scale(self, p, d_scores):
    """dq and dk lack the scale."""
    return d_scores


@replaces("d_scaled", "gradient-without-scale")
def gradient_scaled_twice(self, p, d_scores):
    """dq and dk have the scale twice."""
    return self.scale(p) ** 2 * d_scores


@replaces("d_scaled", "gradient-without-scale")
def gradient_off_by_one_in_two_thousand(self, p, d_scores):
    """dq and dk are too large by one part in two thousand."""
    return Honest.d_scaled(self, p, d_scores) * (1 + 1 / 2000)


@replaces("d_capped", "gradient-without-softcap")
def gradient_without_the_slope(self, p, scores, capped, d_biased, visible):
    """The slope 1 - tanh^2 of the softcap is left out."""
    return d_biased


@replaces("d_capped", "gradient-without-softcap")
def gradient_with_the_slope_of_the_scores(self, p, scores, capped, d_biased, visible):
    """The slope is taken at the capped scores, which tanh bends once more."""
    slope = 1 if p.softcap is None else 1 - np.tanh(capped / p.softcap) ** 2
    return np.where(visible, d_biased * slope, 0)


@replaces("d_softmax", "gradient-without-row-sum")
def gradient_without_its_mean(self, weights, d_weights, visible):
    """The softmax gradient is P * dP, without the row's sum taken off."""
    return np.where(visible, weights * d_weights, 0)


@replaces("d_softmax", "gradient-transposed")
def gradient_of_columns(self, weights, d_weights, visible):
    """The sum that is taken off is that of the column."""
    return np.where(visible, weights * (d_weights - (weights * d_weights).sum(axis=-2, keepdims=True)), 0)


@replaces("gradients", "gradient-transposed")
def gradients_of_queries_and_keys_exchanged(self, p, d_out):
    """dq and dk are exchanged where T = S."""
    dq, dk, *rest = Honest.gradients(self, p, d_out)
    return (dk, dq, *rest) if p.q.shape == p.k.shape else (dq, dk, *rest)


@replaces("gradients", "gradient-without-sink")
def gradient_of_weights_without_the_sink(self, p, d_out):
    """The sink is left out when the weights are computed again."""
    return Honest.gradients(self, replace(p, sinks=None), d_out)


@replaces("gradients", "mask-ignored-in-gradient")
def gradient_through_the_mask(self, p, d_out):
    """Mask, rule and bias of -inf are forgotten backward."""
    bias = None if p.bias is None else np.where(p.bias == -np.inf, 0, p.bias)
    return Honest.gradients(self, replace(p, mask=None, rule=None, bias=bias), d_out)


@replaces("gradients", "causal-ignored-in-gradient")
def gradient_from_the_future(self, p, d_out):
    """is_causal is forgotten backward."""
    return Honest.gradients(self, replace(p, is_causal=False), d_out)


@replaces("d_weights", "gradient-nan-from-hidden")
def gradient_of_hidden_weights(self, p, d_out, visible):
    """A hidden NaN meets a weight of 0 in the backward pass."""
    return d_out @ p.v.mT


@replaces("gradients", "gradient-nan-from-hidden")
def gradient_times_all_keys(self, p, d_out):
    """Gradients of 0 are multiplied with hidden keys and queries."""
    _, _, dv, d_biased = Honest.gradients(self, p, d_out)
    d_scores = self.scale(p) * d_biased
    return d_scores @ p.k, d_scores.mT @ p.q, dv, d_biased


@replaces("gradients", "gradient-nan-from-hidden")
def gradient_of_empty_rows_is_nan(self, p, d_out):
    """The weights of an empty row, hidden forward, are NaN backward."""
    dq, dk, dv, d_biased = Honest.gradients(self, p, d_out)
    spoilt = np.where(self.logits(p).visible.any(axis=-1, keepdims=True), 0, np.nan)
    column = spoilt.sum(axis=-2, keepdims=True)
    return dq + spoilt, dk + column, dv + column, d_biased + spoilt


@replaces("gradients", "gradient-of-empty-row")
def gradient_of_uniform_weights(self, p, d_out):
    """An empty row gives every value its share of d_out."""
    dq, dk, dv, d_biased = Honest.gradients(self, p, d_out)
    empty = ~self.logits(p).visible.any(axis=-1, keepdims=True)
    return dq, dk, dv + np.where(empty, d_out, 0).sum(axis=-2, keepdims=True) / max(p.sizes[1], 1), d_biased


@replaces("summed", "gradient-not-summed")
def gradient_of_the_last_copy(self, gradient, x, groups):
    """Of an argument that was broadcast only the last copy's gradient is kept."""
    if groups > 1:
        gradient = gradient[..., groups - 1 :: groups, :, :]
    gradient = gradient[(-1,) * (gradient.ndim - x.ndim)]
    last = tuple(slice(-1, None) if size == 1 else slice(None) for size in x.shape)
    return np.asarray(gradient[last], x.dtype)


@replaces("summed", "gradient-not-summed")
def gradient_averaged_over_copies(self, gradient, x, groups):
    """The gradients of an argument that was broadcast are averaged."""
    copies = max(gradient.size, 1) / max(x.size, 1)
    return (Honest.summed(self, gradient, x, groups) / copies).astype(x.dtype)


@replaces("summed", "gradient-dtype-changed")
def gradient_in_the_compute_dtype(self, gradient, x, groups):
    """Gradients come in the compute dtype."""
    return Honest.summed(self, gradient, x.astype(gradient.dtype), groups)


@replaces("summed", "gradient-dtype-changed")
def gradient_in_float32(self, gradient, x, groups):
    """Gradients come in float32."""
    return Honest.summed(self, gradient, x, groups).astype(np.float32)


@replaces("summed", "gradient-dtype-changed")
def gradient_in_float64(self, gradient, x, groups):
    """Gradients come in float64."""
    return Honest.summed(self, gradient, x, groups).astype(np.float64)
