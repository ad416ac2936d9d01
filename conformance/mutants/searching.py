"""Wrong search: the order, the mask, places without a key, and the metrics."""

from __future__ import annotations

import numpy as np

from conformance.mutants.memory import Honest
from conformance.mutants.record import replaces

# --- order and mask ---


@replaces("first_found", "search-worst-first")
def worst_keys(self, nearness, visible, k):
    """The worst keys are returned."""
    return self.best_first(-nearness, visible)[..., :k]


@replaces("first_found", "search-worst-first")
def best_keys_in_ascending_order(self, nearness, visible, k):
    """The best keys come in ascending order."""
    return Honest.first_found(self, nearness, visible, k)[..., ::-1]


@replaces("first_found", "search-unmasked")
def best_keys_before_the_mask(self, nearness, visible, k):
    """The mask is applied after the best keys were taken."""
    return self.best_first(nearness, np.ones_like(visible))[..., :k]


@replaces("visible", "search-unmasked")
def every_key_found(self, p):
    """The mask is not applied."""
    return np.ones((len(p.rows), len(p.cols)), bool)


@replaces("first_found", "search-unmasked", "finite-fill")
def hidden_keys_at_minus_hundred(self, nearness, visible, k):
    """Hidden keys have the score -100, and are found before visible ones that are worse."""
    return self.best_first(np.where(visible, nearness, -100), np.ones_like(visible))[..., :k]


@replaces("first_found", "hidden-nan-in-keys")
def minus_infinity_added_to_the_nearness(self, nearness, visible, k):
    """-inf is added where a key is hidden: a NaN there stays NaN, which is sorted before all numbers."""
    lowered = nearness + np.where(visible, 0, -np.inf)
    return self.best_first(np.where(np.isnan(lowered), np.inf, lowered), np.ones_like(visible))[..., :k]


@replaces("first_found", "search-stops-early")
def best_of_the_first_four(self, nearness, visible, k):
    """Keys beyond the first block of four, or of k, are not looked at."""
    block = max(4, k)
    return self.best_first(nearness[..., :block], visible[..., :block])[..., :k]


@replaces("search", "search-pads-wrongly")
def places_of_score_zero(self, query, keys, k, **options):
    """A place without a key has the score 0."""
    scores, indices = Honest.search(self, query, keys, k, **options)
    return np.where(indices == -1, 0, scores), indices


@replaces("search", "search-pads-wrongly")
def places_of_the_lowest_score(self, query, keys, k, **options):
    """A place without a key has the lowest finite score."""
    scores, indices = Honest.search(self, query, keys, k, **options)
    return np.nan_to_num(scores, nan=np.nan), indices


@replaces("search", "search-pads-wrongly")
def places_at_minus_infinity_for_every_metric(self, query, keys, k, **options):
    """A place without a key is nearer than any key: its distance is -inf."""
    scores, indices = Honest.search(self, query, keys, k, **options)
    return np.where(indices == -1, -np.inf, scores).astype(scores.dtype), indices


# --- metrics ---


@replaces("dot", "metric-ignored")
def product_is_the_cosine(self, query, keys):
    """The dot product is the cosine."""
    return Honest.cosine(self, query, keys)


@replaces("cosine", "metric-ignored")
def cosine_is_the_product(self, query, keys):
    """The cosine is the dot product."""
    return self.dot(query, keys)


@replaces("euclidean", "metric-ignored")
def distance_is_the_product(self, query, keys):
    """The distance is the dot product with a minus."""
    return self.dot(query, keys)


@replaces("cosine", "cosine-not-normalised")
def cosine_of_the_query_alone(self, query, keys):
    """Only the query is divided by its length."""
    return self.unit(query) @ keys.mT


@replaces("unit", "cosine-nan-for-zero")
def zero_divided_by_its_length(self, x):
    """A zero vector is divided by its length."""
    return x / np.sqrt((x * x).sum(axis=-1, keepdims=True))


@replaces("cosine", "cosine-norm-before-broadcast")
def lengths_over_all_axes(self, query, keys):
    """The length of the queries is taken over all queries together."""
    return (query / np.sqrt((query * query).sum())) @ self.unit(keys).mT


@replaces("euclidean", "euclidean-squared")
def distance_without_the_root(self, query, keys):
    """The squared distance is returned."""
    return -((query[..., :, None, :] - keys[..., None, :, :]) ** 2).sum(axis=-1)


@replaces("euclidean", "euclidean-by-expansion")
def distance_by_expansion(self, query, keys):
    """The distance is computed as |q|^2 - 2 q.k + |k|^2."""
    squares = [(x * x).sum(axis=-1) for x in (query, keys)]
    squared = squares[0][..., :, None] - 2 * query @ keys.mT + squares[1][..., None, :]
    return -np.sqrt(np.maximum(squared, 0))
