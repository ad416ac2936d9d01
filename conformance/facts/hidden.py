"""Hidden pairs do not exist: NaN, infinities and huge numbers there change no bit of any output."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from conformance.facts import (
    Fact,
    array,
    batched,
    drawn,
    dtype_of,
    normal,
    pattern,
    plain,
    qkv,
    state,
)
from conformance.facts.rules import causal, joined, window

_POISONS = {"non-finite": [np.nan, np.inf, -np.inf], "huge": [1e30, -1e30]}
_FLAGS = {
    ("k", "non-finite"): "hidden-nan-in-keys",
    ("k", "huge"): "finite-fill mask-after-softmax",
    ("v", "non-finite"): "hidden-nan-in-values",
    ("v", "huge"): "mask-after-softmax",
    ("bias", "non-finite"): "hidden-nan-in-bias",
    ("bias", "huge"): "finite-fill mask-after-softmax",
}
_PADDING = {"rule": "padding", "lengths": "lengths"}

# What hides, its arrays and options, and the keys that no query of `plain` sees.
_WAYS: dict[str, tuple[dict[str, np.ndarray], dict[str, Any], list[int]]] = {
    "a-mask": ({"mask": drawn("##.##.#")}, {}, [2, 5]),
    "an-integer-mask": ({"mask": drawn("##.##.#", dtype="int64")}, {}, [2, 5]),
    "a-bias-of-minus-infinity": ({"bias": array([0, 1, -np.inf, 0, 2, -np.inf, 0])}, {}, [2, 5]),
    "padding": ({"lengths": array(5, "int64")}, {"mask": _PADDING}, [5, 6]),
    "is-causal": ({}, {"is_causal": True}, [4, 5, 6]),
    "a-window": ({}, {"mask": window(0, 1)}, [5, 6]),
}
# The pairs of `plain` that are hidden, for those ways that leave room for a bias.
_PAIRS = {
    "a-mask": ({"mask": drawn("#.#.#.#", "##.....", "....###", ".#####.")}, {}),
    "padding": ({"lengths": array(5, "int64")}, {"mask": _PADDING}),
    "is-causal": ({}, {"is_causal": True}),
    "a-window": ({}, {"mask": window(1, 1)}),
}
_HIDDEN = {
    "a-mask": ~_PAIRS["a-mask"][0]["mask"],
    "padding": ~drawn(*["#####.."] * 4),
    "is-causal": ~np.tri(4, 7, dtype=bool),
    "a-window": ~drawn("##.....", "###....", ".###...", "..###.."),
}


def facts() -> Iterator[Fact]:
    """Yield the facts."""
    yield from _keys_and_values()
    yield from _bias()
    yield from _dtypes()
    yield from _pair_by_pair()
    yield from _parts_of_a_batch()
    yield from _empty_rows()


def _poisoned(clean: np.ndarray, hidden: Any, poisons: list[float]) -> np.ndarray:
    """A copy of the array with the poisons at the hidden places, one after the other."""
    bad = clean.copy()
    bad[hidden] = np.resize(array(poisons, "float64"), bad[hidden].shape).astype(bad.dtype)
    return bad


def _keys_and_values() -> Iterator[Fact]:
    for way, (arrays, options, keys) in _WAYS.items():
        for name, kind in product(("k", "v"), _POISONS):
            if kind == "huge" and "bias" in arrays:
                continue  # no finite number beats a bias of -inf, whatever stands in for the mask
            clean = plain() | arrays
            yield state(
                f"hidden-{kind}-in-{name}-under-{way}",
                f"Numbers that are {kind} in {name}, at keys that no query sees, change no output.",
                "C6 E2 E4" if "bias" in way else "E2 E4",
                _FLAGS[name, kind],
                clean,
                laws=("unmoved",),
                instead={name: _poisoned(clean[name], keys, _POISONS[kind])},
                **options,
            )


def _bias() -> Iterator[Fact]:
    for way, (arrays, options) in _PAIRS.items():
        for kind, poisons in _POISONS.items():
            clean = plain() | arrays | {"bias": normal((4, 7), seed=13)}
            yield state(
                f"hidden-{kind}-in-bias-under-{way}",
                f"A bias that is {kind} at the hidden pairs changes no output, pair by pair.",
                "C4 E2 E4",
                _FLAGS["bias", kind],
                clean,
                laws=("unmoved",),
                instead={"bias": _poisoned(clean["bias"], _HIDDEN[way], poisons)},
                **options,
            )


def _dtypes() -> Iterator[Fact]:
    for dtype in ("float16", "float32"):
        clean = batched(dtype) | {"mask": drawn("##.##.#")}
        bad = {name: clean[name].copy() for name in ("k", "v")}
        for name, poison in (("k", np.nan), ("v", np.inf)):
            bad[name][..., 2, :] = poison
            bad[name][..., 5, :] = dtype_of(dtype).type(60000)
        yield state(
            f"hidden-keys-and-values-{dtype}",
            f"NaN, infinity and 60000 in hidden keys and values change no output, in {dtype}.",
            "B2 E2",
            "hidden-nan-in-keys hidden-nan-in-values",
            clean,
            laws=("unmoved",),
            instead=bad,
        )


def _pair_by_pair() -> Iterator[Fact]:
    ways = {
        "is-causal": ({}, {"is_causal": True}),
        "a-causal-rule": ({}, {"mask": causal()}),
        "a-mask": ({"mask": np.tri(4, 7, dtype=bool)}, {}),
        "a-bias-of-minus-infinity": ({"bias": np.where(np.tri(4, 7) == 1, np.float32(0), np.float32(-np.inf))}, {}),
        "a-rule-that-is-joined": ({}, {"mask": joined("and", causal(), window(3, None))}),
    }
    for way, (arrays, options) in ways.items():
        for name in ("k", "v"):
            given = plain() | arrays
            given[name] = _poisoned(given[name], (2, 1), [np.nan])
            yield state(
                f"nan-in-the-future-in-{name}-under-{way}",
                f"A NaN in {name} of key 2 reaches rows 2 and 3, which see it, and not rows 0 and 1, which do not.",
                "D4 E2 E3",
                f"{_FLAGS[name, 'non-finite']} visible-nan-swallowed visible-nan-spread",
                given,
                **options,
            )


def _parts_of_a_batch() -> Iterator[Fact]:
    clean = batched() | {"lengths": array([[4], [7]], "int64")}
    bad = {name: clean[name].copy() for name in ("k", "v")}
    for poisoned in bad.values():
        poisoned[0, :, 4:] = np.nan
    yield state(
        "hidden-nan-in-the-padding-of-one-element",
        "NaN behind the length of one batch element changes neither that element nor the other.",
        "D6 E2",
        "hidden-nan-in-keys hidden-nan-in-values padding-off-by-one",
        clean,
        laws=("unmoved",),
        instead=bad,
        mask=_PADDING,
    )
    given = qkv((2, 4, 3, 5), (2, 2, 7, 5), (2, 2, 7, 6), seed=8)
    given["v"][:, 0, 3, 1] = np.nan
    given["mask"] = np.ones((4, 1, 7), bool)
    given["mask"][0, 0, 3] = False
    yield state(
        "nan-that-one-query-head-of-a-group-hides",
        "Heads 0 and 1 share a key with a NaN value: it reaches head 1, which sees it, and not head 0.",
        "B5 E2 E3",
        "hidden-nan-in-values heads-tiled visible-nan-swallowed visible-nan-spread",
        given,
        enable_gqa=True,
    )


def _empty_rows() -> Iterator[Fact]:
    clean = plain() | {"mask": drawn(*["......."] * 4)}
    yield state(
        "nan-everywhere-in-empty-rows",
        "When every row is empty, NaN in every query, key and value gives out 0 and lse -inf.",
        "E1 E2",
        "empty-row-nan hidden-nan-in-keys hidden-nan-in-values",
        clean,
        laws=("unmoved",),
        instead={name: np.full_like(clean[name], np.nan) for name in ("q", "k", "v")},
    )
    clean = pattern(2, 3) | {"mask": drawn("##.", "..."), "sinks": array(1.0)}
    bad = clean["q"].copy()
    bad[1] = np.nan
    yield state(
        "nan-query-in-an-empty-row-with-a-sink",
        "A NaN in the query of an empty row changes nothing: out is 0 and lse is the sink.",
        "C7 E1 E2",
        "hidden-nan-in-keys",
        clean,
        laws=("unmoved",),
        instead={"q": bad},
    )
