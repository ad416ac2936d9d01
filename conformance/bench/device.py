"""`python -m conformance.bench.device`: all that needs an accelerator, as one script of less than ten minutes.

First forward and backward in float32 and bfloat16, each framework's tiles against its own fused kernel; then every
case, dense and in tiles, with the time that is left. `--device cpu` tries the script itself where there is none.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from importlib.util import find_spec
from itertools import product
from multiprocessing import get_context
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from conformance.bench.contestants import CONTESTANTS, Problem
from conformance.bench.measuring import Measured, sampled_rows, wrong_rows
from conformance.bench.worker import seconds_of, turn

LENGTHS = (1024, 2048, 4096, 8192, 16384)
CONTESTS = {"torch": ("sdpa", "torch"), "jax": ("jax-nn", "jax")}
BACKENDS = {"torch": ("torch:accelerator", "torch:accelerator-flash"), "jax": ("jax", "jax:flash")}
ROUNDS = 5
console = Console()


def main(
    device: Annotated[str, typer.Option(help="Where the frameworks compute: cuda, or cpu to try the script.")] = "cuda",
    longest: Annotated[int, typer.Option(min=1, help="Leave out longer sequences.")] = LENGTHS[-1],
    minutes: Annotated[float, typer.Option(min=0.1, help="How long all of it may take.")] = 9.0,
) -> None:
    """Time forward and backward on the accelerator, then judge every case there."""
    end = time.monotonic() + 60 * minutes
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"  # several processes share the memory of the device
    frameworks = [name for name in CONTESTS if find_spec(name)]
    for name in frameworks:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            where = pool.submit(place, name, device).result()
            console.print(f"{name} {version(name)} on {where}")
            console.print(table(pool.submit(times, name, device, longest, end).result()))
    raise typer.Exit(cases(frameworks, device, end))


def place(framework: str, device: str) -> str:
    """The name of the device; raises SystemExit where the framework does not see it."""
    if framework == "jax":
        import jax

        found = jax.devices("cpu" if device == "cpu" else None)[0]
        if (found.platform == "cpu") != (device == "cpu"):
            raise SystemExit("JAX finds no accelerator on this machine; --device cpu tries the script itself")
        return found.device_kind
    import torch

    if device != "cpu" and not torch.accelerator.is_available():
        raise SystemExit("PyTorch finds no accelerator on this machine; --device cpu tries the script itself")
    return torch.cuda.get_device_name() if device == "cuda" else device


# --- time ------------------------------------------------------------------------------------------------


def problems(device: str, longest: int) -> Iterator[Problem]:
    """What is timed: causal, 16 heads of 64 features."""
    lengths = [T for T in LENGTHS if T <= longest] or [longest]
    for dtype, backward, T in product(("float32", "bfloat16"), (False, True), lengths):
        yield Problem(1, 16, T, T, 64, causal=True, backward=backward, dtype=dtype, device=device)


def times(framework: str, device: str, longest: int, end: float) -> list[Measured]:
    """The contestants of one framework on each problem, in turns, until half of the time has passed."""
    half = time.monotonic() + (end - time.monotonic()) / 2
    results = []
    for problem in problems(device, longest):
        if time.monotonic() > half:
            results += [Measured(name, problem, trouble="not timed, for lack of time") for name in CONTESTS[framework]]
            continue
        results += in_one_process(problem, CONTESTS[framework])
    return results


def in_one_process(problem: Problem, names: tuple[str, ...]) -> list[Measured]:
    """The contestants on one problem; the first is what the other is compared with."""
    results = {name: Measured(name, problem) for name in names}
    calls, wanted = {}, sampled_rows(problem)
    for name, result in results.items():
        try:
            call = CONTESTANTS[name](problem)
            result.first = seconds_of(call)
            # A kernel with weights of half precision is timed all the same: it is what people use.
            result.trouble = "beyond its error budget" if wrong_rows(wanted, to_numpy(call())) else None
            calls[name] = call
        except Exception as error:  # out of memory, or a kernel that does not take this problem
            result.trouble = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
    for name in [*calls] * ROUNDS:
        results[name].seconds.append(turn(calls[name]))
    first = results[names[0]].seconds
    for result in results.values():
        result.ratios = [a / b for a, b in zip(result.seconds, first, strict=False)]
    return list(results.values())


def to_numpy(out: object) -> np.ndarray:
    """An output of either framework, wherever it lies."""
    if hasattr(out, "cpu"):
        from conformance.adapters.torch import Tensors

        return Tensors().to_numpy(out)
    return np.asarray(out)


def table(results: list[Measured]) -> Table:
    """A line for each problem and contestant."""
    shown = Table(box=None, pad_edge=False)
    for heading in ("T", "dtype", "", "", "ms", "ratio", "TFLOP/s", "first call"):
        shown.add_column(heading, justify="right", no_wrap=True)
    shown.add_column()
    for result in results:
        problem = result.problem
        kind = "fwd+bwd" if problem.backward else "fwd"
        cells = [""] * 4
        if result.seconds:
            rate = problem.flops / result.time / 1e12
            ratio = f"{result.ratio:.2f}" if result.ratios else ""
            cells = [f"{result.time * 1e3:.2f}", ratio, f"{rate:.1f}", f"{result.first:.2f} s"]
        shown.add_row(str(problem.T), problem.dtype, kind, result.name, *cells, result.trouble or "")
    return shown


# --- right ------------------------------------------------------------------------------------------------


def cases(frameworks: list[str], device: str, end: float) -> int:
    """Judge every case on the device, within the time that is left; gives the exit code."""
    found = [backend for name in frameworks for backend in BACKENDS[name]]
    backends = [backend.replace(":accelerator-", ":").replace(":accelerator", "") for backend in found]
    asked = [part for name in (backends if device == "cpu" else found) for part in ("--backend", name)]
    command = [sys.executable, "-m", "conformance", "run", "--jobs", str(os.cpu_count()), *asked]
    judge = subprocess.Popen(command)
    try:
        return judge.wait(max(1.0, end - time.monotonic()))
    except subprocess.TimeoutExpired:
        judge.send_signal(signal.SIGINT)
        judge.wait()
        console.print("The cases were not judged to the end, for lack of time: give it more with --minutes.")
        return 1


if __name__ == "__main__":
    typer.run(main)
