"""Wrong retrieval and recall: ties, indices, top_k, updates and energies."""

from __future__ import annotations

import numpy as np

from conformance.mutants.memory import Honest
from conformance.mutants.record import replaces

# --- order and index ---


@replaces("best_first", "ties-last")
def last_of_equal_keys(self, scores, visible):
    """Of equal scores the last index is taken."""
    last = scores.shape[-1] - 1
    return last - Honest.best_first(self, scores[..., ::-1], visible[..., ::-1])


@replaces("best_first", "nan-ranks-first")
def nan_before_all_numbers(self, scores, visible):
    """NaN counts as the largest score."""
    return Honest.best_first(self, np.where(np.isnan(scores), np.inf, scores), visible)


@replaces("named", "index-in-empty-row")
def index_zero_for_nothing(self, order, visible):
    """A place without a visible key has index 0."""
    return np.where(np.take_along_axis(visible, order, -1), order, 0)


@replaces("index", "index-of-hidden-key")
def index_among_all_keys(self, p, visible, order):
    """The index is looked for among all keys, hidden ones too."""
    scores = self.logits(p).biased
    return scores.argmax(axis=-1) if scores.shape[-1] else Honest.index(self, p, visible, order)


@replaces("index", "index-of-raw-score")
def index_before_the_scale(self, p, visible, order):
    """The index is that of the largest product, before the scale."""
    return Honest.index(self, p, visible, self.best_first(p.q @ p.k.mT, visible))


# --- top_k ---


@replaces("best", "top-k-in-key-order")
def best_keys_by_index(self, p, masked, visible, kept):
    """The best keys are listed by their index."""
    return Honest.best(self, p, masked, visible, np.sort(kept, axis=-1))


@replaces("best", "top-k-not-renormalised")
def best_keys_with_their_old_weights(self, p, masked, visible, kept):
    """The weights of the best keys are those among all keys."""
    output, _, index = Honest.best(self, p, masked, visible, kept)
    among_all = np.take_along_axis(self.softmax(p, masked, visible)[0], kept, -1)
    return output * among_all.sum(axis=-1, keepdims=True), among_all, index


@replaces("best", "top-k-takes-hidden-keys")
def best_keys_filled_up_with_hidden_ones(self, p, masked, visible, kept):
    """Places without a visible key are filled with hidden ones."""
    return Honest.best(self, p, self.logits(p).biased, np.ones_like(visible), kept)


@replaces("best", "top-k-takes-hidden-keys")
def index_minus_one_wraps(self, p, masked, visible, kept):
    """The index -1 of a place without a key is looked up, which is the last key."""
    seen = np.take_along_axis(visible, kept, -1)
    kept = np.where(seen, kept, visible.shape[-1] - 1)
    output, weights, _ = Honest.best(self, p, self.logits(p).biased, np.ones_like(visible), kept)
    return output, weights, np.where(seen, kept, -1)


@replaces("best", "index-of-raw-score")
def best_keys_before_the_scale(self, p, masked, visible, kept):
    """The best keys are those of the largest products, before the scale."""
    return Honest.best(self, p, masked, visible, self.best_first(p.q @ p.k.mT, visible)[..., : kept.shape[-1]])


# --- recall ---


@replaces("updates", "recall-steps-off-by-one")
def one_update_more(self, steps):
    """One update more is taken."""
    return steps + 1


@replaces("updates", "recall-steps-off-by-one")
def one_update_less(self, steps):
    """One update less is taken."""
    return steps - 1


@replaces("similarities", "beta-ignored")
def beta_of_one(self, state, patterns, beta):
    """beta does not reach the softmax."""
    return state @ patterns.mT


@replaces("energy", "energy-without-beta")
def energy_not_divided_by_beta(self, state, patterns, beta):
    """The log of the sum is not divided by beta."""
    square = self.square(state)
    return beta * (Honest.energy(self, state, patterns, beta) - square) + square


@replaces("square", "energy-without-square")
def energy_of_the_sum_alone(self, state):
    """The square of the state is left out of the energy."""
    return 0 * state.sum(axis=-1)


@replaces("square", "energy-without-square")
def energy_with_the_whole_square(self, state):
    """The square of the state is not halved in the energy."""
    return (state * state).sum(axis=-1)


@replaces("stacked", "energy-axis-last")
def energies_along_the_last_axis(self, energies):
    """The energies of the steps are stacked on the last axis."""
    return np.stack(energies, axis=-1)


@replaces("update", "no-maximum-subtracted")
def recall_without_a_maximum(self, state, patterns, beta, dtype):
    """No maximum is subtracted before exp."""
    terms = np.exp(self.similarities(state, patterns, beta))
    return (terms / terms.sum(axis=-1, keepdims=True)) @ patterns


@replaces("update", "recall-rounds-each-step")
def state_rounded_after_each_step(self, state, patterns, beta, dtype):
    """Half-precision states are rounded after each step."""
    return Honest.update(self, state, patterns, beta, dtype).astype(dtype).astype(state.dtype)


@replaces("similarities", "visible-nan-spread")
def nan_of_a_state_in_every_state(self, state, patterns, beta):
    """A NaN state spoils the other states as well."""
    return Honest.similarities(self, state, patterns, beta) + 0 * state.sum()
