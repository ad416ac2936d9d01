"""The rules that carry arrays: padding lengths and segment ids, alone and joined with causal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from conformance.facts import Fact, array, batched, drawn, identity, normal, pattern, qkv, shares, state
from conformance.facts.rules import causal, joined, window

PADDING = {"rule": "padding", "lengths": "lengths"}
SEGMENTS = {"rule": "segments", "q_ids": "ids", "k_ids": None}
CROSS = {"rule": "segments", "q_ids": "q_ids", "k_ids": "k_ids"}
_LENGTHS = "padding-ignored padding-off-by-one padding-on-query-axis"
_IDS = "segments-ignored"


def facts() -> Iterator[Fact]:
    """Yield the facts."""
    yield from _padding_arrays()
    yield from _segment_arrays()
    yield from _padding_in_attention()
    yield from _segments_in_attention()
    yield from _joined()
    yield from _decoding()


def _array(id: str, fact: str, clauses: str, flags: str, arrays: dict[str, Any], **rest: Any) -> Fact:
    return state(id, fact, clauses, flags, arrays, op="mask_array", **rest)


def _picture(id: str, fact: str, clauses: str, flags: str, arrays: dict[str, Any], **rest: Any) -> Fact:
    return state(id, fact, clauses, flags, arrays, op="mask_picture", **rest)


def _ids(*rows: str) -> np.ndarray:
    return array([[int(place) for place in row] for row in rows], "int64")


def _padding_arrays() -> Iterator[Fact]:
    lengths = {"lengths": array([2, 0, 4, 9], "int64")}
    rows = ("##..", "....", "####", "####")
    yield _array(
        "padding-array",
        "padding([2, 0, 4, 9]) hides the keys from the length on, for each batch element.",
        "D3 D6",
        _LENGTHS,
        lengths,
        mask=PADDING,
        T=2,
        S=4,
        paper={"array": np.stack([drawn(row, row) for row in rows])},
    )
    yield _picture(
        "padding-picture",
        "A rule with leading axes is drawn once for each of their elements, with an empty line between.",
        "D3 D6",
        _LENGTHS,
        {"lengths": array([2, 4], "int32")},
        mask=PADDING,
        T=2,
        S=4,
        paper={"picture": "##..\n##..\n\n####\n####"},
    )
    yield _array(
        "padding-array-of-one-length",
        "A single length of shape () hides the same keys everywhere.",
        "D3 D6",
        _LENGTHS,
        {"lengths": array(3, "int64")},
        mask=PADDING,
        T=2,
        S=4,
        paper={"array": drawn("###.", "###.")},
    )


def _segment_arrays() -> Iterator[Fact]:
    yield _array(
        "segments-array",
        "segments([0, 0, 1, 1]) joins the positions of equal ids.",
        "D3 D6",
        _IDS,
        {"ids": _ids("0011")[0]},
        mask=SEGMENTS,
        T=4,
        S=4,
        paper={"array": drawn("##..", "##..", "..##", "..##")},
    )
    yield _array(
        "segments-that-come-back",
        "An id that comes back is the same segment: only equality counts.",
        "D3 D6",
        f"{_IDS} segments-only-neighbours",
        {"ids": _ids("0101")[0]},
        mask=SEGMENTS,
        T=4,
        S=4,
        paper={"array": drawn("#.#.", ".#.#", "#.#.", ".#.#")},
    )
    yield _picture(
        "segments-of-queries-and-keys",
        "With ids of their own, keys and queries meet where their ids are equal; an id without a partner sees nothing.",
        "D3 D6",
        f"{_IDS} segments-only-neighbours",
        {"q_ids": _ids("012")[0], "k_ids": _ids("00113")[0]},
        mask=CROSS,
        T=3,
        S=5,
        paper={"picture": "##...\n..##.\n....."},
    )


def _padding_in_attention() -> Iterator[Fact]:
    yield state(
        "padding-shares",
        "Under padding([1, 3]) the first batch element sees one key and the second three.",
        "C4 D6",
        _LENGTHS,
        {"q": np.zeros((2, 2, 5), np.float32), "k": normal((2, 3, 5), seed=41), "v": identity(3)}
        | {"lengths": array([1, 3], "int64")},
        mask=PADDING,
        paper={"out": [shares("#..", "#.."), shares("###", "###")]},
    )
    for dtype in ("int32", "int64"):
        yield state(
            f"padding-of-batches-and-heads-{dtype}",
            f"Lengths of shape (B, 1) in {dtype} hide per batch element and alike for all heads.",
            "C4 D6",
            _LENGTHS,
            batched() | {"lengths": array([[6], [3]], dtype)},
            mask=PADDING,
        )
    yield state(
        "padding-with-one-length-a-head",
        "Lengths of shape (B, H) hide per batch element and per head.",
        "C4 D6",
        _LENGTHS,
        batched() | {"lengths": array([[6, 1, 4], [3, 7, 5]], "int64")},
        mask=PADDING,
    )
    yield state(
        "padding-of-length-zero",
        "A batch element of length 0 has empty rows throughout and leaves the other element alone.",
        "C4 D6 E1",
        "empty-row-mean empty-row-nan padding-off-by-one lse-finite-in-empty-row",
        batched() | {"lengths": array([[0], [7]], "int64")},
        mask=PADDING,
    )


def _segments_in_attention() -> Iterator[Fact]:
    yield state(
        "packed-sequences-under-causal",
        "Packed sequences do not see each other: ids 0 0 1 1 under causal start anew at the third row.",
        "C4 D3 D6",
        f"{_IDS} rules-joined-by-the-other-word",
        pattern(4, 4) | {"ids": _ids("0011")[0]},
        mask=joined("and", causal(), SEGMENTS),
        paper={"out": shares("#...", "##..", "..#.", "..##")},
    )
    yield state(
        "packed-sequences-of-batches-and-heads",
        "Ids of shape (B, 1, T) differ per batch element and are the same for all heads.",
        "C4 D6",
        _IDS,
        qkv((2, 3, 6, 5), (2, 3, 6, 5), (2, 3, 6, 4), seed=42) | {"ids": _ids("001222", "000011")[:, None, :]},
        mask=SEGMENTS,
    )
    yield state(
        "segments-of-queries-without-keys",
        "A query whose id no key has is an empty row.",
        "C4 D6 E1",
        f"{_IDS} empty-row-mean empty-row-nan",
        pattern(3, 5) | {"q_ids": _ids("021")[0], "k_ids": _ids("00113")[0]},
        mask=CROSS,
        paper={"out": shares("##...", ".....", "..##.")},
    )


def _joined() -> Iterator[Fact]:
    lengths = {"lengths": array([[2], [5]], "int64")}
    rules = {
        "padding-and-causal": joined("and", PADDING, causal()),
        "padding-and-causal-lower-right": joined("and", PADDING, causal(3)),
        "prefix-or-causal-and-padding": joined("and", joined("or", {"rule": "prefix", "length": 3}, causal()), PADDING),
        "not-padding": joined("not", PADDING),
    }
    for name, rule in rules.items():
        yield state(
            f"{name}-on-random-inputs",
            "Rules joined by &, | and ~ hide pair by pair, in dense form and tile by tile.",
            "A1 C4 D3 D6",
            "not-ignored padding-ignored"
            if name == "not-padding"
            else "padding-ignored rules-joined-by-the-other-word",
            batched() | lengths,
            mask=rule,
        )
    yield state(
        "rule-and-is-causal",
        "A rule and is_causal both have to allow a pair.",
        "C4 D3 D4",
        "mask-ignored-with-causal causal-ignored-with-mask",
        pattern(3, 3),
        is_causal=True,
        mask=window(0, None),
        paper={"out": shares("#..", ".#.", "..#")},
    )


def _decoding() -> Iterator[Fact]:
    whole = qkv((3, 6, 5), (3, 6, 5), (3, 6, 4), seed=43)
    for start, stop in ((5, 6), (3, 6), (0, 3)):
        yield state(
            f"decoding-rows-{start}-to-{stop - 1}",
            f"Queries {start} to {stop - 1} of a causal sequence are queries under causal({start}).",
            "D4",
            "causal-offset-ignored" if start else "causal-alignment",
            whole | {"q": whole["q"][:, start:stop]},
            mask=causal(start),
        )
    yield state(
        "decoding-in-a-buffer",
        "With three of four places filled, padding(3) lets one query see three keys.",
        "D6",
        _LENGTHS,
        pattern(1, 4) | {"lengths": array(3, "int64")},
        mask=PADDING,
        paper={"out": shares("###.")},
    )
