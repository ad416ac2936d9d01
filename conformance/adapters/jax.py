"""The JAX implementation as a backend, with 64-bit numbers enabled."""

from __future__ import annotations

import os
from typing import Any

import jax
import numpy as np

from conformance.adapters.mirror import Mirror

# JAX compiles a program for each shape of each case and runs it once, so that optimising it is most of the work:
# these settings make a run three times faster. XLA reads its flags when it starts, and keeps those of the user.
QUICK_FLAGS = "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"


class Jax(Mirror):
    """impl_jax, compiled quickly: with few optimisations."""

    name, module = "jax", "impl_jax"
    libraries = ("jax", "jaxlib", "numpy")

    def __init__(self) -> None:
        # Without it JAX would turn the float64 cases into float32 without a word.
        jax.config.update("jax_enable_x64", True)
        self.configure()
        super().__init__()

    def configure(self) -> None:
        """Choose how programs are compiled."""
        jax.config.update("jax_disable_most_optimizations", True)
        jax.config.update("jax_traceback_in_locations_limit", 0)
        os.environ.setdefault("XLA_FLAGS", QUICK_FLAGS)

    def info(self) -> dict[str, Any]:
        """Say which versions ran, on which device, with which settings."""
        settings = ("jax_enable_x64", "jax_disable_most_optimizations")
        flags = {"device": jax.default_backend(), "XLA_FLAGS": os.environ.get("XLA_FLAGS", "")}
        return super().info() | flags | {setting: jax.config.read(setting) for setting in settings}

    def from_numpy(self, array: np.ndarray) -> jax.Array:
        """Copy the array; raises TypeError if JAX would change its dtype."""
        # jnp.array would compile a program for each shape; device_put may share memory, hence the copy.
        own = jax.device_put(np.array(array))
        if own.dtype != array.dtype:
            raise TypeError(f"JAX made {own.dtype} out of {array.dtype}: is jax_enable_x64 set?")
        return own

    def to_numpy(self, array: jax.Array) -> np.ndarray:
        """Copy the array, once it is computed."""
        return np.array(array)

    def is_own(self, value: Any) -> bool:
        """Tell whether the value is a JAX array."""
        return isinstance(value, jax.Array)

    def shares_memory(self, one: jax.Array, other: jax.Array) -> bool:
        """Tell whether two arrays have one buffer."""
        return 0 < one.nbytes and one.unsafe_buffer_pointer() == other.unsafe_buffer_pointer()


class Optimised(Jax):
    """impl_jax, compiled as JAX comes."""

    name = "jax:optimised"

    def configure(self) -> None:
        """Leave everything as it is."""


def backend() -> Jax:
    """Make the backend."""
    return Jax()


def optimised() -> Jax:
    """Make the backend that compiles as JAX comes."""
    return Optimised()
