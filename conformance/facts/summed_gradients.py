"""Gradients of arguments that broadcast are sums, and every gradient has its argument's own shape and dtype."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from conformance.facts import Fact, array, batched, normal, plain, qkv
from conformance.facts.gradients import vjp


def facts() -> Iterator[Fact]:
    """Yield the facts."""
    yield from _bias_shapes()
    yield from _bias_dtypes()
    yield from _sinks()
    yield from _shared_heads()
    yield from _broadcast_batches()
    yield from _sizes()


def _bias_shapes() -> Iterator[Fact]:
    for name, shape in (
        ("full", (2, 3, 4, 7)),
        ("queries-and-keys", (4, 7)),
        ("keys", (7,)),
        ("heads-and-keys", (1, 3, 1, 7)),
        ("batch-and-queries", (2, 1, 4, 1)),
        ("queries", (4, 1)),
        ("heads", (3, 1, 1)),
        ("number", ()),
    ):
        yield vjp(
            f"gradient-of-a-bias-by-{name}",
            f"dbias of a bias of shape {shape} has that shape and sums over the axes that broadcast.",
            "C3 C6",
            "bias-ignored" if name == "full" else "gradient-not-summed",
            batched() | {"bias": array(normal(shape, seed=42))},
        )
    yield vjp(
        "gradient-of-a-broadcast-bias-under-causal",
        "A shared bias collects the gradients of its visible pairs alone.",
        "C3 C6 D4",
        "gradient-not-summed causal-ignored-in-gradient",
        batched() | {"bias": normal((1, 3, 1, 7), seed=42)},
        is_causal=True,
    )


def _bias_dtypes() -> Iterator[Fact]:
    for inputs, bias in (
        ("float32", "float16"),
        ("float32", "float64"),
        ("bfloat16", "float32"),
        ("float16", "bfloat16"),
        ("float64", "float32"),
    ):
        yield vjp(
            f"gradient-of-a-{bias}-bias-beside-{inputs}",
            f"dbias has the bias's own dtype, {bias}, beside {inputs} inputs.",
            "A2 C6",
            "gradient-dtype-changed",
            plain(inputs) | {"bias": normal((4, 7), bias, seed=43)},
        )


def _sinks() -> Iterator[Fact]:
    yield vjp(
        "gradient-beside-a-sink-per-head",
        "Each head's sink takes its share of the denominator in the gradients too.",
        "C7",
        "gradient-without-sink",
        batched() | {"sinks": array([0.5, -2, 3])},
        is_causal=True,
    )
    yield vjp(
        "gradient-beside-a-sink-of-minus-infinity",
        "A sink of -inf changes no gradient.",
        "C7",
        "gradient-without-row-sum",
        plain() | {"sinks": array(-np.inf)},
    )


def _shared_heads() -> Iterator[Fact]:
    grouped = qkv((2, 6, 4, 5), (2, 3, 7, 5), (2, 3, 7, 6))
    for name, told, options in (
        ("grouped-heads", "of six query heads over three key/value heads", {}),
        ("grouped-heads-under-causal", "of grouped heads under causal", {"is_causal": True}),
    ):
        yield vjp(
            f"gradient-of-{name}",
            f"dk and dv {told} are sums over the query heads of each group.",
            "B5",
            "gradient-not-summed heads-tiled",
            grouped,
            enable_gqa=True,
            **options,
        )
    yield vjp(
        "gradient-of-one-shared-head",
        "dk and dv of a key/value head that broadcasts are sums over all query heads.",
        "B1 B5",
        "gradient-not-summed",
        qkv((2, 3, 4, 5), (2, 1, 7, 5), (2, 1, 7, 6), seed=4),
    )


def _broadcast_batches() -> Iterator[Fact]:
    for name, told, q, k, v in (
        ("keys-without-batch", "keys and values without leading axes", (2, 3, 4, 5), (7, 5), (7, 6)),
        ("queries-without-batch", "queries without leading axes", (4, 5), (2, 3, 7, 5), (2, 3, 7, 6)),
        ("values-of-their-own", "values that alone have a batch", (4, 5), (7, 5), (2, 3, 7, 6)),
        ("crossed-axes", "queries and keys that broadcast against each other", (2, 1, 4, 5), (1, 3, 7, 5), (3, 7, 6)),
    ):
        yield vjp(
            f"gradient-of-{name}",
            f"The gradients of {told} are summed to the shapes of their arguments.",
            "B1",
            "gradient-not-summed",
            qkv(q, k, v),
        )


def _sizes() -> Iterator[Fact]:
    for name, told, q, k, v in (
        ("one-query", "one query", (1, 5), (7, 5), (7, 6)),
        ("more-queries-than-keys", "more queries than keys", (7, 5), (4, 5), (4, 6)),
        ("values-of-one-feature", "values of one feature", (4, 5), (7, 5), (7, 1)),
        ("values-of-no-feature", "values of no feature, which are zeros and an empty dv", (4, 5), (7, 5), (7, 0)),
        ("no-queries", "no queries, which are zeros and an empty dq", (2, 0, 5), (2, 7, 5), (2, 7, 6)),
        ("no-keys", "no keys, which are zeros and empty dk and dv", (2, 4, 5), (2, 0, 5), (2, 0, 6)),
        ("no-batch", "a batch of none, which are all empty", (0, 4, 5), (0, 7, 5), (0, 7, 6)),
    ):
        yield vjp(
            f"gradient-for-{name}",
            f"The gradients have the shapes of their arguments for {told}.",
            "B3",
            "empty-axis-rejected" if 0 in (*q, *k, *v) else "gradient-without-row-sum gradient-transposed",
            qkv(q, k, v),
        )
