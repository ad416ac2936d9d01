"""Small backends for the judge's own tests. They double the array `x`, each with a fault of its own."""

from __future__ import annotations

import os
import signal
import time

import numpy as np

from conformance.loading import Case, Check, Expected

DOUBLING, TOUCHY = "conformance.tests.backends:Doubling", "conformance.tests.backends:Touchy"  # their names
CRASHES, EXITS, HANGS, RAISES = -1.0, -2.0, -3.0, -4.0


class Doubling:
    """A backend without a fault: `x` (N,) comes back as 2 x."""

    name = "doubling"
    explains = True

    def info(self):
        return {"versions": {"doubling": "1.2"}, "device": "cpu"}

    def supports(self, op, dtype, options, arrays):
        return "it has no float16" if dtype == "float16" else None

    def outputs(self, op):
        return ("x",)

    def from_numpy(self, array):
        return array.copy()

    def to_numpy(self, array):
        return array.copy()

    def is_own(self, value):
        return isinstance(value, np.ndarray)

    def call(self, op, arrays, options):
        return {"x": self.double(**arrays)}

    def double(self, x):
        return 2 * x


class Touchy(Doubling):
    """The first number of `x` says what goes wrong."""

    name = "touchy"

    def double(self, x):
        if x[0] == CRASHES:
            os.kill(os.getpid(), signal.SIGFPE)
        if x[0] == EXITS:
            os._exit(3)
        if x[0] == HANGS:
            time.sleep(600)
        if x[0] == RAISES:
            raise ValueError("x must be positive\nsecond line")
        return 2 * x


class Unloadable(Doubling):
    """It ends its process before it has started."""

    def __init__(self):
        os._exit(7)


def check(x, name="doubled", **changes):
    """Make the check that `x` is doubled; `changes` are fields of the case."""
    x = np.asarray(x, changes.pop("dtype", "float32"))
    expected = Expected(x.dtype.name, x.shape, 2.0 * x, np.full(x.shape, 0.01))
    fields = {
        "id": name,
        "file": "doubling",
        "fact": "x is doubled",
        "clauses": ("A2",),
        "flags": (),
        "op": "repeat_kv",
        "dtype": x.dtype.name,
        "arrays": {"x": x},
        "options": {},
        "laws": (),
        "verdict": "valid",
        "expect": {"x": expected},
    }
    case = Case(**fields | changes)
    return Check(name, case, case.op, case.options, tuple(case.expect))
