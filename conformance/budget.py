"""The error budget: how far from the oracle's value a correct implementation may be, element by element.

Nothing here is tuned. The oracle's own loops are evaluated once more with numbers that carry a bound on their
rounding error (`tracked.Following`), and the bound at the end is the budget. This is the running error analysis of
Wilkinson (1963, "Rounding Errors in Algebraic Processes"), in the notation of Higham (2002, "Accuracy and Stability
of Numerical Algorithms", sections 3.1 to 3.3). It is done to first order; where a larger error is cheap to bound as it
is, in exp and in products, it is.

**The model.** An implementation computes in the compute dtype: float32 for float16, bfloat16 and float32, float64 for
float64; u is that dtype's unit roundoff, 2^-24 or 2^-53. Each operation returns fl(x op y) = (x op y)(1 + d), |d| <= u,
or zero where the result lies below the smallest normal number, since flushing to zero is legal. n roundings in a row
are within gamma_n = n u / (1 - n u). Inputs are exact, and so is a product with 0.

**Any order.** A sum of n terms, in whatever order and tree, is within gamma_(n-1) sum |x_i|; a dot product of length
n is within gamma_n sum |x_i y_i|, with fused multiply-adds or without (Higham, equations 3.4 and 3.5). The errors that
the terms bring along add up.

**Elementary functions.** One ulp is at most 2 u. As in the OpenCL C specification (version 3.0, "Relative Error as
ULPs", single precision): exp 3 ulp, log 3 ulp, tanh 5 ulp, sqrt 3 ulp, division 2.5 ulp. The absolute error e of an
argument becomes exp(x) (exp(e) - 1), e / x for log, and e (1 - tanh^2) for tanh.

**The softmax.** With p_j the exponentials, e_j their errors, L their sum and w_j = p_j / L, the same p_j stand above
and below the line. So w_j is off by at most ((1 - w_j) e_j + w_j (sum of the other e_i)) / L', where L' is the
computed sum, never below 1. A key that takes all the weight takes it whatever the error of its score is.

**Where implementations differ lawfully**, the budget has room for each of them:

- The scale is multiplied into the queries, the keys or the scores: one rounding of every term q_i k_i for each of the
  three places. A caller's scale, softcap or beta is first rounded to the compute dtype.
- exp(x) may be exp2(x log2(e)), with log2(e) folded into the scale, the bias or the logit: two roundings, of the
  constant and of the product, wherever that may be.
- The maximum that is subtracted may be scaled and rounded by itself (a fused multiply-add does so): one rounding of
  the larger of |logit| and |maximum|. So logits near 1e4 give weights with relative errors of some 1e4 u, unless one
  key takes all. The largest term is 1, and no term can be more.
- Tiles of any size (Milakov and Gimelshein 2018, "Online normalizer calculation for softmax"): when a later tile
  raises the running maximum, what has been summed is multiplied by exp(old - new). The exponents add up to what would
  have been subtracted at once. Each rescaling costs one more exp and one product, and a key cannot be rescaled more
  often than there are logits above its own.
- The weights may be normalised before or after they meet the values: both a division and a product are counted, and
  the rescalings of the sum and of the output apart from each other.
- Gradients and merges may find a weight again as exp(logit - lse), which has the roundings of lse.
- delta, in the gradients, is P . dP or d_out . out: the larger bound of the two.
- Parts are merged two at a time, so that each intermediate lse is rounded.

**The end.** The result is rounded once to the output's dtype: u_out |x|, or half the smallest subnormal number. A value
without any error that the dtype holds must be hit exactly: zeros at hidden pairs and in empty rows, -inf, copies.

So it is a worst case: an honest float32 implementation is far below it, and one that keeps scores, weights, sums or a
softmax in a half type is above it wherever values of both signs nearly cancel.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from conformance.arithmetic import format_of
from conformance.facts import compute_dtype, dtype_of
from conformance.grids import Grid
from conformance.loading import Expected
from conformance.oracle import evaluate
from conformance.tracked import Following

__all__ = ["Expected", "expected"]

_EXACT = {"index": ("integer", np.int64), "indices": ("integer", np.int64), "array": ("bool", np.bool_)}
_MAIN = ("q", "query", "state", "out0", "x")


def expected(op: str, arrays: dict[str, np.ndarray], options: dict[str, Any]) -> dict[str, Expected]:
    """What the operation must return on these arguments, with the budget of each element.

    For ``attention`` and ``flash_attention`` alike: ``out``, ``weights`` and ``lse``.
    """
    main = next((arrays[name].dtype.name for name in _MAIN if name in arrays), "float32")
    grids = evaluate(op, arrays, options, Following(compute_dtype(main)))
    dtypes = {"lse": compute_dtype(main)}
    if "bias" in arrays:
        dtypes["dbias"] = arrays["bias"].dtype.name
    return {name: _judged(name, grid, dtypes.get(name, main)) for name, grid in grids.items()}


def _judged(name: str, grid: Grid | str, dtype: str) -> Expected:
    if isinstance(grid, str):
        return Expected("text", (), grid, None)
    if name in _EXACT:
        kind, numpy_dtype = _EXACT[name]
        return Expected(kind, grid.shape, np.array(grid.cells, numpy_dtype).reshape(grid.shape), None)
    values = np.array([float(cell.value) for cell in grid.cells]).reshape(grid.shape)
    errors = np.array([cell.error for cell in grid.cells]).reshape(grid.shape)
    with np.errstate(over="ignore"):
        stored = values.astype(dtype_of(dtype)).astype(np.float64)
    exact = (errors == 0) & (stored == values)
    budget = np.where(exact | ~np.isfinite(stored), 0.0, errors + _last_rounding(np.abs(values) + errors, dtype))
    expected = np.where(np.isinf(stored), stored, values)
    return Expected(dtype, grid.shape, expected, budget, is_lse=name == "lse")


def _last_rounding(sizes: np.ndarray, dtype: str) -> np.ndarray:
    format = format_of(dtype)
    return np.maximum(format.unit * sizes, format.smallest / 2)
