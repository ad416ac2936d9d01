"""The five steps by name: scores, capped, biased, masked, weights, and with them lse and out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from conformance.facts import FLOATS, Fact, array, batched, identity, normal, pattern, plain, qkv, state


def facts() -> Iterator[Fact]:
    """Yield the facts."""
    yield from _on_paper()
    yield from _one_by_one()
    yield from _together()
    yield from _edges()


def _steps(id: str, fact: str, clauses: str, flags: str, arrays: dict[str, Any], **rest: Any) -> Fact:
    return state(id, fact, clauses, flags, arrays, op="attention_steps", **rest)


def _on_paper() -> Iterator[Fact]:
    yield _steps(
        "steps-on-paper",
        "Scores 2 and -2, capped by 1, with a bias of 1 on the second key; the third key is hidden.",
        "C1 C2 C3 C4 C5 C8",
        "softcap-ignored bias-ignored softcap-after-bias",
        {
            "q": array([[2]]),
            "k": array([[1], [-1], [5]]),
            "v": identity(3),
            "bias": array([[0, 1, 0]]),
            "mask": array([[1, 1, 0]], "bool"),
        },
        scale=1.0,
        softcap=1.0,
        paper={
            "scores": [[2, -2, 10]],
            "capped": [[np.tanh(2), -np.tanh(2), np.tanh(10)]],
            "biased": [[np.tanh(2), 1 - np.tanh(2), np.tanh(10)]],
            "masked": [[np.tanh(2), 1 - np.tanh(2), -np.inf]],
        },
    )
    yield _steps(
        "steps-of-zero-queries",
        "With zero queries masked shows the mask, 0 where visible and -inf where hidden.",
        "C1 C4 C5",
        "causal-alignment causal-off-by-one finite-fill",
        pattern(2, 3),
        is_causal=True,
        paper={
            "scores": np.zeros((2, 3)),
            "masked": [[0, -np.inf, -np.inf], [0, 0, -np.inf]],
            "weights": [[1, 0, 0], [0.5, 0.5, 0]],
            "lse": [0, np.log(2)],
        },
    )


def _one_by_one() -> Iterator[Fact]:
    for dtype in FLOATS:
        yield _steps(
            f"steps-plain-{dtype}",
            f"Without options scores, capped, biased and masked are the same numbers, in {dtype}; lse keeps its dtype.",
            "A1 A2 C1 C5 C8",
            "scale-missing scale-twice dtype-changed" + (" lse-in-input-dtype" if "float16" in dtype else ""),
            plain(dtype),
        )
    yield _steps(
        "steps-capped",
        "The cap appears in capped and in every later step, not in scores.",
        "C2",
        "softcap-ignored softcap-not-rescaled",
        plain(),
        softcap=0.5,
    )
    yield _steps(
        "steps-biased",
        "The bias appears in biased and in every later step, not in capped.",
        "C3",
        "bias-ignored bias-scaled",
        plain() | {"bias": normal((4, 7), seed=13)},
    )
    yield _steps(
        "steps-sinks",
        "A sink changes weights, lse and out, and none of the steps before them.",
        "C7 C8",
        "sinks-ignored lse-without-sink",
        plain() | {"sinks": array(1.5)},
    )
    yield _steps(
        "steps-of-a-sink-of-1e4",
        "A sink of 1e4 leaves no weight and makes lse 1e4, without overflow.",
        "C7 C8 F1",
        "sink-not-in-maximum no-maximum-subtracted",
        pattern(2, 3) | {"sinks": array(1e4)},
        paper={"weights": np.zeros((2, 3)), "lse": [1e4] * 2},
    )


def _together() -> Iterator[Fact]:
    for dtype in ("float16", "float32"):
        yield _steps(
            f"steps-with-everything-{dtype}",
            f"Scale, cap, bias, mask, causal, sinks and grouped heads keep their order, in {dtype}.",
            "B5 C1 C2 C3 C4 C5 C7 C8",
            "softcap-after-bias softcap-after-mask bias-scaled sink-scaled heads-tiled",
            qkv((2, 4, 3, 5), (2, 2, 7, 5), (2, 2, 7, 6), dtype, seed=8)
            | {
                "bias": normal((4, 1, 7), dtype, seed=13),
                "mask": array([1, 1, 0, 1, 1, 1, 0], "bool"),
                "sinks": normal((4,), dtype, seed=14),
            },
            is_causal=True,
            scale=0.5,
            softcap=1.5,
            enable_gqa=True,
        )
    yield _steps(
        "steps-with-a-rule",
        "A rule hides pairs in masked and leaves biased as it was.",
        "C4 D3",
        "window-off-by-one-left window-off-by-one-right",
        batched(),
        mask={"rule": "window", "left": 1, "right": 2, "offset": 1},
    )


def _edges() -> Iterator[Fact]:
    yield _steps(
        "steps-of-an-empty-row",
        "In an empty row masked is -inf throughout, weights and out are 0 and lse is -inf.",
        "C4 E1",
        "empty-row-mean empty-row-nan lse-finite-in-empty-row finite-fill",
        plain() | {"mask": array([[1], [0], [1], [0]], "bool")},
    )
    yield _steps(
        "steps-of-a-bias-of-minus-infinity",
        "A bias of -inf is -inf in biased and in masked.",
        "C3 C6 E4",
        "finite-fill bias-ignored",
        pattern(2, 3) | {"bias": array([[0, 0, -np.inf]])},
        paper={"biased": [[0, 0, -np.inf]] * 2, "masked": [[0, 0, -np.inf]] * 2},
    )
    yield _steps(
        "steps-without-keys",
        "With S = 0 the steps have no columns, out is 0 and lse is -inf.",
        "B3 E1",
        "empty-axis-rejected",
        qkv((4, 5), (0, 5), (0, 6), seed=6),
        paper={"out": np.zeros((4, 6)), "lse": [-np.inf] * 4},
    )
