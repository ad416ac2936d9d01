"""Arrays of this package: their kind, their dtypes, and the part of them that is finite."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

FLOATS = ("float16", "bfloat16", "float32", "float64")
KIND = "jax.Array"
CONVERT = "jax.numpy.asarray(x)"


def is_array(x):
    """Whether `x` is an array of this package's own kind; a tracer is one."""
    return isinstance(x, jax.Array)


def dtype_name(x):
    """The name of an array's dtype, such as "float32"."""
    return x.dtype.name


def is_boolean(x):
    """Whether an array holds booleans."""
    return x.dtype == np.bool_


def is_integer(x):
    """Whether an array holds integers, signed or not."""
    return jnp.issubdtype(x.dtype, jnp.integer)


def is_floating(x):
    """Whether an array holds real floating-point numbers, bfloat16 included."""
    return jnp.issubdtype(x.dtype, jnp.floating)


def is_traced(x):
    """Whether the values of `x` cannot be seen now: within jit, vmap, grad and the like."""
    return isinstance(x, jax.core.Tracer)


def device(x):
    """The devices on which an array lies; None for one that may still be moved: traced, or not committed to any."""
    return None if is_traced(x) or not x.committed else ", ".join(sorted(map(str, x.devices())))


def compute_dtype(x):
    """The dtype in which `x` is computed: half types in float32, the others in their own (B2)."""
    return np.dtype("float64") if dtype_name(x) == "float64" else np.dtype("float32")


def operand(x):
    """A real number as jit takes it: plain numbers as floats, so that all kinds share one program. None stays None."""
    return x if x is None or is_array(x) else float(x)


def product(a, b, of_rows=False):
    """a @ b in the full precision of its dtype (A3); what is not finite takes no part in the derivative (E2).

    With `of_rows` it is a @ b.mT, of which XLA would copy the second part; the leading axes have to be the same.
    """
    return (ROWS if of_rows else COLUMNS)(a, b)


COLUMNS = jax.custom_jvp(partial(jnp.matmul, precision=lax.Precision.HIGHEST))
ROWS = jax.custom_jvp(partial(jnp.einsum, "...ij,...kj->...ik", precision=lax.Precision.HIGHEST))
# The barrier has reverse mode transpose the small `a` and its result; XLA would take a transposed copy of all scores.
for times, columns in ((COLUMNS, lambda b: b), (ROWS, lambda b: lax.optimization_barrier(b.mT))):
    # With a NaN in `a` or `b` the usual derivative would reach entries that have no part in it, as 0 * NaN.
    times.defjvps(
        lambda da, _, a, b, times=times.fun: times(da, finite_part(b)[0]),
        lambda db, _, a, b, columns=columns: COLUMNS.fun(finite_part(a)[0], columns(db)),
    )


def shifted_exp(x, shift):
    """exp(x - shift)."""
    return jnp.exp(x - shift)


def row_sums(x):
    """The sum of each row of x (..., n, m) as (..., n, 1)."""
    return x.sum(axis=-1, keepdims=True)


def all_finite(x):
    """Whether every number of x (..., n, m) is finite, told from the sums of its rows; False where one overflows."""
    # jax: by sums, which are fast; the maximum of a row may pass over a NaN on a CPU.
    return jnp.isfinite(row_sums(x)).all()


def where(condition, x, other):
    """`x` where the condition holds and `other` elsewhere, in the dtype of `x`."""
    # jax: jnp.where is a program of its own within each program, which takes a while to trace and to compile.
    x = jnp.asarray(x)  # jax: without jit, an operand is a plain number
    shape = np.broadcast_shapes(np.shape(condition), x.shape, np.shape(other))
    parts = jnp.asarray(condition), x, jnp.asarray(other, x.dtype)
    return lax.select(*(jnp.broadcast_to(part, shape) for part in parts))


def finite_part(x):
    """`x` with 0 wherever it is NaN or infinite, and the boolean array that tells where."""
    finite = jnp.isfinite(x)
    return where(finite, x, 0), ~finite


def guard(x, visible):
    """`x` itself; where derivatives are taken, only those at visible pairs pass (E2). None stays None."""
    return None if x is None else where(visible, x, lax.stop_gradient(x))


def owned(x):
    """An array that changes no more when `x` does; in JAX none ever changes."""
    return x


def same(one, other):
    """Whether two fields of rules are equal; arrays of different shapes are not."""
    if is_array(one) and is_array(other):
        return np.array_equal(one, other)  # in NumPy: within jit, JAX would trace the comparison of known values
    return not is_array(one) and not is_array(other) and one == other


def listed(array):
    """An array as it is printed; one that is traced shows its dtype and shape."""
    return f"{array.dtype.name}{list(array.shape)}" if is_traced(array) else str(array.tolist())


def for_each(work, jobs):
    """What work(job) gives for each job; XLA runs at the same time what needs nothing of each other."""
    return [work(job) for job in jobs]
