"""What `flash_attention` promises beyond its numbers: its threads, its memory, and the bits beside hidden values."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import tracemalloc
from importlib import import_module
from operator import attrgetter

import numpy as np
import pytest
import threadpoolctl

import impl_numpy
from impl_numpy.masks import reach

B, H, T, S, D = 1, 3, 700, 1100, 16
RULES = {
    "causal": impl_numpy.causal(3),
    "window": impl_numpy.window(130, 20),
    "wide": impl_numpy.window(130, 600),
    "chunked": impl_numpy.chunked(300),
    "or": impl_numpy.prefix(40) | impl_numpy.window(9, 0, offset=200),
    "and": impl_numpy.causal() & impl_numpy.window(200, None),
    "nothing": impl_numpy.prefix(0),
    "not": ~impl_numpy.causal(),
}


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def qkv():
    return normal(B, H, T, D), normal(B, H, S, D, seed=1), normal(B, H, S, D, seed=2)


def as_torch(*arrays):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    return [torch.from_numpy(x) for x in arrays]


def numpy_flash(q, k, v, rule=None):
    return impl_numpy.flash_attention(q, k, v, RULES.get(rule))


def torch_flash(q, k, v, rule=None):
    impl_torch = pytest.importorskip("impl_torch")
    made = None if rule is None else eval(repr(RULES[rule]), vars(impl_torch))
    return [x.numpy() for x in impl_torch.flash_attention(*as_torch(q, k, v), made)]


def jax_flash(q, k, v, rule=None):
    jax = pytest.importorskip("jax", reason="jax is not installed")
    impl_jax = pytest.importorskip("impl_jax")
    made = None if rule is None else eval(repr(RULES[rule]), vars(impl_jax))
    return [np.asarray(x) for x in impl_jax.flash_attention(*map(jax.numpy.asarray, (q, k, v)), made)]


each = pytest.mark.parametrize("flash", [numpy_flash, torch_flash, jax_flash])
threaded = pytest.mark.parametrize("flash", [numpy_flash, torch_flash])


@each
@pytest.mark.parametrize("rule", [None, *RULES])
def test_many_tiles_are_the_definition(flash, rule):
    q, k, v = qkv()
    steps = impl_numpy.attention_steps(q, k, v, RULES.get(rule))
    out, lse = flash(q, k, v, rule)
    np.testing.assert_allclose(out, steps.out, rtol=0, atol=3e-6)
    np.testing.assert_allclose(lse, steps.lse, rtol=0, atol=3e-6)


@each
@pytest.mark.parametrize("rule", ["wide", "chunked"])
def test_tiles_of_a_rule_may_begin_anywhere(flash, rule):
    q, k, v = qkv()
    k, v = k[..., :1024, :], v[..., :1024, :]
    out, _ = flash(q, k, v, rule)
    np.testing.assert_allclose(out, impl_numpy.attention(q, k, v, RULES[rule])[0], rtol=0, atol=3e-6)


@pytest.mark.parametrize("framework", ["numpy", "torch", "jax"])
@pytest.mark.parametrize("names", [("mask", "sinks"), ("bias", "is_causal"), ("sinks", "softcap", "is_causal")])
def test_each_head_of_a_large_problem_has_its_own_mask_bias_and_sink(framework, names):
    impl = pytest.importorskip(f"impl_{framework}")
    convert = {"numpy": "asarray", "torch": "from_numpy", "jax": "numpy.asarray"}[framework]
    convert = attrgetter(convert)(import_module(framework))
    q, k, v = normal(2, 4, 600, 32), normal(2, 2, 700, 32, seed=1), normal(2, 2, 700, 24, seed=2)
    given = {"bias": normal(4, 1, 700, seed=4), "sinks": normal(4, seed=5), "softcap": 3.0, "is_causal": True}
    options = {"mask": normal(2, 4, 600, 700, seed=3) > -0.5, **given}.items()
    options = {name: value for name, value in options if name in names} | {"enable_gqa": True}
    steps = impl_numpy.attention_steps(q, k, v, **options)
    options = {name: convert(x) if isinstance(x, np.ndarray) else x for name, x in options.items()}
    out, lse = map(np.asarray, impl.flash_attention(*map(convert, (q, k, v)), **options))
    np.testing.assert_allclose(out, steps.out, rtol=0, atol=3e-6)
    np.testing.assert_allclose(lse, steps.lse, rtol=0, atol=3e-6)


@each
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 3e38])
def test_hidden_values_change_no_bit_of_many_tiles(flash, bad):
    (q, k, v), hidden = qkv(), slice(650, 720)
    clean = flash(q, k, v, "causal")
    k[..., hidden, :], v[..., hidden, :] = bad, bad
    found = flash(q, k, v, "causal")
    seeing = 650 - 3
    for a, b in zip(clean, found, strict=True):
        assert a[:, :, :seeing].tobytes() == b[:, :, :seeing].tobytes()
    assert np.isnan(found[0][:, :, seeing + 1 :]).any() or bad == 3e38


@each
def test_hidden_values_of_a_head_that_is_shared_change_no_bit(flash):
    q, k, v = normal(2, 3, 16, D), normal(48, D, seed=1), normal(48, D, seed=2)
    clean = flash(q, k, v, "causal")
    v[30:] = np.nan
    assert all(a.tobytes() == b.tobytes() for a, b in zip(clean, flash(q, k, v, "causal"), strict=True))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("rows", [range(1), range(5, 9), range(250, 512), range(699, 700)])
def test_what_is_out_of_reach_is_hidden(rule, rows):
    seen = RULES[rule].array(T, S)[rows.start : rows.stop].any(axis=0)
    within = np.zeros(S, bool)
    keys = reach(RULES[rule], rows, S)
    within[keys.start : keys.stop] = True
    assert not (seen & ~within).any()


# --- threads ---------------------------------------------------------------------------------------------


@threaded
@pytest.mark.parametrize("threads", ["1", "2", "5", "none"])
def test_the_number_of_threads_changes_no_bit(flash, threads, monkeypatch):
    expected = flash(*qkv(), "causal")
    monkeypatch.setenv("ATTENTION_THREADS", threads)
    assert all(a.tobytes() == b.tobytes() for a, b in zip(flash(*qkv(), "causal"), expected, strict=True))


@threaded
@pytest.mark.parametrize(
    ("attention_threads", "omp_num_threads", "expected"),
    [("1", "3", 1), ("3", "1", 3), ("", "2", 2), ("many", "2", 2), ("0", "4,2", None)],
)
def test_the_settings_say_how_many_threads_work(flash, attention_threads, omp_num_threads, expected, monkeypatch):
    monkeypatch.setenv("ATTENTION_THREADS", attention_threads)
    monkeypatch.setenv("OMP_NUM_THREADS", omp_num_threads)
    arrays = sys.modules[f"impl_{flash.__name__.split('_')[0]}.arrays"] if flash is numpy_flash else None
    if arrays is None:
        arrays = pytest.importorskip("impl_torch.arrays")
    expected = expected or len(os.sched_getaffinity(0))
    meeting = threading.Barrier(expected, timeout=20)  # broken unless as many jobs are under way at a time
    arrays.for_each(lambda job: meeting.wait(), range(expected))
    with pytest.raises(threading.BrokenBarrierError):
        meeting = threading.Barrier(expected + 1, timeout=0.2)
        arrays.for_each(lambda job: meeting.wait(), range(expected + 1))


def blas_threads():
    """How many threads each BLAS takes that was there when impl_numpy was imported: NumPy's is one of them."""
    return [x["num_threads"] for x in impl_numpy.arrays.BLAS.info() if x["user_api"] == "blas"]


def test_numpy_restores_the_threads_of_blas_after_errors_too():
    with threadpoolctl.threadpool_limits(3, user_api="blas"):
        before, during = blas_threads(), []

        def work(job):
            during.append(blas_threads())
            raise KeyError("no")

        with pytest.raises(KeyError, match="no"):
            impl_numpy.arrays.for_each(work, range(3))
        assert set(during[0]) == {1}
        assert blas_threads() == before


def test_numpy_calls_at_the_same_time_restore_the_threads_of_blas():
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        callers = [threading.Thread(target=numpy_flash, args=qkv()) for _ in range(4)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
        assert blas_threads() == before


def test_torch_restores_its_threads_after_errors_too():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    arrays = pytest.importorskip("impl_torch.arrays")
    before, during = torch.get_num_threads(), []

    def work(job):
        during.append(torch.get_num_threads())
        raise KeyError("no")

    with pytest.raises(KeyError, match="no"):
        arrays.for_each(work, range(3))
    assert set(during) == {1}
    assert torch.get_num_threads() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_has_threads_of_its_own():
    code = """
import os, numpy, impl_numpy
q = numpy.ones((4, 600, 8))
impl_numpy.flash_attention(q, q, q)
child = os.fork()
if not child:
    impl_numpy.flash_attention(q, q, q)
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
"""
    settings = os.environ | {"ATTENTION_THREADS": "2"}
    done = subprocess.run([sys.executable, "-c", code], env=settings, timeout=60, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# --- memory ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["rule", "mask", "bias"])
def test_numpy_makes_no_array_of_all_pairs(kind):
    length, features = 4096, 8
    q, k, v = (normal(length, features, seed=seed) for seed in range(3))
    options = {"rule": {"is_causal": True}, "mask": {"mask": np.ones((length, length), np.int8)}}
    options["bias"] = {"bias": np.zeros((length, length), np.float16)}
    tracemalloc.start()
    impl_numpy.flash_attention(q, k, v, **options[kind])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < length * length / 2  # bytes: a half of one byte for each pair


def test_numpy_keeps_small_buffers_only(monkeypatch):
    monkeypatch.setenv("ATTENTION_THREADS", "1")
    q, k, v = (normal(3000, 8, seed=seed) for seed in range(3))
    for size, kept in ((100, True), (3000, False)):
        impl_numpy.flash_attention(q, k, v, block_size=(size, 1000))
        assert bool(vars(impl_numpy.arrays.OWN)) == kept


def test_the_gradient_of_numpy_holds_no_array_of_all_pairs():
    q, k, v, d_out = (normal(2048, 8, seed=i) for i in range(4))
    impl_numpy.attention_vjp(q[:9], k[:9], v[:9], d_out[:9])  # the threads start
    tracemalloc.start()
    impl_numpy.attention_vjp(q, k, v, d_out, is_causal=True)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2048 * 2048 * 4 / 2
