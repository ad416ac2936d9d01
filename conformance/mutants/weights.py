"""Wrong weights: the softmax along another axis, its maximum, its sinks, and the log of its denominator."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from conformance.mutants.memory import Honest
from conformance.mutants.record import replaces

# --- softmax ---


def normalised(self, p, masked, visible, axis):
    """Weights that sum to 1 along other axes, and the lse of each row as it is."""
    top = masked.max(axis=axis, keepdims=True, initial=-np.inf)
    numerators = self.exponentials(masked, visible, top)
    total = numerators.sum(axis=axis, keepdims=True)
    return self.divided(numerators, total, visible), Honest.softmax(self, p, masked, visible)[1]


@replaces("softmax", "softmax-over-queries")
def softmax_of_columns(self, p, masked, visible):
    """The softmax runs over the queries."""
    return normalised(self, p, masked, visible, -2)


@replaces("softmax", "softmax-over-heads")
def softmax_of_heads(self, p, masked, visible):
    """The softmax runs over the heads."""
    return normalised(self, p, masked, visible, -3 if masked.ndim > 2 else -1)


@replaces("softmax", "softmax-over-heads")
def softmax_of_the_batch(self, p, masked, visible):
    """The softmax runs over the batch."""
    return normalised(self, p, masked, visible, 0 if masked.ndim > 2 else -1)


@replaces("softmax", "softmax-over-heads")
def softmax_of_heads_and_keys(self, p, masked, visible):
    """The weights of all heads together sum to 1."""
    return normalised(self, p, masked, visible, (-3, -1) if masked.ndim > 2 else -1)


@replaces("shift", "no-maximum-subtracted")
def exp_of_the_scores_themselves(self, top):
    """No maximum is subtracted before exp."""
    return np.zeros_like(top)


@replaces("top", "maximum-over-all-rows", "visible-nan-spread")
def maximum_of_everything(self, p, masked):
    """One maximum is subtracted for all rows, so that low rows underflow."""
    top = Honest.top(self, p, masked)
    return np.full_like(top, top.max(initial=-np.inf))


@replaces("top", "maximum-of-another-rounding")
def maximum_scaled_after_the_product(self, p, masked):
    """The maximum is taken of scores that were scaled after the product, those in exp before it."""
    scores = self.scale(p) * (p.q @ p.k.mT)
    return Honest.top(self, p, np.where(masked == -np.inf, masked, scores))


@replaces("top", "maximum-before-scale")
def maximum_times_a_negative_scale(self, p, masked):
    """The maximum is taken before the scale: times a negative one it is the least score of the row."""
    least = np.where(masked == -np.inf, np.inf, masked).min(axis=-1, keepdims=True, initial=np.inf)
    return np.where(least < np.inf, least, -np.inf) if self.scale(p) < 0 else Honest.top(self, p, masked)


@replaces("total", "epsilon-in-denominator")
def denominator_with_an_epsilon(self, p, numerators, top):
    """1e-12 is added to the denominator."""
    total = Honest.total(self, p, numerators, top)
    return np.where(total > 0, total + total.dtype.type(1e-12), total)


# --- sinks ---


@replaces("prepare", "sinks-ignored")
def sinks_dropped(self, *arrays, **options):
    """Sinks are not applied."""
    return replace(Honest.prepare(self, *arrays, **options), sinks=None)


@replaces("prepare", "sinks-ignored")
def sinks_for_many_queries_only(self, *arrays, **options):
    """A single query does not get its sink."""
    p = Honest.prepare(self, *arrays, **options)
    return replace(p, sinks=None) if p.sizes[0] == 1 else p


@replaces("prepare", "sinks-ignored")
def sinks_for_heads_of_queries_only(self, q, k, v, mask=None, **options):
    """Sinks are applied only where the queries themselves have as many heads."""
    p = Honest.prepare(self, q, k, v, mask, **options)
    is_new = p.sinks is not None and p.sinks.size > 1 and q.shape[-3:-2] != p.sinks.shape[:1]
    return replace(p, sinks=None) if is_new else p


@replaces("softmax", "sink-with-a-value")
def sink_divided_out_again(self, p, masked, visible):
    """The weights are divided again, so that they sum to 1 although the sink has taken its share."""
    weights, lse = Honest.softmax(self, p, masked, visible)
    return weights if p.sinks is None else self.divided(weights, weights.sum(axis=-1, keepdims=True), visible), lse


def with_sinks(self, arrays, options, change):
    """The problem with its sinks changed, if it has any."""
    p = Honest.prepare(self, *arrays, **options)
    return p if p.sinks is None else replace(p, sinks=change(p))


@replaces("prepare", "sink-in-input-dtype")
def sink_rounded_to_the_inputs(self, *arrays, **options):
    """The sink is rounded to the inputs' half type."""
    return with_sinks(self, arrays, options, lambda p: p.sinks.astype(p.dtype).astype(p.q.dtype))


@replaces("prepare", "float64-in-float32")
def sink_rounded_to_float32(self, *arrays, **options):
    """The sink is rounded to float32, also for float64 inputs."""
    return with_sinks(self, arrays, options, lambda p: p.sinks.astype(np.float32).astype(p.q.dtype))


@replaces("prepare", "sink-clipped")
def sink_at_most_a_hundred(self, *arrays, **options):
    """A finite sink is cut off at 100 and -100."""
    return with_sinks(self, arrays, options, lambda p: np.where(np.isinf(p.sinks), p.sinks, p.sinks.clip(-100, 100)))


@replaces("prepare", "sink-scaled")
def sink_times_scale(self, *arrays, **options):
    """The scale multiplies the sink."""
    return with_sinks(self, arrays, options, lambda p: (self.scale(p) * p.sinks).astype(p.q.dtype))


@replaces("prepare", "sink-biased")
def sink_plus_bias(self, *arrays, **options):
    """The bias of the first pair is added to the sink."""
    return with_sinks(self, arrays, options, lambda p: p.sinks if p.bias is None else p.sinks + p.bias.flat[0])


@replaces("prepare", "sink-softcapped")
def sink_capped(self, *arrays, **options):
    """The sink is capped like a score."""
    return with_sinks(self, arrays, options, lambda p: self.capped(p, p.sinks))


@replaces("prepare", "sinks-on-another-axis")
def sinks_in_reverse(self, *arrays, **options):
    """Each head gets the sink of another head."""
    return with_sinks(self, arrays, options, lambda p: p.sinks[::-1])


@replaces("softmax", "sinks-on-another-axis")
def sinks_along_the_queries(self, p, masked, visible):
    """Sinks are laid along the queries where H = T."""
    if p.sinks is not None and p.sinks.size == p.sizes[0]:
        p = replace(p, sinks=p.sinks.reshape(-1, 1))
    return Honest.softmax(self, p, masked, visible)


@replaces("top", "sink-not-in-maximum")
def sink_left_out_of_the_maximum(self, p, masked):
    """The maximum that is subtracted leaves the sink out."""
    return Honest.top(self, replace(p, sinks=None), masked)


# --- lse ---


@replaces("lse_out", "lse-base-2")
def lse_to_the_base_2(self, p, lse):
    """lse is a logarithm to the base 2."""
    return lse / np.log(2)


@replaces("lse", "lse-without-maximum")
def lse_of_the_shifted_row(self, p, top, total):
    """The row maximum is not added back."""
    return np.log(total)


@replaces("lse_out", "lse-in-input-dtype")
def lse_rounded_to_the_inputs(self, p, lse):
    """lse is rounded to the inputs' half type."""
    return lse.astype(p.dtype).astype(lse.dtype)


def lse_of(self, p):
    """The lse of another problem."""
    *_, masked, visible = self.logits(p)
    return self.softmax(p, masked, visible)[1]


@replaces("lse_out", "lse-without-scale")
def lse_of_unscaled_scores(self, p, lse):
    """lse is that of the unscaled scores."""
    return lse_of(self, replace(p, scale=1.0))


@replaces("lse_out", "lse-without-softcap")
def lse_of_uncapped_scores(self, p, lse):
    """lse is that of the scores before the softcap."""
    return lse_of(self, replace(p, softcap=None))


@replaces("lse_out", "lse-without-bias")
def lse_of_unbiased_scores(self, p, lse):
    """lse leaves the bias out."""
    return lse_of(self, replace(p, bias=None))


@replaces("lse_out", "lse-without-mask")
def lse_of_unmasked_scores(self, p, lse):
    """lse counts the hidden keys."""
    return lse_of(self, replace(p, mask=None, rule=None, is_causal=False))


@replaces("lse_out", "lse-without-sink")
def lse_of_the_keys_alone(self, p, lse):
    """lse leaves the sink out."""
    return lse_of(self, replace(p, sinks=None))


@replaces("lse_out", "lse-counts-padding")
def lse_counts_keys_padded_to_the_queries(self, p, lse):
    """Keys are padded to the number of queries, and lse counts the padded ones as scores of 0."""
    T, S = p.sizes
    return np.logaddexp(lse, np.log(T - S, dtype=lse.dtype)) if T > S else lse


@replaces("lse_out", "visible-nan-swallowed")
def lse_of_a_row_of_nan_is_that_of_an_empty_one(self, p, lse):
    """The lse of a row with a visible NaN is -inf."""
    return np.where(np.isnan(lse), -np.inf, lse).astype(lse.dtype)
