"""The assertion for other projects is judged: it accepts what is right, and a failure says what is wrong."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

import conformance
import impl_numpy
from conformance import assert_attention_close
from conformance.facts import dtype_of, normal

Q, K, V = (normal(shape, seed=seed) for seed, shape in enumerate([(2, 4, 3, 5), (2, 2, 7, 5), (2, 2, 7, 6)]))
GQA = {"enable_gqa": True}
MASK = np.tri(3, 7, 2, dtype=bool)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"mask": MASK, "bias": normal((3, 7)), "scale": 0.0},
        {"mask": impl_numpy.causal(2) & impl_numpy.padding(np.array([[3], [5]]))},
        {"is_causal": True, "softcap": 2.0, "sinks": normal((4,))},
    ],
)
def test_what_is_right_is_accepted(options):
    out, weights = impl_numpy.attention(Q, K, V, **options, **GQA)
    _, lse = impl_numpy.flash_attention(Q, K, V, **options, **GQA)
    assert_attention_close(out, Q, K, V, **options, **GQA)
    assert_attention_close(weights, Q, K, V, **options, **GQA, output="weights")
    assert_attention_close(lse, Q, K, V, **options, **GQA, output="lse")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_arrays_of_each_framework_and_dtype_are_accepted(framework, dtype):
    package = importlib.import_module(f"impl_{framework}")
    from conformance.adapter import find

    backend = find(framework)
    q, k, v = (backend.from_numpy(array.astype(dtype_of(dtype))) for array in (Q[0, :2], K[0], V[0]))
    assert_attention_close(package.attention(q, k, v)[0], q, k, v)
    with pytest.raises(AssertionError, match=r"out: .* elements differ"):
        assert_attention_close(package.attention(q, k, v, scale=1.0)[0], q, k, v)


def test_a_failure_names_the_index_both_numbers_the_budget_and_the_call():
    out, _ = impl_numpy.attention(Q, K, V, **GQA)
    out[1, 2, 0, 4] += 0.01
    with pytest.raises(AssertionError) as failure:
        assert_attention_close(out, Q, K, V, **GQA)
    first, second = str(failure.value).splitlines()
    assert first.startswith("out: 1 of 144 elements differ, the worst by ")
    assert "first at (1, 2, 0, 4): expected " in first and ", got " in first and ", budget " in first
    assert second.startswith("attention(q float32 (2, 4, 3, 5), k float32 (2, 2, 7, 5), v float32 (2, 2, 7, 6), ")


def test_another_dtype_and_a_list_are_no_attention():
    out, _ = impl_numpy.attention(Q, K, V, **GQA)
    with pytest.raises(AssertionError, match="the dtype is float64, expected float32"):
        assert_attention_close(out.astype("float64"), Q, K, V, **GQA)
    with pytest.raises(AssertionError, match="got a list"):
        assert_attention_close(out.tolist(), Q, K, V, **GQA)


def test_what_is_too_large_for_scalar_loops_is_refused():
    q = np.zeros((8, 512, 64), "float32")
    with pytest.raises(ValueError, match=r"268,435,456 products, .* 8,000,000 at most: compare a part"):
        assert_attention_close(q, q, q, q)


@pytest.mark.parametrize(
    ("wrong", "error", "said"),
    [
        ({"mask": np.ones((3, 6), bool)}, ValueError, "mask"),
        ({"mask": [[True] * 7] * 3}, TypeError, "mask"),
        ({"scale": np.nan}, ValueError, "scale"),
        ({"output": "lsa"}, ValueError, "none of out, weights, lse"),
    ],
)
def test_wrong_arguments_are_refused_as_the_contract_does(wrong, error, said):
    out, _ = impl_numpy.attention(Q, K, V, **GQA)
    with pytest.raises(error, match=said):
        assert_attention_close(out, Q, K, V, **GQA, **wrong)


def test_the_package_has_nothing_else_that_is_public():
    assert conformance.__all__ == ["assert_attention_close"]
    with pytest.raises(AttributeError, match="no attribute 'assert_close'"):
        _ = conformance.assert_close
