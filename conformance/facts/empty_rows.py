"""Rows without a visible key: out 0, weights 0 and lse -inf, whatever it is that hides the keys."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from conformance.facts import FLOATS, Fact, array, batched, drawn, normal, pattern, plain, shares, state
from conformance.facts.rules import causal, joined, window

_BUGS = "empty-row-mean empty-row-nan lse-finite-in-empty-row"


def facts() -> Iterator[Fact]:
    """Yield the facts."""
    yield from _on_paper()
    yield from _by_what_hides()
    yield from _by_place()
    yield from _whole_elements()
    yield from _with_options()


def _on_paper() -> Iterator[Fact]:
    for dtype in FLOATS:
        yield state(
            f"empty-row-{dtype}",
            f"In {dtype} a row that sees nothing is 0 with lse -inf, and the row beside it is as usual.",
            "B2 E1 E4",
            f"{_BUGS} finite-fill",
            pattern(2, 3, dtype) | {"mask": drawn("##.", "...")},
            paper={"out": shares("##.", "..."), "weights": shares("##.", "..."), "lse": [np.log(2), -np.inf]},
        )
    yield state(
        "empty-rows-of-random-inputs",
        "Empty rows do not depend on the scores.",
        "E1 E4",
        f"{_BUGS} mask-ignored",
        batched() | {"mask": array([[0], [1], [1], [0]], "bool")},
    )


def _by_what_hides() -> Iterator[Fact]:
    bias = array([[0, 0, 0], [-np.inf] * 3])
    ways = {
        "a-bias-of-minus-infinity": ({"bias": bias}, {}),
        "a-window": ({}, {"mask": window(0, 9, 2)}),
        "a-negated-rule": ({}, {"mask": joined("not", window(None, None))}),
        "a-shifted-causal": ({}, {"mask": causal(-1)}),
        "segments": (
            {"q_ids": array([1, 2], "int64"), "k_ids": array([1, 1, 3], "int64")},
            {"mask": {"rule": "segments", "q_ids": "q_ids", "k_ids": "k_ids"}},
        ),
        "a-mask-and-a-bias-together": ({"mask": drawn("#.#", "#.."), "bias": array([-np.inf, 0, 0])}, {}),
    }
    for name, (arrays, options) in ways.items():
        yield state(
            f"emptied-by-{name}",
            "A row is empty when no pair of it is visible, by whatever means.",
            "C4 C6 E1" if "bias" in arrays else "C4 E1",
            _BUGS,
            pattern(2, 3) | arrays,
            **options,
        )


def _by_place() -> Iterator[Fact]:
    for name, rows in {
        "first": "....... ####### ####### #######",
        "in-the-middle": "####### ....... ####### #######",
        "last": "####### ####### ####### .......",
        "all": "....... ....... ....... .......",
        "in-one-tile-of-queries": "....... ....... ....... #######",
    }.items():
        yield state(
            f"empty-rows-{name}",
            "Where the empty rows stand does not matter, neither to them nor to the others.",
            "E1",
            _BUGS,
            plain() | {"mask": drawn(*rows.split())},
        )
    yield state(
        "rows-that-are-empty-in-the-first-tile-only",
        "A row whose first keys are hidden is no empty row: its lse is finite and its weights sum to 1.",
        "C5 E1",
        "first-tile-hidden-nan",
        pattern(4, 7) | {"mask": drawn(".....##", ".....#.", "......#", "#......")},
        paper={"out": shares(".....##", ".....#.", "......#", "#......"), "lse": [np.log(2), 0, 0, 0]},
    )
    yield state(
        "rows-that-are-empty-in-the-last-tile-only",
        "A row whose last keys are hidden keeps what its first tile gave.",
        "C5 E1",
        "last-tile-hidden-nan",
        pattern(4, 7) | {"mask": drawn("##.....", ".#.....", "#####..", "......#")},
        paper={"out": shares("##.....", ".#.....", "#####..", "......#")},
    )


def _whole_elements() -> Iterator[Fact]:
    yield state(
        "a-batch-element-that-is-all-empty",
        "A batch element whose keys are all hidden is 0 throughout; the other element is as if alone.",
        "D2 E1 F3",
        f"{_BUGS} batch-dependent-bits",
        batched() | {"mask": array([1, 0], "bool").reshape(2, 1, 1, 1)},
        laws=("alone",),
    )
    yield state(
        "a-head-that-is-all-empty",
        "A head whose keys are all hidden is 0 throughout.",
        "D2 E1",
        _BUGS,
        batched() | {"mask": array([1, 0, 1], "bool").reshape(3, 1, 1)},
    )


def _with_options() -> Iterator[Fact]:
    mask = drawn("#######", ".......", "##.....", ".......")
    options = {
        "scale-zero": {"scale": 0},
        "a-negative-scale": {"scale": -1.0},
        "a-finite-bias": {"bias": normal((4, 7), seed=13)},
        "a-huge-bias": {"bias": array([[0], [3e38], [1], [-3e38]])},
        "causal": {"is_causal": True},
    }
    for name, given in options.items():
        arrays = {key: value for key, value in given.items() if isinstance(value, np.ndarray)}
        rest = {key: value for key, value in given.items() if key not in arrays}
        yield state(
            f"empty-rows-with-{name}",
            "No option brings an empty row back to life.",
            "C4 E1",
            f"{_BUGS} finite-fill",
            plain() | {"mask": mask} | arrays,
            **rest,
        )
