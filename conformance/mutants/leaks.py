"""Leaks: what is hidden gets through, what is visible gets lost, and one NaN spoils what does not see it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from conformance.mutants.memory import Honest
from conformance.mutants.record import replaces

# --- hidden numbers ---


@replaces("blend", "hidden-nan-in-values")
def weights_times_all_values(self, weights, v, visible):
    """Weights of 0 are multiplied with hidden values, and 0 * NaN is NaN."""
    return weights @ v


@replaces("masked", "hidden-nan-in-keys")
def minus_infinity_added(self, biased, visible):
    """Hidden scores are computed and -inf is added to them, and NaN + -inf is NaN."""
    return biased + np.where(visible, 0, -np.inf).astype(biased.dtype)


@replaces("logits", "hidden-nan-in-bias", "gradient-nan-from-hidden")
def bias_added_after_the_mask(self, p):
    """The bias is added to what is already -inf, and -inf + NaN is NaN."""
    bare = Honest.logits(self, p)
    return bare._replace(masked=self.biased(p, self.masked(bare.capped, bare.visible)))


@replaces("scores", "hidden-nan-in-keys")
def keys_made_finite_together(self, p):
    """A sum over all keys is added to the scores and taken off again."""
    total = p.k.sum(axis=-2, keepdims=True)
    return Honest.scores(self, replace(p, k=p.k + total - total))


# --- visible numbers ---


@replaces("prepare", "visible-nan-swallowed")
def inputs_without_nan(self, *arrays, **options):
    """NaN and infinities in q, k and v are replaced by 0."""
    p = Honest.prepare(self, *arrays, **options)
    return replace(p, **{name: np.where(np.isfinite(x), x, 0) for name, x in (("q", p.q), ("k", p.k), ("v", p.v))})


@replaces("rounded", "visible-nan-swallowed")
def outputs_without_nan(self, x, dtype):
    """NaN and infinities in the outputs are replaced by 0."""
    return np.where(np.isfinite(x), x, 0).astype(dtype)


@replaces("masked", "visible-nan-swallowed")
def nan_scores_hidden(self, biased, visible):
    """A NaN score is taken for a hidden one."""
    return np.where(visible & ~np.isnan(biased), biased, -np.inf)


@replaces("masked", "visible-nan-swallowed")
def nan_scores_of_a_single_query_are_zero(self, biased, visible):
    """With a single query a NaN score is replaced by 0."""
    return Honest.masked(self, np.nan_to_num(biased) if biased.shape[-2] == 1 else biased, visible)


@replaces("masked", "visible-nan-swallowed")
def nan_scores_of_a_single_key_are_zero(self, biased, visible):
    """With a single key its weight is 1, whatever its score."""
    return Honest.masked(self, np.zeros_like(biased) if biased.shape[-1] == 1 else biased, visible)


@replaces("scores", "visible-infinity-swallowed")
def infinities_multiplied_like_numbers(self, p):
    """An infinity in a key or query is multiplied like a number: its score may be -inf, of weight 0."""
    return (self.scale(p) * p.q) @ p.k.mT


@replaces("scores", "visible-infinity-swallowed")
def infinities_left_to_the_softcap(self, p):
    """Where a softcap is given, an infinity in a key or query is multiplied like a number, and capped."""
    return Honest.scores(self, p) if p.softcap is None else (self.scale(p) * p.q) @ p.k.mT


@replaces("logits", "visibility-from-scores")
def visible_where_the_score_is_above_minus_infinity(self, p):
    """A pair is visible where its masked score is not -inf, so that a score that overflows hides it."""
    steps = Honest.logits(self, p)
    return steps._replace(visible=steps.masked != -np.inf)


@replaces("blend", "visible-nan-swallowed")
def values_of_no_weight_skipped(self, weights, v, visible):
    """A value is skipped when its weight is 0, and not when it is hidden."""
    return Honest.blend(self, weights, v, visible & (weights != 0))


@replaces("blend", "visible-nan-spread")
def nan_of_a_value_in_every_row(self, weights, v, visible):
    """A NaN value spoils the rows that do not see it as well."""
    return Honest.blend(self, weights, v, visible) + 0 * v.sum(axis=-2, keepdims=True)


@replaces("blend", "visible-nan-spread")
def nan_of_a_value_in_every_feature(self, weights, v, visible):
    """A NaN value spoils the whole row and not its feature alone."""
    out = Honest.blend(self, weights, v, visible)
    return out + 0 * out.sum(axis=-1, keepdims=True)


@replaces("scores", "visible-nan-spread")
def nan_of_a_query_in_every_row(self, p):
    """A NaN query spoils the other rows of its head as well."""
    return Honest.scores(self, p) + 0 * p.q.sum(axis=(-2, -1), keepdims=True)


@replaces("divided", "visible-nan-spread")
def nan_weights_at_hidden_pairs(self, numerators, total, visible):
    """In a row of NaN the hidden weights are NaN as well."""
    return numerators / np.where(total == 0, 1, total)
