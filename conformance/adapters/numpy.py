"""The NumPy implementation as a backend."""

from __future__ import annotations

from typing import Any

import numpy as np

from conformance.adapters.mirror import Mirror


class NumPy(Mirror):
    """impl_numpy; bfloat16 is the dtype of ml_dtypes."""

    name, module = "numpy", "impl_numpy"
    libraries = ("numpy", "ml_dtypes")

    def from_numpy(self, array: np.ndarray) -> np.ndarray:
        """Copy the array and the order of its strides."""
        return np.array(array)

    def to_numpy(self, array: np.ndarray) -> np.ndarray:
        """Copy the array, since the next call may share memory with it."""
        return np.array(array)

    def is_own(self, value: Any) -> bool:
        """Tell whether the value is an array; a NumPy scalar is none."""
        return isinstance(value, np.ndarray)

    def shares_memory(self, one: np.ndarray, other: np.ndarray) -> bool:
        """Tell whether writing into one may change the other."""
        return np.shares_memory(one, other)


def backend() -> NumPy:
    """Make the backend."""
    return NumPy()
