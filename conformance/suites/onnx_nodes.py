"""ONNX's own node tests of the operator `Attention` (opsets 23 to 25), run through `attention_steps`.

Only the call is translated; inputs, expected outputs and tolerances are ONNX's. A boolean or short
`attn_mask` becomes a bias of 0 and -inf; `is_causal`, the window and `nonpad_kv_seqlen` become mask rules,
and a cache moves their offset. `softmax_precision` has no counterpart: half types are always computed in
float32 here.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from onnx.backend.test.case.node import collect_testcases
from onnx.backend.test.runner import Runner
from onnx.helper import get_attribute_value

from conformance.adapter import Backend

Arrays = dict[str, np.ndarray]

# qk_matmul_output_mode -> the step of attention_steps that it shows
MODES = ("scores", "capped", "masked", "weights")


@dataclass(frozen=True)
class NodeTest:
    """One test of ONNX: the node's inputs, attributes and expected outputs by name, and its tolerances."""

    name: str
    inputs: Arrays
    attributes: dict
    outputs: Arrays
    rtol: float
    atol: float


def node_tests() -> list[NodeTest]:
    """Collect the tests; those named `_expanded` repeat them on a graph of other operators: left out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # importing the cases of all operators warns in a few of the others
        found = collect_testcases("Attention")
    return [_node_test(test) for test in found if "_expanded" not in test.name]


def _node_test(test) -> NodeTest:
    node = test.model.graph.node[0]
    inputs, outputs = test.data_sets[0]
    return NodeTest(
        test.name,
        dict(zip(filter(None, node.input), inputs, strict=True)),
        {attribute.name: get_attribute_value(attribute) for attribute in node.attribute},
        dict(zip(filter(None, node.output), outputs, strict=True)),
        test.rtol,
        test.atol,
    )


def check(test: NodeTest, got: Arrays) -> None:
    """Compare with ONNX's own comparison; raise AssertionError where it finds a difference."""
    names = list(test.outputs)
    Runner.assert_similar_outputs(
        [test.outputs[name] for name in names], [got[name] for name in names], test.rtol, test.atol
    )


def run(test: NodeTest, backend: Backend) -> Arrays:
    """Run one test; with `nonpad_kv_seqlen` each batch element alone, since each has an offset of its own."""
    if "nonpad_kv_seqlen" not in test.inputs:
        return _run(test.inputs, test.attributes, backend)
    parts = [_run(element, test.attributes, backend) for element in _elements(test.inputs)]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _elements(inputs: Arrays) -> Iterator[Arrays]:
    batch = len(inputs["Q"])
    if "attn_mask" in inputs:
        mask = inputs["attn_mask"]
        mask = np.broadcast_to(mask, np.broadcast_shapes(mask.shape, (batch, 1, 1, 1)))
        inputs = {**inputs, "attn_mask": mask}
    for index in range(batch):
        yield {name: array[index : index + 1] for name, array in inputs.items()}


def _run(inputs: Arrays, attributes: dict, backend: Backend) -> Arrays:
    q = _heads(inputs["Q"], attributes.get("q_num_heads"), backend)
    k = _cached(inputs, "key", _heads(inputs["K"], attributes.get("kv_num_heads"), backend))
    v = _cached(inputs, "value", _heads(inputs["V"], attributes.get("kv_num_heads"), backend))
    arrays = {"q": q, "k": k, "v": v, **_bias(inputs, S=k.shape[-2]), **_lengths(inputs)}
    steps = _call(backend, "attention_steps", arrays, _options(inputs, attributes, T=q.shape[-2]))
    out = steps["out"] if inputs["Q"].ndim == 4 else _call(backend, "merge_heads", {"x": steps["out"]})["x"]
    shown = steps[MODES[attributes.get("qk_matmul_output_mode", 0)]]
    return {"Y": out, "present_key": k, "present_value": v, "qk_matmul_output": shown}


def _call(backend: Backend, op: str, arrays: Arrays, options: dict | None = None) -> Arrays:
    own = {name: backend.from_numpy(array) for name, array in arrays.items()}
    outputs = backend.call(op, own, options or {})
    return {name: backend.to_numpy(array) for name, array in outputs.items()}


def _heads(x: np.ndarray, heads: int | None, backend: Backend) -> np.ndarray:
    return x if heads is None else _call(backend, "split_heads", {"x": x}, {"heads": heads})["x"]


def _cached(inputs: Arrays, name: str, new: np.ndarray) -> np.ndarray:
    past = inputs.get(f"past_{name}")
    return new if past is None else np.concatenate([past, new], axis=-2)


def _bias(inputs: Arrays, S: int) -> Arrays:
    if "attn_mask" not in inputs:
        return {}
    mask = inputs["attn_mask"]
    if mask.dtype == bool:
        mask = np.where(mask, 0, -np.inf).astype(np.float32)
    missing = [(0, 0)] * (mask.ndim - 1) + [(0, S - mask.shape[-1])]
    return {"bias": np.pad(mask, missing, constant_values=-np.inf)}  # keys past a short mask are hidden


def _lengths(inputs: Arrays) -> Arrays:
    return {"lengths": inputs["nonpad_kv_seqlen"][:, None]} if "nonpad_kv_seqlen" in inputs else {}


def _options(inputs: Arrays, attributes: dict, T: int) -> dict:
    options = {"enable_gqa": True, "mask": _rule(inputs, attributes, T)}
    options.update({name: attributes[name] for name in ("scale", "softcap") if attributes.get(name)})
    return {name: value for name, value in options.items() if value is not None}


def _rule(inputs: Arrays, attributes: dict, T: int) -> dict | None:
    offset, rules = _offset(inputs, T), []
    if attributes.get("is_causal"):
        rules.append({"rule": "causal", "offset": offset})
    left, right = (attributes.get(f"{side}_window_size", -1) for side in ("left", "right"))
    if max(left, right) >= 0:
        rules.append({"rule": "window", "left": _bound(left), "right": _bound(right), "offset": offset})
    if "nonpad_kv_seqlen" in inputs:
        rules.append({"rule": "padding", "lengths": "lengths"})
    return {"rule": "and", "of": rules} if len(rules) > 1 else next(iter(rules), None)


def _bound(size: int) -> int | None:
    return None if size < 0 else size


def _offset(inputs: Arrays, T: int) -> int:
    """The position of the first query among the keys: what the cache held before it."""
    if "nonpad_kv_seqlen" in inputs:
        return int(inputs["nonpad_kv_seqlen"][0]) - T
    return inputs["past_key"].shape[-2] if "past_key" in inputs else 0
