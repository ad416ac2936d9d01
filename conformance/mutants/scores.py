"""Wrong scores: the scale, the softcap and the bias, and the order in which they come."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from conformance.mutants.memory import Honest
from conformance.mutants.record import replaces

# --- scale ---


@replaces("scale", "scale-missing")
def scale_one_unless_given(self, p):
    """The scores are not divided by sqrt(D)."""
    return 1.0 if p.scale is None else p.scale


@replaces("scale", "scale-twice")
def scale_by_d(self, p):
    """The scores are divided by D, which is sqrt(D) twice."""
    return 1 / p.q.shape[-1] if p.scale is None else p.scale


@replaces("scale", "scale-by-value-size")
def scale_by_dv(self, p):
    """The scores are divided by sqrt(Dv)."""
    return max(p.v.shape[-1], 1) ** -0.5 if p.scale is None else p.scale


@replaces("scale", "scale-by-embedding-size")
def scale_by_h_times_d(self, p):
    """The scores are divided by the root of H * D, the size before the heads were split."""
    heads = p.q.shape[-3] if p.q.ndim > 2 else 1
    return max(heads * p.q.shape[-1], 1) ** -0.5 if p.scale is None else p.scale


@replaces("scale", "scale-ignored")
def scale_always_by_d(self, p):
    """A scale that is given is not used."""
    return p.q.shape[-1] ** -0.5


@replaces("scale", "scale-by-truthiness")
def scale_zero_is_none(self, p):
    """A scale of 0 is taken for no scale."""
    return p.scale or p.q.shape[-1] ** -0.5


@replaces("accepted", "scale-sign-lost")
def integer_scale_without_its_sign(self, op, arrays, options):
    """A scale that comes as an array of integers loses its sign."""
    scale = arrays.get("scale")
    is_integer = isinstance(scale, np.ndarray) and scale.dtype.kind == "i"
    return arrays | ({"scale": np.abs(scale)} if is_integer else {}), options


@replaces("scale", "half-precision-scores")
def scale_in_half_precision(self, p):
    """The scale is rounded to the inputs' half type."""
    return float(np.asarray(Honest.scale(self, p)).astype(p.dtype))


@replaces("scale", "float64-in-float32")
def root_of_d_in_float32(self, p):
    """1/sqrt(D) is a float32 number, also for float64 inputs."""
    return float(np.float32(p.q.shape[-1] ** -0.5)) if p.scale is None else p.scale


@replaces("scores", "scale-square-root")
def scale_by_its_root_twice(self, p):
    """The square root of the scale multiplies queries and keys; that of a negative one is NaN."""
    root = np.sqrt(p.q.dtype.type(self.scale(p)))
    return Honest.scores(self, replace(p, q=root * p.q, k=root * p.k, scale=1.0))


@replaces("softmax", "scale-after-softmax")
def scale_on_the_weights(self, p, masked, visible):
    """The scale multiplies the weights instead of the scores."""
    bare = self.logits(replace(p, scale=1.0))
    weights, lse = Honest.softmax(self, p, bare.masked, visible)
    return self.scale(p) * weights, lse


# --- softcap ---


@replaces("capped", "softcap-ignored")
def softcap_dropped(self, p, scores):
    """The softcap is not applied."""
    return scores


@replaces("capped", "softcap-not-rescaled")
def softcap_left_as_tanh(self, p, scores):
    """tanh(scores / softcap) is not multiplied by the softcap."""
    return scores if p.softcap is None else np.tanh(scores / p.softcap)


@replaces("capped", "softcap-clipped")
def softcap_as_clip(self, p, scores):
    """Scores beyond the softcap are cut off instead of bent."""
    return scores if p.softcap is None else np.clip(scores, -p.softcap, p.softcap)


@replaces("capped", "float64-in-float32")
def tanh_of_nine_at_most(self, p, scores):
    """Beyond 9 caps tanh is taken for that of 9, which is 1 in float32 only."""
    return scores if p.softcap is None else p.softcap * np.tanh(np.clip(scores / p.softcap, -9, 9))


@replaces("logits", "softcap-before-scale")
def softcap_of_raw_scores(self, p):
    """The products are capped before they are scaled."""
    raw = self.capped(p, self.scores(replace(p, scale=1.0)))
    bare = Honest.logits(self, replace(p, softcap=None))
    scores = self.scale(p) * raw
    biased = self.biased(p, scores)
    return bare._replace(capped=scores, biased=biased, masked=self.masked(biased, bare.visible))


@replaces("logits", "softcap-after-bias")
def softcap_of_biased_scores(self, p):
    """The cap is applied after the bias."""
    bare = Honest.logits(self, replace(p, softcap=None))
    biased = self.capped(p, bare.biased)
    return bare._replace(biased=biased, masked=self.masked(biased, bare.visible))


@replaces("logits", "softcap-after-mask")
def softcap_of_masked_scores(self, p):
    """The cap is applied after the mask, so that -inf becomes -softcap and hidden keys have weight."""
    bare = Honest.logits(self, replace(p, softcap=None))
    if p.softcap is None:
        return bare
    return bare._replace(masked=self.capped(p, bare.masked), visible=np.ones_like(bare.visible))


# --- bias ---


@replaces("biased", "bias-ignored")
def bias_dropped(self, p, capped):
    """The bias is not added, and only its -inf count."""
    return capped


@replaces("prepare", "constant-bias-skipped")
def bias_of_queries_skipped(self, *arrays, bias=None, **options):
    """A bias of one number a row is skipped, since it seems to change no weights; its -inf hide."""
    p = Honest.prepare(self, *arrays, bias=bias, **options)
    is_column = bias is not None and bias.shape[-1:] == (1,) and p.sizes[1] > 1
    return replace(p, bias=np.where(p.bias == -np.inf, p.bias, 0).astype(p.bias.dtype)) if is_column else p


@replaces("prepare", "constant-bias-skipped")
def bias_of_queries_dropped(self, *arrays, bias=None, **options):
    """A bias of one number a row is dropped, with its -inf."""
    is_column = bias is not None and bias.shape[-1:] == (1,) and arrays[1].shape[-2] > 1
    return Honest.prepare(self, *arrays, bias=None if is_column else bias, **options)


@replaces("biased", "bias-scaled")
def bias_before_scale(self, p, capped):
    """The scale multiplies scores and bias together."""
    return capped if p.bias is None else capped + self.scale(p) * p.bias


@replaces("biased", "bias-ignored")
def bias_cut_to_ten(self, p, capped):
    """The bias is cut off at 10 and -10."""
    return capped if p.bias is None else capped + np.clip(p.bias, -10, 10)


@replaces("logits", "bias-in-input-dtype")
def bias_rounded_to_the_inputs(self, p):
    """The bias is rounded to the inputs' half type before it is added."""
    narrow = None if p.bias is None else p.bias.astype(p.dtype).astype(p.q.dtype)
    return Honest.logits(self, replace(p, bias=narrow))


@replaces("prepare", "bias-hidden-before-conversion")
def bias_looked_through_too_early(self, q, k, v, mask=None, *, bias=None, **options):
    """What only becomes -inf in the compute dtype counts as visible: a row of it is 0 / 0."""
    p = Honest.prepare(self, q, k, v, mask, bias=bias, **options)
    if bias is None:
        return p
    lost = (p.bias == -np.inf) & (bias != -np.inf)
    return replace(p, bias=np.where(lost.all(axis=-1, keepdims=True), np.nan, p.bias))


@replaces("prepare", "bias-on-query-axis")
def bias_of_queries_given_to_keys(self, *arrays, bias=None, **options):
    """A bias of shape (T, 1) is read as one number a key where T = S."""
    p = Honest.prepare(self, *arrays, bias=bias, **options)
    is_column = bias is not None and bias.shape[-1:] == (1,) and p.sizes[0] == p.sizes[1]
    return replace(p, bias=p.bias.mT) if is_column else p


@replaces("accepted", "bias-read-as-mask")
def bias_of_zeros_and_ones_hides(self, op, arrays, options):
    """A bias of zeros and ones is taken for a mask."""
    bias = arrays.get("bias")
    if bias is None or not np.isin(bias, (0, 1)).all():
        return arrays, options
    return {name: x for name, x in arrays.items() if name != "bias"} | {"mask": bias}, options


@replaces("visible", "finite-bias-read-as-mask")
def bias_far_below_zero_hides(self, p):
    """A bias of -9999 or less hides."""
    seen = Honest.visible(self, p)
    return seen if p.bias is None else seen & (p.bias > -9999)


@replaces("visible", "mask-ignored-with-bias")
def bias_displaces_the_mask(self, p):
    """A mask is dropped when a bias is given too."""
    return Honest.visible(self, p if p.bias is None else replace(p, mask=None))


@replaces("visible", "rule-ignored-with-bias")
def bias_displaces_the_rule(self, p):
    """A rule is dropped when a bias is given too."""
    return Honest.visible(self, p if p.bias is None else replace(p, rule=None))


@replaces("top", "maximum-before-bias")
def maximum_without_the_bias(self, p, masked):
    """The maximum that is subtracted is that of the scores before the bias."""
    unbiased = masked if p.bias is None else np.where(masked > -np.inf, masked - p.bias, masked)
    return Honest.top(self, p, unbiased)
