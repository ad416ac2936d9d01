"""The definition of attention as loops over queries, keys and features.

The five steps of the contract (C1 to C5) after Vaswani et al. (2017), "Attention is all you need", equation 1.
A hidden pair is never read, so that nothing in it can matter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from conformance.arithmetic import Plain
from conformance.grids import Grid, Index, indices, read, stack
from conformance.oracle_problem import Arrays, Options, Problem, entered, read_numbers, read_problem

Part = tuple[list[Any], Any]


@dataclass(frozen=True)
class Row:
    """What one query gets: its visible keys, their logits and weights, the log of the denominator, out."""

    keys: list[int]
    logits: list[Any]
    weights: list[Any]
    lse: Any
    out: list[Any]


def attention(arrays: Arrays, options: Options, arithmetic: Plain) -> dict[str, Grid]:
    """out (*B, [H,] T, Dv), weights (*B, [H,] T, S) and lse (*B, [H,] T)."""
    problem = read_problem(arrays, options, arithmetic)
    return _grids(problem, [attend_row(problem, at) for at in indices(problem.rows)])


def attention_steps(arrays: Arrays, options: Options, arithmetic: Plain) -> dict[str, Grid]:
    """Every intermediate; scores, capped and biased are those of all pairs, hidden ones too."""
    problem = read_problem(arrays, options, arithmetic)
    rows = [attend_row(problem, at) for at in indices(problem.rows)]
    pairs = [score_steps(problem, at, key) for at in indices(problem.rows) for key in range(problem.keys)]
    shape = (*problem.rows, problem.keys)
    steps = {
        name: Grid(shape, [pair[place] for pair in pairs]) for place, name in enumerate(("scores", "capped", "biased"))
    }
    hidden = arithmetic.number(-math.inf)
    masked = stack(shape, [spread(row.keys, row.logits, problem.keys, hidden) for row in rows])
    return {**steps, "masked": masked, **_grids(problem, rows)}


def attend_row(problem: Problem, at: Index) -> Row:
    """Attention for the query at that index: the values of its visible keys, weighted by the softmax."""
    arithmetic = problem.arithmetic
    keys = [key for key in range(problem.keys) if problem.visible((*at, key))]
    logits = [score_steps(problem, at, key)[-1] for key in keys]
    weights, lse = softmax(logits + _sink(problem, at), arithmetic)
    weights = weights[: len(keys)]
    return Row(keys, logits, weights, lse, blend(problem, at, keys, weights))


def score_steps(problem: Problem, at: Index, key: int) -> tuple[Any, Any, Any]:
    """The score of one pair, the capped score, and that with its bias."""
    arithmetic, cap = problem.arithmetic, problem.softcap
    q, k = problem.q.row(at), problem.k.row(problem.key_at(at, key))
    score = arithmetic.held(arithmetic.scaled_dot(problem.scale, q, k))
    capped = score if cap is None else cap * arithmetic.tanh(score / cap)
    if problem.bias is None:
        return score, capped, capped
    bias = problem.bias[(*at, key)]
    if bias == -math.inf:
        return score, capped, arithmetic.number(bias)
    return score, capped, arithmetic.held(arithmetic.biased(capped, entered(bias, arithmetic)))


def softmax(logits: list[Any], arithmetic: Plain) -> tuple[list[Any], Any]:
    """The weights, and the log of their denominator; no logits at all have the denominator 0."""
    if not logits:
        return [], arithmetic.number(-math.inf)
    top = max(arithmetic.value(logit) for logit in logits)
    if math.isinf(top) or any(map(arithmetic.is_nan, logits)):
        # The scores of a row overflow or are NaN: inf - inf has no value.
        return [arithmetic.number(math.nan)] * len(logits), arithmetic.number(math.nan)
    terms = arithmetic.exponentials(logits, top)
    whole = arithmetic.total(terms)
    return arithmetic.shares(terms, whole), arithmetic.log_sum(logits, top, whole)


def blend(problem: Problem, at: Index, keys: list[int], weights: list[Any]) -> list[Any]:
    """The weighted sum of those keys' values, feature by feature: a NaN spoils its own feature alone."""
    values = [problem.v.row(problem.key_at(at, key)) for key in keys]
    features = range(problem.v.shape[-1])
    return [problem.arithmetic.dot(weights, [value[feature] for value in values]) for feature in features]


def spread(keys: list[int], numbers: list[Any], size: int, rest: Any) -> list[Any]:
    """The numbers at the places of their keys, in a row of that size that is filled up with the rest."""
    row = [rest] * size
    for key, number in zip(keys, numbers, strict=True):
        row[key] = number
    return row


def merge(arrays: Arrays, options: Options, arithmetic: Plain) -> dict[str, Grid]:
    """Join (out, lse) over disjoint sets of keys: out0, lse0, out1, lse1, ..."""
    count = len(arrays) // 2
    outs = [read_numbers(arrays[f"out{part}"], arithmetic) for part in range(count)]
    logs = [read(arrays[f"lse{part}"], lambda cell: _log(cell, arithmetic)) for part in range(count)]
    shape = np.broadcast_shapes(*(log.shape for log in logs))
    width = outs[0].shape[-1]
    merged = []
    for at in indices(shape):
        parts = [(out.row(at), log[at]) for out, log in zip(outs, logs, strict=True)]
        # Two at a time, because each merge rounds its lse: the budget has to bear it.
        first = _join(parts[:2], width, arithmetic)
        merged.append(reduce(lambda one, two: _join([one, two], width, arithmetic), parts[2:], first))
    return {
        "out": stack((*shape, width), [out for out, _ in merged]),
        "lse": Grid(shape, [lse for _, lse in merged]),
    }


def _join(parts: list[Part], width: int, arithmetic: Plain) -> Part:
    """The parts with any keys, weighted by exp(lse); where none has keys, 0 and -inf."""
    parts = [(out, lse) for out, lse in parts if arithmetic.value(lse) != -math.inf]
    logits = [lse for _, lse in parts]
    weights, lse = softmax(logits, arithmetic)
    weights = arithmetic.recomputed(weights, logits, lse)
    return [arithmetic.dot(weights, [out[feature] for out, _ in parts]) for feature in range(width)], lse


def _log(cell: float, arithmetic: Plain) -> Any:
    return arithmetic.number(cell) if cell == -math.inf else entered(cell, arithmetic)


def _sink(problem: Problem, at: Index) -> list[Any]:
    """The logit of the head's sink; none where there is no sink, or one of -inf, which adds nothing."""
    sink = -math.inf if problem.sinks is None else problem.sinks[at[:-1]]
    return [] if sink == -math.inf else [entered(sink, problem.arithmetic)]


def _grids(problem: Problem, rows: list[Row]) -> dict[str, Grid]:
    """The outputs of all rows; the weight of a hidden pair is 0."""
    zero = problem.arithmetic.number(0.0)
    weights = [spread(row.keys, row.weights, problem.keys, zero) for row in rows]
    return {
        "out": stack((*problem.rows, problem.v.shape[-1]), [row.out for row in rows]),
        "weights": stack((*problem.rows, problem.keys), weights),
        "lse": Grid(problem.rows, [row.lse for row in rows]),
    }
