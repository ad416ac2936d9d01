"""The metrics of search: which key each of them prefers, and what their scores are."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from conformance.facts import Fact, array, zeros
from conformance.facts.searching import NEAR, search


def facts() -> Iterator[Fact]:
    """Yield the facts."""
    yield from _metrics()
    yield from _cosine()
    yield from _euclidean()


def _metrics() -> Iterator[Fact]:
    half = np.sqrt(0.5)
    for metric, told, flag, scores, indices in (
        ("dot", "the largest product, which favours long keys", "", [[12, 6], [4, 0]], [[0, 2], [3, 1]]),
        ("cosine", "the smallest angle, whatever the length", " cosine-not-normalised", [[1, 1], [1, 0]],
         [[1, 2], [3, 1]]),
        ("euclidean", "the shortest distance", " euclidean-squared", [[1, 1], [np.sqrt(2), np.sqrt(2)]],
         [[1, 2], [1, 4]]),
    ):  # fmt: skip
        yield search(
            f"search-by-{metric}",
            f"{metric} finds {told}.",
            "G2",
            "metric-ignored search-worst-first" + flag,
            NEAR,
            k=2,
            metric=metric,
            paper={"scores": scores, "indices": indices},
        )
    yield search(
        "search-by-cosine-scores-half-a-right-angle",
        "Vectors at 45 degrees have the cosine sqrt(1/2), at any length.",
        "G2",
        "cosine-not-normalised",
        {"query": array([[3, 0]]), "keys": array([[2, 2], [0, 9], [-5, 0], [0.5, -0.5]])},
        k=4,
        metric="cosine",
        paper={"scores": [[half, half, 0, -1]], "indices": [[0, 3, 1, 2]]},
    )
    yield search(
        "search-uses-dot-unless-told",
        "Without metric= the dot product decides.",
        "A1 G2",
        "metric-ignored",
        NEAR,
        k=1,
        paper={"scores": [[12], [4]], "indices": [[0], [3]]},
    )


def _cosine() -> Iterator[Fact]:
    memory = array([[-2, 0], [0, 0], [3, 0]])
    yield search(
        "cosine-of-a-zero-key-is-zero",
        "A zero key has no direction: its cosine is 0, between those of like and unlike keys.",
        "G2",
        "cosine-nan-for-zero",
        {"query": array([[1, 0]]), "keys": memory},
        k=3,
        metric="cosine",
        paper={"scores": [[1, 0, -1]], "indices": [[2, 1, 0]]},
    )
    yield search(
        "cosine-of-a-zero-query-is-zero",
        "A zero query has the cosine 0 with every key.",
        "G2",
        "cosine-nan-for-zero",
        {"query": zeros((1, 2)), "keys": memory},
        k=3,
        metric="cosine",
        paper={"scores": [[0, 0, 0]], "indices": [[0, 1, 2]]},
    )
    yield search(
        "cosine-of-keys-that-broadcast-is-one",
        "Keys of ones without a batch have the cosine 1 with every query of ones; norms are taken per vector.",
        "B1 G2",
        "cosine-norm-before-broadcast",
        {"query": np.ones((2, 1, 4), np.float32), "keys": np.ones((1, 4), np.float32)},
        k=1,
        metric="cosine",
        paper={"scores": [[[1]], [[1]]], "indices": [[[0]], [[0]]]},
    )
    yield search(
        "cosine-does-not-depend-on-length",
        "Keys of 1024 and of 1/1024 times a vector have the same cosine with it.",
        "G2",
        "cosine-not-normalised",
        {"query": array([[0, 4]]), "keys": array([[5, 0], [0, 1024], [0, 1 / 1024]])},
        k=3,
        metric="cosine",
        paper={"scores": [[1, 1, 0]], "indices": [[1, 2, 0]]},
    )


def _euclidean() -> Iterator[Fact]:
    yield search(
        "euclidean-is-the-distance-and-not-its-square",
        "The point (3, 4) is 5 away from the origin.",
        "G2",
        "euclidean-squared",
        {"query": zeros((1, 2)), "keys": array([[6, 8], [3, 4], [0, 13]])},
        k=3,
        metric="euclidean",
        paper={"scores": [[5, 10, 13]], "indices": [[1, 0, 2]]},
    )
    yield search(
        "euclidean-of-a-key-to-itself-is-zero",
        "A query that is a key is 0 away from it.",
        "G2",
        "euclidean-by-expansion",
        {"query": array([[1.1, 0.5, -1.4, -4.5]]), "keys": array([[1, 0, 0, 0], [1.1, 0.5, -1.4, -4.5]])},
        k=1,
        metric="euclidean",
        paper={"scores": [[0]], "indices": [[1]]},
    )
    yield search(
        "euclidean-is-exact-far-from-the-origin",
        "Around (5000, 4000) keys at distances 1, 2 and 3 are told apart.",
        "F2 G2",
        "euclidean-by-expansion",
        {"query": array([[5000, 4001]]), "keys": array([[5003, 4001], [5000, 4000], [4998, 4001]])},
        k=3,
        metric="euclidean",
        paper={"scores": [[1, 2, 3]], "indices": [[1, 2, 0]]},
    )
