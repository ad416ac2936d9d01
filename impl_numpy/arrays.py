"""Arrays of this package: their kind, their dtypes, and the part of them that is finite."""

from __future__ import annotations

import math
import os
import threading
from functools import lru_cache
from queue import SimpleQueue

import numpy as np
import threadpoolctl

FLOATS = ("float16", "bfloat16", "float32", "float64")
KIND = "numpy.ndarray"
CONVERT = "numpy.asarray(x)"

BLAS = threadpoolctl.ThreadpoolController()
LOCK = threading.Lock()  # for what is shared by all calls that are under way: how many they are, and the limits before
UNDER_WAY = []
HELPERS, CALLS = [], SimpleQueue()  # threads that wait for something to call; they are started when first needed
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=HELPERS.clear)  # a child process has none of the threads
OWN = threading.local()  # what each thread has for itself: its buffers
KEPT = 2**23  # bytes of them that it keeps for the next call, since the first touch of new memory takes long
ones = lru_cache(maxsize=4)(np.ones)


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


def product(a, b, reuse=None):
    """a @ b in the full precision of its dtype (A3).

    With `reuse`, a name, it is written into a buffer of this thread, until the next product of that name: new memory
    for each tile would cost more than half as much time as the product itself.
    """
    if reuse is None:
        return a @ b
    shape = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
    size, buffers = math.prod(shape), vars(OWN)
    if reuse not in buffers or buffers[reuse].size < size or buffers[reuse].dtype != a.dtype:
        buffers[reuse] = np.empty(size, a.dtype)
    return np.matmul(a, b, out=buffers[reuse][:size].reshape(shape))


def shifted_exp(x, shift):
    """exp(x - shift), written over x."""
    return np.exp(np.subtract(x, shift, out=x), out=x)


def row_sums(x):
    """The sum of each row of x (..., n, m) as (..., n, 1): a product with ones, which is faster than a sum."""
    return (x @ ones(x.shape[-1], x.dtype))[..., None]


def all_finite(x):
    """Whether every number of x is finite."""
    return bool(np.isfinite(x).all())


def where(condition, x, other):
    """`x` where the condition holds and `other` elsewhere, in the dtype of `x`."""
    return np.where(condition, x, other).astype(x.dtype, copy=False)


def finite_part(x):
    """`x` with 0 wherever it is NaN or infinite, and the boolean array that tells where."""
    finite = np.isfinite(x)
    return where(finite, x, 0), ~finite


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


def for_each(work, jobs):
    """work(job) for each job, in threads of which the caller is one; BLAS gets one thread in each.

    They are as many as ATTENTION_THREADS says, else OMP_NUM_THREADS, else the CPUs of this process. The first error
    is raised. The limits of BLAS are those of the whole process: the last call that is under way
    restores them.
    """
    settings = (os.environ.get(name, "") for name in ("ATTENTION_THREADS", "OMP_NUM_THREADS"))
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    threads = next((int(n) for n in settings if n.isdecimal() and int(n) > 0), cpus)
    left, lock, errors, ended = iter(jobs), threading.Lock(), [], SimpleQueue()

    def take():
        with lock:
            return next(left, None)

    def until_none_is_left():
        for job in iter(take, None):
            try:
                if not errors:
                    work(job)
            except BaseException as error:
                errors.append(error)
            ended.put(job)
        if sum(buffer.nbytes for buffer in vars(OWN).values()) > KEPT:
            vars(OWN).clear()

    def wait_for_calls():
        while True:
            CALLS.get()()

    with LOCK:
        UNDER_WAY.append(UNDER_WAY[0] if UNDER_WAY else BLAS.limit(limits=1, user_api="blas"))
    try:
        for i in range(min(threads, len(jobs)) - 1):
            if i >= len(HELPERS):
                HELPERS.append(threading.Thread(target=wait_for_calls, daemon=True))
                HELPERS[-1].start()
            CALLS.put(until_none_is_left)
        until_none_is_left()
        for _ in jobs:
            ended.get()
    finally:
        with LOCK:
            limits = UNDER_WAY.pop()
            if not UNDER_WAY:
                limits.restore_original_limits()
    if errors:
        raise errors[0]
