"""The factor of the scores: 1/sqrt(D) unless given, and any finite number when given."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from conformance.facts import FLOATS, Fact, array, identity, plain, state

_VALUES = {
    "left-out": (None, 1 / np.sqrt(2)),
    "zero": (0.0, 0),
    "integer-zero": (0, 0),
    "one": (1.0, 1),
    "integer-one": (1, 1),
    "minus-one": (-1.0, -1),
    "two-and-a-half": (2.5, 2.5),
}


def facts() -> Iterator[Fact]:
    """Yield the facts."""
    yield from _on_paper()
    yield from _as_arrays()
    yield from _on_random_inputs()


def _two_keys(dtype: str = "float32") -> dict[str, np.ndarray]:
    """A query that scores the first key 1 and the second 0, before the scale."""
    return {"q": array([[1, 0]], dtype), "k": identity(2, dtype), "v": identity(2, dtype)}


def _paper(scale: float) -> dict[str, list]:
    share = 1 / (1 + np.exp(-scale))
    return {"out": [[share, 1 - share]], "lse": [np.log1p(np.exp(scale))]}


def _flags(scale: float | None) -> str:
    if scale is None:
        return "scale-missing scale-twice"
    return "scale-ignored" + (" scale-by-truthiness" if scale == 0 else " scale-square-root" if scale < 0 else "")


def _on_paper() -> Iterator[Fact]:
    for name, (given, scale) in _VALUES.items():
        yield state(
            f"scale-{name}",
            f"With scale {given} the first of two keys gets 1 / (1 + e^-{round(scale, 4)}) of the weight.",
            "B4 C1",
            _flags(given),
            _two_keys(),
            scale=given,
            paper=_paper(scale),
        )


def _as_arrays() -> Iterator[Fact]:
    for dtype, number in (("float32", 0), ("float32", -1), ("float64", 2.5), ("int32", 0), ("int32", -1)):
        yield state(
            f"scale-0-d-{dtype}-{str(number).replace('-', 'minus-').replace('.', '-')}",
            f"A 0-d array of {dtype} is a legal scale; {number} is used as it is.",
            "B4 C1",
            _flags(number) + " scale-sign-lost" * (dtype == "int32" and number < 0),
            _two_keys() | {"scale": array(number, dtype)},
            paper=_paper(number),
        )


def _on_random_inputs() -> Iterator[Fact]:
    for dtype in ("float16", "float32"):
        yield state(
            f"scale-negative-{dtype}",
            f"A negative scale turns the order of the keys round, in {dtype}.",
            "B4 C1 C8",
            f"{_flags(-0.7)} lse-without-scale",
            plain(dtype),
            scale=-0.7,
        )
    for dtype in FLOATS:
        yield state(
            f"scale-negative-over-a-wide-range-{dtype}",
            f"Under scale -1 products 0 and 1000 give the weights 1 and 0 in {dtype}: the least product is the best.",
            "B4 C1 F1",
            "maximum-before-scale",
            {"q": array([[1]], dtype), "k": array([[0], [1000]], dtype), "v": array([[3], [5]], dtype)},
            scale=-1.0,
            paper={"out": [[3]], "weights": [[1, 0]], "lse": [0]},
        )
    for name, scale in (("tiny", 1e-30), ("zero", 0.0), ("large", 1000.0)):
        yield state(
            f"scale-{name}-on-random-inputs",
            f"A scale of {scale:g} multiplies every score.",
            "B4 C1 C8",
            f"{_flags(scale)} lse-without-scale",
            plain(),
            scale=scale,
        )
    yield state(
        "scale-does-not-touch-bias",
        "The scale multiplies q k^T and not the bias.",
        "C1 C3",
        "bias-scaled",
        plain() | {"bias": array([[2, -1, 0, 1, 3, -2, 1]])},
        scale=0.25,
    )
    yield state(
        "scale-zero-leaves-the-bias",
        "With scale 0 the weights are the softmax of the bias.",
        "B4 C1 C3",
        f"{_flags(0)} bias-scaled",
        _two_keys() | {"bias": array([[np.log(3), 0]])},
        scale=0,
        paper={"out": [[0.75, 0.25]], "lse": [np.log(4)]},
    )
