"""The oracle's outputs as arrays, and one small problem, for the tests of the oracle."""

from __future__ import annotations

import numpy as np

from conformance.arithmetic import Plain
from conformance.facts import normal
from conformance.oracle import evaluate


def run(op, arrays, options=None, arithmetic=None):
    """Every output as a float64 array, or as text."""
    grids = evaluate(op, arrays, options or {}, arithmetic or Plain())
    return {name: grid if isinstance(grid, str) else as_array(grid) for name, grid in grids.items()}


def as_array(grid):
    return np.array([float(cell) for cell in grid.cells]).reshape(grid.shape)


def small(seed=0, dtype="float64"):
    """q (4, 2, 3), k (2, 5, 3), v (2, 5, 2): two query heads share each key/value head."""
    shapes = {"q": (4, 2, 3), "k": (2, 5, 3), "v": (2, 5, 2)}
    return {name: normal(shape, dtype, seed=seed + place) for place, (name, shape) in enumerate(shapes.items())}
