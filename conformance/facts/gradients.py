"""The gradients of attention: on paper, in every dtype, through every step of it, and under masks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from conformance.facts import FLOATS, Fact, array, batched, drawn, identity, normal, plain, square, state, zeros

CAUSAL = {"rule": "causal", "offset": 0}
# Both scores are 2, so both weights are 1/2, the output is 2 and the gradient of the scores is -1/2 and 1/2.
TWO_KEYS = {"q": array([[1, 0]]), "k": array([[2, 0], [2, 4]]), "v": array([[1], [3]]), "d_out": array([[1]])}


def facts() -> Iterator[Fact]:
    """Yield the facts."""
    yield from _on_paper()
    yield from _other_steps_on_paper()
    yield from _dtypes()
    yield from _steps()
    yield from _scales()
    yield from _masks()
    yield from _magnitudes()


def vjp(id: str, fact: str, clauses: str, flags: str, arrays: dict[str, Any], **rest: Any) -> Fact:
    """A fact about attention_vjp; a d_out that is not given is drawn in the shape of the output."""
    if "d_out" not in arrays:
        arrays = arrays | {"d_out": _d_out(arrays, rest.get("enable_gqa", False))}
    return state(id, fact, clauses, flags, arrays, op="attention_vjp", **rest)


def _d_out(arrays: dict[str, Any], grouped: bool) -> np.ndarray:
    q, k, v = arrays["q"], arrays["k"], arrays["v"]
    lead = q.shape[:-2] if grouped else np.broadcast_shapes(*(x.shape[:-2] for x in (q, k, v)))
    return normal((*lead, q.shape[-2], v.shape[-1]), q.dtype.name, seed=40)


def _on_paper() -> Iterator[Fact]:
    yield vjp(
        "gradient-of-two-equal-scores",
        "With equal scores and values 1 and 3 the gradient of the scores is -1/2 and 1/2.",
        "C1 C5 F2",
        "gradient-without-row-sum gradient-transposed",
        TWO_KEYS,
        scale=1.0,
        paper={"dq": [[0, 2]], "dk": [[-0.5, 0], [0.5, 0]], "dv": [[0.5], [0.5]]},
    )
    yield vjp(
        "gradient-carries-the-scale",
        "A scale of 1/4 reaches dq and dk once, and dv not at all.",
        "B4 C1",
        "gradient-without-scale",
        TWO_KEYS,
        scale=0.25,
        paper={"dq": [[0, 0.5]], "dk": [[-0.125, 0], [0.125, 0]], "dv": [[0.5], [0.5]]},
    )
    yield vjp(
        "gradient-of-the-bias-is-that-of-the-scores",
        "dbias is the gradient of the scores: it sums to 0 over the keys, and no scale reaches it.",
        "C3 C6",
        "gradient-without-row-sum gradient-without-scale",
        TWO_KEYS | {"bias": zeros((1, 2))},
        scale=0.25,
        paper={"dbias": [[-0.5, 0.5]]},
    )


def _other_steps_on_paper() -> Iterator[Fact]:
    slope = 1 - np.tanh(1) ** 2
    yield vjp(
        "gradient-of-the-softcap-is-its-slope",
        "A score that equals the softcap has its gradient multiplied by 1 - tanh(1)^2.",
        "C2",
        "gradient-without-softcap",
        TWO_KEYS,
        scale=1.0,
        softcap=2.0,
        paper={"dq": [[0, 2 * slope]], "dk": [[-0.5 * slope, 0], [0.5 * slope, 0]], "dv": [[0.5], [0.5]]},
    )
    yield vjp(
        "gradient-beside-a-sink-of-equal-weight",
        "One key with weight 1/2 beside a sink: dv is d_out / 2 and the gradient of the score v d_out / 4.",
        "C7",
        "gradient-without-sink",
        {"q": array([[1]]), "k": array([[0]]), "v": array([[4]]), "d_out": array([[1]]), "sinks": array(0)},
        scale=1.0,
        paper={"dq": [[0]], "dk": [[1]], "dv": [[0.5]]},
    )
    yield vjp(
        "gradient-of-one-key-is-zero-in-q-and-k",
        "The only key has weight 1 whatever its score, so dq and dk are 0 and dv is d_out.",
        "C5",
        "gradient-without-row-sum",
        {"q": array([[2, -1]]), "k": array([[3, 5]]), "v": array([[7, 8, 9]]), "d_out": array([[1, -2, 4]])},
        paper={"dq": [[0, 0]], "dk": [[0, 0]], "dv": [[1, -2, 4]]},
    )


def _dtypes() -> Iterator[Fact]:
    for dtype in FLOATS:
        yield vjp(
            f"gradient-plain-{dtype}",
            f"The gradients hold in {dtype}, and have the inputs' dtype.",
            "A2 B2 C1 C5 F2",
            "gradient-dtype-changed gradient-transposed gradient-without-scale gradient-without-row-sum layout-misread "
            "output-overwritten",
            plain(dtype),
            laws=("repeat", "layout", "kept"),
        )
    for dtype in ("bfloat16", "float32"):
        yield vjp(
            f"gradient-causal-batch-and-heads-{dtype}",
            f"Under causal, batch and head axes keep apart in {dtype}.",
            "B2 D4 F2",
            "gradient-dtype-changed causal-ignored-in-gradient gradient-transposed",
            batched(dtype),
            is_causal=True,
        )
    yield vjp(
        "gradient-of-equal-sizes",
        "With T = S and D = Dv no gradient is exchanged with another.",
        "C1 C5",
        "gradient-transposed",
        square(),
    )
    yield vjp(
        "gradient-float64-keeps-float64-accuracy",
        "Float64 gradients of scores near 30 are computed in float64 throughout.",
        "B2 F2",
        "float64-in-float32",
        {name: 4 * value for name, value in plain("float64").items()},
    )


def _steps() -> Iterator[Fact]:
    bias = normal((4, 7), seed=41)
    mask = drawn("##.#.##", "#.##.##", ".#####.", "###..##")
    for name, told, change, options in (
        ("softcap", "the softcap", {}, {"softcap": 1.5}),
        ("softcap-and-bias", "the softcap, but not the bias beside it", {"bias": bias}, {"softcap": 1.5}),
        ("softcap-and-mask", "the softcap, where the mask allows", {"mask": mask}, {"softcap": 1.5}),
        ("softcap-bias-mask-and-sink", "all steps at once", {"bias": bias, "mask": mask, "sinks": array(0.5)},
         {"softcap": 1.5, "scale": 0.7, "is_causal": True}),
    ):  # fmt: skip
        yield vjp(
            f"gradient-through-{name}",
            f"The gradients pass through {told}.",
            "C2 C3 C4 C7",
            "gradient-without-softcap"
            + (" mask-ignored-in-gradient" if "mask" in change else "")
            + (" gradient-without-sink" if "sinks" in change else ""),
            plain() | change,
            **options,
        )
    yield vjp(
        "gradient-of-saturated-softcap-vanishes",
        "Where a score is far beyond the softcap its gradient is near 0, and finite.",
        "C2 F1",
        "gradient-without-softcap",
        plain(),
        softcap=0.5,
        scale=30.0,
    )


def _scales() -> Iterator[Fact]:
    for name, told, scale in (
        ("positive", "A scale of 0.7 takes the place of", 0.7),
        ("negative", "A negative scale takes the place of", -0.5),
        ("integer", "An integer scale takes the place of", 2),
    ):
        yield vjp(
            f"gradient-with-{name}-scale",
            f"{told} 1/sqrt(D), once in dq and once in dk.",
            "B4 C1",
            "gradient-without-scale" + (" scale-square-root" if scale < 0 else ""),
            plain(),
            scale=scale,
        )
    yield vjp(
        "gradient-with-scale-zero",
        "A scale of 0 makes dq and dk exactly 0; dv is the mean of d_out over the keys.",
        "B4 C1",
        "gradient-without-scale",
        plain() | {"d_out": np.ones((4, 6), np.float32)},
        scale=0.0,
        paper={"dq": np.zeros((4, 5)), "dk": np.zeros((7, 5)), "dv": np.full((7, 6), 4 / 7)},
    )


def _masks() -> Iterator[Fact]:
    lengths = {"lengths": array([[5], [2]], "int64")}
    mask = drawn("##.#.##", "#.##.##", ".#####.", "###..##")
    for name, told, change, options in (
        ("padding", "a padding rule", lengths, {"mask": {"rule": "padding", "lengths": "lengths"}}),
        ("a-window", "a window", {}, {"mask": {"rule": "window", "left": 1, "right": 2, "offset": 1}}),
        ("causal-to-the-last-key", "a causal rule with an offset", {}, {"mask": CAUSAL | {"offset": 3}}),
        ("a-mask-array", "a mask array", {"mask": mask}, {}),
        ("a-mask-of-zeros-and-ones", "a float mask of 0 and 1", {"mask": array(mask)}, {}),
        ("a-mask-of-one-row", "a mask (B, 1, 1, S)",
         {"mask": array([[[[1, 1, 0, 1, 1, 0, 1]]], [[[0, 1, 1, 1, 0, 1, 1]]]], "bool")}, {}),
        ("mask-and-causal", "a mask array and is_causal together", {"mask": mask}, {"is_causal": True}),
    ):  # fmt: skip
        yield vjp(
            f"gradient-under-{name}",
            f"The gradients respect {told}.",
            "C4 D1 D2 D3 D4",
            "mask-ignored-in-gradient" + (" causal-ignored-in-gradient" if "is_causal" in options else ""),
            batched() | change,
            **options,
        )
    yield vjp(
        "gradient-under-a-bias-of-minus-infinity",
        "A bias of -inf hides in the gradients too, and its own gradient is exactly 0.",
        "C6 E2 E4",
        "mask-ignored-in-gradient",
        batched() | {"bias": np.where(mask, normal((4, 7), seed=41), np.float32(-np.inf))},
    )


def _magnitudes() -> Iterator[Fact]:
    for dtype in FLOATS:
        big = {"q": array([[100, 0], [-100, 0], [0, 1]], dtype), "k": array([[100, 0], [99, 0], [-100, 0]], dtype)}
        yield vjp(
            f"gradient-of-scores-of-1e4-in-{dtype}",
            f"Scores of +-10000 give finite, correct gradients in {dtype}.",
            "F1",
            "no-maximum-subtracted",
            big | {"v": identity(3, dtype)},
            scale=1.0,
        )
    yield vjp(
        "gradient-of-zero-is-zero",
        "A d_out of zeros gives gradients of exactly 0.",
        "C5",
        "gradient-dtype-changed",
        batched() | {"bias": normal((4, 7), seed=41), "d_out": zeros((2, 3, 4, 6))},
        is_causal=True,
    )
    yield vjp(
        "gradient-of-equal-values-reaches-only-v",
        "When all values are equal no weight matters: dq and dk are 0 up to rounding.",
        "C5 F2",
        "gradient-without-row-sum",
        plain() | {"v": np.full((7, 6), 3, np.float32)},
    )
