"""A backend in a package of its own: attention on NumPy arrays, without any option."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import numpy as np


class Sample:
    """What the judge asks for: conformance.adapter.Backend explains each method."""

    explains = False

    def __init__(self, name: str, sign: float) -> None:
        self.name, self._sign = name, sign

    def info(self) -> dict[str, Any]:
        """Say what ran."""
        return {"versions": {"sample-plugin": version("sample-plugin")}, "device": "cpu"}

    def supports(self, op: str, dtype: str, options: dict[str, Any], arrays: dict[str, Any]) -> str | None:
        """Say what it has not."""
        if op != "attention" or options or set(arrays) != {"q", "k", "v"}:
            return "the sample has attention of q, k and v only"
        return None if dtype in ("float32", "float64") else f"the sample has no {dtype}"

    def outputs(self, op: str) -> tuple[str, ...]:
        """Name what it returns."""
        return ("out",)

    def from_numpy(self, array: np.ndarray) -> np.ndarray:
        """Copy the array."""
        return np.array(array)

    def to_numpy(self, array: np.ndarray) -> np.ndarray:
        """Copy the array."""
        return np.array(array)

    def is_own(self, value: Any) -> bool:
        """Tell an array."""
        return isinstance(value, np.ndarray)

    def call(self, op: str, arrays: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
        """Compute."""
        q, k, v = (arrays[name] for name in ("q", "k", "v"))
        scores = self._sign * q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5
        terms = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return {"out": terms / terms.sum(axis=-1, keepdims=True) @ v}


def backend() -> Sample:
    """Make the backend."""
    return Sample("sample", 1.0)


def negated() -> Sample:
    """Make a wrong one, so that a test sees it fail."""
    return Sample("sample:negated", -1.0)
