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


def compute_dtype(name: str) -> str:
    """The dtype in which the contract computes: float32 for the half types, else the dtype itself."""
    return "float32" if name in ("float16", "bfloat16") else name


def array(values: Any, dtype: str = "float32") -> np.ndarray:
    """The nested list ``values`` as an array."""
    return np.asarray(values).astype(dtype_of(dtype))


def normal(shape: tuple[int, ...], dtype: str = "float32", *, seed: int = 0, spread: float = 1.0) -> np.ndarray:
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


def plain(dtype: str = "float32") -> dict[str, np.ndarray]:
    """No leading axes, T=4, S=7, D=5, Dv=6: short enough to be read in the case file."""
    return qkv((4, 5), (7, 5), (7, 6), dtype)


def batched(dtype: str = "float32") -> dict[str, np.ndarray]:
    """B=2, H=3, T=4, S=7, D=5, Dv=6: all sizes differ, so that no two axes can be exchanged unnoticed."""
    return qkv((2, 3, 4, 5), (2, 3, 7, 5), (2, 3, 7, 6), dtype)


def square(dtype: str = "float32") -> dict[str, np.ndarray]:
    """B=2, H=4, T=S=6, D=Dv=5: equal sizes, so that an exchange of axes gives a wrong number and no error."""
    return qkv((2, 4, 6, 5), (2, 4, 6, 5), (2, 4, 6, 5), dtype, seed=2)


def pattern(T: int, S: int, dtype: str = "float32") -> dict[str, np.ndarray]:
    """Zero queries and unit values: each output row is the set of visible keys, divided by their number."""
    return {"q": zeros((T, 5), dtype), "k": normal((S, 5), dtype, seed=7), "v": identity(S, dtype)}


def drawn(*rows: str, dtype: str = "bool") -> np.ndarray:
    """The mask that rows of # (visible) and . (hidden) draw, one row a query."""
    return array([[place == "#" for place in row] for row in rows], dtype)


def shares(*rows: str) -> list[list[float]]:
    """The output of `pattern` under the mask that the rows draw: each visible key has an equal share."""
    return [[(place == "#") / max(row.count("#"), 1) for place in row] for row in rows]


def state(
    id: str,
    fact: str,
    clauses: str,
    flags: str,
    arrays: dict[str, Any],
    *,
    op: str = "attention",
    **rest: Any,
) -> Fact:
    """A fact about attention: clauses and flags are separated by spaces, further keywords are options.

    ``laws``, ``paper``, ``instead`` and ``either`` go to the fields of `Fact` of that name.
    """
    fields = {name: rest.pop(name) for name in ("laws", "paper", "instead", "either") if name in rest}
    return Fact(id, fact, tuple(clauses.split()), tuple(flags.split()), op, arrays, rest, **fields)
