"""The gradients of attention as loops, derived by hand: pull d_out back through the five steps.

With P the weights, dP_j = d_out . v_j and delta = sum_j P_j dP_j = d_out . out, the gradient of a logit is
P_j (dP_j - delta); softcap multiplies it by 1 - tanh^2; then dq, dk, dv and dbias are sums over the pairs
(Dao et al. 2022, "FlashAttention", appendix B.2). Tests hold it against central differences.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from conformance.arithmetic import Plain
from conformance.grids import Grid, Index, indices, stack
from conformance.oracle_attention import Row, attend_row, score_steps
from conformance.oracle_problem import Arrays, Options, Problem, read_numbers, read_problem

Pairs = list[list[tuple[Any, list[Any]]]]
Dot = Callable[[list[Any], list[Any]], Any]


def attention_vjp(arrays: Arrays, options: Options, arithmetic: Plain) -> dict[str, Grid]:
    """dq, dk, dv in the shapes of q, k, v, and dbias in that of bias; a broadcast axis is summed over."""
    problem = read_problem(arrays, options, arithmetic)
    d_out = read_numbers(arrays["d_out"], arithmetic)
    to_q, to_k, to_v = (_no_pairs(grid) for grid in (problem.q, problem.k, problem.v))
    to_bias = [[] for _ in problem.bias.cells] if problem.bias else []
    for at in indices(problem.rows):
        row = attend_row(problem, at)
        weights = arithmetic.recomputed(row.weights, row.logits, row.lse)
        d_logits = _d_logits(problem, at, replace(row, weights=weights), d_out.row(at))
        for key, weight, d_logit in zip(row.keys, weights, d_logits, strict=True):
            there = problem.key_at(at, key)
            d_score = _through_softcap(problem, at, key, d_logit)
            to_q[problem.q.row_place(at)].append((d_score, problem.k.row(there)))
            to_k[problem.k.row_place(there)].append((d_score, problem.q.row(at)))
            to_v[problem.v.row_place(there)].append((weight, d_out.row(at)))
            if problem.bias:
                to_bias[problem.bias.place((*at, key))].append(d_logit)
    gradients = {
        "dq": _sums(_scaled_dot(problem), problem.q, to_q),
        "dk": _sums(_scaled_dot(problem), problem.k, to_k),
        "dv": _sums(arithmetic.dot, problem.v, to_v),
    }
    if problem.bias:
        gradients["dbias"] = Grid(problem.bias.shape, [arithmetic.total(terms) for terms in to_bias])
    return gradients


def _d_logits(problem: Problem, at: Index, row: Row, d_out: list[Any]) -> list[Any]:
    """The gradients of the visible keys' logits."""
    arithmetic = problem.arithmetic
    d_weights = [arithmetic.dot(d_out, problem.v.row(problem.key_at(at, key))) for key in row.keys]
    # Softmax's own formula sums over the keys, FlashAttention's over the features.
    delta = arithmetic.either(arithmetic.dot(row.weights, d_weights), arithmetic.dot(d_out, row.out))
    return [weight * (d_weight - delta) for weight, d_weight in zip(row.weights, d_weights, strict=True)]


def _through_softcap(problem: Problem, at: Index, key: int, d_logit: Any) -> Any:
    if problem.softcap is None:
        return d_logit
    _, capped, _ = score_steps(problem, at, key)
    bent = capped / problem.softcap
    return d_logit * (problem.arithmetic.number(1.0) - bent * bent)


def _scaled_dot(problem: Problem) -> Dot:
    return lambda xs, ys: problem.arithmetic.scaled_dot(problem.scale, xs, ys)


def _no_pairs(grid: Grid) -> Pairs:
    """A list of pairs for each row of the grid; a row that no query sees keeps none, and the gradient 0."""
    return [[] for _ in range(math.prod(grid.shape[:-1]))]


def _sums(dot: Dot, grid: Grid, pairs: Pairs) -> Grid:
    """For each row of the grid, the sum of its pairs' vectors times their factors."""
    features = range(grid.shape[-1])
    rows = [
        [dot([factor for factor, _ in row], [vector[feature] for _, vector in row]) for feature in features]
        for row in pairs
    ]
    return stack(grid.shape, rows)
