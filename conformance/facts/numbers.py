"""Large scores, half precision and long sums: the result is the oracle's, within the derived budget."""

from __future__ import annotations

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from conformance.facts import (
    FLOATS,
    Fact,
    array,
    drawn,
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
    yield from _scores_of_ten_thousand()
    yield from _lowest_scores()
    yield from _half_precision()
    yield from _large_logits()
    yield from _long_rows()
    yield from _largest_values()


def _scores_of_ten_thousand() -> Iterator[Fact]:
    for dtype in FLOATS:
        yield state(
            f"scores-of-plus-and-minus-1e4-{dtype}",
            f"Scores 1e4, 5e3 and -1e4 give the weights 1, 0, 0 in {dtype}, and lse 1e4.",
            "F1 C8",
            "no-maximum-subtracted lse-without-maximum",
            {"q": array([[100]], dtype), "k": array([[100], [50], [-100]], dtype), "v": identity(3, dtype)},
            paper={"out": [[1, 0, 0]], "lse": [1e4]},
        )
        yield state(
            f"two-scores-of-minus-1e4-{dtype}",
            f"Two scores of -1e4 beside one of -2e4 share the weight in {dtype}; lse is -1e4 + ln 2.",
            "F1 C8",
            "no-maximum-subtracted lse-without-maximum",
            {"q": array([[-100]], dtype), "k": array([[100], [100], [200]], dtype), "v": identity(3, dtype)},
            paper={"out": [[0.5, 0.5, 0]], "lse": [np.log(2) - 1e4]},
        )
        yield state(
            f"random-scores-of-1e4-{dtype}",
            f"Random scores of about 1e4 give finite results in {dtype}.",
            "F1 F2",
            "no-maximum-subtracted maximum-over-all-rows" + (" half-precision-scores" if "float16" in dtype else ""),
            plain(dtype)
            | {"q": normal((4, 5), dtype, seed=51, spread=100), "k": normal((7, 5), dtype, seed=52, spread=100)},
        )
    yield state(
        "scores-of-1e4-that-differ-by-one",
        "Scores 10001 and 10000 differ by one: the weights are e/(e+1) and 1/(e+1).",
        "F1",
        "no-maximum-subtracted",
        {"q": array([[1]]), "k": array([[10001], [10000], [0]]), "v": identity(3)},
        paper={"out": [[np.e / (np.e + 1), 1 / (np.e + 1), 0]]},
    )


def _lowest_scores() -> Iterator[Fact]:
    for dtype, score in (("float16", -60000), ("bfloat16", -3e38), ("float32", -3e38), ("float64", -1e308)):
        yield state(
            f"lowest-visible-score-beats-every-hidden-one-{dtype}",
            f"A visible score of {score:g} beats a hidden one in {dtype}: the weights are 1 and 0.",
            "C4 E5",
            "finite-fill",
            {"q": array([[1]], dtype), "k": array([[score], [5]], dtype), "v": identity(2, dtype)}
            | {"mask": drawn("#.")},
            scale=1.0,
            paper={"out": [[1, 0]]},
        )
    for dtype in ("float16", "bfloat16", "float32"):
        yield state(
            f"lowest-visible-bias-beats-every-hidden-one-{dtype}",
            f"The lowest finite bias at a visible pair beats a hidden pair in {dtype}.",
            "C6 E5",
            "finite-fill finite-bias-read-as-mask",
            {"q": zeros((1, 1), dtype), "k": zeros((2, 1), dtype), "v": identity(2, dtype)}
            | {"mask": drawn(".#"), "bias": np.full((1, 2), ml_dtypes.finfo(dtype_of(dtype)).min, dtype_of(dtype))},
            paper={"out": [[0, 1]]},
        )


def _half_precision() -> Iterator[Fact]:
    for sign, weights in ((1, [1, 0]), (-1, [0, 1])):
        yield state(
            f"half-precision-products-beyond-65504-{'plus' if sign > 0 else 'minus'}",
            "A float16 product of 230400 does not fit float16, its scaled score of 28800 does: nothing overflows.",
            "B2 C1 F1",
            "half-precision-scores",
            {
                "q": np.full((1, 64), sign * 60, np.float16),
                "k": np.repeat(array([[60], [59]], "float16"), 64, axis=1),
                "v": identity(2, "float16"),
            },
            paper={"out": [weights]},
        )
    for dtype in ("float16", "bfloat16"):
        yield state(
            f"wide-scores-{dtype}",
            f"Scores of about 20 are kept in float32 for {dtype} inputs.",
            "B2 F2",
            "half-precision-scores",
            plain(dtype)
            | {"q": normal((4, 5), dtype, seed=53, spread=5), "k": normal((7, 5), dtype, seed=54, spread=5)},
        )
        yield state(
            f"values-that-cancel-{dtype}",
            f"Weights 3/18, 4/18, 11/18 over values 1024, 2048, -1024 cancel if {dtype} inputs have float32 weights.",
            "B2 F2",
            "half-precision-weights",
            pattern(1, 3, dtype)
            | {"v": array([[1024], [2048], [-1024]], dtype), "bias": array(np.log([3, 4, 11]), "float32")},
        )
        yield state(
            f"sum-of-520-ones-{dtype}",
            f"520 equal scores over values of one give 1 in {dtype}: the sums are kept in float32.",
            "B2 F2",
            "half-precision-sums" if dtype == "bfloat16" else "last-tile-lost",
            {"q": zeros((1, 1), dtype), "k": zeros((520, 1), dtype), "v": np.ones((520, 1), dtype_of(dtype))},
            paper={"out": [[1]], "lse": [np.log(520)]},
        )


def _large_logit_flags(dtype: str, D: int, power: int) -> str:
    """The scale 1/sqrt(64) is exact, and so are bfloat16 products: only the others have roundings that differ."""
    rounded = dtype == "float32" and D == 8 and power >= 5
    return "no-maximum-subtracted" + (" maximum-of-another-rounding" if rounded else "")


def _large_logits() -> Iterator[Fact]:
    for dtype in ("bfloat16", "float32", "float64"):
        for D, power in ((8, 3), (8, 5), (8, 10)) + ((64, 5),) * (dtype == "float32"):
            size = 10.0**power
            yield state(
                f"logits-of-entries-1e{power}-with-{D}-features-{dtype}",
                f"Entries of {size:g} with D = {D} give the weights 1 and 0 in {dtype}: the maximum that is "
                "subtracted has the rounding of the score itself.",
                "F1",
                _large_logit_flags(dtype, D, power),
                {
                    "q": np.full((1, D), size).astype(dtype_of(dtype)),
                    "k": np.repeat(array([[size], [size / 2]], dtype), D, axis=1),
                    "v": identity(2, dtype),
                },
                paper={"out": [[1, 0]]},
            )
    for seed in (56, 57, 58):
        yield state(
            f"random-logits-of-1e10-draw-{seed - 55}",
            "Random logits of about 1e10 give finite weights, since maximum and score are rounded alike.",
            "F1",
            "no-maximum-subtracted maximum-of-another-rounding",
            {
                "q": normal((4, 8), seed=seed, spread=1e5),
                "k": normal((7, 8), seed=seed + 10, spread=1e5),
                "v": normal((7, 6), seed=seed + 20),
            },
        )


def _long_rows() -> Iterator[Fact]:
    arrays = qkv((2, 2), (520, 2), (520, 1), seed=59)
    yield state(
        "keys-beyond-the-default-tiles",
        "520 keys, more than whole tiles hold, are all counted.",
        "A1 C5",
        "last-tile-lost tiles-merged-without-rescaling",
        arrays | {"q": 4 * arrays["q"]},
    )
    mask = np.zeros((2, 520), bool)
    mask[0, 513:] = mask[1, 3::100] = True
    yield state(
        "tiles-that-hide-everything",
        "Rows whose visible keys lie in the last tile, or one here and one there, are ordinary rows.",
        "A1 C4",
        "last-tile-lost first-tile-hidden-nan last-tile-hidden-nan",
        arrays | {"mask": mask},
    )
    yield state(
        "causal-over-many-tiles",
        "A causal rule with an offset is evaluated at the positions of the whole sequence, not of the tile.",
        "A1 D3 D4",
        "tile-positions-local last-tile-lost",
        arrays,
        mask={"rule": "causal", "offset": 517},
    )
    for name, T, S in (("keys", 2, 520), ("queries", 520, 3)):
        yield state(
            f"causal-over-520-{name}",
            f"With T = {T} and S = {S} is_causal knows all positions, however they are cut and counted.",
            "D4",
            "positions-wrap" + (" tile-positions-local" if name == "queries" else ""),
            qkv((T, 2), (S, 2), (S, 1), seed=59),
            is_causal=True,
        )
    yield state(
        "growing-scores-over-many-tiles",
        "When each tile has a larger score than the one before, the earlier sums are rescaled.",
        "A1 F1",
        "tiles-merged-without-rescaling",
        {"q": array([[1, 0]] * 2), "k": np.stack([np.arange(520) / 8, np.zeros(520)], 1).astype(np.float32)}
        | {"v": arrays["v"]},
    )


def _largest_values() -> Iterator[Fact]:
    for dtype in ("bfloat16", "float32"):
        value = array([[3e38]] * 2, dtype)
        yield state(
            f"mean-of-the-largest-values-{dtype}",
            f"The mean of 3e38 and 3e38 is 3e38 in {dtype}: the weights meet the values, and no sum beyond them.",
            "A1 C5 F2",
            "values-overflow",
            {"q": zeros((1, 1), dtype), "k": zeros((2, 1), dtype), "v": value},
            paper={"out": [[float(value[0, 0])]]},
        )
    yield state(
        "blends-of-the-largest-values",
        "Blends of values of 3e38 and -3e38 are numbers.",
        "A1 C5 F2",
        "values-overflow",
        plain() | {"v": np.where(normal((7, 6), seed=61) > -0.5, 3e38, -3e38).astype(np.float32)},
    )
