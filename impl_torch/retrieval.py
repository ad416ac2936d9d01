"""Content-based retrieval: attention as a soft dictionary, exact search, and recall from a Hopfield memory."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from . import checks
from .arrays import compute_dtype, is_array, operand, product, where
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


def retrieve_core(shape, query, keys, values, mask, scale, top_k):
    """What `retrieve` returns for checked arguments."""
    steps, visible = compute_steps(shape, query, keys, values, mask, None, False, scale, None, None, False)
    order, kept = best_first(steps.masked, visible, top_k or min(1, shape[-1]))
    index = where(kept, order, -1)
    if top_k is None:
        index = index.new_full(shape[:-1], -1) if shape[-1] == 0 else index[..., 0]
        return Retrieval(steps.out.to(query.dtype), steps.weights.to(query.dtype), index)
    best = where(kept, steps.masked.gather(-1, order), -torch.inf)
    weights, _ = softmax(best, kept)
    output = blend(weights[..., None, :], gathered(values, order, weights.dtype), kept[..., None, :])[..., 0, :]
    return Retrieval(output.to(query.dtype), weights.to(query.dtype), index)


def search_core(shape, query, keys, k, mask, metric):
    """What `search` returns for checked arguments, found block by block."""
    mask, rule = split_mask(mask, False)
    dtype, device = compute_dtype(query), query.device
    nearness = torch.empty((*shape[:-1], 0), dtype=dtype, device=device)
    indices = torch.empty((*shape[:-1], 0), dtype=torch.int64, device=device)
    visible = torch.empty((*shape[:-1], 0), dtype=torch.bool, device=device)
    rows = torch.arange(shape[-2], device=device)
    for block in tiles(shape[-1], keys_in_block(query, metric)):
        cols = torch.arange(block.start, block.stop, device=device)
        near = compare(query.to(dtype), part(keys, block).to(dtype), metric)
        seen = visibility(mask, rule, None, rows, cols).expand(*shape[:-1], len(cols))
        nearness = torch.cat([nearness, near.expand(seen.shape)], dim=-1)
        indices = torch.cat([indices, cols.expand(seen.shape)], dim=-1)
        visible = torch.cat([visible, seen], dim=-1)
        order, visible = best_first(nearness, visible, min(k, indices.shape[-1]))
        nearness, indices = nearness.gather(-1, order), indices.gather(-1, order)
    scores = where(visible, nearness, -torch.inf)
    if metric == "euclidean":
        scores = -scores
    return Neighbours(scores.to(query.dtype), where(visible, indices, -1))


def recall_core(state, patterns, beta, steps):
    """What `recall` returns for checked arguments."""
    dtype = state.dtype
    # torch: copied, since with no step to take the input itself would be returned.
    state, patterns = state.to(compute_dtype(state), copy=True), patterns.to(compute_dtype(state))
    beta = beta.to(state) if is_array(beta) else beta
    energies = []
    for _ in range(steps):
        energy, weights = energy_and_weights(state, patterns, beta)
        energies.append(energy)
        state = blend(weights, patterns, torch.ones_like(weights, dtype=torch.bool))[..., 0, :]
    energies.append(energy_and_weights(state, patterns, beta)[0])
    return Recall(state.to(dtype), torch.stack(energies).to(dtype))


# --- order -----------------------------------------------------------------------------------------------


def best_first(scores, visible, n):
    """Where the n best scores of each row stand, best first, and which of them are visible (G1, G2).

    Visible numbers come first, then visible NaN, then what is hidden; among equals the lowest index.
    """
    rank = where(visible, scores.isnan().long(), 2)
    order = scores.detach().nan_to_num(0.0, torch.inf, -torch.inf).argsort(dim=-1, descending=True, stable=True)
    order = order.gather(-1, rank.gather(-1, order).argsort(dim=-1, stable=True))[..., :n]
    return order, visible.gather(-1, order)


def gathered(values, order, dtype):
    """The values (*B, T, n, Dv) that stand at `order` (*B, T, n) in values (*B, S, Dv)."""
    values = values.expand(*order.shape[:-2], *values.shape[-2:])
    index = order.flatten(-2)[..., None].expand(*order.shape[:-2], -1, values.shape[-1])
    return values.gather(-2, index).unflatten(-2, order.shape[-2:]).to(dtype)


# --- comparing -------------------------------------------------------------------------------------------


def keys_in_block(query, metric):
    """How many keys are compared at a time; differences hold T x D numbers a key, so they take fewer."""
    return KEYS_PER_BLOCK if metric != "euclidean" else max(1, NUMBERS_PER_BLOCK // max(1, query.numel()))


def compare(query, keys, metric):
    """How near each key is to each query (*B, T, S), larger is nearer."""
    if metric == "euclidean":
        return -norm(query[..., :, None, :] - keys[..., None, :, :])
    if metric == "cosine":
        query, keys = unit(query), unit(keys)
    return product(query, keys.mT)


def norm(x):
    """The lengths (...) of vectors (..., D). A power of two is taken out first, so that no square overflows."""
    limits = torch.finfo(x.dtype)
    peak = x.detach().abs().amax(dim=-1, keepdim=True).clamp(limits.tiny, limits.max)
    scale = 4 * (peak.frexp().mantissa / peak)  # torch: ldexp takes its power of two in float32 for float64 too
    return torch.linalg.vector_norm(x * scale, dim=-1) / scale[..., 0]


def unit(x):
    """Vectors of length 1 (..., D); zeros stay zeros. The largest entry is divided out first: no square overflows."""
    peak = x.detach().abs().amax(dim=-1, keepdim=True)  # torch: it cancels out of the gradient
    x = x / where(peak != 0, peak, 1)
    length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    return x / where(length != 0, length, 1)


def energy_and_weights(state, patterns, beta):
    """The energy (*B) of a state (*B, D) and the weights (*B, 1, N) with which it recalls the patterns."""
    scores = scaled_scores(state[..., None, :], patterns, beta)
    weights, lse = softmax(scores, torch.ones_like(scores, dtype=torch.bool))
    return -lse[..., 0] / beta + (state * state).sum(dim=-1) / 2, weights
