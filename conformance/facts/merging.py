"""Merging partial results: the identity, parts without keys, magnitudes, and that keys split anywhere give the whole.

Parts of a split are the oracle's own results on some of the keys; `paper` holds its result on all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from conformance import oracle
from conformance.arithmetic import Plain
from conformance.facts import FLOATS, Fact, array, batched, drawn, dtype_of, normal, plain, state

Part = tuple[np.ndarray, np.ndarray]
merge = partial(state, op="merge")


def facts() -> Iterator[Fact]:
    """Yield the facts."""
    yield from _on_paper()
    yield from _identity()
    yield from _without_weight()
    yield from _splits()
    yield from _orders()
    yield from _hidden()
    yield from _dtypes()
    yield from _magnitudes()
    yield from _non_finite()
    yield from _shapes()


def parts(*given: Part) -> dict[str, np.ndarray]:
    """The arguments out0, lse0, out1, lse1, … of these parts."""
    return {
        f"{name}{i}": value for i, part in enumerate(given) for name, value in zip(("out", "lse"), part, strict=True)
    }


def attended(arrays: dict[str, np.ndarray], keys: slice, **options: Any) -> Part:
    """What attention over these keys alone gives, as float64."""
    cut = arrays | {name: arrays[name][..., keys, :] for name in ("k", "v")}
    cut |= {name: arrays[name][..., keys] for name in ("mask", "bias") if name in arrays}
    found = oracle.evaluate("attention", cut, options, Plain("float64"))
    out, lse = (np.array(found[name].cells, float).reshape(found[name].shape) for name in ("out", "lse"))
    return out, lse


def whole(arrays: dict[str, np.ndarray], **options: Any) -> dict[str, np.ndarray]:
    """The result over all keys, as the paper's values."""
    return dict(zip(("out", "lse"), attended(arrays, slice(None), **options), strict=True))


def _drawn_part(seed: int, dtype: str = "float32") -> Part:
    lse_dtype = "float64" if dtype == "float64" else "float32"
    return normal((4, 6), dtype, seed=seed), normal((4,), lse_dtype, seed=seed + 1, spread=2)


def _empty_part(dtype: str = "float32") -> Part:
    lse_dtype = "float64" if dtype == "float64" else "float32"
    return np.zeros((4, 6), dtype_of(dtype)), np.full(4, -np.inf, lse_dtype)


def _on_paper() -> Iterator[Fact]:
    one, three = (array([[8, 0]]), array([0])), (array([[0, 4]]), array(np.log([3.0])))
    yield merge(
        "merge-weighs-parts-by-their-denominators",
        "Parts with denominators 1 and 3 count 1/4 and 3/4, and the whole has the denominator 4.",
        "F4",
        "merge-averages merge-without-log",
        parts(one, three),
        paper={"out": [[2, 3]], "lse": [np.log(4)]},
    )
    yield merge(
        "merge-of-equal-denominators-is-the-mean",
        "Two parts of equal lse are averaged, and ln 2 is added to the lse.",
        "F4",
        "merge-without-log",
        parts((array([[8, 0]]), array([-3])), (array([[0, 4]]), array([-3]))),
        paper={"out": [[4, 2]], "lse": [np.log(2) - 3]},
    )


def _identity() -> Iterator[Fact]:
    drawn_part, empty = _drawn_part(60), _empty_part()
    same = {"out": drawn_part[0], "lse": drawn_part[1]}
    for name, told, given in (
        ("one-part", "A single part", (drawn_part,)),
        ("empty-part-after", "A part followed by (0, -inf)", (drawn_part, empty)),
        ("empty-part-before", "A part that follows (0, -inf)", (empty, drawn_part)),
        ("empty-parts-around", "A part between two of (0, -inf)", (empty, drawn_part, empty)),
    ):
        yield merge(
            f"merge-of-{name}-changes-nothing",
            f"{told} is the result.",
            "F4" if len(given) > 1 else "A2 F4",
            "merge-empty-part-counts" if len(given) > 1 else "dtype-changed output-shares-memory",
            parts(*given),
            paper=same,
        )
    for count in (1, 2, 3):
        yield merge(
            f"merge-of-{count}-empty-parts-is-empty",
            f"{count} of (0, -inf) give 0 and -inf, and no NaN.",
            "E1 F4",
            "merge-empty-part-nan",
            parts(*[empty] * count),
            paper=dict(zip(("out", "lse"), empty, strict=True)),
        )


def _without_weight() -> Iterator[Fact]:
    first, (_, nothing) = _drawn_part(60), _empty_part()
    empty_in_two_rows = np.where([True, False, True, False], nothing, _drawn_part(62)[1])
    for name, bad in (("nan", np.nan), ("infinity", np.inf), ("a-huge-number", 3e38)):
        yield merge(
            f"merge-unmoved-by-{name}-in-an-empty-part",
            "What stands in the out of a part with lse = -inf changes nothing, bit for bit.",
            "E2 F4",
            "merge-empty-part-counts",
            parts(first, (np.zeros((4, 6), np.float32), nothing)),
            laws=("unmoved",),
            instead={"out1": np.full((4, 6), bad, np.float32)},
        )
    out = _drawn_part(62)[0]
    yield merge(
        "merge-unmoved-by-nan-in-empty-rows-of-a-part",
        "Rows are apart: where lse is -inf a row's out counts for nothing, the other rows count.",
        "E2 F4",
        "merge-empty-part-counts",
        parts(first, (out, empty_in_two_rows)),
        laws=("unmoved",),
        instead={"out1": np.where(np.isinf(empty_in_two_rows)[:, None], np.float32(np.nan), out)},
    )


def _splits() -> Iterator[Fact]:
    arrays = plain("float64")
    for cut in range(8):
        yield merge(
            f"merge-of-keys-split-at-{cut}-is-the-whole",
            f"The first {cut} of seven keys merged with the other {7 - cut} give attention over all.",
            "F4",
            "merge-averages merge-without-log",
            parts(attended(arrays, slice(0, cut)), attended(arrays, slice(cut, 7))),
            paper=whole(arrays),
        )
    single = [slice(key, key + 1) for key in range(7)]
    uneven = [slice(0, 1), slice(1, 5), slice(5, 7)]
    strided = [slice(0, None, 3), slice(1, None, 3), slice(2, None, 3)]
    for name, told, cuts in (
        ("seven-parts-of-one-key", "Seven parts of one key each", single),
        ("uneven-parts", "Parts of one, four and two keys", uneven),
        ("interleaved-parts", "Parts that take every third key", strided),
    ):
        yield merge(
            f"merge-of-{name}-is-the-whole",
            f"{told} merge to attention over all keys.",
            "F4",
            "merge-averages merge-without-log merge-of-two-only",
            parts(*(attended(arrays, keys) for keys in cuts)),
            paper=whole(arrays),
        )


def _orders() -> Iterator[Fact]:
    arrays = plain("float64")
    a, b, c = (attended(arrays, keys) for keys in (slice(0, 1), slice(1, 5), slice(5, 7)))
    ab, bc = attended(arrays, slice(0, 5)), attended(arrays, slice(1, 7))
    for name, told, given in (
        ("the-first-two-merged-before", "The first two parts may be merged before the third", (ab, c)),
        ("the-last-two-merged-before", "The last two parts may be merged before the first", (a, bc)),
        ("parts-in-another-order", "The order of the parts does not matter", (c, a, b)),
    ):
        yield merge(
            f"merge-of-{name}",
            f"{told}.",
            "F4",
            "merge-averages" + (" merge-of-two-only" if len(given) > 2 else ""),
            parts(*given),
            paper=whole(arrays),
        )


def _hidden() -> Iterator[Fact]:
    halves = (slice(0, 3), slice(3, 7))
    holes = drawn("##.....", ".......", "....###", "##.##..")
    for name, told, arrays, options in (
        ("a-mask", "rows that see keys in one part, in none, or in both", plain("float64") | {"mask": holes}, {}),
        ("a-bias", "a bias of -inf", plain("float64") | {"bias": np.where(holes, 0.5, -np.inf)}, {}),
        ("a-softcap-and-scale", "softcap and scale", plain("float64"), {"softcap": 1.5, "scale": 0.7}),
        ("batch-and-heads", "batch and head axes", batched("float64"), {}),
    ):
        yield merge(
            f"merge-is-the-whole-with-{name}",
            f"Two parts merge to the whole with {told}.",
            "E1 F4",
            "merge-empty-part-nan merge-empty-part-counts" if arrays.keys() & {"mask", "bias"} else "merge-averages",
            parts(*(attended(arrays, keys, **options) for keys in halves)),
            paper=whole(arrays, **options),
        )
    with_sink = plain("float64") | {"sinks": array(0.5, "float64")}
    yield merge(
        "merge-counts-a-sink-once",
        "The sink joins one part only, and the merged result is attention with that sink.",
        "C7 F4",
        "merge-averages",
        parts(attended(with_sink, halves[0]), attended(plain("float64"), halves[1])),
        paper=whole(with_sink),
    )


def _dtypes() -> Iterator[Fact]:
    for dtype in FLOATS:
        yield merge(
            f"merge-{dtype}",
            f"Parts of {dtype} merge to {dtype}, with lse in float32 or float64.",
            "A2 B2 F4",
            "dtype-changed" + (" lse-in-input-dtype" if "float16" in dtype else ""),
            parts(_drawn_part(60, dtype), _drawn_part(62, dtype), _drawn_part(64, dtype)),
            laws=("repeat",),
        )


def _magnitudes() -> Iterator[Fact]:
    (one, _), (other, _) = _drawn_part(60), _drawn_part(62)
    for name, told, lse in (
        ("1e4", "Parts with lse near 10000 merge without overflow", ([1e4, 1e4, 9999, 1e4], [1e4, 9998, 1e4, 1e4])),
        ("minus-1e4", "Parts with lse near -10000 merge without underflow", ([-1e4] * 4, [-1e4, -9999, -9998, -1e4])),
        ("2e4-apart", "The part with the larger lse takes all when they are 20000 apart", ([1e4] * 4, [-1e4] * 4)),
        ("different-rows", "Each row has a maximum of its own", ([1e4, -1e4, 0, 5], [0, 0, 1e4, -1e4])),
    ):
        yield merge(
            f"merge-of-lse-{name}",
            f"{told}.",
            "F1 F4",
            "no-maximum-subtracted" + (" maximum-over-all-rows" if name == "different-rows" else ""),
            parts(*((out, array(numbers)) for out, numbers in zip((one, other), lse, strict=True))),
        )


def _non_finite() -> Iterator[Fact]:
    first, (out, lse) = _drawn_part(60), _drawn_part(62)
    yield merge(
        "merge-counts-a-nan-lse",
        "A NaN lse makes its row not finite, and no other row.",
        "E3 F4",
        "visible-nan-swallowed",
        parts(first, (out, np.where([False, True, False, False], np.float32(np.nan), lse))),
    )
    spoiled = out.copy()
    spoiled[2, 3] = np.nan
    yield merge(
        "merge-counts-a-nan-output",
        "A NaN in the out of a part with keys makes that number not finite, and no other.",
        "E3 F4",
        "visible-nan-swallowed",
        parts(first, (spoiled, lse)),
    )


def _shapes() -> Iterator[Fact]:
    for name, told, shape in (
        ("without-rows", "no rows", (0, 6)),
        ("without-features", "Dv = 0, where only lse is left", (4, 0)),
        ("of-an-empty-batch", "a batch of none", (0, 4, 6)),
        ("of-one-row", "one row without a query axis", (6,)),
    ):
        given = [(array(normal(shape, seed=s)), array(normal(shape[:-1], seed=s + 1))) for s in (66, 68)]
        yield merge(
            f"merge-{name}",
            f"Parts may have {told}.",
            "B3 F4",
            "empty-axis-rejected" if 0 in shape else "merge-without-log",
            parts(*given),
        )
