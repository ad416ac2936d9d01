"""Who takes part in the benchmark: for each name a function that makes a call ready to be timed.

`prepare(problem)` brings the arrays to the framework once and returns a function without arguments that does the work
and waits until it is done; what it returns is brought to NumPy by `numpy.asarray` after the clock has stopped.
Frameworks are imported inside the functions, since each contestant lives in a process of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes  # noqa: F401, so that NumPy knows the name "bfloat16"
import numpy as np

Call = Callable[[], Any]


@dataclass(frozen=True)
class Problem:
    """One shape: q (B, H, T, D), k and v (B, H, S, D) of normal numbers, causal or not.

    With a window, a query sees that many keys before its own position too, and no others. A device that is not "cpu"
    is that of the frameworks which have one.
    """

    B: int
    H: int
    T: int
    S: int
    D: int
    causal: bool = False
    backward: bool = False
    window: int | None = None
    dtype: str = "float32"
    device: str = "cpu"

    @property
    def flops(self) -> float:
        """Floating-point operations of the two matrix products; a backward pass takes five more (Dao 2023, 4.1)."""
        pairs = sum(len(self.seen(row)) for row in range(self.T))
        return 4.0 * self.B * self.H * pairs * self.D * (3.5 if self.backward else 1)

    @property
    def name(self) -> str:
        kind = f"window({self.window}, 0)" if self.window is not None else "causal" if self.causal else "full"
        return f"{self.B}x{self.H} T={self.T} S={self.S} D={self.D} {kind}{' fwd+bwd' if self.backward else ''}"

    def seen(self, row: int) -> range:
        """The keys that a query sees."""
        if self.window is not None:
            return range(min(max(0, row - self.window), self.S), min(row + 1, self.S))
        return range(min(row + 1, self.S) if self.causal else self.S)

    def options(self, package: Any) -> dict[str, Any]:
        """What an implementation is told beside q, k and v."""
        if self.window is not None:
            return {"mask": package.window(self.window, 0)}
        return {"is_causal": self.causal}

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        draw = np.random.default_rng(0)
        shapes = [(self.B, self.H, length, self.D) for length in (self.T, self.S, self.S)]
        return tuple(draw.standard_normal(shape, dtype=np.float32).astype(self.dtype) for shape in shapes)


# --- NumPy -----------------------------------------------------------------------------------------------


def numpy_flash(problem: Problem) -> Call:
    import impl_numpy

    options = problem.options(impl_numpy)
    q, k, v = problem.arrays()
    return lambda: impl_numpy.flash_attention(q, k, v, **options)[0]


def numpy_textbook(problem: Problem) -> Call:
    q, k, v = problem.arrays()
    hidden = ~np.tri(problem.T, problem.S, dtype=bool)

    def call() -> np.ndarray:
        scores = q @ k.swapaxes(-1, -2) / np.float32(np.sqrt(problem.D))
        if problem.causal:
            scores = np.where(hidden, np.float32(-np.inf), scores)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        return weights / weights.sum(-1, keepdims=True) @ v

    return call


# --- PyTorch ---------------------------------------------------------------------------------------------


def torch_call(problem: Problem, attend: Callable[..., Any]) -> Call:
    """Time attend(q, k, v), alone or with its gradient."""
    import torch

    dtype = getattr(torch, problem.dtype)
    arrays = (torch.from_numpy(x.astype(np.float32)) for x in problem.arrays())  # torch knows no bfloat16 of NumPy's
    q, k, v = (x.to(problem.device, dtype).requires_grad_(problem.backward) for x in arrays)
    wait = torch.accelerator.synchronize if q.device.type != "cpu" else lambda: None

    def call() -> Any:
        out = attend(q, k, v)
        if problem.backward:
            torch.autograd.grad(out.sum(), (q, k, v))
        wait()
        return out.detach()

    return call


def torch_flash(problem: Problem) -> Call:
    import impl_torch

    options = problem.options(impl_torch)
    return torch_call(problem, lambda q, k, v: impl_torch.flash_attention(q, k, v, **options)[0])


def torch_textbook(problem: Problem) -> Call:
    import torch

    hidden = torch.ones(problem.T, problem.S, dtype=torch.bool).triu(1)

    def attend(q: Any, k: Any, v: Any) -> Any:
        scores = q @ k.mT / problem.D**0.5
        if problem.causal:
            scores = scores.masked_fill(hidden, float("-inf"))
        return scores.softmax(-1) @ v

    return torch_call(problem, attend)


def sdpa(problem: Problem, backend: str | None = None) -> Call:
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.functional import scaled_dot_product_attention

    def attend(q: Any, k: Any, v: Any) -> Any:
        if backend is None:
            return scaled_dot_product_attention(q, k, v, is_causal=problem.causal)
        with sdpa_kernel(getattr(SDPBackend, backend)):
            return scaled_dot_product_attention(q, k, v, is_causal=problem.causal)

    return torch_call(problem, attend)


def sdpa_math(problem: Problem) -> Call:
    return sdpa(problem, "MATH")


def flex(problem: Problem) -> Call:
    import torch
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    compiled = torch.compile(flex_attention)
    rule = (lambda b, h, i, j: j <= i) if problem.causal else None
    mask = create_block_mask(rule, None, None, problem.T, problem.S, device="cpu") if rule else None
    return torch_call(problem, lambda q, k, v: compiled(q, k, v, block_mask=mask))


# --- JAX -------------------------------------------------------------------------------------------------


def jax_call(problem: Problem, attend: Callable[..., Any]) -> Call:
    """Time attend(q, k, v) compiled, alone or with its gradient."""
    import jax

    device = jax.devices("cpu" if problem.device == "cpu" else None)[0]
    arrays = [jax.device_put(x, device) for x in problem.arrays()]

    def both(q: Any, k: Any, v: Any) -> Any:
        out, pull_back = jax.vjp(attend, q, k, v)
        return out, pull_back(jax.numpy.ones_like(out))

    work = jax.jit(both if problem.backward else attend)

    def call() -> Any:
        done = jax.block_until_ready(work(*arrays))
        return done[0] if problem.backward else done

    return call


def jax_flash(problem: Problem) -> Call:
    import impl_jax

    options = problem.options(impl_jax)
    return jax_call(problem, lambda q, k, v: impl_jax.flash_attention(q, k, v, **options)[0])


def jax_textbook(problem: Problem) -> Call:
    import jax
    import jax.numpy as jnp

    def attend(q: Any, k: Any, v: Any) -> Any:
        scores = q @ k.mT / problem.D**0.5
        if problem.causal:
            scores = jnp.where(jnp.tri(problem.T, problem.S, dtype=bool), scores, -jnp.inf)
        return jax.nn.softmax(scores) @ v

    return jax_call(problem, attend)


def jax_nn(problem: Problem) -> Call:
    import jax

    fused = problem.device != "cpu" and problem.dtype != "float32"  # cuDNN takes half types only

    def attend(q: Any, k: Any, v: Any) -> Any:
        q, k, v = (x.swapaxes(1, 2) for x in (q, k, v))  # its layout is (B, T, H, D)
        how = {"is_causal": problem.causal, "implementation": "cudnn" if fused else "xla"}
        return jax.nn.dot_product_attention(q, k, v, **how).swapaxes(1, 2)

    return jax_call(problem, attend)


# --- the machine -----------------------------------------------------------------------------------------

GEMM_SIZE = 2048


def gemm(problem: Problem) -> Call:
    """A large matrix product, whatever the problem: what the machine can do at best."""
    import torch

    a = torch.ones(GEMM_SIZE, GEMM_SIZE)
    return lambda: a @ a


CONTESTANTS: dict[str, Callable[[Problem], Call]] = {
    "sdpa": sdpa,
    "numpy": numpy_flash,
    "torch": torch_flash,
    "jax": jax_flash,
    "sdpa-math": sdpa_math,
    "flex": flex,
    "jax-nn": jax_nn,
    "numpy-textbook": numpy_textbook,
    "torch-textbook": torch_textbook,
    "jax-textbook": jax_textbook,
    "gemm": gemm,
}
IMPLEMENTATIONS = ("numpy", "torch", "jax")
PEERS = ("sdpa", "sdpa-math", "flex", "jax-nn", "numpy-textbook", "torch-textbook", "jax-textbook")
IN_TILES = (*IMPLEMENTATIONS, "sdpa", "flex")  # the others hold T x S numbers
WITH_WINDOW = IMPLEMENTATIONS  # the others would take it as an array
WITHOUT_GRADIENT = ("numpy", "numpy-textbook", "flex")
