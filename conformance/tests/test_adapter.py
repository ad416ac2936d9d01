"""Adapters are judged: bits survive the way in and out, every operation is called, names lead to backends."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from conformance import adapter
from conformance.adapters import rules
from conformance.compare import same_bits
from conformance.contract import OPERATIONS
from conformance.facts import dtype_of, normal
from conformance.tests.backends import Doubling

DTYPES = ("float16", "bfloat16", "float32", "float64", "bool", "uint8", "int32", "int64", "complex64")
RULES = {
    "causal(1)": {"rule": "causal", "offset": 1},
    "window(2, None, offset=1)": {"rule": "window", "left": 2, "right": None, "offset": 1},
    "padding([1, 2])": {"rule": "padding", "lengths": "short"},
    "segments([[0, 1]], [[0, 0, 1]])": {"rule": "segments", "q_ids": "ids", "k_ids": "other"},
    "segments([[0, 1]], [[0, 1]])": {"rule": "segments", "q_ids": "ids", "k_ids": None},
    "prefix(1) | causal(0) | dilated(2)": {
        "rule": "or",
        "of": [{"rule": "prefix", "length": 1}, {"rule": "causal"}, {"rule": "dilated", "step": 2}],
    },
    "~(window(1, 1) & chunked(2))": {
        "rule": "not",
        "of": [{"rule": "and", "of": [{"rule": "local", "width": 3}, {"rule": "chunked", "size": 2}]}],
    },
}
RULE_ARRAYS = {"short": np.array([1, 2]), "ids": np.array([[0, 1]]), "other": np.array([[0, 0, 1]])}
Q, K, V = (normal(shape, seed=seed) for seed, shape in enumerate([(2, 3, 5), (2, 4, 5), (2, 4, 6)]))
QKV = {"q": Q, "k": K, "v": V}
CAUSAL = {"mask": {"rule": "causal", "offset": 0}}
CALLS = {
    "attention": (QKV, CAUSAL),
    "attention_steps": (QKV, {"softcap": 2.0}),
    "flash_attention": (QKV, {"block_size": [3, 5]}),
    "attention_vjp": ({**QKV, "d_out": normal((2, 3, 6)), "bias": normal((3, 4))}, {"is_causal": True}),
    "merge": ({f"{n}{i}": normal((3, 6) if n == "out" else (3,)) for n in ("out", "lse") for i in range(3)}, {}),
    "mask_array": ({"lengths": np.array([1, 2])}, {"mask": {"rule": "padding", "lengths": "lengths"}, "T": 2, "S": 3}),
    "mask_picture": ({}, {**CAUSAL, "T": 2, "S": 3}),
    "retrieve": ({"query": Q, "keys": K, "values": V}, {"top_k": 2}),
    "search": ({"query": Q, "keys": K}, {"k": 2, "metric": "cosine"}),
    "recall": ({"state": Q[0], "patterns": K[0]}, {"beta": 2.0, "steps": 3}),
    "split_heads": ({"x": V}, {"heads": 3}),
    "merge_heads": ({"x": normal((2, 3, 4, 5))}, {}),
    "repeat_kv": ({"x": normal((2, 3, 4, 5))}, {"groups": 2}),
}


@pytest.fixture
def backend(framework):
    return adapter.find(framework)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (3,), (0, 2), (2, 3)])
def test_every_bit_survives_the_way_in_and_out(backend, dtype, shape):
    array = np.asarray(normal(shape)).astype(dtype_of(dtype))
    own = backend.from_numpy(array)
    assert backend.is_own(own)
    assert same_bits(backend.to_numpy(own), array)


def test_not_a_number_and_negative_zero_survive(backend):
    array = np.array([np.nan, -0.0, np.inf, -np.inf, 5e-324])
    assert same_bits(backend.to_numpy(backend.from_numpy(array)), array)


def test_arrays_are_copied_both_ways(backend):
    array = np.ones(3, "float32")
    own = backend.from_numpy(array)
    array[0] = 2
    came = backend.to_numpy(own)
    came[1] = 3
    assert backend.to_numpy(own).tolist() == [1, 1, 1]


def test_a_strided_array_goes_in(backend):
    array = normal((3, 4)).T
    assert same_bits(backend.to_numpy(backend.from_numpy(array)), array)


def test_memory_that_is_shared_is_told_from_memory_that_is_not(backend):
    array = backend.from_numpy(np.ones((2, 3), "float32"))
    assert backend.shares_memory(array, array)
    assert not backend.shares_memory(array, backend.from_numpy(np.ones((2, 3), "float32")))
    assert not backend.shares_memory(array, array + 0)
    empty = backend.from_numpy(np.ones((0, 3), "float32"))
    assert not backend.shares_memory(empty, backend.from_numpy(np.ones((0, 3), "float32")))


def test_a_view_shares_memory_where_there_are_views(framework, backend):
    array = backend.from_numpy(np.ones((2, 3), "float32"))
    for view in (array[1:], array.reshape(3, 2).T):
        assert backend.shares_memory(view, array) == (framework != "jax")


@pytest.mark.parametrize("value", [None, 1.0, [1.0], "1", np.float32(1), SimpleNamespace(shape=())])
def test_what_is_no_array_is_not_its_own(backend, value):
    assert not backend.is_own(value)


def test_an_array_of_another_framework_is_not_its_own(backend):
    assert backend.is_own(np.ones(2)) == (backend.name == "numpy")


def test_every_operation_has_a_call_here():
    assert set(CALLS) == set(OPERATIONS)


@pytest.mark.parametrize("op", OPERATIONS)
def test_every_operation_returns_all_its_outputs_in_its_own_kind(backend, op):
    arrays, options = CALLS[op]
    outputs = backend.call(op, {name: backend.from_numpy(array) for name, array in arrays.items()}, options)
    assert tuple(outputs) == backend.outputs(op) == OPERATIONS[op].outputs
    assert all(
        isinstance(value, str) if name == "picture" else backend.is_own(value) for name, value in outputs.items()
    )


def test_the_gradient_of_a_bias_is_left_out_where_there_is_none(backend):
    arrays = {name: backend.from_numpy(array) for name, array in {**QKV, "d_out": normal((2, 3, 6))}.items()}
    assert set(backend.call("attention_vjp", arrays, {})) == {"dq", "dk", "dv"}


def test_an_unknown_option_reaches_the_library(backend):
    arrays = {name: backend.from_numpy(array) for name, array in QKV.items()}
    with pytest.raises(TypeError, match="dropout"):
        backend.call("attention", arrays, {"dropout": 0.1})


@pytest.mark.parametrize("printed", RULES)
def test_a_rule_is_built_with_the_package_s_own_functions(backend, printed):
    arrays = {name: backend.from_numpy(array) for name, array in RULE_ARRAYS.items()}
    assert repr(rules.build(backend.package, RULES[printed], arrays)) == printed


def test_the_arrays_of_a_rule_are_named_with_their_axes():
    spec = {"rule": "and", "of": [RULES["padding([1, 2])"], {"rule": "not", "of": [RULES[list(RULES)[3]]]}]}
    assert rules.array_names(spec) == {"short": 0, "ids": 1, "other": 1}
    assert rules.array_names(RULES["causal(1)"]) == rules.array_names(None) == {}


def test_info_names_what_ran(backend):
    info = backend.info()
    assert {"python", backend.name} <= set(info["versions"])
    assert info["device"] == "cpu"


def test_jax_refuses_to_change_a_dtype():
    jax = pytest.importorskip("jax")
    backend = adapter.find("jax")
    with jax.enable_x64(False), pytest.raises(TypeError, match="jax_enable_x64"):
        backend.from_numpy(np.ones(2))


def test_the_built_in_names_are_known():
    assert {"numpy", "torch", "jax", "torch-sdpa"} <= set(adapter.known())


def test_an_entry_point_is_found(monkeypatch):
    point = SimpleNamespace(name="mine", load=lambda: Doubling)
    monkeypatch.setattr(adapter, "entry_points", lambda group, name="mine": [point] if name == "mine" else [])
    assert "mine" in adapter.known()
    assert adapter.find("mine").name == "doubling"


def test_an_object_of_a_module_is_found():
    assert adapter.find("conformance.tests.backends:Doubling").name == "doubling"


@pytest.mark.parametrize("spec", ["nonsense", "", ":", "module:", ":object"])
def test_an_unknown_name_lists_the_known_ones(spec):
    with pytest.raises(LookupError, match=r"unknown backend .*jax.*numpy.*torch.*torch-sdpa.*module:object"):
        adapter.find(spec)


def test_an_unknown_variant_is_refused():
    with pytest.raises(LookupError, match="the backend 'numpy' has no variant 'fast'"):
        adapter.find("numpy:fast")


def test_an_unknown_object_is_refused():
    with pytest.raises(LookupError, match="has no object 'Nothing'"):
        adapter.find("conformance.tests.backends:Nothing")
