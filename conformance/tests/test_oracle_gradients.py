"""The oracle's gradients, which were derived by hand, against central differences with 50 digits."""

from __future__ import annotations

import numpy as np
import pytest

from conformance.arithmetic import Precise
from conformance.facts import array, normal, zeros
from conformance.oracle import evaluate
from conformance.tests.evaluating import run, small

EXTRAS = {
    "plain": ({}, {}),
    "scale": ({}, {"scale": -0.7}),
    "softcap": ({}, {"softcap": 1.5}),
    "sinks": ({"sinks": normal((4,), "float64", seed=6)}, {}),
    "causal": ({}, {"is_causal": True}),
    "empty row": ({"mask": array([[1, 0, 1, 1, 0], [0] * 5], "bool")}, {}),
    "bias of keys": ({"bias": normal((5,), "float64", seed=7)}, {}),
    "bias of rows": ({"bias": normal((2, 1), "float64", seed=8)}, {"softcap": 2.0}),
    "bias of heads": ({"bias": normal((4, 1, 5), "float64", seed=9)}, {"is_causal": True}),
}


@pytest.mark.parametrize("extra", EXTRAS)
def test_gradients_agree_with_central_differences(extra):
    arrays, options = EXTRAS[extra]
    arrays = small() | arrays
    options = options | {"enable_gqa": True}
    d_out = normal((4, 2, 2), "float64", seed=5)
    gradients = run("attention_vjp", arrays | {"d_out": d_out}, options, Precise())
    for name in {"q", "k", "v", "bias"} & set(arrays):
        differences = central_differences(name, arrays, options, d_out)
        assert gradients["d" + name] == pytest.approx(differences, rel=1e-12, abs=1e-15), name


def test_the_gradient_of_a_broadcast_input_is_the_sum_over_its_copies():
    arrays = {"q": normal((3, 1, 2, 4)), "k": normal((5, 6, 4), seed=1), "v": normal((6, 7), seed=2)}
    d_out = normal((3, 5, 2, 7), "float64", seed=5)
    gradients = run("attention_vjp", arrays | {"d_out": d_out})
    wide = {
        "q": np.broadcast_to(arrays["q"], (3, 5, 2, 4)),
        "k": np.broadcast_to(arrays["k"], (3, 5, 6, 4)),
        "v": np.broadcast_to(arrays["v"], (3, 5, 6, 7)),
    }
    copies = run("attention_vjp", wide | {"d_out": d_out})
    assert gradients["dq"] == pytest.approx(copies["dq"].sum(axis=1, keepdims=True))
    assert gradients["dk"] == pytest.approx(copies["dk"].sum(axis=0))
    assert gradients["dv"] == pytest.approx(copies["dv"].sum(axis=(0, 1)))


def test_gradients_of_what_no_query_sees_are_zero():
    mask = array([[1, 1, 0, 0, 0], [0] * 5], "bool")
    arrays = small() | {"mask": mask, "bias": zeros((2, 5)), "d_out": normal((4, 2, 2))}
    gradients = run("attention_vjp", arrays, {"enable_gqa": True})
    assert not gradients["dk"][:, 2:].any() and not gradients["dv"][:, 2:].any()
    assert not gradients["dq"][:, 1].any()
    assert not gradients["dbias"][~mask].any()


def central_differences(name, arrays, options, d_out):
    """The derivative of sum(out * d_out) by each element of that input, with 50 digits."""
    step = 2.0**-30
    slopes = np.empty(arrays[name].shape)
    for at in np.ndindex(slopes.shape):
        above, below = (loss(arrays | {name: moved(arrays[name], at, by)}, options, d_out) for by in (step, -step))
        width = moved(arrays[name], at, step)[at] - moved(arrays[name], at, -step)[at]
        slopes[at] = float((above - below) / width)
    return slopes


def moved(values, at, by):
    values = values.copy()
    values[at] += by
    return values


def loss(arrays, options, d_out):
    arithmetic = Precise()
    out = evaluate("attention", arrays, options, arithmetic)["out"].cells
    return arithmetic.dot(out, [arithmetic.number(x) for x in d_out.ravel().tolist()])
