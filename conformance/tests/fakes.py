"""Adapters that deceive, or fail in a way that could pass for an answer. Each has one fault, which its name says."""

from __future__ import annotations

import gc
import inspect
import os
import signal
import time

import numpy as np

from conformance.adapters.numpy import NumPy
from conformance.loading import Case, Check, Expected, load_cases


class Honest(NumPy):
    """The NumPy implementation, by a name of its own."""

    name = "honest"


class ReturnsItsInput(Honest):
    """The values come back as they were."""

    def call(self, op, arrays, options):
        return {"out": arrays["v"], "weights": arrays["q"]}


class Wrapped:
    """An array of a kind of its own."""

    def __init__(self, array):
        self.array = array


class ReturnsNumPy(Honest):
    """Its arrays are `Wrapped`, its outputs are not."""

    def from_numpy(self, array):
        return Wrapped(np.array(array))

    def to_numpy(self, array):
        return array.array

    def is_own(self, value):
        return isinstance(value, Wrapped)

    def call(self, op, arrays, options):
        return super().call(op, {name: getattr(value, "array", value) for name, value in arrays.items()}, options)


class IgnoresOptions(Honest):
    """Options that it does not know are dropped, and it knows none."""

    def call(self, op, arrays, options):
        known = {name: arrays[name] for name in ("q", "k", "v", "mask") if name in arrays}
        return super().call(op, known, {})


class WritesIntoItsInput(Honest):
    """The queries are scaled where they lie."""

    def call(self, op, arrays, options):
        outputs = super().call(op, arrays, options)
        arrays["q"] *= 0.5
        return outputs


class PromisesMore(Honest):
    """It names an output that it does not give."""

    def call(self, op, arrays, options):
        return {"out": super().call(op, arrays, options)["out"]}


class AnswersOtherwiseTheSecondTime(Honest):
    """The second call differs in the last bits."""

    calls = 0

    def call(self, op, arrays, options):
        outputs = super().call(op, arrays, options)
        self.calls += 1
        return {name: np.nextafter(array, np.float32(self.calls % 2 * 9)) for name, array in outputs.items()}


class SwallowsErrors(Honest):
    """Whatever goes wrong is answered with zeros."""

    def call(self, op, arrays, options):
        try:
            return super().call(op, arrays, options)
        except Exception:
            zeros = np.zeros((2, 2), "float32")
            return {"out": zeros, "weights": zeros}


class RefusesEverything(Honest):
    """Nothing can be asked of it."""

    def supports(self, op, dtype, options, arrays):
        return "not today"


class ReadsTheCases(Honest):
    """It looks the answer up in the case files."""

    def call(self, op, arrays, options):
        case = next(case for case in load_cases() if case.op == op and same(case.arrays, arrays))
        return {name: e.values.astype("float32") for name, e in case.expect.items() if name in self.outputs(op)}


def same(given, arrays):
    return given.keys() == arrays.keys() and all(np.array_equal(given[name], arrays[name]) for name in given)


class SearchesItsProcess(Honest):
    """It looks for the answer in every object and every frame of the process that it runs in."""

    def call(self, op, arrays, options):
        objects = gc.get_objects() + [one for frame in inspect.stack() for one in frame.frame.f_locals.values()]
        if any(type(one) in (Expected, Case, Check) for one in objects):
            return {"out": "found"}
        raise RuntimeError("nothing that is expected is in this process")


class Hangs(Honest):
    """There is never an answer."""

    def call(self, op, arrays, options):
        time.sleep(600)


class KillsItsProcess(Honest):
    """It takes the process with it, as a kernel that crashes does."""

    def call(self, op, arrays, options):
        os.kill(os.getpid(), signal.SIGSEGV)


class EndsItsProcess(Honest):
    """It leaves without a word."""

    def call(self, op, arrays, options):
        os._exit(0)


class RaisesAtInfo(Honest):
    """It cannot say what it is."""

    def info(self):
        raise RuntimeError("no version")
