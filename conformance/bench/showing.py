"""What the benchmark shows: a table for each problem, lines of JSON, and two plots."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from conformance.bench.measuring import Measured


def table(results: list[Measured]) -> Table:
    """One problem as a table, with the first contestant as the measure of the others."""
    first = results[0]
    shown = Table(title=first.problem.name, title_justify="left", box=None, pad_edge=False)
    shown.add_column("", no_wrap=True)
    for heading in ("time", f"x {first.name}", "range", "of GEMM", "memory", "first call"):
        shown.add_column(heading, justify="right", no_wrap=True)
    for result in results:
        shown.add_row(result.name, *_cells(result))
    return shown


def _cells(result: Measured) -> list[str]:
    if result.trouble is not None:
        return ["", f"[dim]{result.trouble}"]
    low, high = np.percentile(result.ratios, [25, 75])
    memory = "" if result.memory is None else f"{result.memory:.0f} MiB"
    ratio = f"{result.ratio:.2f}"
    cells = [f"{result.time * 1e3:.2f} ms", ratio, f"{low:.2f}-{high:.2f}", f"{result.gemm_share:.0%}", memory]
    return [*cells, f"{result.first:.2f} s"]


def record(result: Measured) -> str:
    """One result as a line of JSON; times in seconds, memory in MiB."""
    problem = result.problem
    fields: dict[str, Any] = {
        "name": result.name,
        **{key: getattr(problem, key) for key in ("B", "H", "T", "S", "D", "causal", "backward", "window")},
        "trouble": result.trouble,
        "first": result.first,
        "memory": result.memory,
    }
    if result.seconds:
        fields.update(time=result.time, ratio=result.ratio, gemm_share=result.gemm_share, seconds=result.seconds)
    return json.dumps(fields)


def plots(results: list[Measured], folder: Path) -> list[Path]:
    """Time against T on logarithmic axes, with the slope, and memory against T, as SVG files in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    return [
        _plot(results, folder / "time.svg", "time", "seconds"),
        _plot(results, folder / "memory.svg", "memory", "MiB above inputs"),
    ]


def _plot(results: list[Measured], path: Path, what: str, unit: str) -> Path:
    import matplotlib

    matplotlib.rcParams["svg.hashsalt"] = "attention-three-ways"
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    for marker, name in zip("osD^vP*X<>", dict.fromkeys(result.name for result in results), strict=False):
        points = sorted((r.problem.T, getattr(r, what)) for r in results if r.name == name and r.seconds)
        points = [(T, y) for T, y in points if y]
        if points:
            T, y = zip(*points, strict=True)
            axes.loglog(T, y, marker=marker, markersize=4, label=f"{name}{_slope(T, y)}")
    axes.set(xlabel="T = S, positions", ylabel=unit)
    axes.grid(which="major", alpha=0.3)
    axes.legend(fontsize="small", frameon=False)
    figure.savefig(path, metadata={"Date": None})
    return path


def _slope(T: tuple[int, ...], y: tuple[float, ...]) -> str:
    """The exponent of T between the last two points: 2 is quadratic, 1 linear."""
    if len(T) < 2:
        return ""
    return f", ~T^{np.log(y[-1] / y[-2]) / np.log(T[-1] / T[-2]):.1f}"
