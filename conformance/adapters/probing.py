"""Small calls of a function that has never been seen: which shapes and dtypes it takes, and what it returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from conformance.asking import line
from conformance.facts import FLOATS, qkv

Shapes = tuple[tuple[int, ...], ...]

# Shapes of q, k, v: with batch and heads, with more axes and with fewer, and one for square kernels.
SHAPES: tuple[Shapes, ...] = (
    ((2, 3, 4, 5), (2, 3, 7, 5), (2, 3, 7, 6)),
    ((2, 1, 3, 4, 5), (2, 1, 3, 7, 5), (2, 1, 3, 7, 6)),
    ((3, 4, 5), (3, 7, 5), (3, 7, 6)),
    ((4, 5), (7, 5), (7, 6)),
    ((1, 2, 8, 16), (1, 2, 8, 16), (1, 2, 8, 16)),
)


class Probe:
    """What small calls of `call(q, k, v)` tell of a function, given q, k, v as NumPy arrays.

    `axes` are the numbers of axes that it takes, out of 2 to 5; empty where no call returned at all.
    """

    def __init__(self, call: Callable[..., Any]) -> None:
        self._call = call
        self._returned: dict[Shapes, Any] = {}
        for dtype in ("float32", *FLOATS):
            if not self._returned:
                self._returned = {shapes: r for shapes in SHAPES if (r := self._try(shapes, dtype)) is not None}
        self.axes = {len(shapes[0]) for shapes in self._returned}
        self._refused: dict[str, str | None] = {}

    def _try(self, shapes: Shapes, dtype: str) -> Any:
        try:
            return self._call(**qkv(*shapes, dtype))
        except Exception:
            return None

    def refusal(self, dtype: str) -> str | None:
        """Give the error by which the function refuses that dtype alone."""
        if self.axes and dtype not in self._refused:
            self._refused[dtype] = None
            try:
                self._call(**qkv(*next(iter(self._returned)), dtype))
            except Exception as error:
                self._refused[dtype] = line(error)
        return self._refused.get(dtype)

    def outputs(self) -> tuple[str, ...]:
        """Name what the function returns, by its shapes; raises LookupError where they do not tell."""
        if not self._returned:
            return ("out",)
        shapes, returned = next(iter(self._returned.items()))
        if len(values(returned)) < 2:
            return ("out",)
        (*B, T, _), (*_, S, _), (*_, Dv) = shapes
        names = {(*B, T, Dv): "out", (*B, T, S): "weights", (*B, T): "lse"}
        found = [tuple(np.shape(value)) for value in values(returned)]
        if {*found} - {*names} or len({*found}) < len(found):
            known = ", ".join(f"{name} {shape}" for shape, name in names.items())
            raise LookupError(
                f"q, k, v of the shapes {shapes} gave {found}, and known are {known}. Say what it returns "
                'by an attribute of the function: attention.outputs = ("out", "lse")'
            )
        return tuple(names[shape] for shape in found)


def values(returned: Any) -> tuple[Any, ...]:
    """Give what a function returned as a tuple, without None."""
    some = returned if isinstance(returned, (tuple, list)) else (returned,)
    return tuple(value for value in some if value is not None)
