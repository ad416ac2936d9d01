"""What the three implementations promise alike beyond the cases: kinds of arguments, memory of their own, distances."""

from __future__ import annotations

import importlib
from fractions import Fraction

import numpy as np
import pytest

from conformance.adapter import find


@pytest.fixture
def package(framework):
    """The implementation that is written in the framework."""
    return importlib.import_module(f"impl_{framework}")


@pytest.fixture
def own(framework):
    """What makes an array of the framework's kind."""
    backend = find(framework)
    return lambda values, dtype="float32": backend.from_numpy(np.array(values, dtype))


def qkv(own):
    return own(np.ones((3, 2))), own(np.ones((4, 2))), own(np.ones((4, 1)))


# --- kinds of arguments ----------------------------------------------------------------------------------


class Visible:
    """Something else that has the method of a rule, as the rules of the other two packages have it."""

    def visible(self, query, key):
        return key <= query


def test_a_rule_of_another_package_is_no_rule(package, own):
    for mask in (Visible(), package.Mask, package.causal):
        with pytest.raises(TypeError, match=f"a mask rule of {package.__name__} such as causal"):
            package.attention(*qkv(own), mask)


@pytest.mark.parametrize("number", [10**400, -(10**400), Fraction(10**400)])
def test_a_number_beyond_every_float_is_not_finite(package, own, number):
    with pytest.raises(ValueError, match="scale must be finite"):
        package.attention(*qkv(own), scale=number)
    with pytest.raises(ValueError, match="beta must be finite"):
        package.recall(*qkv(own)[:2], beta=number)


@pytest.mark.filterwarnings("ignore:the matrix subclass")
@pytest.mark.parametrize("other", [np.ma.masked_array, np.matrix])
def test_a_numpy_array_with_rules_of_its_own_is_refused(other):
    impl_numpy = importlib.import_module("impl_numpy")
    q, k, v = qkv(np.array)
    with pytest.raises(TypeError, match=f"q must be a numpy.ndarray, got {other(q).__class__.__name__}"):
        impl_numpy.attention(other(q), k, v)


def test_outputs_of_numpy_are_plain_arrays():
    impl_numpy = importlib.import_module("impl_numpy")
    q, k, v, bias = (x.view(type("Own", (np.ndarray,), {})) for x in (*qkv(np.array), np.zeros((3, 4))))
    outputs = [*impl_numpy.attention_steps(q, k, v, bias=bias), *impl_numpy.recall(q, k, steps=0)]
    outputs += [impl_numpy.repeat_kv(q[None], 2), impl_numpy.split_heads(q, 1), impl_numpy.merge_heads(q[None])]
    assert {type(x) for x in outputs} == {np.ndarray}


def test_the_parts_of_a_merge_lie_on_one_device():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    impl_torch = importlib.import_module("impl_torch")
    with pytest.raises(ValueError, match=r"parts\[0\] lse on meta"):
        impl_torch.merge([(torch.ones(2, 3), torch.ones(2, device="meta"))])


# --- what belongs to whom --------------------------------------------------------------------------------


CALLS = {
    "split": lambda package, x: package.split_heads(x, 1),
    "merge": lambda package, x: package.merge_heads(x),
    "repeat": lambda package, x: package.repeat_kv(x, 1),
    "recall": lambda package, x: package.recall(x, x[0, 0], steps=0).state,
    "parts": lambda package, x: package.merge([(x, x[..., 0])])[0],
}


@pytest.mark.parametrize("framework", ["numpy", "torch"])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("shape", [(1, 1, 2, 2), (1, 2, 1, 2), (2, 2, 3, 2)])
def test_no_output_shares_memory_with_an_input(framework, call, shape):
    pytest.importorskip(framework, reason=f"{framework} is not installed")
    package = importlib.import_module(f"impl_{framework}")
    x = find(framework).from_numpy(np.ones(shape, np.float32))
    call(package, x)[...] = 7
    assert (x == 1).all()


@pytest.mark.parametrize("framework", ["numpy", "torch"])
def test_a_rule_is_frozen_and_its_array_is_not(framework):
    pytest.importorskip(framework, reason=f"{framework} is not installed")
    package = importlib.import_module(f"impl_{framework}")
    lengths = find(framework).from_numpy(np.array([1, 2]))
    rule = package.padding(lengths)
    lengths[0] = 5
    assert repr(rule) == "padding([1, 2])"
    shown = package.prefix(1).array(2, 3)
    shown[0, 2] = True
    assert shown.tolist() == [[True, False, True], [True, False, False]]


# --- search ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("power", [-100, 0, 100])
def test_a_distance_is_found_where_its_square_is_no_float32(package, own, power):
    scale = 2.0**power
    keys = own(np.array([[6, 8], [0, 13], [3, 4]]) * scale)
    scores, indices = package.search(own([[0, 0]]), keys, 3, metric="euclidean")
    assert indices.tolist() == [[2, 0, 1]]
    assert scores.tolist() == [[5 * scale, 10 * scale, 13 * scale]]
