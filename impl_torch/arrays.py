"""Arrays of this package: their kind, their dtypes, and the part of them that is finite."""

from __future__ import annotations

import math
import os
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from functools import lru_cache

import torch

FLOATS = ("float16", "bfloat16", "float32", "float64")
KIND = "torch.Tensor"
CONVERT = "torch.as_tensor(x)"

OWN = threading.local()  # what each thread has for itself while it works: the buffers that are written into again
pool = lru_cache(maxsize=1)(ThreadPoolExecutor)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=pool.cache_clear)  # a child process has none of the threads

LOG2E = 1 / math.log(2)

MATMULS = torch.backends.cuda.matmul, torch.backends.mkldnn.matmul
float32_is_loose = lambda: any(kind.fp32_precision not in ("none", "ieee") for kind in MATMULS)  # noqa: E731
# torch: all that torch.compiler.assume_constant_result does, which imports the compiler, and that takes two seconds.
float32_is_loose._dynamo_marked_constant = True


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


def product(a, b, reuse=None):
    """a @ b, in float32 for float32 whatever is allowed elsewhere: TF32, bfloat16 or autocast (A3).

    The settings are read here, for the gradient too; within torch.compile when the graph is made. With `reuse`, a
    name, a thread of `for_each` writes the product over the last one of that name: new memory for each tile
    would cost more than half as much time as the product itself.
    """

    def own_memory(shape):
        key, kind = (reuse, a.dtype, shape), (reuse, a.dtype)
        if key not in OWN.buffers:
            size = math.prod(shape)
            if kind not in OWN.buffers or OWN.buffers[kind].numel() < size:
                OWN.buffers[kind] = a.new_empty(size)
            OWN.buffers[key] = OWN.buffers[kind][:size].view(shape)
        return OWN.buffers[key]

    if reuse is not None and not torch.compiler.is_compiling() and hasattr(OWN, "buffers"):
        shape = (*a.shape[:-1], b.shape[-1])
        if all(n * m * a.element_size() % 64 == 0 for *_, n, m in (a.shape, b.shape, shape)):
            return torch.bmm(a, b, out=own_memory(shape))
    kind = a.device.type
    if torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind):
        with torch.autocast(kind, enabled=False):
            return product(a, b)
    if a.dtype == torch.float32 and float32_is_loose():
        return product(a.double(), b.double()).float()
    if kind != "cpu" or a.ndim == 2:
        return a @ b

    def padded(x):
        """Rows of zeros are added up to a multiple of 64 bytes, so that each matrix of a batch begins at one.

        MKL rounds otherwise where it begins elsewhere, and an element alone begins elsewhere than in a batch (F3).
        """
        missing = -x.shape[-2] % (64 // x.element_size())
        return torch.nn.functional.pad(x, (0, 0, 0, missing)) if missing else x

    return (padded(a) @ padded(b.mT).mT)[..., : a.shape[-2], : b.shape[-1]]


def shifted_exp(x, shift):
    """exp(x - shift), written over `x`; shift=None is 0.

    torch: exp2 takes half as long as exp, and a sixth where scores are -inf; but beyond the last whole vector its
    last bit is another, which would depend on the rest of the batch (F3).
    """
    x = x if shift is None else x.sub_(shift)
    return x.exp_() if x.shape[-1] % 16 else x.mul_(LOG2E).exp2_()


def row_sums(x):
    """The sum of each row of x (..., n, m) as (..., n, 1)."""
    return x.sum(dim=-1, keepdim=True)


def all_finite(x):
    """Whether every number of x is finite, told from their sum; False also where it overflows or cannot be seen."""
    if torch.compiler.is_compiling():
        return False
    try:
        return math.isfinite(x.sum().item())
    except RuntimeError:  # what vmap, fake tensors and the meta device answer when they are asked for a value
        return False


def where(condition, x, other):
    """`x` where the condition holds and `other` elsewhere, in the dtype of `x`."""
    return torch.where(condition, x, other)


def finite_part(x, alike=False):
    """`x` with 0 wherever it is NaN or infinite, and the boolean array that tells where.

    If alike, it lies in memory as `x` does: MKL rounds otherwise where a matrix begins elsewhere, and what was hidden
    would tell on the last bit (E2).
    """
    finite = x.isfinite()
    part = where(finite, x, 0)
    if alike and not is_traced(x):
        room = x.new_empty(1 + sum((n - 1) * step for n, step in zip(x.shape, x.stride(), strict=True)) + 64)
        begin = (x.data_ptr() - room.data_ptr()) % 64 // x.element_size()
        part = room.as_strided(x.shape, x.stride(), begin).copy_(part)
    return part, ~finite


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


def for_each(work, jobs):
    """work(job) for each job, in threads of which the caller is one; torch gets one thread in each.

    They are as many as ATTENTION_THREADS says, else OMP_NUM_THREADS, else the CPUs of this process. The first error
    is raised. The number of threads of torch is that of the calling thread, and is restored.
    """
    settings = (os.environ.get(name, "") for name in ("ATTENTION_THREADS", "OMP_NUM_THREADS"))
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    threads = next((int(n) for n in settings if n.isdecimal() and int(n) > 0), cpus)
    left, lock = iter(jobs), threading.Lock()

    def take():
        with lock:
            return next(left, None)

    def until_none_is_left():
        before = torch.get_num_threads()
        torch.set_num_threads(1)
        if not float32_is_loose():
            OWN.buffers = {}
        try:
            # torch: inference mode takes less time for each operation. What it made, it alone may write into.
            with torch.inference_mode(), torch.autocast("cpu", enabled=False):
                for job in iter(take, None):
                    work(job)
        finally:
            torch.set_num_threads(before)
            vars(OWN).clear()

    futures = [pool().submit(until_none_is_left) for _ in range(min(threads, len(jobs)) - 1)]
    try:
        until_none_is_left()
    finally:
        others = [future for future in futures if not future.cancel()]
        wait(others)
    for future in others:
        future.result()
