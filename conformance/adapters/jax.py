"""The JAX implementation as a backend, with 64-bit numbers enabled."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from conformance.adapters.mirror import Mirror


class Jax(Mirror):
    """impl_jax on the CPU."""

    name = "jax"
    libraries = ("jax", "jaxlib", "numpy")

    def __init__(self) -> None:
        # Without it JAX would turn the float64 cases into float32 without a word.
        jax.config.update("jax_enable_x64", True)
        super().__init__()

    def info(self) -> dict[str, Any]:
        """Say which versions ran, on which device, and that 64-bit numbers are enabled."""
        return super().info() | {"device": jax.default_backend(), "jax_enable_x64": True}

    def from_numpy(self, array: np.ndarray) -> jax.Array:
        """Copy the array; raises TypeError if JAX would change its dtype."""
        own = jnp.array(array)
        if own.dtype != array.dtype:
            raise TypeError(f"JAX made {own.dtype} out of {array.dtype}: is jax_enable_x64 set?")
        return own

    def to_numpy(self, array: jax.Array) -> np.ndarray:
        """Copy the array, once it is computed."""
        return np.array(array)

    def is_own(self, value: Any) -> bool:
        """Tell whether the value is a JAX array."""
        return isinstance(value, jax.Array)


def backend() -> Jax:
    """Make the backend."""
    return Jax()
