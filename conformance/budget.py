"""What an operation must return, and how far from it a correct implementation may be."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Expected:
    """One expected output: its values as the oracle has them, and the largest error allowed for each.

    ``dtype`` is a floating dtype's name, or ``integer``, ``bool`` or ``text``. ``values`` are float64, int64 or
    bool, or a string. ``budget`` is float64 in the shape of ``values``; None where values must be equal.
    """

    dtype: str
    shape: tuple
    values: np.ndarray | str
    budget: np.ndarray | None
