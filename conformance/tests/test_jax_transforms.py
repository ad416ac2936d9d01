"""JAX's transforms on impl_jax: jit, vmap, both modes of differentiation, and their products."""

from __future__ import annotations

import numpy as np
import pytest

import impl_numpy

jax = pytest.importorskip("jax", reason="jax is not installed")
impl_jax = pytest.importorskip("impl_jax")

import jax.numpy as jnp  # noqa: E402 - after the skip
from jax.test_util import check_grads  # noqa: E402

from conformance.tests.jax_functions import (  # noqa: E402
    H,
    S,
    T,
    dense,
    everything,
    holes,
    loss,
    normal,
    qkv,
    query_and_keys,
    same,
    tiled,
    variables,
)

both = pytest.mark.parametrize("attend", [dense, tiled])


# --- the same numbers as NumPy ---------------------------------------------------------------------------

FORMS = {
    "plain": lambda package, array: {},
    "everything": lambda package, array: {
        "mask": array(holes()),
        "bias": array(normal(2, H, T, S, seed=6)),
        "sinks": array(normal(H, seed=5)),
        **{"is_causal": True, "softcap": 1.5, "scale": -0.3},
    },
    "window": lambda package, array: {
        "mask": package.window(2, 1) | package.prefix(2) & ~package.dilated(3),
        "bias": array(np.where(normal(H, T, S, seed=9) > 0, 0.3, -np.inf)),
    },
    "padding": lambda package, array: {
        "mask": package.padding(array(np.array([[3], [0]]))) & package.chunked(4),
        "bias": array(normal(S, seed=7)),
        "scale": 0,
    },
    "segments": lambda package, array: {
        "mask": package.segments(array(np.arange(T) // 2), array(np.arange(S) // 3)),
        "bias": array(normal(T, 1, seed=8)),
        "sinks": array(np.array(0.4)),
    },
}


@pytest.mark.parametrize("form", FORMS)
def test_numbers_and_gradients_are_those_of_numpy(form):
    d_out = normal(2, H, T, 6, seed=10)
    theirs = FORMS[form](impl_numpy, np.asarray) | {"enable_gqa": True}
    ours = FORMS[form](impl_jax, jnp.asarray) | {"enable_gqa": True}
    steps = impl_numpy.attention_steps(*qkv(), **theirs)
    gradients = impl_numpy.attention_vjp(*qkv(), d_out, **theirs)
    arrays = *map(jnp.asarray, qkv()), jnp.asarray(d_out)
    assert same(impl_jax.attention_vjp(*arrays, **ours), gradients)
    bias = ours.pop("bias", None)
    for attend in (dense, tiled):
        out, pull, lse = jax.vjp(lambda *x: attend(*x[:3], bias=x[3], **ours), *arrays[:3], bias, has_aux=True)  # noqa: B023
        assert same((out, lse), (steps.out, steps.lse))
        assert same(pull(arrays[3]), gradients)


# --- derivatives -----------------------------------------------------------------------------------------


@both
def test_first_and_second_derivatives_are_those_of_differences(attend):
    check_grads(jax.jit(everything(attend)), variables(), order=1)
    gradient = jax.jit(jax.grad(loss(attend), tuple(range(7))))
    check_grads(gradient, variables(), order=1)


def test_the_hessian_is_symmetric_the_same_over_tiles_and_zero_in_an_empty_row():
    q, *rest = variables()
    dense_hessian, tiled_hessian = (jax.jit(jax.hessian(loss(attend)))(q, *rest) for attend in (dense, tiled))
    rows = dense_hessian.reshape(q.size, q.size)
    assert same(rows, rows.T)
    assert same(dense_hessian, tiled_hessian)
    assert not dense_hessian[0, :, 1].any()
    assert dense_hessian[0, :, 2].any()


OTHERS = {
    "merge": lambda query, keys: impl_jax.merge([dense(query, keys, keys), dense(query, -keys, keys)]),
    "merge with nothing": lambda query, keys: impl_jax.merge(
        [dense(query, keys, keys), (query * 0, query[..., 0] - jnp.inf)]
    ),
    "retrieve": lambda query, keys: impl_jax.retrieve(query, keys, mask=impl_jax.causal(-1))[:2],
    "retrieve the best": lambda query, keys: impl_jax.retrieve(query, keys, top_k=3, mask=impl_jax.causal(-1))[:2],
    "search by dot": lambda query, keys: impl_jax.search(query, keys, 3).scores,
    "search by cosine": lambda query, keys: impl_jax.search(query, keys, 3, metric="cosine").scores,
    "search by distance": lambda query, keys: impl_jax.search(query, keys, 3, metric="euclidean").scores,
    "recall": lambda query, keys: impl_jax.recall(query, keys[0], beta=2.0, steps=2),
    "recall nothing": lambda query, keys: impl_jax.recall(query, keys[0], steps=0),
    "attention_vjp": lambda query, keys: impl_jax.attention_vjp(query, keys, keys, query, is_causal=True)[:3],
    "heads": lambda query, keys: impl_jax.repeat_kv(impl_jax.split_heads(query, 3), 2),
    "merge_heads": lambda query, keys: impl_jax.merge_heads(query[..., None, :] * keys[:, None, :T]),
}


@pytest.mark.parametrize("name", OTHERS)
def test_the_other_functions_have_derivatives_in_both_modes(name):
    check_grads(jax.jit(OTHERS[name]), query_and_keys(), order=1)


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_a_search_has_no_nan_in_its_gradient_where_its_slope_has_no_value(metric):
    keys = jnp.array([[0.0, 0.0], [1.0, 2.0]])
    gradient = jax.grad(lambda query: impl_jax.search(query, keys, 2, metric=metric).scores.sum())(keys)
    assert np.isfinite(gradient).all()


# --- jit and vmap ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OTHERS)
def test_jit_and_vmap_give_what_the_call_gives(name):
    query, keys = query_and_keys()
    expected = OTHERS[name](query, keys)
    assert same(jax.jit(OTHERS[name])(query, keys), expected)
    each = [OTHERS[name](query[i : i + 1], keys[i : i + 1]) for i in range(2)]
    found = jax.vmap(OTHERS[name])(query[:, None], keys[:, None])
    assert same(found, jax.tree.map(lambda *x: jnp.stack(x), *each))


@both
@pytest.mark.parametrize("where", ["array", "rule", "lengths"])
def test_vmap_and_grad_go_together(attend, where):
    lengths = jnp.array([[2], [6]])
    given, make = {
        "array": (jnp.asarray(holes()), lambda mask: mask),
        "rule": (impl_jax.padding(lengths) & impl_jax.causal(1), lambda rule: rule),
        "lengths": (lengths, lambda lengths: impl_jax.padding(lengths) & impl_jax.causal(1)),
    }[where]
    q, k, v, bias, *_ = variables()

    def gradient(q, k, v, given):
        return jax.grad(lambda *x: attend(*x, make(given), bias=bias, enable_gqa=True)[0].sum(), (0, 1, 2))(q, k, v)

    assert same(jax.jit(jax.vmap(gradient))(q, k, v, given), gradient(q, k, v, given))
