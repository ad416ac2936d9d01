"""The NumPy implementation on arrays that cannot be written, and its flash_attention in the place of attention."""

from __future__ import annotations

from typing import Any

import numpy as np

from conformance.adapter import Failed
from conformance.adapters.flash import ByFlash
from conformance.adapters.numpy import NumPy


class ReadOnly(NumPy):
    """impl_numpy on read-only arrays: writing into an argument raises where it happens."""

    name = "numpy:readonly"

    def from_numpy(self, array: np.ndarray) -> np.ndarray:
        """Copy the array and lock it."""
        own = super().from_numpy(array)
        own.flags.writeable = False
        return own

    def call(self, op: str, arrays: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
        """Call the operation; raises Failed if an argument could have been written."""
        if open_ := [name for name, a in arrays.items() if isinstance(a, np.ndarray) and a.flags.writeable]:
            raise Failed(f"the argument {open_[0]} is not read-only")
        return super().call(op, arrays, options)


class Flash(ByFlash, NumPy):
    """impl_numpy.flash_attention."""

    name = "numpy:flash"
