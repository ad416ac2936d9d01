"""Exact search: the best keys first, ties by index, masks, and places without a key.

Where the order of equal scores matters the numbers are small integers, which every framework computes exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from conformance.facts import FLOATS, Fact, array, drawn, normal, state, zeros

search = partial(state, op="search")
METRICS = ("dot", "cosine", "euclidean")
NEAR = {"query": array([[2, 0], [0, -1]]), "keys": array([[6, 6], [1, 0], [3, 0], [0, -4], [-1, 0]])}


def facts() -> Iterator[Fact]:
    """Yield the facts."""
    yield from _ties()
    yield from _counts()
    yield from _masks()
    yield from _too_few()
    yield from _not_finite()
    yield from _dtypes()
    yield from _shapes()


def _ties() -> Iterator[Fact]:
    twins = {"query": array([[1, 0], [0, 1]]), "keys": array([[0, 1], [2, 0], [0, 1], [2, 0], [2, 0], [0, 1], [0, 1]])}
    for metric in METRICS:
        yield search(
            f"search-by-{metric}-takes-equal-keys-in-order",
            f"Of equal keys {metric} takes the lowest indices, in order.",
            "G2",
            "ties-last",
            twins,
            k=3,
            metric=metric,
            paper={"indices": [[1, 3, 4], [0, 2, 5]]},
        )
        yield search(
            f"search-by-{metric}-among-equal-keys-only",
            f"When all keys are equal {metric} gives them in their own order.",
            "G2",
            "ties-last",
            {"query": array([[1, 2], [-2, 1]]), "keys": array([[3, 0]] * 7)},
            k=3,
            metric=metric,
            paper={"indices": [[0, 1, 2]] * 2},
        )
    yield search(
        "search-breaks-a-tie-across-the-last-place",
        "A tie for the last place goes to the lowest index, also when better keys come later.",
        "G2",
        "ties-last search-stops-early",
        {"query": array([[1]]), "keys": array([[1], [1], [1], [5], [1], [9]])},
        k=3,
        paper={"scores": [[9, 5, 1]], "indices": [[5, 3, 0]]},
    )
    yield search(
        "search-for-a-zero-query-gives-the-first-keys",
        "A zero query scores 0 with every key, so the first keys are given.",
        "G2",
        "ties-last",
        {"query": zeros((1, 2)), "keys": NEAR["keys"]},
        k=3,
        paper={"scores": [[0, 0, 0]], "indices": [[0, 1, 2]]},
    )


def _counts() -> Iterator[Fact]:
    memory = {"query": normal((4, 5), seed=80), "keys": normal((7, 5), seed=81)}
    for k, told, metrics in ((1, "the best key", ("dot",)), (7, "all keys in order", METRICS)):
        for metric in metrics:
            yield search(
                f"search-by-{metric}-for-{k}-of-7",
                f"k={k} gives {told} by {metric}.",
                "G2",
                "search-worst-first metric-ignored",
                memory,
                k=k,
                metric=metric,
            )


def _masks() -> Iterator[Fact]:
    for metric in METRICS:
        yield search(
            f"search-by-{metric}-under-a-mask-array",
            f"{metric} finds only what a mask array allows.",
            "D1 G2",
            "search-unmasked mask-inverted",
            NEAR | {"mask": drawn("##.##", "#####")},
            k=2,
            metric=metric,
        )
    for name, told, change, rule in (
        ("an-integer-mask", "an integer mask of 0 and 1", {"mask": drawn("##.##", "#####", dtype="int32")}, None),
        ("a-mask-of-one-row", "a mask (S,)", {"mask": drawn("##.##")[0]}, None),
        ("a-rule", "a mask rule", {}, {"rule": "not", "of": [{"rule": "prefix", "length": 1}]}),
        ("padding", "a number of keys", {"lengths": array(3, "int64")}, {"rule": "padding", "lengths": "lengths"}),
    ):
        yield search(
            f"search-under-{name}",
            f"Only what {told} allows is found.",
            "D1 D2 D3 D6 G2",
            "search-unmasked mask-inverted",
            NEAR | change,
            k=2,
            **({"mask": rule} if rule else {}),
        )


def _too_few() -> Iterator[Fact]:
    for metric in METRICS:
        beyond = "inf" if metric == "euclidean" else "-inf"
        yield search(
            f"search-by-{metric}-with-too-few-keys",
            f"Places without a visible key have index -1 and score {beyond}, one empty row all of them.",
            "E1 G2",
            "search-unmasked index-in-empty-row search-pads-wrongly",
            NEAR | {"mask": drawn("...#.", ".....")},
            k=2,
            metric=metric,
        )
    yield search(
        "search-pads-after-the-worst-score",
        "A visible score of -300 comes before every place without a key.",
        "E5 G2",
        "search-unmasked finite-fill search-pads-wrongly",
        {"query": array([[-100]]), "keys": array([[3], [1], [2]]), "mask": drawn("#..")},
        k=3,
        paper={"scores": [[-300, -np.inf, -np.inf]], "indices": [[0, -1, -1]]},
    )


def _not_finite() -> Iterator[Fact]:
    memory = {"query": array([[1, 1], [0, 1]]), "keys": array([[1, -1], [np.nan, 0], [3, 3], [np.nan, 5], [2, 0]])}
    near = [[4, 0, 2, 1, 3], [0, 4, 2, 1, 3]]
    for metric, indices in (("dot", [[2, 4, 0, 1, 3]] * 2), ("cosine", [[2, 4, 0, 1, 3]] * 2), ("euclidean", near)):
        yield search(
            f"search-by-{metric}-ranks-nan-last",
            f"Visible keys of NaN come after all numbers by {metric}, in their own order.",
            "E3 G2",
            "nan-ranks-first",
            memory,
            k=5,
            metric=metric,
            paper={"indices": indices},
        )
        yield search(
            f"search-by-{metric}-unmoved-by-a-hidden-key",
            f"NaN and infinity at hidden keys change nothing by {metric}, bit for bit.",
            "E2 G2",
            "hidden-nan-in-keys search-unmasked",
            {"query": memory["query"], "keys": array([[1, -1], [7, 7], [3, 3], [9, 9], [2, 0]])}
            | {"mask": drawn("#.#.#", "..#.#")},
            laws=("unmoved",),
            instead={"keys": array([[1, -1], [np.nan, 0], [3, 3], [np.inf, 1], [2, 0]])},
            k=2,
            metric=metric,
        )
    yield search(
        "search-puts-nan-before-places-without-a-key",
        "A visible NaN is a key: it has its index, and comes before the places that have none.",
        "E3 G2",
        "nan-ranks-first index-in-empty-row",
        memory | {"mask": drawn("##...", ".#...")},
        k=3,
        paper={"indices": [[0, 1, -1], [1, -1, -1]]},
    )


def _dtypes() -> Iterator[Fact]:
    for metric in METRICS:
        for dtype in FLOATS if metric == "dot" else ("bfloat16", "float64"):
            yield search(
                f"search-by-{metric}-{dtype}",
                f"{metric} holds in {dtype}, and the scores have that dtype.",
                "A2 B2 G2",
                "dtype-changed metric-ignored",
                {"query": normal((4, 5), dtype, seed=80), "keys": normal((7, 5), dtype, seed=81)},
                k=3,
                metric=metric,
                laws=("repeat",),
            )


def _shapes() -> Iterator[Fact]:
    shared, empty = "leading-axes-not-broadcast", "empty-axis-rejected"
    for name, told, flag, query, keys in (
        ("a-batch", "Each batch and head searches its own keys", "search-worst-first", (2, 3, 4, 5), (2, 3, 7, 5)),
        ("one-memory-for-all", "Keys without leading axes serve every batch", shared, (2, 3, 4, 5), (7, 5)),
        ("many-memories", "One list of queries searches each memory", shared, (4, 5), (2, 3, 7, 5)),
        ("no-queries", "No queries find nothing", empty, (0, 5), (7, 5)),
        ("an-empty-batch", "A batch of none finds nothing", empty, (0, 4, 5), (0, 7, 5)),
    ):
        yield search(
            f"search-in-{name}",
            f"{told}.",
            "B1 B3 G2",
            flag,
            {"query": array(normal(query, seed=82)), "keys": array(normal(keys, seed=83))},
            k=3,
        )
    yield search(
        "search-under-lengths-of-a-batch",
        "Each sequence searches among its own keys.",
        "D6 G2",
        "search-unmasked index-in-empty-row",
        {"query": normal((2, 4, 5), seed=82), "keys": normal((2, 7, 5), seed=83), "lengths": array([5, 2], "int64")},
        k=3,
        mask={"rule": "padding", "lengths": "lengths"},
    )
