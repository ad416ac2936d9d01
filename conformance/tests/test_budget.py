"""The budget lets every honest order of rounding pass, and no implementation that computes too coarsely."""

from __future__ import annotations

import math

import numpy as np
import pytest

from conformance import tracked
from conformance.arithmetic import format_of
from conformance.budget import expected
from conformance.facts import FLOATS, array, compute_dtype, dtype_of, identity, normal, zeros
from conformance.oracle import evaluate
from conformance.tests import honest

COARSER = {"float16": "float16", "bfloat16": "bfloat16", "float32": "float16", "float64": "float32"}
SPREADS = (0.3, 1.0, 8.0, 60.0)


def worst(expectations, outputs):
    """The largest error / budget of all these outputs."""
    return max(ratios(expectations[name], got).max() for name, got in outputs.items())


def ratios(expectation, got):
    assert got.dtype.name == expectation.dtype and got.shape == expectation.shape
    error = np.abs(got.astype(np.float64) - expectation.values)
    return np.divide(error, expectation.budget, where=error > 0, out=np.zeros_like(error))


def problem(dtype, spread=1.0):
    """q (2, 3, 8), k (2, 40, 8), v (2, 40, 5): scores of the size of spread squared."""
    shapes = {"q": (2, 3, 8), "k": (2, 40, 8), "v": (2, 40, 5)}
    return {
        name: normal(shape, dtype, seed=place, spread=1.0 if name == "v" else spread)
        for place, (name, shape) in enumerate(shapes.items())
    }


def cancelling(dtype):
    """One query over 64 keys whose values cancel: the output is near 0, so that its own rounding hides nothing."""
    arrays = {"q": normal((1, 8), dtype), "k": normal((64, 8), dtype, seed=1), "v": normal((64, 5), "float64", seed=2)}
    out = expected("attention", arrays, {})["out"].values
    return arrays | {"v": (arrays["v"] - out).astype(dtype_of(dtype))}


# ---------------------------------------------------------------------------------------- honest attention


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_honest_attentions_are_within_the_budget(dtype, spread):
    arrays = problem(dtype, spread)
    budget = expected("attention", arrays, {})
    for base2 in (False, True):
        for scale_on in ("queries", "keys", "scores"):
            assert worst(budget, honest.dense(arrays, scale_on=scale_on, base2=base2)) <= 1
        for size in (1, 3, 16):
            assert worst(budget, honest.tiled(arrays, size=size, base2=base2)) <= 1
            assert worst(budget, honest.tiled(arrays, size=size, base2=base2, backwards=True)) <= 1


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_honest_gradients_are_within_the_budget(dtype, spread):
    arrays = problem(dtype, spread)
    d_out = normal((2, 3, 5), dtype, seed=3)
    budget = expected("attention_vjp", arrays | {"d_out": d_out}, {})
    for delta_from in ("keys", "features"):
        assert worst(budget, honest.gradients(arrays, d_out, delta_from=delta_from)) <= 1


@pytest.mark.parametrize("spread", (0.3, 1.0, 4.0))
def test_the_analysis_holds_where_rounding_is_coarse(spread):
    """With float16 as the compute dtype, an attention that rounds every step to it is an honest one."""
    arrays = {name: x.astype(np.float16) for name, x in problem("float32", spread).items()}
    steps = ("scores", "softmax", "weights", "sums")
    got = honest.dense(arrays, low="float16", coarse=steps)
    cells = evaluate("attention", arrays, {}, tracked.Following("float16"))["out"].cells
    errors = np.abs([cell.value for cell in cells] - got["out"].ravel().astype(np.float64))
    assert (errors <= [cell.error for cell in cells]).all()


# --------------------------------------------------------------------------------------------- too coarse


@pytest.mark.parametrize("step", ["scores", "softmax", "weights", "sums"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_coarse_attentions_are_beyond_the_budget(dtype, step):
    arrays = cancelling(dtype)
    budget = expected("attention", arrays, {})
    assert worst(budget, honest.dense(arrays)) <= 1
    out = honest.dense(arrays, low=COARSER[dtype], coarse=(step,))["out"]
    assert worst(budget, {"out": out}) > 1


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_coarse_denominator_is_beyond_the_budget_of_lse(dtype):
    arrays = cancelling(dtype)
    lse = honest.dense(arrays, low=COARSER[dtype], coarse=("sums",))["lse"]
    assert worst(expected("attention", arrays, {}), {"lse": lse}) > 1


@pytest.mark.parametrize("dtype", FLOATS)
def test_gradients_of_coarse_weights_are_beyond_the_budget(dtype):
    arrays = cancelling(dtype)
    d_out = np.ones((1, 5), dtype_of(dtype))
    budget = expected("attention_vjp", arrays | {"d_out": d_out}, {})
    assert worst(budget, honest.gradients(arrays, d_out)) <= 1
    assert worst(budget, honest.gradients(arrays, d_out, low=COARSER[dtype])) > 1


# ------------------------------------------------------------------------------------------ what is allowed


def test_what_is_exact_has_no_budget():
    arrays = {"q": normal((2, 3)), "k": normal((4, 3), seed=1), "v": normal((4, 5), seed=2)}
    mask = {"mask": array([[1, 1, 0, 0], [0] * 4], "bool")}
    outputs = expected("attention", arrays | mask, {})
    assert not outputs["weights"].budget[:, 2:].any() and not outputs["weights"].values[:, 2:].any()
    assert not outputs["out"].budget[1].any() and outputs["lse"].values[1] == -np.inf
    gradients = expected("attention_vjp", arrays | mask | {"d_out": normal((2, 5))}, {})
    assert not gradients["dq"].budget[1].any() and not gradients["dk"].budget[2:].any()
    assert not expected("merge_heads", {"x": normal((2, 3, 4))}, {})["x"].budget.any()


def test_near_ties_of_large_scores_are_uncertain_and_clear_winners_are_not():
    unit = format_of("float32").unit
    keys = {"tie": array([[100.0], [100.0]]), "winner": array([[100.0], [99.0]])}
    arrays = {"q": array([[100.0]]), "v": identity(2)}
    weights = {name: expected("attention", arrays | {"k": k}, {})["weights"] for name, k in keys.items()}
    assert 1e4 * unit < weights["tie"].budget[0, 0] < 1e6 * unit
    assert weights["winner"].budget[0, 0] < 20 * unit


@pytest.mark.parametrize(("gap", "may_vanish"), [(80.0, False), (90.0, True)])
def test_exponentials_below_the_normal_numbers_may_be_flushed_to_zero(gap, may_vanish):
    arrays = {"q": array([[1.0]]), "k": array([[0.0], [-gap]]), "v": identity(2)}
    weights = expected("attention", arrays, {})["weights"]
    assert weights.values[0, 1] == pytest.approx(math.exp(-gap))
    assert (weights.budget[0, 1] >= weights.values[0, 1]) == may_vanish


@pytest.mark.parametrize("dtype", ("float16", "bfloat16"))
def test_a_half_output_may_be_rounded_once(dtype):
    out = expected("attention", problem(dtype), {})["out"]
    once = out.values.astype(dtype_of(dtype)).astype(np.float64)
    assert (np.abs(once - out.values) <= out.budget).all()
    assert (out.budget < 1.2 * format_of(dtype).unit * np.abs(out.values) + 1e-3 * format_of(dtype).unit).mean() > 0.5


def test_a_score_beyond_the_output_dtype_is_infinite_there():
    arrays = {"q": array([[300.0]], "float16"), "k": array([[300.0]], "float16"), "v": array([[1.0]], "float16")}
    steps = expected("attention_steps", arrays, {})
    assert steps["scores"].values.tolist() == [[np.inf]]
    assert steps["out"].values.tolist() == [[1.0]]


def test_nan_is_expected_without_a_budget():
    arrays = {"q": array([[math.nan]]), "k": array([[1.0]]), "v": array([[1.0]])}
    out = expected("attention", arrays, {})["out"]
    assert np.isnan(out.values).all() and not out.budget.any()


@pytest.mark.parametrize("dtype", FLOATS)
def test_outputs_have_the_dtypes_of_the_contract(dtype):
    arrays = problem(dtype) | {"bias": zeros((3, 1), "float32"), "d_out": zeros((2, 3, 5), dtype)}
    assert dtypes("flash_attention", arrays) == {"out": dtype, "weights": dtype, "lse": compute_dtype(dtype)}
    assert dtypes("attention_vjp", arrays) == {"dq": dtype, "dk": dtype, "dv": dtype, "dbias": "float32"}
    found = {"query": arrays["q"], "keys": arrays["k"]}
    assert dtypes("retrieve", found) == {"output": dtype, "weights": dtype, "index": "integer"}
    rule = {"mask": {"rule": "causal"}, "T": 2, "S": 2}
    assert dtypes("mask_array", {}, rule) == {"array": "bool"}
    picture = expected("mask_picture", {}, rule)["picture"]
    assert (picture.dtype, picture.values, picture.budget) == ("text", "#.\n##", None)


def dtypes(op, arrays, options=None):
    return {name: output.dtype for name, output in expected(op, arrays, options or {}).items()}


# ----------------------------------------------------------------------------------- merging and retrieval


@pytest.mark.parametrize("dtype", FLOATS)
def test_merging_at_once_or_in_turn_is_within_the_budget_and_in_half_types_beyond(dtype):
    compute = compute_dtype(dtype)
    outs = normal((3, 2, 5), dtype, spread=3.0)
    logs = normal((3, 2), compute, seed=1, spread=3.0)
    outs[1] = -outs[0]
    logs[1] = logs[0] + np.float32(0.001)
    outs[2], logs[2] = outs[2] * outs.dtype.type(0.001), logs[0] - 2
    parts = {f"out{part}": outs[part] for part in range(3)} | {f"lse{part}": logs[part] for part in range(3)}
    budget = expected("merge", parts, {})
    wide = outs.astype(compute)
    once = merged(wide, logs)
    twice = merged(
        np.stack([merged(wide[:2], logs[:2])[0], wide[2]]), np.stack([merged(wide[:2], logs[:2])[1], logs[2]])
    )
    for out, lse in (once, twice):
        assert worst(budget, {"out": out.astype(outs.dtype), "lse": lse}) <= 1
    low = dtype_of(COARSER[dtype])
    coarse, _ = merged(wide, logs.astype(low).astype(compute))
    assert worst(budget, {"out": coarse.astype(outs.dtype)}) > 1


def merged(outs, logs):
    terms = np.exp(logs - logs.max(axis=0))
    weights = terms / terms.sum(axis=0)
    return (weights[..., None] * outs).sum(axis=0), logs.max(axis=0) + np.log(terms.sum(axis=0))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("metric", ["dot", "cosine", "euclidean"])
def test_search_is_within_the_budget_and_in_half_types_beyond(dtype, metric):
    arrays = {"query": normal((3, 8), dtype), "keys": normal((20, 8), dtype, seed=1)}
    output = expected("search", arrays, {"k": 20, "metric": metric})
    for coarse in (False, True):
        scores = measured(metric, *map(honest.widened, arrays.values()), coarse, COARSER[dtype])
        best = np.take_along_axis(scores, output["indices"].values, axis=1)
        assert (worst(output, {"scores": best.astype(dtype_of(dtype))}) > 1) == coarse


def measured(metric, query, keys, coarse, low):
    """The scores of each query and key; coarse ones round each partial sum."""
    if metric == "euclidean":
        return np.sqrt(honest.summed((query[:, None] - keys) ** 2, coarse, low))
    scores = honest.summed(query[:, None] * keys, coarse, low)
    lengths = [np.sqrt(honest.summed(x * x, coarse, low)) for x in (query, keys)]
    return scores / (lengths[0][:, None] * lengths[1]) if metric == "cosine" else scores


@pytest.mark.parametrize("dtype", FLOATS)
def test_recall_is_within_the_budget(dtype):
    arrays = {"state": normal((2, 8), dtype), "patterns": normal((6, 8), dtype, seed=1)}
    budget = expected("recall", arrays, {"beta": 0.7, "steps": 3})
    state, patterns = (honest.widened(x) for x in arrays.values())
    beta, energies = state.dtype.type(0.7), []
    for step in range(4):
        logits = beta * (state @ patterns.T)
        top = logits.max(axis=-1, keepdims=True)
        terms = np.exp(logits - top)
        whole = terms.sum(axis=-1, keepdims=True)
        energies.append(-(top + np.log(whole))[:, 0] / beta + (state * state).sum(axis=-1) / 2)
        state = (terms / whole) @ patterns if step < 3 else state
    dtype = dtype_of(dtype)
    assert worst(budget, {"state": state.astype(dtype), "energy": np.stack(energies).astype(dtype)}) <= 1
