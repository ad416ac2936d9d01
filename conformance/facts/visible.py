"""What is visible counts: a NaN or an infinity there makes the output non-finite, there and only there."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from conformance.facts import FLOATS, Fact, array, batched, drawn, identity, normal, pattern, plain, qkv, state

_BUGS = "visible-nan-swallowed visible-nan-spread"


def facts() -> Iterator[Fact]:
    """Yield the facts."""
    yield from _places()
    yield from _single()
    yield from _dtypes()
    yield from _bias_and_sinks()
    yield from _batches()
    yield from _infinities_below()
    yield from _overflow()


def _with(name: str, place: tuple[int, ...], number: float, dtype: str = "float32") -> dict[str, np.ndarray]:
    """The plain arrays with one number replaced."""
    arrays = plain(dtype)
    arrays[name][place] = number
    return arrays


def _places() -> Iterator[Fact]:
    for kind, number in (("nan", np.nan), ("infinity", np.inf)):
        yield state(
            f"{kind}-in-a-query-spoils-its-row",
            f"{kind.capitalize()} in one query gives that row non-finite outputs, and no other row.",
            "E3",
            _BUGS,
            _with("q", (1, 2), number),
        )
        yield state(
            f"{kind}-in-a-visible-key-spoils-every-row-that-sees-it",
            f"{kind.capitalize()} in a key that rows 0 and 2 see gives these rows non-finite outputs.",
            "E3 E2",
            f"{_BUGS} hidden-nan-in-keys",
            _with("k", (3, 0), number) | {"mask": drawn("#######", "###.###", "...#...", "###.###")},
        )
    yield state(
        "nan-in-a-visible-value-spoils-its-feature",
        "A NaN in one feature of a value spoils that feature alone, in every row that sees the key.",
        "E3",
        _BUGS,
        _with("v", (3, 4), np.nan),
    )
    yield state(
        "nan-in-a-visible-value-under-causal",
        "A NaN value of key 3 is seen by the last row alone.",
        "D4 E2 E3",
        f"{_BUGS} hidden-nan-in-values",
        _with("v", (3, 4), np.nan),
        is_causal=True,
    )
    yield state(
        "nan-in-a-value-of-vanishing-weight",
        "A NaN value counts although its key's weight e^-1e4 is 0 in floating point: the key is visible.",
        "E3",
        "visible-nan-swallowed",
        pattern(2, 3) | {"v": array([[1], [2], [np.nan]]), "bias": array([0, 0, -1e4])},
    )


def _single() -> Iterator[Fact]:
    for name, T, S in (("one-query", 1, 7), ("one-key", 4, 1)):
        for place, what in (("q", "query"), ("k", "key")):
            arrays = qkv((T, 5), (S, 5), (S, 6), seed=3)
            arrays[place][0, 2] = np.nan
            yield state(
                f"nan-in-a-{what}-with-{name}",
                f"With {name.replace('-', ' ')} a NaN in a {what} spoils the rows that it meets, out, weights and lse.",
                "E3",
                "visible-nan-swallowed",
                arrays,
            )


def _dtypes() -> Iterator[Fact]:
    for dtype in FLOATS:
        arrays = _with("q", (0, 0), np.nan, dtype)
        arrays["v"][2, 5] = np.nan
        yield state(
            f"visible-nan-in-query-and-value-{dtype}",
            f"A NaN query spoils its row and a NaN value its feature, in {dtype}.",
            "B2 E3",
            _BUGS,
            arrays,
        )


def _bias_and_sinks() -> Iterator[Fact]:
    for kind, number in (("nan", np.nan), ("infinity", np.inf)):
        bias = normal((4, 7), seed=13)
        bias[2, 5] = number
        yield state(
            f"{kind}-in-a-visible-bias-spoils-its-row",
            f"{kind.capitalize()} in the bias of a visible pair spoils that row and no other.",
            "C3 E3",
            _BUGS,
            plain() | {"bias": bias},
        )
    yield state(
        "nan-in-a-sink-spoils-its-head",
        "A NaN sink spoils every row of its head that sees a key, and no other head.",
        "C7 E3",
        _BUGS,
        batched() | {"sinks": array([0.5, np.nan, 1.0])},
    )


def _batches() -> Iterator[Fact]:
    arrays = batched()
    arrays["k"][1, 2, 6, 0] = np.nan
    yield state(
        "nan-in-one-head-of-one-element",
        "A NaN in a key of one head and batch element spoils the rows that see it, in that head and element alone.",
        "E3 E4",
        f"{_BUGS} hidden-nan-in-keys",
        arrays | {"mask": drawn("#######", "######.", "......#", "######.")},
    )


def _infinities_below() -> Iterator[Fact]:
    """An infinity is no number, even where the arithmetic would give its pair a finite score or the weight 0."""
    arrays = _with("k", (3, 0), -np.inf)
    yield state(
        "infinity-in-a-key-whose-scores-are-minus-infinity",
        "-inf in a key meets positive queries: its scores are NaN and not -inf, in the rows 0 and 2 that see it.",
        "E3",
        "visible-infinity-swallowed",
        arrays | {"q": np.abs(arrays["q"]), "mask": drawn("#######", "###.###", "...#...", "###.###")},
    )
    arrays = _with("q", (1, 2), -np.inf)
    yield state(
        "infinity-in-a-query-beside-a-sink",
        "-inf in a query that meets positive keys spoils its row, although a sink would have all the weight there.",
        "C7 E3",
        "visible-infinity-swallowed",
        arrays | {"k": np.abs(arrays["k"]), "sinks": array(2.0)},
        scale=0.25,
    )
    arrays = _with("k", (3, 0), np.inf)
    arrays["q"][1, 2] = np.inf
    yield state(
        "infinities-under-a-softcap",
        "No cap makes a number of an infinity: under causal query 1 has one, and key 3, which row 3 alone sees.",
        "C2 D4 E3",
        "visible-infinity-swallowed",
        arrays,
        softcap=2.0,
        is_causal=True,
    )


def _overflow() -> Iterator[Fact]:
    yield state(
        "score-that-overflows-spoils-its-row",
        "Scores are those of the compute dtype: one beyond the largest float32 is +inf and spoils its row, and one "
        "below the lowest has weight 0 beside a score of 0, also where float64 would hold it.",
        "B2 C1 E3 E5 F1",
        _BUGS,
        {"q": array([[1e20], [1], [-1e20]]), "k": array([[1e20], [0]]), "v": identity(2)},
        scale=1.0,
        paper={"out": [[np.nan, np.nan], [1, 0], [0, 1]]},
    )
    yield state(
        "hidden-score-that-overflows",
        "A score that overflows at a hidden pair does not exist.",
        "E2 F1",
        "hidden-nan-in-keys",
        {"q": array([[1e20], [1]]), "k": array([[1e20], [0]]), "v": identity(2), "mask": drawn(".#")},
        scale=1.0,
        paper={"out": [[0, 1]] * 2, "lse": [0, 0]},
    )
    yield state(
        "value-of-a-score-that-overflows",
        "A score that overflows to -inf hides nothing: a NaN in the value of its key spoils that feature.",
        "E3 E5",
        "visibility-from-scores visible-nan-swallowed",
        {"q": array([[0], [1], [-1e20]]), "k": array([[1e20], [0]]), "v": array([[np.nan, 0], [0, 1]])},
        scale=1.0,
        paper={"out": [[np.nan, 0.5], [np.nan, 0], [np.nan, 1]], "lse": [np.log(2), 1e20, 0]},
    )
    yield state(
        "row-of-scores-that-all-overflow",
        "Visible scores that all overflow to -inf leave a row that is implementation-defined; it is no empty row.",
        "E3 E5",
        "visible-nan-swallowed",
        {"q": array([[1e20], [1]]), "k": array([[-1e20], [-1e20]]), "v": identity(2)},
        scale=1.0,
        either=True,
    )
