"""`python -m conformance bench`: what is measured, and how it is shown."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from conformance.bench.contestants import (
    CONTESTANTS,
    IMPLEMENTATIONS,
    IN_TILES,
    PEERS,
    WITH_WINDOW,
    WITHOUT_GRADIENT,
    Problem,
)
from conformance.bench.measuring import Measured, in_turn
from conformance.bench.showing import plots, record, table

STANDARD = [
    *(Problem(*shape, causal) for shape in ((1, 8, 4096, 4096, 64), (1, 8, 1024, 1024, 64), (1, 8, 2048, 2048, 128))
      for causal in (False, True)),
    Problem(1, 32, 1, 16384, 64),
    Problem(8, 8, 128, 128, 64),
    Problem(1, 8, 2048, 2048, 64, causal=True, backward=True),
]  # fmt: skip
GROWING = [Problem(1, 1, T, T, 64, causal=True) for T in (1024, 2048, 4096, 8192, 16384, 32768)]
LONGEST_DENSE = 16384  # T x S numbers of float32 are 1 GiB there
FRAMEWORK = {"numpy": "numpy", "jax": "jax"}


def bench(
    shape: Annotated[list[str] | None, typer.Option(help="B,H,T,S,D; may be given several times.")] = None,
    causal: Annotated[bool, typer.Option(help="With --shape: a causal mask.")] = False,
    backward: Annotated[bool, typer.Option(help="With --shape: forward and backward.")] = False,
    window: Annotated[
        int | None,
        typer.Option(min=0, help="With --shape: each query sees so many keys before its own, and no others."),
    ] = None,
    growing: Annotated[
        bool, typer.Option(help="One head, causal, T from 1024 to 32768: what the plots are for.")
    ] = False,
    only: Annotated[
        list[str] | None, typer.Option(help="Contestants; the first is what others are compared with.")
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="The least number of rounds.")] = 7,
    json: Annotated[Path | None, typer.Option(help="Write the results here, one line of JSON each.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Write time.svg and memory.svg into this folder.")] = None,
) -> None:
    """Measure speed and memory side by side: the implementations, PyTorch's SDPA, jax.nn and textbook versions."""
    problems = [_problem(text, causal, backward, window) for text in shape or []] or (GROWING if growing else STANDARD)
    names = _names(only)
    console = Console()
    results: list[Measured] = []
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=None)
        options = {"rounds": rounds, "tick": lambda text: progress.update(task, description=text)}
        for of_problem in in_turn(problems, lambda problem: _able(names, problem), **options):
            results += of_problem
            console.print(table(of_problem), "")
    if json is not None:
        json.write_text("".join(record(result) + "\n" for result in results))
    for path in plots(results, plot) if plot is not None else []:
        console.print(f"plot: {path}")


def _problem(text: str, causal: bool, backward: bool, window: int | None) -> Problem:
    try:
        sizes = [int(size) for size in text.split(",")]
    except ValueError:
        sizes = []
    if len(sizes) != 5 or min(sizes) < 1:
        raise typer.BadParameter(f"{text!r} is no shape; give five numbers B,H,T,S,D, such as 1,8,1024,1024,64")
    return Problem(*sizes, causal, backward, window)


def _names(only: list[str] | None) -> list[str]:
    known = [name for name in CONTESTANTS if name != "gemm"]
    for name in only or []:
        if name not in known:
            raise typer.BadParameter(f"{name!r} takes no part; known are {', '.join(known)}")
    return only or [name for name in ("sdpa", *IMPLEMENTATIONS, *PEERS[1:]) if _installed(name)]


def _installed(name: str) -> bool:
    return find_spec(FRAMEWORK.get(name.split("-")[0], "torch")) is not None


def _able(names: list[str], problem: Problem) -> list[str]:
    """The contestants that can work on the problem within the memory of a usual machine."""
    able = [name for name in names if not (problem.backward and name in WITHOUT_GRADIENT)]
    if problem.window is not None:
        return [name for name in able if name in WITH_WINDOW]
    return [name for name in able if problem.T <= LONGEST_DENSE or name in IN_TILES]
