"""Mask arrays: what True means, which dtypes are accepted, how they broadcast, and how they meet is_causal."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from conformance.facts import (
    Fact,
    array,
    batched,
    drawn,
    identity,
    normal,
    pattern,
    plain,
    qkv,
    shares,
    square,
    state,
)

_DTYPES = ("bool", "int8", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64")
_CONTENT = "mask-inverted mask-ignored mask-added-as-bias mask-after-softmax"


def facts() -> Iterator[Fact]:
    """Yield the facts."""
    yield from _polarity()
    yield from _dtypes()
    yield from _shapes()
    yield from _two_readings()
    yield from _padding_in_front_and_behind()
    yield from _with_causal()
    yield from _unequal_lengths()
    yield from _single_keys()


def _polarity() -> Iterator[Fact]:
    yield state(
        "true-may-attend",
        "Of the mask True, True, False the first two keys share the weight.",
        "C4 C5 D1",
        f"{_CONTENT} infinity-multiplied lse-without-mask",
        pattern(2, 3) | {"mask": drawn("##.", "##.")},
        paper={"out": shares("##.", "##."), "weights": shares("##.", "##."), "lse": [np.log(2)] * 2},
    )
    yield state(
        "a-mask-of-true-changes-nothing",
        "A mask that is True everywhere gives the unmasked result.",
        "D1",
        "mask-inverted mask-added-as-bias infinity-multiplied",
        plain() | {"mask": np.ones((4, 7), bool)},
    )
    yield state(
        "a-mask-is-applied-before-the-softmax",
        "The visible keys share the whole weight: with values of one every row of out is 1.",
        "C4 C5",
        "mask-after-softmax",
        plain() | {"v": np.ones((7, 6), np.float32), "mask": drawn("#..#..#", "##.....", "....###", "#######")},
        paper={"out": np.ones((4, 6))},
    )
    yield state(
        "an-irregular-mask",
        "Each pair is hidden or visible for itself.",
        "C4 D1",
        f"{_CONTENT} mask-transposed mask-shifted finite-fill lse-without-mask layout-misread",
        square() | {"mask": array(normal((4, 6, 6), seed=31) > 0.2, "bool")},
        laws=("layout",),
    )


def _dtypes() -> Iterator[Fact]:
    for dtype in _DTYPES:
        yield state(
            f"mask-of-zeros-and-ones-{dtype}",
            f"A mask of 0 and 1 in {dtype} means the same as False and True.",
            "C4 D1",
            f"{_CONTENT} mask-bitwise-not" if "int" in dtype else _CONTENT,
            pattern(2, 3) | {"mask": drawn("##.", ".##", dtype=dtype)},
            paper={"out": shares("##.", ".##"), "lse": [np.log(2)] * 2},
        )
    for dtype in ("int64", "float32"):
        yield state(
            f"mask-of-zeros-and-an-empty-row-{dtype}",
            f"A row of zeros in a {dtype} mask is an empty row.",
            "D1 E1",
            "mask-added-as-bias empty-row-mean empty-row-nan",
            pattern(2, 3) | {"mask": drawn("...", "#.#", dtype=dtype)},
            paper={"out": shares("...", "#.#"), "lse": [-np.inf, np.log(2)]},
        )


def _shapes() -> Iterator[Fact]:
    for shape in ((), (7,), (4, 1), (4, 7), (3, 1, 7), (2, 1, 1, 7)):
        yield _of_shape(shape)
    yield _of_shape((2, 3, 4, 7))


def _of_shape(shape: tuple[int, ...]) -> Fact:
    mask = array(normal(shape, seed=36) > -0.3, "bool")
    return state(
        f"mask-shape-{'-'.join(map(str, shape)) or 'scalar'}",
        f"A mask of shape {shape} broadcasts, right-aligned, to (B, H, T, S) = (2, 3, 4, 7).",
        "C4 D2",
        "mask-ignored mask-inverted" if shape else "mask-inverted",
        batched() | {"mask": mask},
    )


def _two_readings() -> Iterator[Fact]:
    mask = drawn("#..", "##.", "..#")
    yield state(
        "mask-of-equal-sizes-means-queries-and-keys",
        "With B = T = S = 3 a mask of shape (3, 3) is (T, S), the same for each batch element.",
        "D2",
        "mask-per-sample mask-transposed",
        qkv((3, 3, 5), (3, 3, 5), (3, 3, 6), seed=9) | {"mask": mask},
    )
    yield state(
        "mask-of-equal-sizes-with-heads",
        "With B = H = T = S = 3 a mask of shape (3, 1, 1, 3) holds one row of keys for each batch element.",
        "D2",
        "mask-per-sample",
        qkv((3, 3, 3, 5), (3, 3, 3, 5), (3, 3, 3, 6), seed=9) | {"mask": mask[:, None, None, :]},
    )
    yield state(
        "mask-with-as-many-heads-as-samples",
        "With B = H = 3 a mask of shape (3, T, S) holds one picture for each head, the same for each batch element.",
        "D2",
        "mask-per-sample",
        qkv((3, 3, 3, 5), (3, 3, 3, 5), (3, 3, 3, 6), seed=9) | {"mask": array(normal((3, 3, 3), seed=37) > 0, "bool")},
    )
    yield state(
        "mask-of-one-axis-is-of-keys",
        "With T = S a mask of shape (S,) belongs to the keys: the second is hidden from every query.",
        "D2",
        "mask-on-query-axis",
        pattern(3, 3) | {"mask": array([1, 0, 1], "bool")},
        paper={"out": shares("#.#", "#.#", "#.#"), "lse": [np.log(2)] * 3},
    )
    yield state(
        "mask-is-not-transposed",
        "Rows of the mask are queries: the lower triangle lets the first query see one key.",
        "D2",
        "mask-transposed mask-shifted",
        pattern(3, 3) | {"mask": drawn("#..", "##.", "###")},
        paper={"out": shares("#..", "##.", "###")},
    )


def _padding_in_front_and_behind() -> Iterator[Fact]:
    for name, row in (("behind", "####..."), ("in-front", "...####"), ("between", "##...##")):
        for causal in (False, True):
            arrays = qkv((4, 5), (7, 5), (7, 6), seed=32)
            arrays["v"][[place == "." for place in row]] = 1e6
            yield state(
                f"padding-{name}{'-under-causal' if causal else ''}",
                "No padded key leaks: its value of 1e6 is found in no output.",
                "C4 D2 E2" if not causal else "C4 D2 D4 E2",
                _padding_flags(name, causal),
                arrays | {"mask": drawn(row)},
                is_causal=causal,
            )
    yield state(
        "padding-of-the-same-columns-in-all-samples",
        "Columns that are padded in every sample keep their place: weights still have S columns.",
        "D2",
        "mask-ignored last-tile-lost",
        qkv((2, 4, 5), (2, 7, 5), (2, 7, 6), seed=32) | {"mask": drawn("####...", "###....").reshape(2, 1, 7)},
    )
    yield state(
        "padding-of-one-sample-of-two",
        "A sample's padding does not touch the other sample, which has the bits that it has alone.",
        "D2 F3",
        "mask-per-sample mask-of-the-first-sample mask-ignored batch-dependent-bits",
        qkv((2, 2, 5), (2, 7, 5), (2, 7, 6), seed=32) | {"mask": drawn("#######", "..###..").reshape(2, 1, 7)},
        laws=("alone",),
    )


def _padding_flags(name: str, causal: bool) -> str:
    if not causal:
        return "mask-ignored mask-on-query-axis mask-inverted"
    # Causal hides trailing padding by itself, so that a mask that is dropped goes unnoticed there.
    return "causal-ignored-with-mask" + (" mask-ignored-with-causal" if name != "behind" else "")


def _with_causal() -> Iterator[Fact]:
    both = "mask-ignored-with-causal causal-ignored-with-mask"
    yield state(
        "mask-and-causal-both-have-to-allow",
        "With the mask True, False, True and is_causal the rows see key 0, key 0, and keys 0 and 2.",
        "C4 D4",
        both,
        pattern(3, 3) | {"mask": drawn("#.#")},
        is_causal=True,
        paper={"out": shares("#..", "#..", "#.#")},
    )
    yield state(
        "mask-and-causal-can-empty-a-row",
        "A mask that hides key 0 leaves the first causal row empty.",
        "C4 D4 E1",
        f"{both} empty-row-mean empty-row-nan",
        pattern(3, 3) | {"mask": drawn(".##")},
        is_causal=True,
        paper={"out": shares("...", ".#.", ".##"), "lse": [-np.inf, 0, np.log(2)]},
    )
    for dtype in ("int32", "float32"):
        yield state(
            f"mask-of-{dtype}-and-causal",
            f"A 0/1 mask of {dtype} is joined with is_causal as a boolean one is.",
            "C4 D1 D4",
            f"{both} mask-added-as-bias",
            pattern(3, 3) | {"mask": drawn("#.#", dtype=dtype)},
            is_causal=True,
            paper={"out": shares("#..", "#..", "#.#")},
        )
    yield state(
        "mask-and-causal-on-random-inputs",
        "With different samples padded in front and behind, a mask and is_causal both have to allow.",
        "C4 D4",
        f"{both} mask-on-query-axis mask-of-the-first-sample",
        square() | {"mask": drawn("..####", "####..").reshape(2, 1, 1, 6)},
        is_causal=True,
    )


def _unequal_lengths() -> Iterator[Fact]:
    """Lengths at which the two ways of aligning is_causal are two."""
    yield state(
        "causal-with-two-queries-and-one-key",
        "With T = 2 and S = 1 both queries see the key under is_causal: the second stands behind it.",
        "D4",
        "causal-alignment",
        {"q": array([[1], [1]]), "k": array([[0]]), "v": array([[3]])},
        is_causal=True,
        paper={"out": [[3], [3]], "weights": [[1], [1]], "lse": [0, 0]},
    )
    rows = ("#...", "##..", "###.", *["####"] * 3)
    yield state(
        "causal-with-more-queries-than-keys",
        "With T = 6 and S = 4 is_causal starts at the first key, and the last queries see all of them.",
        "D4",
        "causal-alignment causal-ignored causal-off-by-one",
        pattern(6, 4),
        is_causal=True,
        paper={"out": shares(*rows), "lse": np.log([1, 2, 3, 4, 4, 4])},
    )
    yield state(
        "decode-with-a-mask-and-causal",
        "One query with is_causal sees key 0 only: is_causal is aligned top-left.",
        "D4",
        "causal-alignment causal-ignored",
        {"q": normal((1, 5), seed=34), "k": normal((4, 5), seed=35), "v": identity(4), "mask": drawn("###.")},
        is_causal=True,
        paper={"out": [[1, 0, 0, 0]]},
    )


def _single_keys() -> Iterator[Fact]:
    rows = ("......#", "#......", "...#...", ".....#.")
    yield state(
        "one-visible-key-a-row",
        "A row with one visible key gives the value of that key, in whatever tile it lies.",
        "C4 C5 D1",
        "last-tile-lost first-tile-hidden-nan last-tile-hidden-nan",
        plain() | {"v": identity(7), "mask": drawn(*rows)},
        paper={"out": shares(*rows)},
    )
    yield state(
        "first-tile-hidden",
        "A row whose first five keys are hidden is an ordinary row.",
        "C4 C5",
        "first-tile-hidden-nan",
        plain() | {"mask": drawn(".....##")},
    )
