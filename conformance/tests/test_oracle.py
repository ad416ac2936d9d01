"""The oracle against values found on paper, and on what it must never read."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from conformance.arithmetic import Plain, Precise
from conformance.facts import array, compute_dtype, identity, normal, zeros
from conformance.oracle import evaluate
from conformance.tests.evaluating import run, small

NAN, INF = math.nan, math.inf


def weights_of(options=None, keys=3, **arrays):
    """The weights of two zero queries over that many keys: what is visible, each row divided by its number."""
    q, k, v = zeros((2, 4)), zeros((keys, 4)), identity(keys)
    return run("attention", {"q": q, "k": k, "v": v, **arrays}, options)["weights"]


def test_two_keys_share_by_the_exponentials_of_their_scores():
    arrays = {"q": array([[1, 0]]), "k": identity(2), "v": array([[10, 0, 1], [0, 10, 1]])}
    outputs = run("attention", arrays, {"scale": math.log(3)})
    assert outputs["weights"] == pytest.approx(np.array([[3 / 4, 1 / 4]]))
    assert outputs["out"] == pytest.approx(np.array([[7.5, 2.5, 1]]))
    assert outputs["lse"] == pytest.approx(np.array([math.log(4)]))


@pytest.mark.parametrize(("scale", "first"), [(None, 0.66976155), (0.0, 0.5), (1.0, 0.73105858), (-1.0, 0.26894142)])
def test_the_scale_is_one_over_the_root_of_the_features_unless_given(scale, first):
    arrays = {"q": array([[1, 0]]), "k": identity(2), "v": identity(2)}
    given = {} if scale is None else {"scale": np.array(scale)}
    assert run("attention", arrays, {"scale": scale})["weights"][0, 0] == pytest.approx(first)
    assert run("attention", arrays | given)["weights"][0, 0] == pytest.approx(first)


def test_the_steps_are_scale_softcap_bias_mask_in_this_order():
    arrays = {
        "q": array([[2.0]]),
        "k": array([[3.0], [1.0]]),
        "v": array([[1.0], [5.0]]),
        "bias": array([[1.0, 7.0]]),
        "mask": array([[1, 0]], "bool"),
    }
    steps = run("attention_steps", arrays, {"scale": 0.5, "softcap": 2.0})
    assert steps["scores"].tolist() == [[3.0, 1.0]]
    assert steps["capped"] == pytest.approx(np.array([[2 * math.tanh(1.5), 2 * math.tanh(0.5)]]))
    assert steps["biased"] == pytest.approx(steps["capped"] + [[1.0, 7.0]])
    assert steps["masked"].tolist() == [[steps["biased"][0, 0], -INF]]
    assert steps["weights"].tolist() == [[1.0, 0.0]]
    assert steps["lse"].tolist() == [steps["biased"][0, 0]]
    assert steps["out"].tolist() == [[1.0]]


def test_query_heads_share_key_heads_in_runs():
    arrays = {"q": zeros((4, 1, 2)), "k": zeros((2, 1, 2)), "v": array([[[10.0]], [[20.0]]])}
    assert run("attention", arrays, {"enable_gqa": True})["out"].ravel().tolist() == [10, 10, 20, 20]


def test_leading_axes_broadcast():
    arrays = {"q": zeros((3, 1, 2, 4)), "k": zeros((5, 6, 4)), "v": normal((1, 6, 7))}
    outputs = run("attention", arrays)
    assert {name: array.shape for name, array in outputs.items()} == {
        "out": (3, 5, 2, 7),
        "weights": (3, 5, 2, 6),
        "lse": (3, 5, 2),
    }
    assert outputs["out"][2, 4, 1] == pytest.approx(arrays["v"][0].mean(axis=0, dtype=np.float64))


def test_a_sink_takes_weight_and_has_no_value():
    arrays = {"q": zeros((2, 1, 4)), "k": zeros((2, 3, 4)), "v": np.ones((2, 3, 1), np.float32)}
    outputs = run("attention", arrays | {"sinks": array([0.0, -INF])})
    assert outputs["out"].ravel() == pytest.approx(np.array([3 / 4, 1]))
    assert outputs["lse"].ravel() == pytest.approx(np.log([4, 3]))


@pytest.mark.parametrize(("sinks", "lse"), [({}, -INF), ({"sinks": array(1.5)}, 1.5)])
def test_an_empty_row_is_zero(sinks, lse):
    arrays = {"q": zeros((2, 4)), "k": zeros((0, 4)), "v": zeros((0, 3)), **sinks}
    outputs = run("attention", arrays)
    assert outputs["out"].tolist() == [[0, 0, 0]] * 2
    assert outputs["weights"].shape == (2, 0)
    assert outputs["lse"].tolist() == [lse] * 2


def test_mask_rule_bias_and_is_causal_must_all_allow_a_pair():
    mask = array([[1, 1, 0]], "int32")
    bias = array([[0, 0, 0], [-INF, 0, 0]], "float64")
    options = {"is_causal": True, "mask": {"rule": "prefix", "length": 2}}
    assert weights_of({}, mask=mask).tolist() == [[0.5, 0.5, 0]] * 2
    assert weights_of({"is_causal": True}).tolist() == [[1, 0, 0], [0.5, 0.5, 0]]
    assert weights_of(options, mask=mask, bias=bias).tolist() == [[1, 0, 0], [0, 1, 0]]


def test_a_bias_hides_once_it_is_converted_to_the_compute_dtype():
    lowest = np.finfo(np.float64).min
    assert weights_of(bias=array([[0, 0, lowest]], "float64")).tolist() == [[0.5, 0.5, 0]] * 2
    assert weights_of(bias=array([[lowest] * 3], "float64")).tolist() == [[0, 0, 0]] * 2


@pytest.mark.parametrize("poison", [NAN, INF, -INF])
def test_nothing_at_a_hidden_pair_is_read(poison):
    arrays = small() | {"bias": normal((4, 2, 5), "float64"), "d_out": normal((4, 2, 2), "float64")}
    options = {"enable_gqa": True, "is_causal": True}
    clean = run("attention_vjp", arrays, options) | run("attention", arrays, options)
    for name in ("k", "v", "bias"):
        arrays[name] = arrays[name].copy()
    arrays["k"][:, 2:] = arrays["v"][:, 2:] = poison
    arrays["bias"][..., 2:] = poison
    arrays["bias"][:, 0, 1] = poison
    poisoned = run("attention_vjp", arrays, options) | run("attention", arrays, options)
    for name, values in clean.items():
        assert np.array_equal(values, poisoned[name]), name


@pytest.mark.parametrize("name", ["q", "k"])
def test_a_visible_infinity_spoils_the_rows_that_see_it(name):
    arrays = {"q": zeros((2, 4)), "k": zeros((2, 4)), "v": zeros((2, 3))}
    arrays[name][1, 2] = INF
    outputs = run("attention", arrays, {"is_causal": True})
    assert np.isfinite(outputs["out"][0]).all()
    assert np.isnan(outputs["out"][1]).all() and np.isnan(outputs["lse"][1])
    assert np.isnan(outputs["weights"]).tolist() == [[False, False], [True, True]]


def test_a_visible_nan_value_spoils_its_feature_alone():
    arrays = {"q": zeros((2, 4)), "k": zeros((2, 4)), "v": zeros((2, 3))}
    arrays["v"][1, 2] = -INF
    outputs = run("attention", arrays, {"is_causal": True})
    assert np.isnan(outputs["out"]).tolist() == [[False] * 3, [False, False, True]]
    assert outputs["weights"].tolist() == [[1, 0], [0.5, 0.5]]


OVERFLOWS = [("float16", 6e4, False), ("bfloat16", 1e20, True), ("float32", 1e20, True), ("float64", 1e200, True)]


@pytest.mark.parametrize(("dtype", "large", "overflows"), OVERFLOWS)
def test_a_score_beyond_the_compute_dtype_is_infinite(dtype, large, overflows):
    """A row with +inf has no value; -inf beside a number has weight 0. float32 holds all products of float16."""
    arrays = {"q": array([[large], [-large]], dtype), "k": array([[large], [0]], dtype), "v": identity(2, dtype)}
    weights = run("attention", arrays, arithmetic=Precise(compute_dtype(dtype)))["weights"]
    expected = [[NAN, NAN] if overflows else [1, 0], [0, 1]]
    assert np.array_equal(weights, np.array(expected), equal_nan=True)


def test_a_row_of_nothing_but_minus_infinity_is_no_empty_row():
    arrays = {"q": array([[-1e20]]), "k": array([[1e20]]), "v": array([[1.0]])}
    assert np.isnan(run("attention", arrays)["out"]).all()


def test_keys_split_anywhere_merge_to_the_whole():
    arrays = {"q": normal((2, 3)), "k": normal((5, 3), seed=1), "v": normal((5, 2), seed=2)}
    whole = run("attention", arrays)
    for cuts in itertools.combinations(range(1, 5), 2):
        parts = {}
        for place, (start, stop) in enumerate(zip((0, *cuts), (*cuts, 5), strict=True)):
            part = run("attention", arrays | {name: arrays[name][start:stop] for name in "kv"})
            parts |= {f"out{place}": part["out"], f"lse{place}": part["lse"]}
        merged = run("merge", parts)
        assert merged["out"] == pytest.approx(whole["out"]) and merged["lse"] == pytest.approx(whole["lse"])


def test_a_part_without_keys_has_no_weight_whatever_its_output():
    part = {"out0": array([[1.0, 2.0]]), "lse0": array([3.0])}
    empty = {"out1": array([[NAN, INF]]), "lse1": array([-INF])}
    merged = run("merge", part | empty)
    assert merged["out"].tolist() == [[1, 2]] and merged["lse"].tolist() == [3]
    nothing = run("merge", {"out0": empty["out1"], "lse0": empty["lse1"]})
    assert nothing["out"].tolist() == [[0, 0]] and nothing["lse"].tolist() == [-INF]


def test_a_nan_in_a_merge_counts():
    part = {"out0": array([[1.0, 2.0]]), "lse0": array([3.0]), "out1": array([[NAN, 2.0]]), "lse1": array([3.0])}
    assert np.isnan(run("merge", part)["out"]).tolist() == [[True, False]]
    assert np.isnan(run("merge", part | {"lse1": array([NAN])})["lse"]).all()


@pytest.mark.parametrize("op", ["attention", "attention_vjp"])
def test_floats_and_mpmath_agree(op):
    arrays = small() | {"d_out": normal((4, 2, 2), "float64"), "bias": normal((2, 5), "float64", seed=3)}
    options = {"enable_gqa": True, "softcap": 3.0}
    plain, precise = run(op, arrays, options), run(op, arrays, options, Precise())
    for name in plain:
        assert plain[name] == pytest.approx(precise[name], rel=1e-12, abs=1e-14), name


def test_an_unknown_operation_is_refused():
    with pytest.raises(ValueError, match="no operation 'attend'"):
        evaluate("attend", {}, {}, Plain())
