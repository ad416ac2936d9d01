"""PyTorch's own torch.nn.functional.scaled_dot_product_attention as a backend, on the CPU, as it comes."""

from __future__ import annotations

from importlib.metadata import version
from platform import python_version
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention

from conformance.adapters import rules
from conformance.adapters.torch import Tensors


class TorchSDPA(Tensors):
    """One function, one output. Arguments are passed as they are given, so that what it refuses is seen."""

    name = "torch-sdpa"
    explains = False

    def info(self) -> dict[str, Any]:
        """Say which versions ran, on which device."""
        return {"versions": {"python": python_version(), "torch": version("torch")}, "device": "cpu"}

    def supports(self, op: str, dtype: str, options: dict[str, Any], arrays: dict[str, Any]) -> str | None:
        """Tell what the function has no argument for."""
        if op != "attention":
            return "scaled_dot_product_attention computes attention only"
        missing = [name for name in ("softcap", "sinks") if name in options or name in arrays]
        if missing:
            return f"scaled_dot_product_attention has no {missing[0]}"
        if rules.fault(options.get("mask"), arrays):
            return "scaled_dot_product_attention takes no rules, so that it cannot refuse a wrong one"
        return None

    def outputs(self, op: str) -> tuple[str, ...]:
        """The weights are not returned."""
        return ("out",)

    def call(self, op: str, arrays: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
        """Call it with mask, rule and bias joined to its one argument for them, attn_mask."""
        arguments = arrays | options
        if spec := options.get("mask"):
            arguments = {name: value for name, value in arguments.items() if name not in rules.array_names(spec)}
            arguments["mask"] = self._rule(spec, arrays)
        attn_mask = _joined(arguments.pop("mask", None), arguments.pop("bias", None))
        q, k, v = (arguments.pop(name) for name in ("q", "k", "v"))
        return {"out": self._attention(q, k, v, attn_mask=attn_mask, **arguments)}

    def _attention(self, *arrays: torch.Tensor, **arguments: Any) -> torch.Tensor:
        """Call the function itself; the variants choose its kernel here."""
        return scaled_dot_product_attention(*arrays, **arguments)

    def _rule(self, spec: dict[str, Any], arrays: dict[str, Any]) -> torch.Tensor:
        """Evaluate a rule to the boolean array that the function takes."""
        named = {name: self.to_numpy(arrays[name]) for name in rules.array_names(spec)}
        return self.from_numpy(rules.evaluate(spec, named, arrays["q"].shape[-2], arrays["k"].shape[-2]))


def _joined(mask: Any, bias: Any) -> Any:
    """Give one array that says what mask and bias say: the bias, and -inf where the mask hides."""
    if mask is None or bias is None:
        return mask if bias is None else bias
    return torch.where(mask.bool(), bias, -torch.inf)


def backend() -> TorchSDPA:
    """Make the backend."""
    return TorchSDPA()
