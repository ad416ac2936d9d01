"""Retrieval by its definition: soft look-up, exact search, and associative recall."""

from __future__ import annotations

import math
from typing import Any

from conformance.arithmetic import Plain
from conformance.grids import Grid, Index, indices, stack
from conformance.oracle_attention import attend_row, blend, softmax, spread
from conformance.oracle_problem import (
    Arrays,
    Options,
    Problem,
    read_numbers,
    read_parameter,
    read_problem,
)


def retrieve(arrays: Arrays, options: Options, arithmetic: Plain) -> dict[str, Grid]:
    """output (*B, T, Dv); weights (*B, T, S) and index (*B, T), or both (*B, T, n) with top_k=n."""
    values = arrays.get("values", arrays["keys"])
    problem = read_problem(arrays | {"q": arrays["query"], "k": arrays["keys"], "v": values}, options, arithmetic)
    top_k = options.get("top_k")
    find = _all if top_k is None else _best
    rows = [find(problem, at, top_k) for at in indices(problem.rows)]
    outputs, weights, places = zip(*rows, strict=True) if rows else ((), (), ())
    width = problem.keys if top_k is None else top_k
    return {
        "output": stack((*problem.rows, values.shape[-1]), outputs),
        "weights": stack((*problem.rows, width), weights),
        "index": stack(problem.rows if top_k is None else (*problem.rows, top_k), places),
    }


def search(arrays: Arrays, options: Options, arithmetic: Plain) -> dict[str, Grid]:
    """scores and indices (*B, T, k): the k best visible keys, best first, then places of index -1."""
    keys = arrays["keys"]
    problem = read_problem(arrays | {"q": arrays["query"], "k": keys, "v": keys}, options, arithmetic)
    measure, sign = _METRICS[options.get("metric", "dot")]
    scores, places = [], []
    for at in indices(problem.rows):
        query = problem.q.row(at)
        seen = [key for key in range(problem.keys) if problem.visible((*at, key))]
        found = {key: measure(query, problem.k.row(problem.key_at(at, key)), arithmetic) for key in seen}
        best = _ranked(found, sign, arithmetic)[: options["k"]]
        missing = options["k"] - len(best)
        scores.append([found[key] for key in best] + [arithmetic.number(-sign * math.inf)] * missing)
        places.append(best + [-1] * missing)
    shape = (*problem.rows, options["k"])
    return {"scores": stack(shape, scores), "indices": stack(shape, places)}


def recall(arrays: Arrays, options: Options, arithmetic: Plain) -> dict[str, Grid]:
    """state (*B, D) and energy (steps + 1, *B) of a modern Hopfield network (Ramsauer et al. 2020)."""
    states, patterns = (read_numbers(arrays[name], arithmetic) for name in ("state", "patterns"))
    stored = [patterns.row((place,)) for place in range(patterns.shape[0])]
    beta = read_parameter("beta", arrays, {"beta": 1.0} | options, arithmetic)
    steps = options.get("steps", 1)
    paths = [_path(states.row(at), stored, beta, steps, arithmetic) for at in indices(states.shape[:-1])]
    energies = [[energies[step] for _, energies in paths] for step in range(steps + 1)]
    return {
        "state": stack(states.shape, [state for state, _ in paths]),
        "energy": stack((steps + 1, *states.shape[:-1]), energies),
    }


def _all(problem: Problem, at: Index, _: None) -> tuple[list[Any], list[Any], list[int]]:
    row = attend_row(problem, at)
    best = _ranked(dict(zip(row.keys, row.logits, strict=True)), 1, problem.arithmetic)[:1]
    weights = spread(row.keys, row.weights, problem.keys, problem.arithmetic.number(0.0))
    return row.out, weights, best or [-1]


def _best(problem: Problem, at: Index, count: int) -> tuple[list[Any], list[Any], list[int]]:
    row = attend_row(problem, at)
    logits = dict(zip(row.keys, row.logits, strict=True))
    best = _ranked(logits, 1, problem.arithmetic)[:count]
    weights, _ = softmax([logits[key] for key in best], problem.arithmetic)
    missing = count - len(best)
    padded = weights + [problem.arithmetic.number(0.0)] * missing
    return blend(problem, at, best, weights), padded, best + [-1] * missing


def _ranked(scores: dict[int, Any], sign: int, arithmetic: Plain) -> list[int]:
    """The keys, best first: the largest score for sign 1, the smallest for -1; ties by index, NaN last."""

    def rank(key: int) -> tuple[bool, Any, int]:
        spoiled = arithmetic.is_nan(scores[key])
        return spoiled, 0 if spoiled else -sign * arithmetic.value(scores[key]), key

    return sorted(scores, key=rank)


def _dot(query: list[Any], key: list[Any], arithmetic: Plain) -> Any:
    return arithmetic.dot(query, key)


def _cosine(query: list[Any], key: list[Any], arithmetic: Plain) -> Any:
    """The cosine of the angle; a zero vector has no direction, and its cosine is 0 by the contract."""
    lengths = [arithmetic.sqrt(arithmetic.dot(vector, vector)) for vector in (query, key)]
    if any(arithmetic.value(length) == 0 for length in lengths):
        return arithmetic.number(0.0)
    units = [[x / length for x in vector] for vector, length in zip((query, key), lengths, strict=True)]
    return arithmetic.dot(*units)


def _euclidean(query: list[Any], key: list[Any], arithmetic: Plain) -> Any:
    steps = [x - y for x, y in zip(query, key, strict=True)]
    return arithmetic.sqrt(arithmetic.dot(steps, steps))


_METRICS = {"dot": (_dot, 1), "cosine": (_cosine, 1), "euclidean": (_euclidean, -1)}


def _path(
    state: list[Any], stored: list[list[Any]], beta: Any, steps: int, arithmetic: Plain
) -> tuple[list[Any], list[Any]]:
    """The state after the steps, and the energy before each of them and after the last."""
    energies = []
    for step in range(steps + 1):
        logits = [arithmetic.held(arithmetic.scaled_dot(beta, pattern, state)) for pattern in stored]
        weights, lse = softmax(logits, arithmetic)
        half_square = arithmetic.number(0.5) * arithmetic.dot(state, state)
        energies.append(half_square - lse / beta)
        if step < steps:
            state = [arithmetic.dot(weights, [p[place] for p in stored]) for place in range(len(state))]
    return state, energies
