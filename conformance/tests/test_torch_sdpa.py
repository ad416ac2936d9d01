"""The adapter of PyTorch's own function is judged: what it passes on means what the contract means."""

from __future__ import annotations

import numpy as np
import pytest

from conformance.adapter import find
from conformance.facts import normal

pytest.importorskip("torch")

ARRAYS = {name: normal((2, 4, size, 8), seed=size) for name, size in {"q": 3, "k": 5, "v": 5}.items()}
VISIBLE = {"mask": normal((3, 5), seed=8) > -1}
BIAS = {"bias": normal((4, 3, 5), seed=9)}
LENGTHS = {"lengths": np.array([[4], [2]])}
PADDED = {"rule": "and", "of": [{"rule": "causal", "offset": 2}, {"rule": "padding", "lengths": "lengths"}]}


def out(name, arrays, options):
    backend = find(name)
    own = {name: backend.from_numpy(array) for name, array in (ARRAYS | arrays).items()}
    return backend.to_numpy(backend.call("attention", own, options)["out"])


@pytest.mark.parametrize(
    ("arrays", "options"),
    [
        ({}, {}),
        ({}, {"scale": 0.3}),
        ({}, {"is_causal": True}),
        (VISIBLE, {}),
        (BIAS, {}),
        (VISIBLE | BIAS, {}),
        ({"mask": VISIBLE["mask"].astype("int32")} | BIAS, {}),
        ({}, {"mask": {"rule": "window", "left": 1, "right": 1}}),
        (LENGTHS, {"mask": PADDED}),
        (LENGTHS | BIAS, {"mask": PADDED}),
        ({name: ARRAYS[name][:, :2] for name in "kv"}, {"enable_gqa": True}),
    ],
    ids=lambda value: "-".join(value) or "plain",
)
def test_its_arguments_mean_what_the_contract_says(arrays, options):
    np.testing.assert_allclose(out("torch-sdpa", arrays, options), out("numpy", arrays, options), atol=1e-6)


@pytest.mark.parametrize(
    ("op", "options", "arrays", "reason"),
    [
        ("retrieve", {}, {}, "computes attention only"),
        ("flash_attention", {}, {}, "computes attention only"),
        ("attention", {"softcap": 2.0}, {}, "has no softcap"),
        ("attention", {}, {"sinks": np.zeros(2)}, "has no sinks"),
    ],
)
def test_what_it_has_no_argument_for_is_unsupported(op, options, arrays, reason):
    assert reason in find("torch-sdpa").supports(op, "float32", options, arrays)


def test_the_rest_is_supported_and_only_out_is_returned():
    backend = find("torch-sdpa")
    assert backend.supports("attention", "float32", {"scale": 1.0}, ARRAYS) is None
    assert backend.outputs("attention") == ("out",)
