"""The PyTorch implementation compiled, on an accelerator, and its flash_attention in the place of attention."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch._dynamo.backends.debugging import aot_eager

from conformance.adapter import Failed
from conformance.adapters import tracing
from conformance.adapters.flash import ByFlash
from conformance.adapters.torch import Torch


class Compiled(Torch):
    """impl_torch.attention under torch.compile(fullgraph=True): traced as a whole, run by the backend aot_eager."""

    name = "torch:compile"
    unasked_errors = "a refusal ends the trace, and torch.compile reports it in its own words"

    def __init__(self) -> None:
        super().__init__()
        self._runs = 0
        torch._dynamo.config.recompile_limit = torch._dynamo.config.accumulated_recompile_limit = 1_000_000
        self._compiled = torch.compile(self._plain, fullgraph=True, dynamic=False, backend=self._counting)

    def info(self) -> dict[str, Any]:
        """Say which versions ran, and how it was compiled."""
        return super().info() | {"compile": "fullgraph=True, dynamic=False, backend=aot_eager"}

    def supports(self, op: str, dtype: str, options: dict[str, Any], arrays: dict[str, Any]) -> str | None:
        """Take attention only, since compiling a call takes half a second, and leave out what needs values."""
        if op != "attention":
            return "attention alone is compiled here, the other functions by the tests of impl_torch"
        return tracing.hidden_value(arrays)

    def _counting(self, module: Any, inputs: Any) -> Callable[..., Any]:
        """Compile a graph, and count how often it runs."""
        compiled = aot_eager(module, inputs)

        def run(*arguments: Any) -> Any:
            self._runs += 1
            return compiled(*arguments)

        return run

    def _plain(self, op: str, arguments: dict[str, Any]) -> Any:
        return super()._run(op, arguments)

    def _run(self, op: str, arguments: dict[str, Any]) -> Any:
        """Call the compiled function; raises Failed if it ran without its graph."""
        before = self._runs
        returned = self._compiled(op, arguments)
        if self._runs == before:
            raise Failed("the compiled graph did not run")
        return returned


class Flash(ByFlash, Torch):
    """impl_torch.flash_attention."""

    name = "torch:flash"


class Accelerator(Torch):
    """impl_torch on the accelerator of this machine."""

    name = "torch:accelerator"

    def __init__(self) -> None:
        super().__init__()
        self._device = torch.accelerator.current_accelerator(check_available=True)
        if self._device is None:
            raise LookupError(f"PyTorch {torch.__version__} finds no accelerator on this machine")

    def info(self) -> dict[str, Any]:
        """Say which versions ran, and on which device."""
        return super().info() | {"device": str(self._device)}

    def from_numpy(self, array: np.ndarray) -> torch.Tensor:
        """Copy the array and its strides to the accelerator."""
        return super().from_numpy(array).to(self._device)

    def call(self, op: str, arrays: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
        """Call the operation; raises Failed if an output is not on the accelerator."""
        outputs = super().call(op, arrays, options)
        for name, output in outputs.items() if any(map(self.is_own, arrays.values())) else ():
            if self.is_own(output) and output.device.type != self._device.type:
                raise Failed(f"{name} lies on {output.device}, the arguments on {self._device}")
        return outputs


class AcceleratorFlash(ByFlash, Accelerator):
    """impl_torch.flash_attention on the accelerator of this machine."""

    name = "torch:accelerator-flash"
