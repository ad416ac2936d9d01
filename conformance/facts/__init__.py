"""Facts about attention: each module of this package states the facts of one topic and becomes one case file.

``facts/masks.py`` has a function ``facts()`` that yields `Fact` records in the order in which they are read;
``python -m conformance.making`` asks the oracle for the expected values and writes ``cases/masks.json``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

FLOATS = ("float16", "bfloat16", "float32", "float64")


@dataclass(frozen=True)
class Given:
    """An argument that is deliberately no array: a list, a string, None."""

    value: Any


@dataclass(frozen=True)
class Fact:
    """One statement about one call, in the present tense, with its clauses and the bugs it catches.

    ``arrays`` and ``options`` are the arguments of ``op``. A fact is a *valid* case, unless ``raises`` names
    the error kind (then ``says`` lists the words that the message contains) or ``either`` marks the result as
    implementation-defined. ``laws`` are explained in contract.LAWS; ``instead`` holds the arrays of the law
    "unmoved". ``paper`` holds values found by hand; the oracle must agree with them.
    """

    id: str
    fact: str
    clauses: tuple[str, ...]
    flags: tuple[str, ...]
    op: str
    arrays: dict[str, np.ndarray | Given]
    options: dict[str, Any] = field(default_factory=dict)
    laws: tuple[str, ...] = ()
    raises: str | None = None
    says: tuple[str, ...] = ()
    paper: dict[str, Any] | None = None
    instead: dict[str, np.ndarray] = field(default_factory=dict)
    either: bool = False


def dtype_of(name: str) -> np.dtype:
    """The NumPy dtype of that name; bfloat16 comes from ml_dtypes."""
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def array(values: Any, dtype: str = "float32") -> np.ndarray:
    """The nested list ``values`` as an array."""
    return np.asarray(values).astype(dtype_of(dtype))


def normal(
    shape: tuple[int, ...], dtype: str = "float32", *, seed: int = 0, spread: float = 1.0
) -> np.ndarray:
    """Seeded normal numbers, rounded to three decimals: short to read, and the same on every machine.

    RandomState, because NumPy promises that its stream never changes.
    """
    drawn = np.random.RandomState(seed).standard_normal(shape)
    return np.round(drawn * spread, 3).astype(dtype_of(dtype))


def zeros(shape: tuple[int, ...], dtype: str = "float32") -> np.ndarray:
    """Zeros; as queries they make every score 0, so that only masks, bias and sinks decide the weights."""
    return np.zeros(shape, dtype_of(dtype))


def identity(size: int, dtype: str = "float32") -> np.ndarray:
    """The unit matrix; as values it makes the output equal the weights."""
    return np.eye(size).astype(dtype_of(dtype))


def qkv(
    q: tuple[int, ...], k: tuple[int, ...], v: tuple[int, ...], dtype: str = "float32", *, seed: int = 1
) -> dict[str, np.ndarray]:
    """Normal arrays q, k and v of these shapes, drawn from three neighbouring seeds."""
    return {
        name: normal(shape, dtype, seed=10 * seed + place)
        for place, (name, shape) in enumerate({"q": q, "k": k, "v": v}.items())
    }


def pattern(T: int, S: int, D: int = 5, dtype: str = "float32") -> dict[str, np.ndarray]:
    """Zero queries and unit values: each output row is the set of visible keys, divided by their number."""
    return {"q": zeros((T, D), dtype), "k": normal((S, D), dtype, seed=7), "v": identity(S, dtype)}
