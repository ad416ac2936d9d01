"""An assertion for the tests of other projects: is this array the attention of these inputs?"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import impl_numpy
from conformance.budget import expected
from conformance.compare import compare

# The oracle computes in scalar loops: about five seconds for so many products.
MOST_PRODUCTS = 8_000_000
OUTPUTS = ("out", "weights", "lse")


def assert_attention_close(
    got: Any,
    q: Any,
    k: Any,
    v: Any,
    mask: Any = None,
    *,
    bias: Any = None,
    is_causal: bool = False,
    scale: float | None = None,
    softcap: float | None = None,
    sinks: Any = None,
    enable_gqa: bool = False,
    output: str = "out",
) -> None:
    """Raise AssertionError unless `got` is what attention has to give on q (*B, [H,] T, D), k, v, element by element.

    Arrays are NumPy's, PyTorch's or JAX's, and `mask` may be a rule. `output` says what `got` is: "out"
    (*B, [H,] T, Dv), "weights" (*B, [H,] T, S) or "lse" (*B, [H,] T). Expected is the value of the contract, computed
    in scalar loops; forgiven is the error that rounding can explain in the inputs' dtype, derived and not tuned.

    Raises what the contract raises for wrong arguments, and ValueError where the inputs are too large for such loops.
    """
    if output not in OUTPUTS:
        raise ValueError(f"output {output!r} is none of {', '.join(OUTPUTS)}")
    arrays = {"q": _numpy(q), "k": _numpy(k), "v": _numpy(v)}
    mask = mask.array(q.shape[-2], k.shape[-2]) if hasattr(mask, "array") else mask
    arrays |= {name: _numpy(a) for name, a in {"mask": mask, "bias": bias, "sinks": sinks}.items() if a is not None}
    numbers = {"scale": scale, "softcap": softcap, "is_causal": is_causal, "enable_gqa": enable_gqa}
    options = {name: value for name, value in numbers.items() if value is not None and value is not False}
    _refuse_large(arrays)
    impl_numpy.attention(**arrays, **options)  # refuses wrong arguments; the oracle does not
    verdict = compare(expected("attention", arrays, options)[output], _numpy(got))
    if not verdict.ok:
        shapes = ", ".join(f"{name} {array.dtype.name} {array.shape}" for name, array in arrays.items())
        raise AssertionError(f"{output}: {verdict.message}\nattention({shapes}{_written(options)})")


def _numpy(value: Any) -> Any:
    """Bring an array of any framework to NumPy; what is no array stays what it is, and is refused as that."""
    framework = type(value).__module__.partition(".")[0]
    if framework == "torch":
        from conformance.adapters.torch import Tensors

        return Tensors().to_numpy(value)
    return np.asarray(value) if framework in ("jax", "jaxlib") else value


def _refuse_large(arrays: dict[str, np.ndarray]) -> None:
    q, k, v = (np.shape(arrays[name]) for name in ("q", "k", "v"))
    if min(len(q), len(k), len(v)) < 2:
        return  # which is refused for its shape
    leading = max(math.prod(shape[:-2]) for shape in (q, k, v))
    products = leading * q[-2] * k[-2] * (q[-1] + v[-1])
    if products > MOST_PRODUCTS:
        raise ValueError(
            f"q {q} and k {k} take {products:,} products, and scalar loops are made for {MOST_PRODUCTS:,} at most: "
            "compare a part of them, fewer batches, heads or positions"
        )


def _written(options: dict[str, Any]) -> str:
    return "".join(f", {name}={value!r}" for name, value in options.items())
