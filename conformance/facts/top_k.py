"""Retrieval with top_k: the best few visible keys share all the weight, best first."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from conformance.facts import FLOATS, Fact, array, identity, qkv
from conformance.facts.retrieval import HOLES, batched_dictionary, dictionary, retrieve


def facts() -> Iterator[Fact]:
    """Yield the facts."""
    yield from _best()
    yield from _masks()
    yield from _memories()


def _best() -> Iterator[Fact]:
    e = np.exp(1)
    yield retrieve(
        "retrieve-top-2-shares-the-weight-of-two",
        "With scores 1, 0, 2 the best two keys are 2 and 0, with weights e / (e + 1) and 1 / (e + 1).",
        "G1",
        "top-k-not-renormalised top-k-in-key-order",
        {"query": array([[1]]), "keys": array([[1], [0], [2]]), "values": identity(3)},
        top_k=2,
        paper={"output": [[1 / (e + 1), 0, e / (e + 1)]], "weights": [[e / (e + 1), 1 / (e + 1)]], "index": [[2, 0]]},
    )
    yield retrieve(
        "retrieve-top-3-takes-equal-keys-in-order",
        "Of four equal keys the first ones are taken, in their order.",
        "G1",
        "ties-last top-k-in-key-order",
        {"query": array([[1, 0]]), "keys": array([[2, 0], [0, 5], [2, 1], [3, 0], [2, 2], [2, 3]])},
        scale=1.0,
        top_k=3,
        paper={"index": [[3, 0, 2]]},
    )
    for dtype in FLOATS:
        yield retrieve(
            f"retrieve-top-3-{dtype}",
            f"In {dtype} the three best keys share all the weight, best first.",
            "B2 G1",
            "top-k-not-renormalised top-k-in-key-order dtype-changed",
            dictionary(dtype),
            top_k=3,
            laws=("repeat",),
        )
    for top_k, told, flag in (
        (1, "the best key alone gives the output", "top-k-not-renormalised"),
        (7, "all keys are listed, best first", "top-k-in-key-order"),
    ):
        name, fact = f"retrieve-top-{top_k}-of-7", f"With top_k={top_k} {told}."
        yield retrieve(name, fact, "G1", flag, dictionary(), top_k=top_k)
    yield retrieve(
        "retrieve-top-2-follows-a-negative-scale",
        "The best keys are those of the largest weights, which a negative scale turns round.",
        "B4 G1",
        "index-of-raw-score",
        dictionary(),
        top_k=2,
        scale=-0.5,
    )


def _masks() -> Iterator[Fact]:
    yield retrieve(
        "retrieve-top-5-of-fewer-visible-keys",
        "Places without a visible key have weight 0 and index -1, and so has the whole empty row.",
        "E1 G1",
        "top-k-takes-hidden-keys index-in-empty-row empty-row-nan",
        dictionary() | {"mask": HOLES},
        top_k=5,
    )
    yield retrieve(
        "retrieve-top-2-under-causal",
        "The first query has one key, the others choose among those up to their own position.",
        "D4 G1",
        "top-k-takes-hidden-keys",
        dictionary(),
        top_k=2,
        mask={"rule": "causal", "offset": 0},
    )
    yield retrieve(
        "retrieve-top-2-under-padding",
        "Each sequence chooses among its own keys, and one without keys has none.",
        "D6 E1 G1",
        "top-k-takes-hidden-keys index-in-empty-row",
        batched_dictionary() | {"lengths": array([1, 0], "int64")},
        top_k=2,
        mask={"rule": "padding", "lengths": "lengths"},
    )


def _memories() -> Iterator[Fact]:
    arrays = dict(zip(("query", "keys", "values"), qkv((2, 3, 4, 5), (7, 5), (7, 6)).values(), strict=True))
    yield retrieve(
        "retrieve-top-2-from-one-memory-for-all",
        "A memory without leading axes serves every batch with top_k too.",
        "B1 G1",
        "leading-axes-not-broadcast",
        arrays,
        top_k=2,
    )
