"""A rectangular block of numbers as a flat Python list, which is all that the oracle computes with."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

Index = tuple[int, ...]


@dataclass(frozen=True)
class Grid:
    """Cells in row-major order. An index broadcasts to the shape as in NumPy: aligned at its last axis."""

    shape: Index
    cells: list[Any]

    def __getitem__(self, index: Index) -> Any:
        return self.cells[_place(self.shape, index)]

    def row(self, lead: Index) -> list[Any]:
        """The cells along the last axis."""
        start = self.row_place(lead) * self.shape[-1]
        return self.cells[start : start + self.shape[-1]]

    def row_place(self, lead: Index) -> int:
        """The number of that row, counted from the first row of the grid."""
        return _place(self.shape[:-1], lead)

    def place(self, index: Index) -> int:
        """The number of that cell, counted from the first cell of the grid."""
        return _place(self.shape, index)


def read(array: np.ndarray, convert: Callable[[Any], Any] = lambda cell: cell) -> Grid:
    """The array as it is in its own dtype: Python's float holds every number of every floating dtype."""
    exact = array if array.dtype.kind in "biu" else array.astype(np.float64)
    return Grid(array.shape, [convert(cell) for cell in exact.ravel().tolist()])


def fill(shape: Index, cell: Callable[[Index], Any]) -> Grid:
    """A grid whose cells are a function of their index."""
    return Grid(shape, [cell(index) for index in indices(shape)])


def stack(shape: Index, rows: list[list[Any]]) -> Grid:
    """A grid made of its rows, which lie along the last axis."""
    return Grid(shape, [cell for row in rows for cell in row])


def indices(shape: Index) -> Iterator[Index]:
    """Every index of that shape, the last axis fastest."""
    return itertools.product(*map(range, shape))


def _place(shape: Index, index: Index) -> int:
    place = 0
    for size, at in zip(shape, index[len(index) - len(shape) :], strict=True):
        place = place * size + (0 if size == 1 else at)
    return place
