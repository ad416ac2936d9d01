"""What a backend is to the judge, and how one is found by its name."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any, Protocol

import numpy as np

GROUP = "conformance.adapters"
_FOLDER = "conformance.adapters"
BUILT_IN = {
    "numpy": f"{_FOLDER}.numpy:backend",
    "torch": f"{_FOLDER}.torch:backend",
    "jax": f"{_FOLDER}.jax:backend",
    "jax:optimised": f"{_FOLDER}.jax:optimised",
    "torch-sdpa": f"{_FOLDER}.torch_sdpa:backend",
    "numpy:readonly": f"{_FOLDER}.numpy_variants:ReadOnly",
    "numpy:flash": f"{_FOLDER}.numpy_variants:Flash",
    "torch:compile": f"{_FOLDER}.torch_variants:Compiled",
    "torch:flash": f"{_FOLDER}.torch_variants:Flash",
    "torch:accelerator": f"{_FOLDER}.torch_variants:Accelerator",
    "torch:accelerator-flash": f"{_FOLDER}.torch_variants:AcceleratorFlash",
    "torch-sdpa:math": f"{_FOLDER}.torch_sdpa_variants:Math",
    "torch-sdpa:flash": f"{_FOLDER}.torch_sdpa_variants:Flash",
    "jax:jit": f"{_FOLDER}.jax_variants:Jitted",
    "jax:eager": f"{_FOLDER}.jax_variants:Eager",
    "jax:flash": f"{_FOLDER}.jax_variants:Flash",
}


class Unsupported(Exception):
    """Raised by a backend's `call` that finds only then that it cannot make this call; the message says why."""


class Failed(Exception):
    """Raised by a backend's `call` that got no answer from its library, be it a right or a wrong one."""


class Backend(Protocol):
    """A library that is judged: it converts arrays, and runs the operations of contract.OPERATIONS.

    `name` is what the user typed, `explains` tells that its error messages are judged by their words. A backend may
    have two further attributes: `unasked_errors`, the reason why it is not asked to refuse wrong calls, and
    `shares_memory(one, other)`, which tells whether two arrays of its own kind lie in the same memory. Without the
    latter only an output that is an argument itself is noticed.
    """

    name: str
    explains: bool

    def info(self) -> dict[str, Any]:
        """Say what ran: "versions" (package -> version), "device", and settings that matter for the numbers."""

    def supports(self, op: str, dtype: str, options: dict[str, Any], arrays: dict[str, Any]) -> str | None:
        """Give the reason why this call cannot be made, or None if it can. `arrays` are the case's NumPy arrays."""

    def outputs(self, op: str) -> tuple[str, ...]:
        """Name the outputs that the operation returns here; the others are not judged."""

    def from_numpy(self, array: np.ndarray) -> Any:
        """Copy a NumPy array into an array of the backend's own kind, the dtype kept (bfloat16: ml_dtypes)."""

    def to_numpy(self, array: Any) -> np.ndarray:
        """Bring an array of the backend's own kind to NumPy, the dtype and every bit kept."""

    def is_own(self, value: Any) -> bool:
        """Tell whether the value is an array of the backend's own kind."""

    def call(self, op: str, arrays: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
        """Run the operation on own arrays (a deliberately wrong argument comes as it is); output name -> value.

        `options["mask"]` is a mask rule as the case files spell it. What the library raises passes through.
        """


def known() -> list[str]:
    """List the names that `find` knows: the built-in ones and those of installed packages."""
    return sorted({*BUILT_IN, *(point.name for point in entry_points(group=GROUP))})


def is_known(spec: str) -> bool:
    """Tell whether the spec is a known name, without importing its backend.

    Raises LookupError, which lists the known names, for what cannot be the name of anything.
    """
    if spec in known():
        return True
    name, _, rest = spec.partition(":")
    if name in known():
        variants = ", ".join(other for other in known() if other.startswith(f"{name}:")) or "none"
        raise LookupError(f"the backend {name!r} has no variant {rest!r}; it has {variants}")
    if not (name and rest):
        others = "path/to/file.py:function, module:object or exec:COMMAND"
        raise LookupError(f"unknown backend {spec!r}; known are {', '.join(known())}, or give {others}")
    return False


def find(spec: str) -> Backend:
    """Make the backend that `spec` names: a known name, "file.py:function", "module:object" or "exec:COMMAND".

    Raises LookupError, whose message says what is wrong with it, and whatever the import of a known one raises.
    """
    if is_known(spec):
        return _factory(spec)()
    if spec.startswith("exec:"):
        from conformance.adapters.process import Process

        return Process(spec)
    from conformance.adapters import pointed

    return pointed.backend(spec)


def _factory(name: str) -> Callable[[], Backend]:
    if name in BUILT_IN:
        module, _, factory = BUILT_IN[name].partition(":")
        return getattr(importlib.import_module(module), factory)
    return next(iter(entry_points(group=GROUP, name=name))).load()
