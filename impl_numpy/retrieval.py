"""Content-based retrieval: attention as a soft dictionary, exact search, and recall from a Hopfield memory."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from . import checks
from .arrays import compute_dtype, operand, product, where
from .attention import blend, compute_steps, scaled_scores
from .flash import tiles
from .masks import split_mask, visibility
from .softmax import softmax

KEYS_PER_BLOCK = 16384
NUMBERS_PER_BLOCK = 4_194_304


class Retrieval(NamedTuple):
    """What was retrieved: output (*B, T, Dv), weights and the index of the keys they belong to."""

    output: Any
    weights: Any
    index: Any


class Neighbours(NamedTuple):
    """The best keys of each query: scores and indices (*B, T, k), best first."""

    scores: Any
    indices: Any


class Recall(NamedTuple):
    """The recalled state (*B, D) and the energy before each step and after the last (steps + 1, *B)."""

    state: Any
    energy: Any


# --- the public functions --------------------------------------------------------------------------------


def retrieve(query, keys, values=None, *, mask=None, scale=None, top_k=None):
    """Look a query up in a soft dictionary: a blend of the values, weighted by how well their keys match.

    query (*B, T, D), keys (*B, S, D), values (*B, S, Dv) or None for the keys themselves; mask and scale as in
    `attention`. Returns Retrieval(output (*B, T, Dv), weights (*B, T, S), index (*B, T)): index is the visible key
    of the largest weight, the lowest in a tie, -1 in an empty row. With top_k = n only the n best visible keys
    (ties: lowest index) share the weight; weights and index are then (*B, T, n), best first, unused places 0 and -1.
    Raises TypeError and ValueError as `attention` does, and ValueError unless 1 <= top_k <= S.
    Source: Vaswani et al. 2017, section 3.2.1; Graves et al. 2014, "Neural Turing Machines", section 3.3.1.
    """
    values = keys if values is None else values
    shape = checks.retrieve(query, keys, values, mask, scale, top_k)
    return retrieve_core(shape, query, keys, values, mask, operand(scale), top_k)


def search(query, keys, k, *, mask=None, metric="dot"):
    """Find the k best visible keys of each query, exactly.

    query (*B, T, D), keys (*B, S, D), which may be a numpy.memmap larger than memory: they are read in blocks.
    metric: "dot", "cosine" (0 for a vector of zeros) or "euclidean" (a distance, smallest first). Returns
    Neighbours(scores, indices), both (*B, T, k), best first, ties by lowest index, NaN after every number; places
    without a visible key have index -1 and score -inf (euclidean: inf). Raises TypeError for a wrong type,
    ValueError for a wrong shape or metric and unless 1 <= k <= S.
    Source: Knuth 1973, "Sorting and Searching", section 6.5 (the post-office problem).
    """
    shape = checks.search(query, keys, k, mask, metric)
    return search_core(shape, query, keys, k, mask, metric)


def recall(state, patterns, *, beta=1.0, steps=1):
    """Recall stored patterns from a state: the update softmax(beta * patterns state) patterns, `steps` times.

    state (*B, D), patterns (N, D) of one floating dtype. Returns Recall(state (*B, D), energy (steps + 1, *B)), the
    energy before each step and after the last, -lse(beta * patterns state) / beta + |state|^2 / 2, which never rises.
    Raises TypeError for a wrong type, ValueError for a wrong shape, unless beta > 0 is finite, and when steps < 0.
    Source: Ramsauer et al. 2021, "Hopfield Networks is All You Need", equations 2 and 3.
    """
    checks.recall(state, patterns, beta, steps)
    return recall_core(state, patterns, operand(beta), steps)


# --- on checked arguments --------------------------------------------------------------------------------


@np.errstate(all="ignore")
def retrieve_core(shape, query, keys, values, mask, scale, top_k):
    """What `retrieve` returns for checked arguments."""
    steps, visible = compute_steps(shape, query, keys, values, mask, None, False, scale, None, None, False)
    order, kept = best_first(steps.masked, visible, top_k or min(1, shape[-1]))
    if top_k is None:
        index = np.full(shape[:-1], -1) if shape[-1] == 0 else where(kept, order, -1)[..., 0]
        return Retrieval(steps.out.astype(query.dtype), steps.weights.astype(query.dtype), index)
    best = where(kept, np.take_along_axis(steps.masked, order, -1), -np.inf)
    weights, _ = softmax(best, kept)
    output = blend(weights[..., None, :], gathered(values, order, weights.dtype), kept[..., None, :])[..., 0, :]
    return Retrieval(output.astype(query.dtype), weights.astype(query.dtype), where(kept, order, -1))


@np.errstate(all="ignore")
def search_core(shape, query, keys, k, mask, metric):
    """What `search` returns for checked arguments, found block by block."""
    mask, rule = split_mask(mask, False)
    dtype = compute_dtype(query)
    nearness = np.empty((*shape[:-1], 0), dtype)
    indices = np.empty((*shape[:-1], 0), int)
    visible = np.empty((*shape[:-1], 0), bool)
    for cols in tiles(shape[-1], keys_in_block(query, metric)):
        block = compare(query.astype(dtype), keys[..., cols.start : cols.stop, :].astype(dtype), metric)
        seen = np.broadcast_to(visibility(mask, rule, None, range(shape[-2]), cols), (*shape[:-1], len(cols)))
        nearness = np.concatenate([nearness, np.broadcast_to(block, seen.shape)], axis=-1)
        indices = np.concatenate([indices, np.broadcast_to(np.arange(cols.start, cols.stop), seen.shape)], axis=-1)
        visible = np.concatenate([visible, seen], axis=-1)
        order, visible = best_first(nearness, visible, min(k, indices.shape[-1]))
        nearness, indices = (np.take_along_axis(x, order, -1) for x in (nearness, indices))
    scores = where(visible, nearness, -np.inf)
    if metric == "euclidean":
        scores = -scores
    return Neighbours(scores.astype(query.dtype), where(visible, indices, -1))


@np.errstate(all="ignore")
def recall_core(state, patterns, beta, steps):
    """What `recall` returns for checked arguments."""
    dtype = state.dtype
    state, patterns = (np.asarray(x).astype(compute_dtype(x)) for x in (state, patterns))
    energies = []
    for _ in range(steps):
        energy, weights = energy_and_weights(state, patterns, beta)
        energies.append(energy)
        state = blend(weights, patterns, np.ones_like(weights, dtype=bool))[..., 0, :]
    energies.append(energy_and_weights(state, patterns, beta)[0])
    return Recall(state.astype(dtype), np.stack(energies).astype(dtype))


# --- order -----------------------------------------------------------------------------------------------


def best_first(scores, visible, n):
    """Where the n best scores of each row stand, best first, and which of them are visible (G1, G2).

    Visible numbers come first, then visible NaN, then what is hidden; among equals the lowest index.
    """
    rank = where(visible, np.isnan(scores).astype(int), 2)
    order = np.lexsort((-scores, rank), axis=-1)[..., :n]
    return order, np.take_along_axis(visible, order, -1)


def gathered(values, order, dtype):
    """The values (*B, T, n, Dv) that stand at `order` (*B, T, n) in values (*B, S, Dv)."""
    values = np.broadcast_to(values, order.shape[:-2] + values.shape[-2:])
    return np.take_along_axis(values[..., None, :, :], order[..., None], -2).astype(dtype)


# --- comparing -------------------------------------------------------------------------------------------


def keys_in_block(query, metric):
    """How many keys are compared at a time; differences hold T x D numbers a key, so they take fewer."""
    return KEYS_PER_BLOCK if metric != "euclidean" else max(1, NUMBERS_PER_BLOCK // max(1, query.size))


def compare(query, keys, metric):
    """How near each key is to each query (*B, T, S), larger is nearer."""
    if metric == "euclidean":
        return -norm(query[..., :, None, :] - keys[..., None, :, :])
    if metric == "cosine":
        query, keys = unit(query), unit(keys)
    return product(query, keys.mT)


def norm(x):
    """The lengths (...) of vectors (..., D). A power of two is taken out first, so that no square overflows."""
    limits = np.finfo(x.dtype)
    _, power = np.frexp(np.abs(x).max(axis=-1, keepdims=True).clip(limits.tiny, limits.max))
    scale = np.ldexp(np.ones((), x.dtype), 2 - power)
    return np.sqrt(((x * scale) ** 2).sum(axis=-1)) / scale[..., 0]


def unit(x):
    """Vectors of length 1 (..., D); zeros stay zeros. The largest entry is divided out first: no square overflows."""
    peak = np.abs(x).max(axis=-1, keepdims=True)
    x = x / where(peak != 0, peak, 1)
    length = np.sqrt((x * x).sum(axis=-1, keepdims=True))
    return x / where(length != 0, length, 1)


def energy_and_weights(state, patterns, beta):
    """The energy (*B) of a state (*B, D) and the weights (*B, 1, N) with which it recalls the patterns."""
    scores = scaled_scores(state[..., None, :], patterns, beta)
    weights, lse = softmax(scores, np.ones_like(scores, dtype=bool))
    return -lse[..., 0] / beta + (state * state).sum(axis=-1) / 2, weights
