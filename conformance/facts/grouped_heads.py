"""Grouped heads: with enable_gqa query head h uses key/value head h // (H // Hk)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from conformance.facts import Fact, array, normal, qkv, state

_HEADS = ((4, 2, "a, a, b, b"), (6, 3, "a, a, b, b, c, c"), (6, 2, "a, a, a, b, b, b"), (3, 1, "a, a, a"))


def facts() -> Iterator[Fact]:
    """Yield the facts."""
    yield from _on_paper()
    yield from _on_random_inputs()
    yield from _with_masks()
    yield from _edges()


def _grouped(dtype: str = "float32") -> dict[str, np.ndarray]:
    """B=2, H=4, Hk=2, T=3, S=7, D=5, Dv=6."""
    return qkv((2, 4, 3, 5), (2, 2, 7, 5), (2, 2, 7, 6), dtype, seed=8)


def _on_paper() -> Iterator[Fact]:
    for H, Hk, order in _HEADS:
        values = 10.0 * np.arange(1, Hk + 1)
        yield state(
            f"grouped-heads-{H}-query-{Hk}-key-value",
            f"{H} query heads over {Hk} key/value heads use them in the order {order}.",
            "B5",
            "heads-tiled" if Hk > 1 else "leading-axes-not-broadcast",
            {
                "q": normal((1, H, 1, 2), seed=81),
                "k": normal((1, Hk, 1, 2), seed=82),
                "v": array(values[None, :, None, None]),
            },
            enable_gqa=True,
            paper={"out": np.repeat(values, H // Hk)[None, :, None, None]},
        )
    yield state(
        "equal-head-counts-with-enable-gqa",
        "With H = Hk enable_gqa changes nothing.",
        "B5",
        "softmax-over-heads",
        qkv((2, 3, 4, 5), (2, 3, 7, 5), (2, 3, 7, 6)),
        enable_gqa=True,
    )
    yield state(
        "one-shared-head-with-enable-gqa",
        "One key/value head is shared by all query heads with enable_gqa too.",
        "B5",
        "leading-axes-not-broadcast",
        qkv((2, 4, 3, 5), (2, 1, 7, 5), (2, 1, 7, 6), seed=8),
        enable_gqa=True,
    )
    yield state(
        "one-shared-head-with-as-many-samples-as-heads",
        "With B = H = 3 the one key/value head of a sample is that of its own query heads, and of no other sample's.",
        "B5",
        "heads-read-as-batch",
        qkv((3, 3, 4, 5), (3, 1, 7, 5), (3, 1, 7, 6), seed=8),
        enable_gqa=True,
    )


def _on_random_inputs() -> Iterator[Fact]:
    for dtype in ("bfloat16", "float32"):
        yield state(
            f"grouped-heads-{dtype}",
            f"Grouped heads hold in {dtype}, for keys and for values.",
            "B2 B5",
            "heads-tiled keys-and-values-swapped",
            _grouped(dtype),
            laws=("alone",),
            enable_gqa=True,
        )
    shapes = {
        "without-a-batch-axis": ((4, 3, 5), (2, 7, 5), (2, 7, 6)),
        "with-two-batch-axes": ((2, 3, 4, 1, 5), (2, 3, 2, 7, 5), (2, 3, 2, 7, 6)),
        "with-a-broadcast-batch": ((2, 4, 3, 5), (1, 2, 7, 5), (2, 7, 6)),
        "of-keys-without-the-batch": ((2, 4, 3, 5), (2, 7, 5), (2, 7, 6)),
    }
    for name, (q, k, v) in shapes.items():
        yield state(
            f"grouped-heads-{name}",
            "Axis -3 is the head axis, however many axes stand before it.",
            "B1 B5",
            "heads-tiled" + (" heads-read-as-batch" if name == "of-keys-without-the-batch" else ""),
            qkv(q, k, v, seed=8),
            enable_gqa=True,
        )

    for name, causal in (("", False), ("-under-causal", True)):
        yield state(
            f"grouped-heads-with-more-queries-than-keys{name}",
            "With T > S the heads are grouped as ever, and lse counts the keys that there are.",
            "B5 C8" + (" D4" if causal else ""),
            "heads-tiled lse-counts-padding" + (" causal-alignment" if causal else ""),
            qkv((2, 4, 7, 5), (2, 2, 3, 5), (2, 2, 3, 6), seed=8),
            enable_gqa=True,
            is_causal=causal,
        )


def _with_masks() -> Iterator[Fact]:
    visible = array(normal((4, 1, 7), seed=83) > -0.5, "bool")
    yield state(
        "grouped-heads-with-a-mask-per-query-head",
        "A mask of shape (H, 1, S) counts the query heads.",
        "B5 D2",
        "heads-tiled mask-ignored mask-inverted",
        _grouped() | {"mask": visible},
        enable_gqa=True,
    )
    yield state(
        "grouped-heads-with-a-bias-per-query-head",
        "A bias of shape (H, T, S) counts the query heads.",
        "B5 C6",
        "heads-tiled bias-ignored",
        _grouped() | {"bias": normal((4, 3, 7), seed=84)},
        enable_gqa=True,
    )
    yield state(
        "grouped-heads-under-causal",
        "Causal and grouped heads do not disturb each other.",
        "B5 D4",
        "heads-tiled causal-ignored causal-alignment",
        _grouped(),
        enable_gqa=True,
        is_causal=True,
    )
    yield state(
        "grouped-heads-with-lengths",
        "Padding with lengths of shape (B, 1) hides per batch element and is the same for all heads.",
        "B5 D6",
        "heads-tiled padding-ignored",
        _grouped() | {"lengths": array([[3], [6]], "int64")},
        enable_gqa=True,
        mask={"rule": "padding", "lengths": "lengths"},
    )


def _edges() -> Iterator[Fact]:
    yield state(
        "grouped-heads-without-query-heads",
        "H = 0 is a multiple of every Hk: the outputs have no heads.",
        "B3 B5",
        "empty-axis-rejected",
        qkv((2, 0, 4, 5), (2, 2, 7, 5), (2, 2, 7, 6), seed=8),
        enable_gqa=True,
    )
    yield state(
        "grouped-heads-without-any-heads",
        "H = Hk = 0 is legal with enable_gqa.",
        "B3 B5",
        "empty-axis-rejected",
        qkv((2, 0, 4, 5), (2, 0, 7, 5), (2, 0, 7, 6), seed=8),
        enable_gqa=True,
    )
    yield state(
        "grouped-heads-with-an-empty-row",
        "An empty row is empty in every query head.",
        "B5 E1",
        "empty-row-mean empty-row-nan",
        _grouped() | {"mask": array([[1], [0], [1]], "bool")},
        enable_gqa=True,
    )
