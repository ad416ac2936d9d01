"""What a backend is to the judge, and how one is found by its name."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any, Protocol

import numpy as np

GROUP = "conformance.adapters"
BUILT_IN = {
    "numpy": "conformance.adapters.numpy:backend",
    "torch": "conformance.adapters.torch:backend",
    "jax": "conformance.adapters.jax:backend",
    "torch-sdpa": "conformance.adapters.torch_sdpa:backend",
}


class Backend(Protocol):
    """A library that is judged: it converts arrays, and runs the operations of contract.OPERATIONS.

    `name` is what the user typed, `explains` tells that its error messages are judged by their words.
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


def find(spec: str) -> Backend:
    """Make the backend that `spec` names: a known name, or "module:object" for any other.

    The object is a backend, or a function without arguments that returns one. Raises LookupError, which lists the
    known names, and ImportError when the backend's own imports fail.
    """
    name, colon, rest = spec.partition(":")
    if factory := _factory(name):
        if colon:
            raise LookupError(f"the backend {name!r} has no variant {rest!r}")
        return factory()
    if not (name and rest):
        raise LookupError(f"unknown backend {spec!r}; known are {', '.join(known())}, or give module:object")
    found = _load(spec)
    return found() if callable(found) else found


def _factory(name: str) -> Callable[[], Backend] | None:
    if name in BUILT_IN:
        return _load(BUILT_IN[name])
    point = next(iter(entry_points(group=GROUP, name=name)), None)
    return point.load() if point else None


def _load(path: str) -> Any:
    module, _, name = path.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except AttributeError:
        raise LookupError(f"the module {module!r} has no object {name!r}") from None
