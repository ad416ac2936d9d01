"""What impl_jax promises beyond its numbers: hidden pairs, tracing, memory, 32 bits, and optimised programs."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="jax is not installed")
impl_jax = pytest.importorskip("impl_jax")

import jax.numpy as jnp  # noqa: E402 - after the skip
from jax.extend.core import jaxprs_in_params  # noqa: E402

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
    same_bits,
    tiled,
    variables,
)

both = pytest.mark.parametrize("attend", [dense, tiled])


# --- tracing ---------------------------------------------------------------------------------------------


@both
def test_the_program_does_not_depend_on_numbers_lengths_or_the_values_of_masks(attend, monkeypatch):
    traced = []
    for name in ("attention", "flash"):
        module = importlib.import_module(f"impl_jax.{name}")
        prepare = module.prepare
        monkeypatch.setattr(module, "prepare", lambda *args, prepare=prepare: traced.append(1) or prepare(*args))
    q = jnp.asarray(normal(3, 9, 2))
    for i in range(4):
        rule = impl_jax.padding(jnp.array([i, 5, 9])) | impl_jax.segments(jnp.arange(9) // (i + 1))
        attend(q, q, q, rule, scale=(0.5, 2, -1.0, np.float32(0.3))[i], softcap=1.0 + i)
    assert len(traced) == 1
    for i in range(4):
        attend(q, q, q, jnp.asarray(normal(9, 9, seed=i) > 0))
    assert len(traced) == 2


@both
def test_a_traced_mask_is_of_booleans_or_integers_and_its_ones_count(attend):
    q, k, v, *_ = variables()
    mask = jnp.asarray(holes())
    vmapped = jax.vmap(lambda mask: attend(q, k, v, mask, enable_gqa=True))
    with pytest.raises(TypeError, match="under tracing its values cannot be seen"):
        vmapped(mask[None].astype(float))
    assert same(vmapped(jnp.where(mask, 1, 7)[None]), vmapped(mask[None]))


def test_what_is_known_within_jit_is_checked_there():
    q = jnp.ones((2, T, 3))
    for options, words in (
        ({"mask": jnp.full((T, T), 0.5)}, "holds other values than 0 and 1"),
        ({"softcap": jnp.array(-1.0)}, "softcap must be > 0"),
        ({"scale": jnp.array(jnp.nan)}, "scale must be finite"),
        ({"mask": impl_jax.segments(jnp.arange(3))}, "has 3 ids"),
    ):
        with pytest.raises(ValueError, match=words):
            jax.jit(lambda q, options=options: impl_jax.attention(q, q, q, **options))(q)
    with pytest.raises(ValueError, match=r"padding\(int64\[3\]\) has the leading axes"):
        jax.jit(lambda lengths: impl_jax.attention(q, q, q, impl_jax.padding(lengths)))(jnp.arange(3))


# --- what is hidden reaches no derivative ----------------------------------------------------------------

POISONS = [np.nan, np.inf, -np.inf, 1e300]


@both
def test_what_is_hidden_reaches_no_first_or_second_derivative(attend):
    mask = holes()
    mask[:, :, :, 2] = False
    hidden = np.broadcast_to(~mask, (2, H, T, S)).all(axis=0)
    gradient = jax.grad(loss(attend, jnp.asarray(mask)), tuple(range(7)))
    ones = tuple(jnp.ones_like(x) for x in variables())
    derivatives = jax.jit(lambda *given: jax.jvp(gradient, given, ones))
    expected = derivatives(*variables())
    assert np.isfinite(np.concatenate([np.ravel(x) for x in jax.tree.leaves(expected)])).all()
    assert not any(x[:, :, 2].any() for x in expected[0][1:3])
    for poison in POISONS:
        q, k, v, bias, *rest = variables()
        k, v, bias = k.at[:, :, 2].set(poison), v.at[:, :, 2].set(poison), jnp.where(hidden, poison, bias)
        assert same_bits(derivatives(q, k, v, bias, *rest), expected)


@both
def test_an_empty_row_has_a_gradient_of_zero_whatever_comes_back_to_it(attend):
    def function(q, k, v):
        return attend(q, k, v, jnp.zeros((T, S), bool), enable_gqa=True)

    (out, lse), pull_back = jax.vjp(function, *map(jnp.asarray, qkv()))
    assert not out.any()
    assert not any(x.any() for x in pull_back((jnp.full_like(out, jnp.nan), jnp.ones_like(lse))))


@both
@pytest.mark.parametrize("name", ["q", "k", "v", "bias"])
def test_what_only_later_rows_see_reaches_no_gradient_of_the_earlier_ones(attend, name):
    rows, place = slice(0, 3), "q k v bias".split().index(name)
    gradient = jax.jit(jax.grad(loss(attend, impl_jax.causal(), rows), tuple(range(7))))
    expected = gradient(*variables())
    for poison in POISONS[:3]:
        given = list(variables())
        given[place] = given[place].at[..., 3, 3 if name == "bias" else slice(None)].set(poison)
        assert same_bits(gradient(*given), expected)


@both
@pytest.mark.parametrize("place", [1, 2, 3], ids=["k", "v", "bias"])
def test_what_is_visible_and_not_finite_is_seen_and_reaches_no_key_that_nobody_sees(attend, place):
    mask = holes()
    mask[:, :, :, 2] = False
    given = list(variables())
    given[place] = given[place].at[..., 0, 3, 1].set(jnp.nan)
    function = everything(attend, jnp.asarray(mask))
    clean, spoilt = function(*variables())[0], function(*given)[0]
    assert np.isnan(spoilt).any()
    assert same_bits(jnp.where(jnp.isnan(spoilt), 0, spoilt), jnp.where(jnp.isnan(spoilt), 0, clean))
    gradient = jax.jit(jax.grad(lambda *given: (function(*given)[0] ** 2).sum(), (1, 2)))(*given)
    assert not any(x[:, :, 2].any() for x in gradient)


@pytest.mark.parametrize("metric", ["dot", "cosine", "euclidean", "retrieve", "best"])
def test_a_hidden_key_reaches_no_gradient_of_retrieval(metric):
    query, keys = query_and_keys()

    def function(query, keys):
        if metric in ("retrieve", "best"):
            found = impl_jax.retrieve(query, keys, mask=impl_jax.prefix(4), top_k=5 if metric == "best" else None)
            return found.output.sum() + found.weights.sum()
        scores = impl_jax.search(query, keys, 5, mask=impl_jax.prefix(4), metric=metric).scores
        return jnp.where(jnp.isfinite(scores), scores, 0).sum()

    gradient = jax.jit(jax.grad(function, (0, 1)))
    expected = gradient(query, keys)
    assert not expected[1][:, 4:].any()
    for poison in POISONS:
        assert same_bits(gradient(query, keys.at[:, 5].set(poison)), expected)


# --- memory, precision and optimisation ------------------------------------------------------------------


def largest(jaxpr):
    """The size of the largest array that a program makes, with all its parts."""
    sizes = [np.prod(x.aval.shape) for eqn in jaxpr.eqns for x in eqn.outvars]
    return max(sizes + [largest(part) for eqn in jaxpr.eqns for part in jaxprs_in_params(eqn.params)], default=0)


def test_tiles_hold_no_array_of_all_pairs_forward_or_backward():
    length, width = 2048, 4
    arrays = [jax.ShapeDtypeStruct((length, width), jnp.float32)] * 3

    def function(q, k, v):
        return impl_jax.flash_attention(q, k, v, is_causal=True, softcap=2.0, block_size=(64, 32))[0].sum()

    gradient = jax.grad(function, (0, 1, 2))
    forward = (lambda *x: jax.jvp(function, x, x)), (lambda *x: jax.jvp(gradient, x, x))
    for program in (function, gradient, *forward):
        assert largest(jax.make_jaxpr(program)(*arrays).jaxpr) <= 2 * length * width


CHILD = """
import sys
import jax
import jax.numpy as jnp
import numpy as np
from impl_jax import *

x = jnp.asarray(np.random.default_rng(0).standard_normal((2, 3, 4)), jnp.float32)
for y in (x, x.astype(jnp.bfloat16)):
    out, weights = attention(y, y, y, scale=0.3, softcap=2, bias=jnp.zeros((3, 3)), sinks=jnp.zeros(()))
    assert out.dtype == weights.dtype == y.dtype
    assert flash_attention(y, y, y, causal(), scale=10**12)[1].dtype == jnp.float32
assert search(x, x, 2).indices.dtype == retrieve(x, x).index.dtype == jnp.int32
assert str(causal(sys.maxsize).picture(1, 3)) == "###"
assert str(window(10**12, 0, offset=10**12).picture(3, 3)) == "###\\n.##\\n..#"
with jax.enable_x64(True):
    numbers = {"scale": jnp.array(0.3, jnp.float64), "softcap": jnp.array(2.0, jnp.float64)}
    for options in (numbers, {"scale": 0.3, "softcap": 2}):
        assert {y.dtype for y in attention_steps(x, x, x, sinks=jnp.zeros(()), **options)} == {x.dtype}
        assert {y.dtype for y in flash_attention(x, x, x, **options)} == {x.dtype}
    assert {y.dtype for y in recall(x, x[0], beta=jnp.array(2.0, jnp.float64))} == {x.dtype}
    assert attention(*[x.astype(jnp.float64)] * 3)[0].dtype == jnp.float64

# Products that are rounded in one place and not in another are noise in scores of 1e10.
draw = np.random.default_rng(0)
for D, options in ((1, {}), (8, {"softcap": 1.1e10}), (8, {"softcap": 1.1e10, "is_causal": True})):
    shapes = {(2, 3, D): 1e5, (3, D): 1e5, (3, 2): 1}
    q, k, v = (jnp.asarray(draw.standard_normal(shape) * size, jnp.float32) for shape, size in shapes.items())
    def tiles(q):
        return flash_attention(q, k, v, block_size=(2, 2), **options)[0]

    out, weights = attention(q, k, v, **options)
    traced, _ = jax.jit(lambda q, k, v: attention(q, k, v, **options))(q, k, v)
    gradient = jax.jit(jax.grad(lambda q: (tiles(q) ** 2).sum()))(q)
    assert np.isfinite(out).all() and np.isfinite(gradient).all()
    assert np.allclose(weights.sum(axis=-1), 1)
    assert np.allclose(out, traced) and np.allclose(out, tiles(q))
"""


def test_32_bits_stay_and_huge_scores_survive_optimisation():
    environment = {name: x for name, x in os.environ.items() if not name.startswith(("JAX_", "XLA_"))}
    command = [sys.executable, "-W", "error", "-c", CHILD]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, env=environment, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
