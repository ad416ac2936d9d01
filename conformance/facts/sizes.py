"""Sizes beyond those of short cases: features, value features, queries and heads that no loop may leave out."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.facts import Fact, normal, qkv, state


def facts() -> Iterator[Fact]:
    """Yield the facts."""
    yield state(
        "sizes-beyond-64-and-128",
        "65 queries and keys with D = 130 and Dv = 66 under causal: every position and every feature counts.",
        "A1 C1 C5 D4",
        "size-limit",
        qkv((65, 130), (65, 130), (65, 66), seed=21),
        is_causal=True,
    )
    yield state(
        "seventeen-heads-with-sinks",
        "Each of 17 heads has its own sink.",
        "B1 C7",
        "size-limit sinks-on-another-axis",
        qkv((17, 1, 5), (17, 2, 5), (17, 2, 6), seed=22) | {"sinks": normal((17,), seed=23)},
    )
