"""What the three frameworks make of the same few lines."""

import importlib
import math

import numpy as np

from conformance.grading.learner import ARRAYS

HIDDEN = np.full(3, -np.inf, np.float32)
V = np.array([[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]], np.float32)


def values(framework: str) -> dict:
    """Give what is to be predicted."""
    return OF_FRAMEWORK[framework]() | here(framework) | dtypes(ARRAYS[framework]().from_numpy)


def dtypes(from_numpy) -> dict:
    """The dtype after a division by sqrt(8), as a number of NumPy and as one of Python."""
    single, half = from_numpy(V), from_numpy(V.astype(np.float16))
    quotients = {
        "float32_by_root": single / np.sqrt(8),
        "float16_by_root": half / np.sqrt(8),
        "float16_by_power": half / 8**0.5,
    }
    return {name: str(quotient.dtype).removeprefix("torch.") for name, quotient in quotients.items()}


def here(framework: str) -> dict:
    """What attention of this project does without a visible key, and with mixed dtypes."""
    attention, arrays = importlib.import_module(f"impl_{framework}").attention, ARRAYS[framework]()
    q, k, v, hidden, half = map(arrays.from_numpy, (V[:1], V, V, np.zeros((1, 3), bool), V.astype(np.float16)))
    out, _ = attention(q, k, v, mask=hidden)
    return {"hidden_row_here": read(out), "mixed_dtypes_here": outcome(lambda: str(attention(q, k, half)[0].dtype))}


def outcome(call) -> str:
    """What comes of a call, or the name of its exception."""
    try:
        return str(call())
    except Exception as error:
        return type(error).__name__


def read(row) -> str:
    """A row of weights or of an output, in a word."""
    numbers = [float(x) for x in row.reshape(-1)]
    if any(math.isnan(x) for x in numbers):
        return "nan"
    if not any(numbers):
        return "zeros"
    return "thirds" if len(numbers) == 3 else "mean of v"


def of_numpy() -> dict:
    """NumPy has neither softmax nor attention: the formula is computed as it is written."""
    with np.errstate(all="ignore"):
        weights = np.exp(HIDDEN - HIDDEN.max())
        weights = weights / weights.sum()
        half = np.zeros(1, np.float16)
        half[0] = -1e9
    return {
        "hidden_row_of_softmax": read(weights),
        "hidden_row_of_library": read(weights @ V),
        "low_number_in_float16": str(half[0]),
    }


def of_torch() -> dict:
    """PyTorch has softmax, scaled_dot_product_attention and masked_fill."""
    import torch
    from torch.nn.functional import scaled_dot_product_attention as sdpa

    v, hidden = torch.from_numpy(V), torch.zeros(1, 3, dtype=torch.bool)
    half = torch.zeros(1, dtype=torch.float16)
    return {
        "hidden_row_of_softmax": read(torch.softmax(torch.from_numpy(HIDDEN), dim=-1)),
        "hidden_row_of_library": read(sdpa(v[:1], v, v, attn_mask=hidden)),
        "low_number_in_float16": outcome(lambda: half.masked_fill(half == 0, -1e9).item()),
    }


def of_jax() -> dict:
    """JAX has softmax, dot_product_attention and .at[...].set."""
    import jax
    import jax.numpy as jnp

    v, hidden = jnp.asarray(V)[None, :, None], jnp.zeros((1, 1, 1, 3), bool)  # v (B, S, H, Dv)
    half = jnp.zeros(1, jnp.float16)
    return {
        "hidden_row_of_softmax": read(jax.nn.softmax(jnp.asarray(HIDDEN))),
        "hidden_row_of_library": read(jax.nn.dot_product_attention(v[:, :1], v, v, mask=hidden)),
        "low_number_in_float16": outcome(lambda: half.at[0].set(-1e9)[0]),
    }


OF_FRAMEWORK = {"numpy": of_numpy, "torch": of_torch, "jax": of_jax}
