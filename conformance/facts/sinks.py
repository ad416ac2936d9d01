"""Sinks: one extra logit per head in the softmax denominator, with no value behind it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from conformance.facts import Fact, array, batched, dtype_of, normal, pattern, plain, qkv, state

_HEADS = array([0.5, -2.0, 3.0])


def facts() -> Iterator[Fact]:
    """Yield the facts."""
    yield from _on_paper()
    yield from _per_head()
    yield from _dtypes()
    yield from _magnitudes()
    yield from _order()
    yield from _empty_rows()
    yield from _sizes()


def _on_paper() -> Iterator[Fact]:
    yield state(
        "sink-of-zero-is-one-more-key-without-a-value",
        "With a sink of 0 and three equal scores each key has weight 1/4, and lse is ln 4.",
        "C7 C8",
        "sinks-ignored lse-without-sink sink-with-a-value",
        pattern(2, 3) | {"sinks": array(0.0)},
        paper={"out": np.full((2, 3), 0.25), "weights": np.full((2, 3), 0.25), "lse": [np.log(4)] * 2},
    )
    yield state(
        "sink-of-ln-6-takes-two-thirds",
        "A sink of ln 6 beside three keys of score 0 takes 6/9 of the weight.",
        "C7 C8",
        "sinks-ignored lse-without-sink sink-with-a-value sink-scaled",
        pattern(2, 3) | {"sinks": array(np.log(6))},
        paper={"out": np.full((2, 3), 1 / 9), "lse": [np.log(9)] * 2},
    )


def _per_head() -> Iterator[Fact]:
    for dtype in ("float16", "bfloat16", "float64"):
        yield state(
            f"sinks-one-per-head-{dtype}",
            f"Sinks of shape (H,) belong to the head axis, in {dtype}.",
            "B2 C7 C8",
            "sinks-ignored lse-without-sink sink-with-a-value sinks-on-another-axis",
            batched(dtype) | {"sinks": _HEADS.astype(dtype_of(dtype))},
        )
    yield state(
        "sinks-one-for-all-heads",
        "A sink of shape () is shared by all heads.",
        "C7",
        "sinks-ignored lse-without-sink",
        batched() | {"sinks": array(1.5)},
    )
    yield state(
        "sinks-are-per-query-head-with-grouped-heads",
        "With grouped heads there is one sink for each query head, not for each key/value head.",
        "B5 C7",
        "sinks-ignored heads-tiled sinks-on-another-axis",
        qkv((2, 4, 3, 5), (2, 2, 7, 5), (2, 2, 7, 6), seed=8) | {"sinks": array([0.5, -2.0, 3.0, 1.0])},
        enable_gqa=True,
    )
    yield state(
        "sinks-with-equal-axes",
        "With H = T = S = 3 the sinks belong to the heads, neither to the queries nor to the keys.",
        "C7",
        "sinks-on-another-axis",
        qkv((3, 3, 5), (3, 3, 5), (3, 3, 6), seed=9) | {"sinks": _HEADS},
    )

    shapes = {
        "keys-and-values": ((2, 1, 4, 5), (1, 3, 7, 5), (1, 3, 7, 6)),
        "keys-and-values-beyond-the-axes-of-queries": ((4, 5), (3, 7, 5), (3, 7, 6)),
        "values": ((1, 4, 5), (1, 7, 5), (3, 7, 6)),
    }
    for name, (q, k, v) in shapes.items():
        yield state(
            f"sinks-of-heads-that-only-{name}-have",
            f"H is the head axis of the scores, which q {q}, k {k} and v {v} give together: each head has its sink.",
            "B1 C7",
            "sinks-ignored sinks-on-another-axis",
            qkv(q, k, v, seed=5) | {"sinks": _HEADS},
        )


def _dtypes() -> Iterator[Fact]:
    pairs = (("float16", "float32"), ("bfloat16", "float32"), ("bfloat16", "float16"), ("float32", "float64"))
    for dtype, given in pairs:
        yield state(
            f"sink-of-{given}-with-{dtype}-inputs",
            f"A sink of {given} is converted to the compute dtype of {dtype} inputs: 100.2 stays above a score of 100.",
            "B2 C7",
            "sinks-ignored" if dtype == "float32" else "sinks-ignored sink-in-input-dtype",
            {name: array([[number]], dtype) for name, number in (("q", 10), ("k", 10), ("v", 1))}
            | {"sinks": array(100.2, given)},
        )
    yield state(
        "sink-of-a-tenth-float64",
        "A sink of 0.1, which float32 cannot hold, keeps all its digits with float64 inputs.",
        "B2 C7 F2",
        "sinks-ignored float64-in-float32",
        plain("float64") | {"sinks": array(0.1, "float64")},
    )


def _magnitudes() -> Iterator[Fact]:
    yield state(
        "sink-of-1e4-takes-all-the-weight",
        "A sink of 1e4 leaves weight 0 to every key, without overflow: the row maximum includes the sink.",
        "C7 F1",
        "sink-not-in-maximum no-maximum-subtracted",
        pattern(2, 3) | {"sinks": array(1e4)},
        paper={"out": np.zeros((2, 3)), "lse": [1e4] * 2},
    )
    yield state(
        "sink-of-minus-infinity-is-no-sink",
        "A sink of -inf adds nothing to the denominator, and nothing to an empty row.",
        "C7 E1",
        "empty-row-nan lse-finite-in-empty-row",
        pattern(2, 3) | {"sinks": array(-np.inf), "mask": array([[1], [0]], "bool")},
        paper={"out": [[1 / 3] * 3, [0] * 3], "lse": [np.log(3), -np.inf]},
    )
    yield state(
        "sink-beside-scores-of-minus-1e4",
        "A sink of 0 takes all the weight from scores of -1e4.",
        "C7 F1",
        "sink-not-in-maximum",
        {"q": array([[-100]]), "k": array([[100], [100]]), "v": array([[1], [2]]), "sinks": array(0.0)},
        paper={"out": [[0]], "lse": [0]},
    )
    for name, sign in (("minus", -1), ("plus", 1)):
        yield state(
            f"sink-of-{name}-1e4-beside-scores-of-{name}-1e4",
            f"A sink of {sign * 1e4:g} beside two scores of {sign * 1e4:g} takes a third of the weight.",
            "C7 F1",
            "sinks-ignored sink-clipped",
            {"q": array([[sign * 100]]), "k": array([[100], [100]]), "v": array([[1], [2]])}
            | {"sinks": array(sign * 1e4)},
            paper={"out": [[1]], "weights": [[1 / 3] * 2]},
        )


def _order() -> Iterator[Fact]:
    yield state(
        "sink-is-not-scaled",
        "The scale multiplies the scores and not the sink.",
        "C1 C7",
        "sink-scaled",
        plain() | {"sinks": array(2.0)},
        scale=0.25,
    )
    yield state(
        "sink-has-no-bias",
        "The bias is added to the keys' scores and not to the sink.",
        "C3 C7",
        "sink-biased",
        plain() | {"sinks": array(2.0), "bias": array(3.0)},
    )
    yield state(
        "sink-is-never-hidden",
        "Causal hides keys and not the sink: the first row has one key and the sink.",
        "C4 C7 D4",
        "sinks-ignored lse-without-sink sink-counted-in-each-tile",
        batched() | {"sinks": _HEADS},
        is_causal=True,
    )
    yield state(
        "sink-counts-once-over-many-tiles",
        "However the keys are cut into tiles, the sink joins the denominator once.",
        "A1 C7",
        "sink-counted-in-each-tile",
        pattern(4, 7) | {"sinks": array(0.0)},
        paper={"out": np.full((4, 7), 1 / 8), "lse": [np.log(8)] * 4},
    )


def _empty_rows() -> Iterator[Fact]:
    for name, sink in (("positive", 2.5), ("negative", -2.5), ("huge", 1e4)):
        yield state(
            f"sink-{name}-in-an-empty-row",
            f"In an empty row out is 0 and lse is the sink, {sink}.",
            "C7 E1",
            "lse-without-sink" if name == "huge" else "lse-without-sink empty-row-mean",
            pattern(2, 3) | {"sinks": array(sink), "mask": array([[0, 0, 0], [1, 0, 0]], "bool")},
            paper={"out": [[0, 0, 0], [np.exp(-np.logaddexp(0, sink)), 0, 0]]},
        )
    yield state(
        "sinks-in-empty-rows-of-heads",
        "In every empty row of batches and heads lse is the head's sink.",
        "B2 C7 E1",
        "lse-without-sink empty-row-mean",
        batched("float16") | {"sinks": _HEADS.astype(np.float16), "mask": array([[1], [0], [0], [1]], "bool")},
    )
    yield state(
        "sink-without-keys",
        "With S = 0 out is 0 and lse is the sink.",
        "B3 C7 E1",
        "empty-axis-rejected lse-without-sink",
        qkv((4, 5), (0, 5), (0, 6), seed=6) | {"sinks": array(1.5)},
        paper={"out": np.zeros((4, 6)), "lse": [1.5] * 4},
    )


def _sizes() -> Iterator[Fact]:
    whole = plain()
    for name, queries in (("one-query", 1), ("two-queries", 2)):
        yield state(
            f"sink-with-{name}",
            "The sink has the same share for one query as for many.",
            "C7",
            "sinks-ignored",
            whole | {"q": whole["q"][:queries], "sinks": array(0.75)},
        )
    yield state(
        "sink-with-softcap-bias-and-causal",
        "Scale, cap, bias and mask come first; the sink joins the softmax as it is.",
        "C1 C2 C3 C4 C7",
        "sink-softcapped sink-biased sink-scaled",
        plain() | {"sinks": array(1.25), "bias": normal((4, 7), seed=13)},
        softcap=1.0,
        scale=0.5,
        is_causal=True,
    )
