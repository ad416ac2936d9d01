"""The gradient of each implementation is the slope of its own output, found by central differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from conformance.adapter import Backend, find

STEP = 1e-5  # the error of a central difference is of the order of its square, 1e-10
SHAPES = {"q": (2, 4, 3, 5), "k": (2, 4, 4, 5), "v": (2, 4, 4, 6), "bias": (4, 1, 4)}
LOWER_RIGHT = {"rule": "causal", "offset": 1}
FORMS: dict[str, dict[str, Any]] = {
    "plain": {},
    "causal": {"is_causal": True},
    "a rule, an empty row, a scale and a softcap": {
        "mask": {"rule": "and", "of": [LOWER_RIGHT, {"rule": "window", "left": None, "right": 0, "offset": -1}]},
        "scale": -0.7,
        "softcap": 1.5,
    },
}


@pytest.mark.parametrize("sinks", [False, True], ids=["no sinks", "sinks"])
@pytest.mark.parametrize("form", FORMS)
def test_the_gradient_is_the_slope(framework: str, form: str, sinks: bool) -> None:
    backend, draw = find(framework), np.random.default_rng(7)
    arrays = {name: draw.normal(size=shape) for name, shape in SHAPES.items()}
    if sinks:
        arrays["sinks"] = draw.normal(size=4)
    d_out = draw.normal(size=(2, 4, 3, 6))
    gradients = ask(backend, "attention_vjp", {**arrays, "d_out": d_out}, FORMS[form])
    for name in SHAPES:
        direction = draw.normal(size=SHAPES[name])
        ends = [{**arrays, name: arrays[name] + sign * STEP * direction} for sign in (1, -1)]
        ahead, behind = ((ask(backend, "attention", end, FORMS[form])["out"] * d_out).sum() for end in ends)
        slope = (ahead - behind) / (2 * STEP)
        assert (gradients[f"d{name}"] * direction).sum() == pytest.approx(slope, rel=1e-7, abs=1e-8)


def ask(backend: Backend, op: str, arrays: dict[str, np.ndarray], options: dict[str, Any]) -> dict[str, np.ndarray]:
    own = {name: backend.from_numpy(array) for name, array in arrays.items()}
    return {name: backend.to_numpy(x) for name, x in backend.call(op, own, options).items() if x is not None}
