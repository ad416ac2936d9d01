"""The memory of `flash_attention` and of its gradient: that of the tiles, however long the sequences are."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MEBIBYTE = 2**20
FEATURES = 64
CALLS = {
    "numpy": """
import numpy as np, impl_numpy as impl

def made(n):
    return np.ones((n, FEATURES), np.float32)

def forward(x, rule):
    return impl.flash_attention(x, x, x, rule)

def backward(x, rule):
    return impl.attention_vjp(x, x, x, x, rule)[:3]
""",
    "torch": """
import torch, impl_torch as impl

def made(n):
    return torch.ones(n, FEATURES)

def forward(x, rule):
    return impl.flash_attention(x, x, x, rule)

def backward(x, rule):
    inputs = [x.detach().requires_grad_() for _ in range(3)]
    return torch.autograd.grad(impl.flash_attention(*inputs, rule)[0], inputs, x)
""",
    "jax": """
import jax, jax.numpy as jnp, impl_jax as impl

def made(n):
    return jnp.ones((n, FEATURES), jnp.float32)

@jax.jit
def forward(x, rule):
    return impl.flash_attention(x, x, x, rule)

@jax.jit
def backward(x, rule):
    return jax.vjp(lambda *inputs: impl.flash_attention(*inputs, rule)[0], x, x, x)[1](x)
""",
}
# What a first call brings, threads and compiled code, is there before the call that counts; JAX compiles for a length.
MEASURE = """
def resident(name):
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) * 1024

def work(n):
    results = DIRECTION(made(n), impl.causal())
    if hasattr(results[0], "block_until_ready"):
        [x.block_until_ready() for x in results]
    return sum(x.nbytes for x in results) + made(n).nbytes

work(LENGTH if impl.__name__ == "impl_jax" else 600)
Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
before = resident("VmRSS")
known = work(LENGTH)
print(resident("VmHWM") - before - known)
"""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="this system does not tell the peak of memory")
@pytest.mark.parametrize(("direction", "length"), [("forward", 32768), ("backward", 8192)])
@pytest.mark.parametrize("framework", CALLS)
def test_no_array_of_all_pairs_is_held(framework, direction, length):
    assert extra(framework, direction, length) < 64 * MEBIBYTE  # one for each pair would be 4096, or 256


@pytest.mark.parametrize("framework", CALLS)
def test_the_pairs_that_a_window_visits_grow_with_the_length(framework):
    impl = pytest.importorskip(f"impl_{framework}")
    short, long = (visited(impl, length, impl.causal() & impl.window(1024, 0)) for length in (32768, 65536))
    assert 1.9 < long / short < 2.1
    assert long < 65536 * 8 * 1024


def visited(impl, length, rule):
    """The pairs in the tiles that the schedule of an implementation has for one head."""
    tiles, flash = (import_module(f"{impl.__name__}.{name}") for name in ("tiles", "flash"))
    shape = (1, length, length)
    queries, keys = tile = tiles.tile_size(None, shape)
    jobs = flash.schedule(tile, shape, rule)
    if impl.__name__ == "impl_jax":  # a job is a loop over the first positions of tiles, which have one size
        return sum(len(firsts[0]) * queries * keys for *_, firsts in jobs)
    return sum(len(rows) * len(cols) for _, rows, reached in jobs for cols in reached)


def extra(framework, direction, length):
    """The bytes that a call holds at its peak, beyond its inputs and outputs."""
    pytest.importorskip(framework)
    names = f"from pathlib import Path\nFEATURES, LENGTH = {FEATURES}, {length}\n"
    code = names + CALLS[framework] + MEASURE.replace("DIRECTION", direction)
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, timeout=300, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


