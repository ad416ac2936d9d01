"""Arrays of this package: their kind, their dtypes, and the part of them that is finite."""

from __future__ import annotations

import torch

FLOATS = ("float16", "bfloat16", "float32", "float64")
KIND = "torch.Tensor"
CONVERT = "torch.as_tensor(x)"

float32_is_loose = torch.compiler.assume_constant_result(
    lambda: any(b.matmul.fp32_precision not in ("none", "ieee") for b in (torch.backends.cuda, torch.backends.mkldnn))
)


def is_array(x):
    """Whether `x` is an array of this package's own kind."""
    return isinstance(x, torch.Tensor)


def dtype_name(x):
    """The name of an array's dtype, such as "float32"."""
    return str(x.dtype).removeprefix("torch.")


def is_boolean(x):
    """Whether an array holds booleans."""
    return x.dtype == torch.bool


def is_integer(x):
    """Whether an array holds integers, signed or not."""
    return not (x.is_floating_point() or x.is_complex() or is_boolean(x))


def is_floating(x):
    """Whether an array holds real floating-point numbers, bfloat16 included."""
    return x.is_floating_point()


def is_traced(x):
    """Whether the values of `x` cannot be seen now: in torch.compile, within torch.func.vmap, on the meta device."""
    if not is_array(x):
        return False
    if torch.compiler.is_compiling() or x.is_meta:
        return True
    try:
        x[(slice(1),) * x.ndim].tolist()
    except RuntimeError:  # what vmap and fake tensors answer when they are asked for a value
        return True
    return False


def device(x):
    """The device on which an array lies."""
    return x.device


def compute_dtype(x):
    """The dtype in which `x` is computed: half types in float32, the others in their own (B2)."""
    return torch.float64 if x.dtype == torch.float64 else torch.float32


def operand(x):
    """A real number as it is computed with: a float, or the tensor itself, for its gradient. None stays None."""
    return x if x is None or is_array(x) else float(x)


def product(a, b):
    """a @ b, in float32 for float32 whatever is allowed elsewhere: TF32, bfloat16 or autocast (A3).

    The settings are read here, for the gradient too; within torch.compile when the graph is made.
    """
    kind = a.device.type
    if torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind):
        with torch.autocast(kind, enabled=False):
            return product(a, b)
    if a.dtype == torch.float32 and float32_is_loose():
        return product(a.double(), b.double()).float()
    if kind != "cpu" or a.ndim == 2:
        return a @ b

    def aligned(x):
        """Rows of zeros are added up to a multiple of 64 bytes, so that each matrix of a batch begins at one.

        MKL rounds otherwise where it begins elsewhere, and an element alone begins elsewhere than in a batch (F3).
        """
        missing = -x.shape[-2] % (64 // x.element_size())
        return torch.nn.functional.pad(x, (0, 0, 0, missing)) if missing else x

    return (aligned(a) @ aligned(b.mT).mT)[..., : a.shape[-2], : b.shape[-1]]


def finite_part(x):
    """`x` with 0 wherever it is NaN or infinite, and the boolean array that tells where."""
    finite = x.isfinite()
    return torch.where(finite, x, 0), ~finite


def guard(x, visible):
    """`x` itself; where derivatives are taken, only those at visible pairs pass (E2). None stays None."""
    return torch.where(visible, x, x.detach()) if is_array(x) else x


def owned(x):
    """An array that changes no more when `x` does."""
    return x.clone()


def same(one, other):
    """Whether two fields of rules are equal; arrays of different shapes are not."""
    if is_array(one) and is_array(other):
        return one.shape == other.shape and one.device == other.device and bool((one == other).all())
    return not is_array(one) and not is_array(other) and one == other


def listed(array):
    """An array as it is printed; one whose values cannot be seen shows its dtype and shape."""
    return f"{dtype_name(array)}{list(array.shape)}" if is_traced(array) else str(array.tolist())
