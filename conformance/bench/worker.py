"""One contestant in a process of its own: it makes itself ready once, then runs whenever it is asked to."""

from __future__ import annotations

import multiprocessing
import time
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from conformance.bench.contestants import CONTESTANTS, Problem

TURN = 0.1  # seconds: shorter calls are repeated for as long, since threads and caches that have idled start slowly


class Worker:
    """A contestant at work on one problem. Asked things that it cannot do, it raises RuntimeError with its words."""

    def __init__(self, name: str, problem: Problem) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, name, problem), daemon=True)
        self._process.start()
        theirs.close()
        self.name = name

    def ask(self, what: str, patience: float = 600) -> Any:
        """Have the process do "first", "turn", "memory" or "output" and give what it answers."""
        self._pipe.send(what)
        if not self._pipe.poll(patience):
            raise RuntimeError(f"no answer within {patience:.0f} s")
        try:
            answer = self._pipe.recv()
        except EOFError:
            raise RuntimeError(f"the process ended with exit code {self._process.exitcode}") from None
        if isinstance(answer, str):
            raise RuntimeError(answer)
        return answer

    def close(self) -> None:
        self._process.kill()
        self._process.join()


def _serve(pipe: Connection, name: str, problem: Problem) -> None:
    call = None
    while True:
        what = pipe.recv()
        try:
            if call is None:
                call = CONTESTANTS[name](problem)
            pipe.send(_ANSWERS[what](call))
        except Exception as error:
            pipe.send(f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}")


def seconds_of(call: Any) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def turn(call: Any) -> float:
    """Seconds of a call: of the only one if it is long, else the median of those after the first."""
    first = seconds_of(call)
    if first >= TURN:
        return first
    end = time.perf_counter() + TURN
    times = [seconds_of(call)]
    while time.perf_counter() < end:
        times.append(seconds_of(call))
    return median(times)


def _extra_memory(call: Any) -> float | None:
    """How far the resident memory rises during the call, in MiB; None where the system does not tell."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
        before = _status("VmRSS")
        call()
        return max(0.0, _status("VmHWM") - before)
    except OSError:
        return None


def _status(field: str) -> float:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) / 1024


_ANSWERS = {
    "first": seconds_of,
    "turn": turn,
    "memory": _extra_memory,
    "output": lambda call: np.asarray(call()),
}
