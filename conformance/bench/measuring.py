"""Measure contestants side by side: interleaved rounds, ratios pair by pair, medians, and outputs that agree."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from statistics import median

import numpy as np

from conformance.bench.contestants import GEMM_SIZE, Problem
from conformance.bench.worker import Worker
from conformance.budget import expected
from conformance.compare import compare

PAUSE = 0.02  # threads that have just worked spin for a while, in the way of whoever runs next
LONGEST = 2.0  # seconds of measuring for each contestant and problem, beyond the least number of rounds


@dataclass
class Measured:
    """One contestant on one problem. Times in seconds, memory in MiB; `trouble` says why there is nothing else."""

    name: str
    problem: Problem
    first: float = 0.0
    seconds: list[float] = field(default_factory=list)
    ratios: list[float] = field(default_factory=list)
    memory: float | None = None
    gemm_share: float = 0.0
    trouble: str | None = None

    @property
    def time(self) -> float:
        return median(self.seconds)

    @property
    def ratio(self) -> float:
        return median(self.ratios)


def measure(
    problem: Problem, names: list[str], *, rounds: int = 7, tick: Callable[[str], None] = lambda _: None
) -> list[Measured]:
    """Measure the contestants on one problem; the first of them is the one that the others are compared with.

    A contestant that cannot be called, or whose output is not within the error budget of the oracle, is given with
    its trouble and without times.
    """
    with ExitStack() as stack:
        workers = {name: stack.enter_context(closing(Worker(name, problem))) for name in (*names, "gemm")}
        results = {name: Measured(name, problem) for name in workers}
        wanted = sampled_rows(problem)
        for name, worker in workers.items():
            tick(f"{problem.name}: {name} starts")
            _start(worker, results[name], None if name == "gemm" else wanted)
        _take_turns(problem, workers, results, rounds, tick)
    machine = results.pop("gemm")
    for result in results.values():
        if result.seconds:
            rate = 2 * GEMM_SIZE**3 / machine.time
            result.gemm_share = problem.flops / result.time / rate
    return list(results.values())


def _start(worker: Worker, result: Measured, wanted: list | None) -> None:
    """The first call, which compiles; then what it gives is judged, and its memory is measured."""
    try:
        result.first = worker.ask("first")
        if wanted is not None:
            result.trouble = wrong_rows(wanted, worker.ask("output"))
            result.memory = worker.ask("memory")
        worker.ask("turn")
    except RuntimeError as error:
        result.trouble = str(error)


def _take_turns(
    problem: Problem, workers: dict[str, Worker], results: dict[str, Measured], rounds: int, tick: Callable[[str], None]
) -> None:
    able = [name for name in workers if results[name].trouble is None]
    start = time.monotonic()
    taken = 0
    while taken < rounds or (time.monotonic() - start < LONGEST * len(able) and taken < 5 * rounds):
        taken += 1
        tick(f"{problem.name}: round {taken}")
        for name in able:
            time.sleep(PAUSE)
            results[name].seconds.append(workers[name].ask("turn"))
    first = results[next(iter(workers))]
    for name in able:
        if first.seconds:
            results[name].ratios = [a / b for a, b in zip(results[name].seconds, first.seconds, strict=True)]


# --- right before fast -----------------------------------------------------------------------------------


def sampled_rows(problem: Problem) -> list[tuple[tuple[int, int, int], dict]]:
    """A few rows with what the oracle expects of them; it is a loop over scalars, too slow for all of them."""
    q, k, v = problem.arrays()
    places = dict.fromkeys([(0, 0, problem.T // 3), (problem.B - 1, problem.H - 1, problem.T - 1)])
    return [(place, _row(problem, q, k, v, *place)) for place in places]


def _row(problem: Problem, q: np.ndarray, k: np.ndarray, v: np.ndarray, b: int, h: int, row: int) -> dict:
    seen = problem.seen(row)
    arrays = {"q": q[b, h, row : row + 1], "k": k[b, h, seen.start : seen.stop], "v": v[b, h, seen.start : seen.stop]}
    return expected("attention", arrays, {})["out"]


def wrong_rows(wanted: list, out: np.ndarray) -> str | None:
    """Why the output is refused, or None: nobody is compared by the speed of a wrong answer."""
    for (b, h, row), row_wanted in wanted:
        verdict = compare(row_wanted, out[b, h, row : row + 1])
        if not verdict.ok:
            return f"row {row} of head {h} is wrong: {verdict.message}"
    return None


def in_turn(
    problems: list[Problem], names_of: Callable[[Problem], list[str]], **options: object
) -> Iterator[list[Measured]]:
    """Measure one problem after the other."""
    for problem in problems:
        yield measure(problem, names_of(problem), **options)
