"""Gradients at hidden pairs: exactly 0 in empty rows and at keys that no query sees, whatever stands there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from conformance.facts import FLOATS, Fact, array, batched, drawn, normal, plain, qkv
from conformance.facts.gradients import vjp

# Query 1 sees nothing, key 2 is seen by nobody.
HOLES = drawn("##.#.##", ".......", "#..####", "##.##..")
BAD = {"nan": np.nan, "infinity": np.inf, "minus-infinity": -np.inf, "a-huge-number": 3e38}


def facts() -> Iterator[Fact]:
    """Yield the facts."""
    yield from _empty_rows()
    yield from _padded_samples()
    yield from _unseen_keys()
    yield from _unmoved_by_keys()
    yield from _unmoved_by_pairs()
    yield from _unmoved_in_half()
    yield from _unmoved_beside_other_steps()
    yield from _visible()


def _empty_rows() -> Iterator[Fact]:
    flags = "gradient-nan-from-hidden gradient-of-empty-row empty-row-mean"
    for dtype in FLOATS:
        yield vjp(
            f"gradient-of-an-empty-row-{dtype}",
            f"In {dtype} dq of an empty row is exactly 0, and the row adds nothing to dk and dv.",
            "E1 E4",
            flags,
            plain(dtype) | {"mask": HOLES},
        )
    for name, told, change, options in (
        ("sink", "a sink", {"sinks": array(0.5)}, {}),
        ("bias", "a bias", {"bias": normal((4, 7), seed=51)}, {}),
        ("softcap", "a softcap", {}, {"softcap": 1.5}),
    ):
        yield vjp(
            f"gradient-of-an-empty-row-beside-a-{name}",
            f"An empty row has gradients of exactly 0 with {told} too.",
            "E1",
            flags,
            plain() | {"mask": HOLES} | change,
            **options,
        )
    hidden = np.where(HOLES, normal((4, 7), seed=51), np.float32(-np.inf))
    yield vjp(
        "gradient-of-a-row-of-minus-infinity",
        "A row of -inf in the bias is empty: dq and dbias are exactly 0 there.",
        "C6 E1",
        flags,
        plain() | {"bias": hidden},
    )
    yield vjp(
        "gradient-of-a-shared-bias-with-an-empty-row",
        "A bias that broadcasts over the queries gets nothing from the empty one.",
        "C6 E1",
        flags + " gradient-not-summed",
        plain() | {"mask": HOLES, "bias": normal((7,), seed=51)},
    )
    yield vjp(
        "gradient-of-rows-before-the-first-key",
        "Under causal with a negative offset the first two rows are empty, and their dq is exactly 0.",
        "D4 E1",
        flags,
        plain(),
        mask={"rule": "causal", "offset": -2},
    )


def _padded_samples() -> Iterator[Fact]:
    arrays = batched()
    d_out = normal((2, 3, 4, 6), seed=40)
    d_out[1] = 0
    for name, told, change in (
        ("padding", "by its length", {}),
        (
            "bias",
            "by a bias of -inf",
            {"bias": np.where([[[[True]]], [[[False]]]], np.float32(0), np.float32(-np.inf))},
        ),
    ):
        rule = {} if change else {"mask": {"rule": "padding", "lengths": "lengths"}}
        lengths = {} if change else {"lengths": array([[7], [0]], "int64")}
        yield vjp(
            f"gradient-beside-a-sample-hidden-by-{name}",
            f"A sample that is hidden {told} leaves the other one's gradients alone and has none itself.",
            "E1 E2",
            "gradient-nan-from-hidden",
            arrays | {"d_out": d_out} | lengths | change,
            **rule,
        )
    yield vjp(
        "gradient-when-nothing-is-visible",
        "When every pair is hidden all gradients are exactly 0.",
        "E1 E4",
        "gradient-nan-from-hidden gradient-of-empty-row",
        plain() | {"mask": np.zeros((4, 7), bool), "bias": normal((4, 7), seed=51)},
        paper={"dq": np.zeros((4, 5)), "dk": np.zeros((7, 5)), "dv": np.zeros((7, 6)), "dbias": np.zeros((4, 7))},
    )


def _unseen_keys() -> Iterator[Fact]:
    yield vjp(
        "gradient-of-keys-after-the-last-query",
        "With more keys than queries causal leaves the last keys unseen: their dk and dv are exactly 0.",
        "D4 E4",
        "causal-ignored-in-gradient",
        plain(),
        is_causal=True,
    )
    yield vjp(
        "gradient-of-a-key-unseen-in-one-sample",
        "A key that is padding in one sample and not in the other has its zeros in that sample alone.",
        "D6 E4",
        "mask-ignored-in-gradient",
        batched() | {"lengths": array([[6], [3]], "int64")},
        mask={"rule": "padding", "lengths": "lengths"},
    )
    yield vjp(
        "gradient-of-an-unseen-key-in-a-group",
        "A key that no query head of its group sees has dk and dv of exactly 0.",
        "B5 E4",
        "mask-ignored-in-gradient",
        qkv((2, 6, 4, 5), (2, 3, 7, 5), (2, 3, 7, 6)) | {"mask": drawn("##.##.#")},
        enable_gqa=True,
    )


def _unmoved_by_keys() -> Iterator[Fact]:
    arrays = plain() | {"mask": HOLES}
    for name, bad in BAD.items():
        for target in ("k", "v"):
            yield vjp(
                f"gradient-unmoved-by-{name}-in-hidden-{target}",
                f"{_spelled(name)} in {target} at the key that no query sees changes no gradient by a bit.",
                "E2 E4",
                "gradient-nan-from-hidden",
                arrays,
                laws=("unmoved",),
                instead={target: _spoiled(arrays[target], (2,), bad)},
            )
    yield vjp(
        "gradient-unmoved-by-the-query-of-an-empty-row",
        "NaN in the query of an empty row changes no gradient by a bit.",
        "E1 E2",
        "gradient-nan-from-hidden gradient-of-empty-row",
        arrays,
        laws=("unmoved",),
        instead={"q": _spoiled(arrays["q"], (1,), np.nan)},
    )


def _unmoved_by_pairs() -> Iterator[Fact]:
    bias = normal((4, 7), seed=51)
    arrays = plain() | {"mask": HOLES, "bias": bias}
    for name, bad in BAD.items():
        yield vjp(
            f"gradient-unmoved-by-{name}-in-hidden-bias",
            f"{_spelled(name)} in the bias at every hidden pair changes no gradient by a bit.",
            "E2",
            "gradient-nan-from-hidden",
            arrays,
            laws=("unmoved",),
            instead={"bias": np.where(HOLES, bias, np.float32(bad))},
        )
    yield vjp(
        "gradient-unmoved-by-nan-in-the-future-bias",
        "NaN in the bias at every future pair changes no gradient under causal.",
        "D4 E2",
        "gradient-nan-from-hidden causal-ignored-in-gradient",
        plain() | {"bias": bias},
        laws=("unmoved",),
        instead={"bias": np.where(np.tri(4, 7, dtype=bool), bias, np.float32(np.nan))},
        is_causal=True,
    )
    future = plain()
    yield vjp(
        "gradient-unmoved-by-nan-after-the-last-query",
        "NaN in the keys and values after the last query changes no gradient under causal.",
        "D4 E2 E4",
        "gradient-nan-from-hidden causal-ignored-in-gradient",
        future,
        laws=("unmoved",),
        instead={name: _spoiled(future[name], slice(4, None), np.nan) for name in ("k", "v")},
        is_causal=True,
    )


def _unmoved_in_half() -> Iterator[Fact]:
    for dtype in ("float16", "bfloat16", "float64"):
        arrays = plain(dtype) | {"mask": HOLES}
        yield vjp(
            f"gradient-unmoved-by-hidden-nan-{dtype}",
            f"In {dtype} too NaN at a key that no query sees changes no gradient by a bit.",
            "B2 E2",
            "gradient-nan-from-hidden",
            arrays,
            laws=("unmoved",),
            instead={name: _spoiled(arrays[name], (2,), np.nan) for name in ("k", "v")},
        )


def _unmoved_beside_other_steps() -> Iterator[Fact]:
    lengths = {"lengths": array([[6], [3]], "int64")}
    padding = {"mask": {"rule": "padding", "lengths": "lengths"}}
    for name, arrays, options in (
        ("softcap", batched() | lengths, padding | {"softcap": 1.5}),
        ("sinks", batched() | lengths | {"sinks": array([0.5, -2, 3])}, padding),
        ("grouped-heads", qkv((2, 6, 4, 5), (2, 3, 7, 5), (2, 3, 7, 6)) | lengths, padding | {"enable_gqa": True}),
    ):
        places = (np.array([0, 1, 1, 1, 1]), slice(None), np.array([6, 3, 4, 5, 6]))
        yield vjp(
            f"gradient-unmoved-by-nan-in-padding-beside-{name}",
            f"NaN in padded keys and values changes no gradient by a bit, beside {name.replace('-', ' ')}.",
            "D6 E2 E4",
            "gradient-nan-from-hidden",
            arrays,
            laws=("unmoved",),
            instead={target: _spoiled(arrays[target], places, np.nan) for target in ("k", "v")},
            **options,
        )


def _visible() -> Iterator[Fact]:
    arrays = plain() | {"mask": HOLES}
    yield vjp(
        "gradient-of-a-visible-nan-is-left-open",
        "Which gradients a NaN in a visible value reaches is left to the implementation.",
        "E3",
        "gradient-nan-from-hidden",
        arrays | {"v": _spoiled(arrays["v"], (0,), np.nan)},
        either=True,
    )


def _spelled(name: str) -> str:
    return {"nan": "NaN", "infinity": "Infinity"}.get(name, name.replace("-", " ").capitalize())


def _spoiled(values: np.ndarray, place: Any, bad: float) -> np.ndarray:
    """A copy of the array with the bad number at that place."""
    copy = values.copy()
    copy[place] = bad
    return copy
