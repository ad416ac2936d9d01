"""Content-based retrieval: attention as a soft dictionary, exact search, and recall from a Hopfield memory."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from . import checks
from .arrays import compute_dtype, finite_part, guard, operand, product, where
from .attention import blend, compute_steps, scaled_scores
from .flash import part, tiles
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

    query (*B, T, D), keys (*B, S, D), which are compared in blocks.
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


@partial(jax.jit, static_argnames=("shape", "top_k"))
def retrieve_core(shape, query, keys, values, mask, scale, top_k):
    """What `retrieve` returns for checked arguments."""
    steps, visible = compute_steps(shape, query, keys, values, mask, None, False, scale, None, None, False)
    order, kept = best_first(steps.masked, visible, top_k or min(1, shape[-1]))
    if top_k is None:
        index = jnp.full(shape[:-1], -1, int) if shape[-1] == 0 else where(kept, order, -1)[..., 0]
        return Retrieval(steps.out.astype(query.dtype), steps.weights.astype(query.dtype), index)
    best = where(kept, jnp.take_along_axis(steps.masked, order, -1), -jnp.inf)
    weights, _ = softmax(best, kept)
    output = blend(weights[..., None, :], gathered(values, order, weights.dtype), kept[..., None, :])[..., 0, :]
    return Retrieval(output.astype(query.dtype), weights.astype(query.dtype), where(kept, order, -1))


@partial(jax.jit, static_argnames=("shape", "k", "metric"))
def search_core(shape, query, keys, k, mask, metric):
    """What `search` returns for checked arguments, found block by block."""
    mask, rule = split_mask(mask, False)
    dtype = compute_dtype(query)
    size = min(keys_in_block(query, metric), shape[-1])

    def one_block(best, start):
        # jax: blocks have one size, so the last one reaches back; what it repeats is hidden.
        first, at = start
        cols = at + jnp.arange(size)
        block = compare(query.astype(dtype), part(keys, cols).astype(dtype), metric)
        seen = visibility(mask, rule, None, jnp.arange(shape[-2]), cols) & (cols >= first)
        found = (jnp.broadcast_to(x, (*shape[:-1], size)) for x in (block, cols, seen))
        nearness, indices, visible = (jnp.concatenate(x, axis=-1) for x in zip(best, found, strict=True))
        order, visible = best_first(nearness, visible, k)
        return (*(jnp.take_along_axis(x, order, -1) for x in (nearness, indices)), visible), None

    firsts = np.array([cols.start for cols in tiles(shape[-1], size)], int)
    nobody = (jnp.full((*shape[:-1], k), fill, kind) for fill, kind in ((-jnp.inf, dtype), (-1, int), (False, bool)))
    (nearness, indices, visible), _ = lax.scan(one_block, tuple(nobody), (firsts, np.minimum(firsts, shape[-1] - size)))
    scores = where(visible, nearness, -jnp.inf)
    if metric == "euclidean":
        scores = -scores
    return Neighbours(scores.astype(query.dtype), where(visible, indices, -1))


@partial(jax.jit, static_argnames="steps")
def recall_core(state, patterns, beta, steps):
    """What `recall` returns for checked arguments."""
    dtype = state.dtype
    state, patterns = state.astype(compute_dtype(state)), patterns.astype(compute_dtype(state))
    beta = jnp.asarray(beta, state.dtype)

    def step(state, _):
        energy, weights = energy_and_weights(state, patterns, beta)
        return blend(weights, patterns, jnp.ones_like(weights, dtype=bool))[..., 0, :], energy

    state, energies = lax.scan(step, state, length=steps)
    energy, _ = energy_and_weights(state, patterns, beta)
    return Recall(state.astype(dtype), jnp.concatenate([energies, energy[None]]).astype(dtype))


# --- order -----------------------------------------------------------------------------------------------


def best_first(scores, visible, n):
    """Where the n best scores of each row stand, best first, and which of them are visible (G1, G2).

    Visible numbers come first, then visible NaN, then what is hidden; among equals the lowest index.
    """
    scores = lax.stop_gradient(scores)
    rank = where(visible, jnp.isnan(scores).astype(int), 2)
    order = jnp.lexsort((-scores, rank), axis=-1)[..., :n]
    return order, jnp.take_along_axis(visible, order, -1)


def gathered(values, order, dtype):
    """The values (*B, T, n, Dv) that stand at `order` (*B, T, n) in values (*B, S, Dv)."""
    values = jnp.broadcast_to(values, order.shape[:-2] + values.shape[-2:])
    return jnp.take_along_axis(values[..., None, :, :], order[..., None], -2).astype(dtype)


# --- comparing -------------------------------------------------------------------------------------------


def keys_in_block(query, metric):
    """How many keys are compared at a time; differences hold T x D numbers a key, so they take fewer."""
    return KEYS_PER_BLOCK if metric != "euclidean" else max(1, NUMBERS_PER_BLOCK // max(1, query.size))


def compare(query, keys, metric):
    """How near each key is to each query (*B, T, S), larger is nearer."""
    if metric == "euclidean":
        difference = query[..., :, None, :] - keys[..., None, :, :]
        return -norm(guard(difference, jnp.isfinite(difference)))
    if metric == "cosine":
        query, keys = unit(query), unit(keys)
    return product(query, keys.mT)


def norm(x):
    """The lengths (...) of vectors (..., D). A power of two is taken out first, so that no square overflows."""
    limits = jnp.finfo(x.dtype)
    peak = lax.stop_gradient(jnp.abs(x).max(axis=-1, keepdims=True))
    _, power = jnp.frexp(peak.clip(limits.tiny, limits.max))
    scale = jnp.ldexp(jnp.ones((), x.dtype), 2 - power)
    square = ((x * scale) ** 2).sum(axis=-1)
    # jax: the root of 0 is left out, for its slope is infinite.
    return where(square != 0, jnp.sqrt(where(square != 0, square, 1)), 0) / scale[..., 0]


def unit(x):
    """Vectors of length 1 (..., D); zeros stay zeros. The largest entry is divided out first: no square overflows."""
    x, broken = finite_part(x)
    peak = lax.stop_gradient(jnp.abs(x).max(axis=-1, keepdims=True))
    x = x / where(peak != 0, peak, 1)
    square = (x * x).sum(axis=-1, keepdims=True)
    # jax: 1 before the root, whose slope at 0 is infinite; NaN last, so that it reaches no gradient.
    length = jnp.sqrt(where(square != 0, square, 1))
    return where(~broken.any(axis=-1, keepdims=True), x / length, jnp.nan)


def energy_and_weights(state, patterns, beta):
    """The energy (*B) of a state (*B, D) and the weights (*B, 1, N) with which it recalls the patterns."""
    scores = scaled_scores(state[..., None, :], patterns, beta)
    weights, lse = softmax(scores, jnp.ones_like(scores, dtype=bool))
    return -lse[..., 0] / beta + (state * state).sum(axis=-1) / 2, weights
