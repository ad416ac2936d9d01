"""PyTorch's own samples of `scaled_dot_product_attention` (its OpInfo record), in float64.

The samples and the expected values are torch's; only the call is translated: its floating `attn_mask` is
our `bias`. Samples with dropout are left out, since a random result has no expected value.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

NAME = "nn.functional.scaled_dot_product_attention"


@dataclass(frozen=True)
class Sample:
    """One sample: NumPy arrays and options by our names, and torch's own result."""

    name: str
    arrays: dict[str, np.ndarray]
    options: dict
    out: np.ndarray


def samples(seed: int = 0) -> list[Sample]:
    """Draw the samples, the same for the same seed."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        record = _record()
        drawn = [s for s in record.sample_inputs("cpu", torch.float64) if not s.kwargs["dropout_p"]]
    return [_sample(index, record, drawing) for index, drawing in enumerate(drawn)]


def _record():
    from torch.testing._internal.common_methods_invocations import op_db

    # That import freezes torch's global flags for the rest of the process.
    torch.backends.__allow_nonbracketed_mutation_flag = True
    return next(record for record in op_db if record.name == NAME)


def _sample(index: int, record, drawing) -> Sample:
    inputs = (drawing.input, *drawing.args)
    is_causal, mask = drawing.kwargs["is_causal"], drawing.kwargs.get("attn_mask")
    arrays = {name: tensor.numpy() for name, tensor in zip("qkv", inputs, strict=True)}
    if mask is not None:
        arrays["bias"] = mask.numpy()
    shapes = " ".join(str(tuple(tensor.shape)) for tensor in inputs[:2])
    name = f"{index}: {shapes}{' causal' * is_causal}{' bias' * (mask is not None)}"
    return Sample(name, arrays, {"is_causal": is_causal}, record.op(*inputs, **drawing.kwargs).numpy())
