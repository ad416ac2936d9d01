"""Arrays of this package: their kind, their dtypes, and the part of them that is finite."""

from __future__ import annotations

import numpy as np

FLOATS = ("float16", "bfloat16", "float32", "float64")
KIND = "numpy.ndarray"
CONVERT = "numpy.asarray(x)"


def is_array(x):
    """Whether `x` is an array of this package's own kind; one that computes by rules of its own is not."""
    return isinstance(x, np.ndarray) and not isinstance(x, (np.ma.MaskedArray, np.matrix))


def dtype_name(x):
    """The name of an array's dtype, such as "float32"; bfloat16 is the dtype of `ml_dtypes`."""
    return x.dtype.name


def is_boolean(x):
    """Whether an array holds booleans."""
    return x.dtype.kind == "b"


def is_integer(x):
    """Whether an array holds integers, signed or not."""
    return x.dtype.kind in "iu"


def is_floating(x):
    """Whether an array holds real floating-point numbers, bfloat16 included."""
    return dtype_name(x) in FLOATS or x.dtype.kind == "f"


def is_traced(x):
    """Whether the values of `x` cannot be seen now; NumPy has no tracing, so never."""
    return False


def device(x):
    """The device on which an array lies."""
    return x.device


def compute_dtype(x):
    """The dtype in which `x` is computed: half types in float32, the others in their own (B2)."""
    return np.dtype("float64") if dtype_name(x) == "float64" else np.dtype("float32")


def operand(x):
    """A real number as it is computed with: a float, whatever kind it was given as. None stays None."""
    return None if x is None else float(x)


def product(a, b):
    """a @ b in the full precision of its dtype (A3)."""
    return a @ b


def finite_part(x):
    """`x` with 0 wherever it is NaN or infinite, and the boolean array that tells where."""
    finite = np.isfinite(x)
    return np.where(finite, x, np.zeros((), x.dtype)), ~finite


def guard(x, visible):
    """`x` itself; where derivatives are taken, only those at visible pairs pass (E2). None stays None."""
    return x


def owned(x):
    """An array that changes no more when `x` does."""
    return np.array(x)


def same(one, other):
    """Whether two fields of rules are equal; arrays of different shapes are not."""
    if is_array(one) and is_array(other):
        return one.shape == other.shape and bool((one == other).all())
    return not is_array(one) and not is_array(other) and one == other


def listed(array):
    """An array as it is printed."""
    return str(array.tolist())
