"""PyTorch's own function held to one of its kernels, with the proof that this kernel ran."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode

from conformance.adapter import Failed, Unsupported
from conformance.adapters.torch_sdpa import TorchSDPA

# The operator by which each kernel is known.
OPERATORS = {
    SDPBackend.MATH: "aten::_safe_softmax",
    SDPBackend.FLASH_ATTENTION: "aten::_scaled_dot_product_flash_attention_for_cpu",
}


class Kernel(TorchSDPA):
    """scaled_dot_product_attention that may use one kernel only; a call that this kernel cannot run is unsupported."""

    kernel: SDPBackend
    unasked_errors = "what it refuses is judged as torch-sdpa"

    def info(self) -> dict[str, Any]:
        """Say which versions ran, and which kernel."""
        return super().info() | {"kernel": self.kernel.name}

    def _attention(self, *arrays: torch.Tensor, **arguments: Any) -> torch.Tensor:
        """Call the function; raises Unsupported where the kernel is not available, Failed where another one ran."""
        with warnings.catch_warnings(record=True) as said, sdpa_kernel(self.kernel), Operators() as operators:
            warnings.simplefilter("always")
            try:
                out = super()._attention(*arrays, **arguments)
            except RuntimeError as error:
                if "No available kernel" in str(error):
                    raise Unsupported(f"{self.kernel.name} cannot run it: {_last(said)}") from None
                raise
        ran = [kernel for kernel, operator in OPERATORS.items() if operator in operators.seen]
        if not ran:
            raise Unsupported("no kernel runs: PyTorch answers empty arrays by itself")
        if ran != [self.kernel]:
            raise Failed(f"{self.kernel.name} did not run, but {', '.join(kernel.name for kernel in ran)}")
        return out


class Operators(TorchDispatchMode):
    """Notes the operators that run."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(self, operator: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Note the name and call the operator."""
        self.seen.append(operator._schema.name)
        return operator(*args, **kwargs or {})


def _last(said: list[warnings.WarningMessage]) -> str:
    # PyTorch says why in warnings, the last of which has the reason, and a place in its sources after it.
    return str(said[-1].message).partition(" (Triggered internally")[0] if said else "it gives no reason"


class Math(Kernel):
    """The plain operators."""

    name, kernel = "torch-sdpa:math", SDPBackend.MATH


class Flash(Kernel):
    """The fused kernel for CPUs."""

    name, kernel = "torch-sdpa:flash", SDPBackend.FLASH_ATTENTION
