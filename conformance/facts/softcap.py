"""The soft limit of the scores: softcap * tanh(scores / softcap), before bias and mask."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from conformance.facts import Fact, array, identity, normal, plain, state


def facts() -> Iterator[Fact]:
    """Yield the facts."""
    yield from _on_paper()
    yield from _values()
    yield from _before_the_mask()
    yield from _before_the_bias()
    yield from _dtypes()


def _wide(dtype: str = "float32") -> dict[str, np.ndarray]:
    """Inputs with scores of about 10, so that a cap of 2 changes all of them."""
    return plain(dtype) | {"q": normal((4, 5), dtype, seed=10, spread=10.0)}


def _on_paper() -> Iterator[Fact]:
    share = 1 / (1 + np.exp(-2 * np.tanh(3)))
    yield state(
        "softcap-of-one-turns-scores-into-tanh",
        "With softcap 1 the scores 3 and -3 become tanh(3) and -tanh(3).",
        "C2 C8",
        "softcap-ignored softcap-clipped lse-without-softcap",
        {"q": array([[1]]), "k": array([[3], [-3]]), "v": identity(2)},
        softcap=1.0,
        paper={"out": [[share, 1 - share]], "lse": [np.log(2 * np.cosh(np.tanh(3)))]},
    )
    share = 1 / (1 + np.exp(-10))
    yield state(
        "softcap-bounds-huge-scores",
        "With softcap 5 the scores 1e4 and -1e4 become 5 and -5.",
        "C2 F1",
        "softcap-ignored softcap-not-rescaled",
        {"q": array([[100]]), "k": array([[100], [-100]]), "v": identity(2)},
        softcap=5.0,
        paper={"out": [[share, 1 - share]], "lse": [5 + np.log1p(np.exp(-10))]},
    )
    share = 1 / (1 + np.exp(-2 * np.tanh(20)))
    yield state(
        "softcap-of-one-far-beyond-it-float64",
        "tanh(20) is 1 in float64 to the last digit, though tanh(9), which float32 cannot tell from it, is not.",
        "B2 C2 F2",
        "softcap-ignored float64-in-float32",
        {"q": array([[1]], "float64"), "k": array([[20], [-20]], "float64"), "v": identity(2, "float64")},
        softcap=1.0,
        paper={"out": [[share, 1 - share]]},
    )


def _values() -> Iterator[Fact]:
    most = "softcap-ignored softcap-not-rescaled lse-without-softcap"
    bent = f"{most} softcap-clipped"
    for name, softcap, flags in (
        ("two", 2.0, bent),
        ("integer-five", 5, bent),
        ("tiny", 0.01, most),
        ("huge", 1e6, "softcap-not-rescaled"),
    ):
        yield state(
            f"softcap-{name}",
            f"With softcap {softcap:g} every score s becomes {softcap:g} * tanh(s / {softcap:g}).",
            "B4 C2 C8",
            flags,
            _wide(),
            softcap=softcap,
        )
    yield state(
        "softcap-0-d",
        "A 0-d array is a legal softcap.",
        "B4 C2",
        "softcap-ignored",
        _wide() | {"softcap": array(2.0)},
    )
    yield state(
        "softcap-after-scale",
        "The scale is applied before the cap, not after it.",
        "C1 C2",
        "softcap-before-scale",
        _wide(),
        softcap=3.0,
        scale=2.0,
    )


def _before_the_mask() -> Iterator[Fact]:
    yield state(
        "softcap-is-before-a-causal-mask",
        "A hidden pair stays hidden under a cap: the cap is applied before the mask.",
        "C2 C4 E4",
        "softcap-after-mask",
        _wide(),
        softcap=2.0,
        is_causal=True,
    )
    yield state(
        "softcap-is-before-a-mask-array",
        "A pair that a mask array hides has weight 0 under a cap.",
        "C2 C4 D1",
        "softcap-after-mask",
        _wide() | {"mask": array([1, 0, 1, 1, 0, 0, 1], "bool")},
        softcap=2.0,
    )


def _before_the_bias() -> Iterator[Fact]:
    bias = normal((4, 7), seed=13, spread=8.0)
    hidden = bias.copy()
    hidden[:, 2] = -np.inf
    yield state(
        "softcap-is-before-the-bias",
        "The cap does not limit the bias.",
        "C2 C3",
        "softcap-after-bias bias-scaled",
        _wide() | {"bias": bias},
        softcap=2.0,
    )
    yield state(
        "softcap-is-before-a-bias-of-minus-infinity",
        "A bias of -inf hides its pair under a cap.",
        "C2 C3 C6",
        "softcap-after-bias softcap-after-mask",
        _wide() | {"bias": hidden},
        softcap=2.0,
    )
    yield state(
        "softcap-does-not-limit-the-sink",
        "The sink is no score: the cap does not change it.",
        "C2 C7",
        "sink-softcapped",
        _wide() | {"sinks": array(4.0)},
        softcap=1.0,
    )
    yield state(
        "softcap-in-an-empty-row",
        "A capped row without visible keys is an empty row.",
        "C2 E1",
        "softcap-after-mask empty-row-mean empty-row-nan",
        _wide() | {"mask": array([[1], [0], [1], [0]], "bool")},
        softcap=2.0,
    )


def _dtypes() -> Iterator[Fact]:
    for dtype in ("bfloat16", "float64"):
        yield state(
            f"softcap-{dtype}",
            f"The cap works under causal in {dtype}.",
            "B2 C2 C4",
            "softcap-ignored softcap-after-mask",
            plain(dtype),
            softcap=0.5,
            is_causal=True,
        )
