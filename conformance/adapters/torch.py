"""The PyTorch implementation as a backend, and how tensors come from NumPy and go back."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import torch

from conformance.adapters.mirror import Mirror


class Tensors:
    """Conversion between NumPy arrays and tensors on the CPU."""

    def from_numpy(self, array: np.ndarray) -> torch.Tensor:
        """Copy the array and its strides; torch.from_numpy does not know bfloat16, whose bits travel as integers."""
        if array.dtype == ml_dtypes.bfloat16:
            return torch.from_numpy(array.view(np.int16).copy(order="K")).view(torch.bfloat16)
        return torch.from_numpy(array.copy(order="K"))

    def to_numpy(self, array: torch.Tensor) -> np.ndarray:
        """Copy the tensor's values, without its graph."""
        tensor = array.detach().cpu()
        if tensor.dtype == torch.bfloat16:
            return tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16).copy()
        return tensor.numpy().copy()

    def is_own(self, value: Any) -> bool:
        """Tell whether the value is a tensor."""
        return isinstance(value, torch.Tensor)

    def shares_memory(self, one: torch.Tensor, other: torch.Tensor) -> bool:
        """Tell whether two tensors have one storage."""
        return (
            0 < one.untyped_storage().nbytes()
            and one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()
        )


class Torch(Tensors, Mirror):
    """impl_torch on the CPU."""

    name, module = "torch", "impl_torch"
    libraries = ("torch", "numpy")

    def info(self) -> dict[str, Any]:
        """Say which versions ran, on which device, and how exact float32 is there."""
        return super().info() | {"float32_matmul_precision": torch.get_float32_matmul_precision()}


def backend() -> Torch:
    """Make the backend."""
    return Torch()
