"""The additive bias: its shapes, its dtypes, and the one value that hides, -inf."""

from __future__ import annotations

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from conformance.facts import (
    FLOATS,
    Fact,
    array,
    batched,
    dtype_of,
    identity,
    normal,
    pattern,
    plain,
    qkv,
    state,
    zeros,
)


def facts() -> Iterator[Fact]:
    """Yield the facts."""
    yield from _on_paper()
    yield from _constant_in_a_row()
    yield from _shapes()
    yield from _dtypes()
    yield from _hiding()
    yield from _large_but_finite()
    yield from _with_others()


def _on_paper() -> Iterator[Fact]:
    yield state(
        "bias-is-added-to-the-scores",
        "With zero queries a bias of ln 1, ln 2, ln 5 gives the weights 1/8, 2/8, 5/8.",
        "C3",
        "bias-ignored bias-scaled",
        pattern(2, 3) | {"bias": array([np.log([1, 2, 5])], "float64")},
        paper={"out": [[0.125, 0.25, 0.625]] * 2, "lse": [np.log(8)] * 2},
    )
    one, e = 1, np.exp(1)
    yield state(
        "bias-of-zeros-and-ones-is-a-bias",
        "A bias of 0 and 1 is added: the allowed key gets e times the weight of each other one.",
        "C3 C6",
        "bias-read-as-mask",
        pattern(2, 3) | {"bias": array([[1, 0, 0]])},
        paper={"out": [[e / (e + 2), one / (e + 2), one / (e + 2)]] * 2},
    )
    yield state(
        "bias-that-is-constant-in-a-row-changes-only-lse",
        "A bias of shape (T, 1) leaves weights and out as they are and is added to lse.",
        "C3 C6 C8",
        "lse-without-bias",
        pattern(2, 3) | {"bias": array([[5], [-3]])},
        paper={"out": np.full((2, 3), 1 / 3), "lse": [5 + np.log(3), -3 + np.log(3)]},
    )
    yield state(
        "bias-of-a-query-is-not-one-of-a-key",
        "With T = S a bias of shape (T, 1) belongs to the queries all the same.",
        "C3 C6 C8",
        "bias-on-query-axis lse-without-bias",
        pattern(3, 3) | {"bias": array([[5], [-3], [1]])},
        paper={"out": np.full((3, 3), 1 / 3), "lse": np.log(3) + np.array([5, -3, 1])},
    )


def _constant_in_a_row() -> Iterator[Fact]:
    e = np.exp([5, -3])
    yield state(
        "bias-that-is-constant-in-a-row-competes-with-the-sink",
        "A bias of shape (T, 1) is added to every score and not to the sink: with a sink of 0 it decides what is left.",
        "C3 C6 C7",
        "constant-bias-skipped",
        pattern(2, 3) | {"bias": array([[5], [-3]]), "sinks": array(0.0)},
        paper={"out": np.repeat((e / (3 * e + 1))[:, None], 3, axis=1), "lse": np.log(3 * e + 1)},
    )
    yield state(
        "bias-that-is-constant-in-a-row-and-not-finite",
        "NaN and +inf in a bias of shape (T, 1) spoil their rows, and -inf empties its row.",
        "C3 C6 E1 E3",
        "constant-bias-skipped visible-nan-swallowed",
        pattern(3, 3) | {"bias": array([[np.nan], [np.inf], [-np.inf]])},
        paper={"out": [[np.nan] * 3, [np.nan] * 3, [0] * 3], "lse": [np.nan, np.nan, -np.inf]},
    )


def _shapes() -> Iterator[Fact]:
    for shape in ((7,), (4, 7), (3, 1, 7), (2, 1, 1, 7), (2, 3, 4, 7)):
        name = "-".join(map(str, shape)) or "scalar"
        yield state(
            f"bias-shape-{name}",
            f"A bias of shape {shape} broadcasts, right-aligned, to (B, H, T, S) = (2, 3, 4, 7).",
            "C3 C6 C8",
            "bias-ignored lse-without-bias" if shape in ((), (4, 1)) else "bias-ignored bias-scaled",
            batched() | {"bias": normal(shape, seed=13)},
        )

    shares = np.exp([5, -3, 1]) / np.exp([5, -3, 1]).sum()
    yield state(
        "bias-of-one-axis-is-of-keys",
        "With T = S a bias of shape (S,) belongs to the keys: every row has the softmax of it.",
        "C3 C6",
        "bias-on-query-axis",
        pattern(3, 3) | {"bias": array([5, -3, 1])},
        paper={"out": [shares] * 3},
    )
    yield state(
        "bias-with-as-many-heads-as-samples",
        "With B = H = 3 a bias of shape (3, T, S) counts the heads and is the same for each batch element.",
        "C3 C6",
        "bias-per-sample",
        qkv((3, 3, 3, 5), (3, 3, 3, 5), (3, 3, 3, 6), seed=9) | {"bias": normal((3, 3, 3), seed=13)},
    )


def _dtypes() -> Iterator[Fact]:
    lossy = [("float16", "float32"), ("bfloat16", "float32"), ("bfloat16", "float16")]
    for dtype, given in [*((dtype, dtype) for dtype in FLOATS), *lossy, ("float32", "float64")]:
        yield state(
            f"bias-{given}-with-{dtype}-inputs",
            f"A bias of {given} is converted to the compute dtype of {dtype} inputs; the outputs stay {dtype}.",
            "B2 C3 C6",
            "dtype-changed bias-ignored" + (" bias-in-input-dtype" if (dtype, given) in lossy else ""),
            plain(dtype) | {"bias": normal((4, 7), given, seed=13, spread=9.0)},
        )


def _hiding() -> Iterator[Fact]:
    for dtype in FLOATS:
        bias = zeros((2, 3), dtype)
        bias[:, 2] = -np.inf
        yield state(
            f"bias-of-minus-infinity-hides-{dtype}",
            f"A {dtype} bias of -inf hides the third key of every row.",
            "C6 E4",
            "bias-ignored",
            pattern(2, 3, dtype) | {"bias": bias},
            paper={"out": [[0.5, 0.5, 0]] * 2, "lse": [np.log(2)] * 2},
        )
    bias = np.full((2, 3), np.finfo(np.float64).min)
    bias[:, 0] = 0
    yield state(
        "bias-that-becomes-minus-infinity-in-the-compute-dtype-hides",
        "The lowest float64 number is -inf in float32, so with float32 inputs it hides its pair.",
        "C6",
        "bias-ignored",
        pattern(2, 3) | {"bias": np.where(bias == 0, 0.0, bias)},
        paper={"out": [[1, 0, 0]] * 2, "lse": [0] * 2},
    )
    yield state(
        "bias-row-of-the-lowest-float64-is-empty-in-float32",
        "A whole row of the lowest float64 number is an empty row for float32 inputs.",
        "C6 E1",
        "empty-row-nan bias-hidden-before-conversion",
        pattern(2, 3) | {"bias": np.where([[True], [False]], 0.0, np.finfo(np.float64).min)},
        paper={"out": [[1 / 3] * 3, [0] * 3], "lse": [np.log(3), -np.inf]},
    )


def _large_but_finite() -> Iterator[Fact]:
    rows = (
        ("minus-1e4", "float32", array([-1e4] * 3)),
        ("minus-1e9", "float32", array([-1e9] * 3)),
        ("minus-1e9", "float16", array([-1e9] * 3)),
        ("the-lowest-number", "float16", _lowest("float16")),
        ("the-lowest-number", "bfloat16", _lowest("bfloat16")),
        ("the-lowest-number", "float32", _lowest("float32")),
    )
    for name, dtype, row in rows:
        yield state(
            f"bias-row-of-{name}-is-no-mask-{dtype}",
            f"A whole row of {row[0]:g} ({row.dtype.name}) hides nothing from {dtype} queries: all scores shift alike.",
            "C6 E5",
            "finite-bias-read-as-mask bias-in-input-dtype" if dtype != row.dtype else "finite-bias-read-as-mask",
            pattern(2, 3, dtype) | {"bias": np.stack([np.zeros_like(row), row])},
            paper={"out": np.full((2, 3), 1 / 3)},
        )
    yield state(
        "bias-of-minus-1e9-beside-zero-leaves-no-weight",
        "A bias of -1e9 beside 0 leaves weight 0 to its key, since e^-1e9 rounds to 0.",
        "C3 F1",
        "bias-ignored",
        pattern(2, 3) | {"bias": array([[0, -1e9, 0]])},
        paper={"out": [[0.5, 0, 0.5]] * 2},
    )
    yield state(
        "bias-of-plus-1e4-takes-all-the-weight",
        "A bias of 1e4 on one key gives it all the weight, without overflow.",
        "C3 F1",
        "no-maximum-subtracted maximum-before-bias",
        pattern(2, 3) | {"bias": array([[0, 1e4, 0]])},
        paper={"out": [[0, 1, 0]] * 2, "lse": [1e4] * 2},
    )


def _lowest(dtype: str) -> np.ndarray:
    return np.full(3, ml_dtypes.finfo(dtype_of(dtype)).min, dtype_of(dtype))


def _with_others() -> Iterator[Fact]:
    bias = normal((4, 7), seed=13)
    bias[:, 1] = -np.inf
    mask = array([1, 1, 0, 1, 1, 1, 1], "bool")
    yield state(
        "bias-mask-and-causal-all-have-to-allow-a-pair",
        "With bias, mask and is_causal given, a pair is visible only if each of them allows it.",
        "C3 C6 D4",
        "mask-ignored-with-causal causal-ignored-with-mask mask-ignored-with-bias bias-ignored input-modified",
        plain() | {"bias": bias, "mask": mask},
        is_causal=True,
    )
    yield state(
        "bias-and-rule-both-have-to-allow-a-pair",
        "A bias of -inf hides within the pairs that a rule leaves visible.",
        "C3 C6 D4",
        "bias-ignored rule-ignored-with-bias",
        plain() | {"bias": bias},
        mask={"rule": "window", "left": 1, "right": 3, "offset": 0},
    )
    yield state(
        "bias-with-unit-scores-on-paper",
        "Scores 2 and 0 with a bias of -2 and 0 tie.",
        "C1 C3",
        "bias-ignored",
        {"q": array([[2, 0]]), "k": identity(2), "v": identity(2), "bias": array([[-2, 0]])},
        scale=1.0,
        paper={"out": [[0.5, 0.5]], "lse": [np.log(2)]},
    )
