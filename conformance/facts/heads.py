"""Heads: features split into heads and joined again, and key/value heads repeated side by side. All of it copies."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from conformance.facts import FLOATS, Fact, array, normal, state

split_heads = partial(state, op="split_heads")
merge_heads = partial(state, op="merge_heads")
repeat_kv = partial(state, op="repeat_kv")


def facts() -> Iterator[Fact]:
    """Yield the facts."""
    yield from _on_paper()
    yield from _dtypes()
    yield from _shapes()
    yield from _non_finite()


def _on_paper() -> Iterator[Fact]:
    yield split_heads(
        "split-heads-gives-neighbouring-features-to-a-head",
        "Of features 0 to 5 the first of two heads gets 0, 1, 2 and the second 3, 4, 5, at every position.",
        "A2 B5",
        "heads-reshaped heads-interleaved output-shares-memory",
        {"x": array([[0, 1, 2, 3, 4, 5], [10, 11, 12, 13, 14, 15]])},
        heads=2,
        paper={"x": [[[0, 1, 2], [10, 11, 12]], [[3, 4, 5], [13, 14, 15]]]},
    )
    yield merge_heads(
        "merge-heads-puts-the-heads-side-by-side",
        "At every position the features of head 0 come before those of head 1.",
        "B5",
        "heads-reshaped heads-interleaved",
        {"x": array([[[0, 1, 2], [10, 11, 12]], [[3, 4, 5], [13, 14, 15]]])},
        paper={"x": [[0, 1, 2, 3, 4, 5], [10, 11, 12, 13, 14, 15]]},
    )
    yield repeat_kv(
        "repeat-kv-keeps-copies-of-a-head-together",
        "Heads a, b in groups of two become a, a, b, b and not a, b, a, b.",
        "B5",
        "heads-tiled",
        {"x": array([[[10]], [[20]]])},
        groups=2,
        paper={"x": [[[10]], [[10]], [[20]], [[20]]]},
    )


def _dtypes() -> Iterator[Fact]:
    for dtype in FLOATS:
        told = f"{dtype} numbers are copied, so they keep dtype and bits"
        yield split_heads(
            f"split-heads-{dtype}",
            f"Splitting: {told}.",
            "A2 B5",
            "dtype-changed heads-reshaped",
            {"x": normal((2, 4, 6), dtype, seed=70)},
            heads=3,
        )
        yield merge_heads(
            f"merge-heads-{dtype}",
            f"Joining: {told}.",
            "A2 B5",
            "dtype-changed heads-reshaped",
            {"x": normal((2, 3, 4, 5), dtype, seed=71)},
        )
        yield repeat_kv(
            f"repeat-kv-{dtype}",
            f"Repeating: {told}.",
            "A2 B5",
            "dtype-changed heads-tiled",
            {"x": normal((2, 3, 4, 5), dtype, seed=71)},
            groups=2,
        )


def _shapes() -> Iterator[Fact]:
    for name, told, shape, heads in (
        ("one-head", "one head keeps all features", (4, 6), 1),
        ("a-head-for-each-feature", "as many heads as features leave one to each", (4, 6), 6),
        ("two-leading-axes", "all axes before the positions are kept", (2, 3, 4, 6), 2),
        ("no-positions", "no positions leave the heads empty", (0, 6), 2),
        ("no-features", "no features leave the heads empty", (4, 0), 2),
    ):
        arrays = {"x": array(normal(shape, seed=72))}
        flags = _flags("heads-reshaped", shape, heads)
        yield split_heads(f"split-heads-with-{name}", f"Splitting: {told}.", "B3 B5", flags, arrays, heads=heads)
    for name, told, shape in (
        ("one-head", "one head keeps its features", (1, 4, 5)),
        ("two-leading-axes", "all axes before the heads are kept", (2, 3, 6, 4, 5)),
        ("no-heads", "no heads have no features", (0, 4, 5)),
        ("no-positions", "no positions leave the result empty", (3, 0, 5)),
    ):
        arrays = {"x": array(normal(shape, seed=73))}
        flags = _flags("heads-reshaped", shape, shape[-3])
        yield merge_heads(f"merge-heads-with-{name}", f"Joining: {told}.", "B3 B5", flags, arrays)
    for name, told, shape, groups in (
        ("one-group", "groups of one change nothing", (3, 7, 5), 1),
        ("one-head", "one head is shared by all", (1, 7, 5), 4),
        ("two-leading-axes", "all axes before the heads are kept", (2, 4, 3, 7, 5), 2),
        ("no-keys", "no keys leave the heads empty", (3, 0, 5), 2),
    ):
        arrays = {"x": array(normal(shape, seed=74))}
        flags = _flags("heads-tiled", shape, min(groups, shape[-3]))
        yield repeat_kv(f"repeat-kv-with-{name}", f"Repeating: {told}.", "B3 B5", flags, arrays, groups=groups)


def _flags(misplaced: str, shape: tuple[int, ...], heads: int) -> str:
    """One head, or no numbers at all, cannot be misplaced."""
    if 0 in shape:
        return "empty-axis-rejected"
    return misplaced if heads > 1 else "dtype-changed"


def _non_finite() -> Iterator[Fact]:
    x = normal((2, 4, 6), seed=70)
    x[1, 2, 3], x[0, 0, 5], x[0, 3, 0] = np.nan, np.inf, -np.inf
    told = "NaN and infinities are copied to their place like other numbers"
    yield split_heads("split-heads-copies-nan", f"Splitting: {told}.", "B5 E3", "heads-reshaped", {"x": x}, heads=2)
    yield merge_heads("merge-heads-copies-nan", f"Joining: {told}.", "B5 E3", "heads-reshaped", {"x": x})
