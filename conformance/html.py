"""The report as one HTML file that needs nothing else: no network, pictures inline, light and dark."""

from __future__ import annotations

import platform
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from matplotlib import colormaps
from matplotlib.colors import to_hex

from conformance import gallery, pictures, report, tally
from conformance.contract import CLAUSES
from conformance.loading import Case, digest
from conformance.results import Result

CELLS_PER_LINE = 40


def page(
    results: Sequence[Result],
    cases: Sequence[Case],
    flags: dict[str, dict],
    problems: Sequence[str],
    infos: dict[str, dict],
) -> str:
    """Give the page, the same text for the same results on the same machine.

    `flags` are those of loading.load_flags, `problems` what the ledgers say, and `infos` maps the name of each
    backend to what its info() says.
    """
    environment = Environment(
        loader=PackageLoader("conformance"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["ratio"] = report.ratio
    environment.globals.update(report=report, flags=flags, clauses=CLAUSES)
    by_id = {case.id: case for case in cases}
    return environment.get_template("report.html").render(
        results=results,
        problems=problems,
        backends=list(dict.fromkeys(result.backend for result in results)),
        matrix=tally.matrix(results),
        strips=strips(results, by_id),
        scale=[to_hex(colour) for colour in colormaps["cividis"](np.linspace(0, 1, 9))],
        distribution=distribution(results),
        agreement=tally.agreement(results, cases),
        masks=gallery.masks(),
        lesson=gallery.lesson(),
        failures=[(result, by_id[result.case]) for result in tally.wrong(results)],
        reasons={outcome: tally.reasons(results, outcome) for outcome in ("known", "either", "unsupported")},
        infos=infos,
        machine=f"Python {platform.python_version()}, {platform.system()} {platform.machine()}",
        cases=len(cases),
        digest=digest(list(cases)),
    )


def distribution(results: Sequence[Result]) -> str:
    """Draw how error / budget is spread on each backend."""
    ratios: dict[str, list[float]] = defaultdict(list)
    for result in results:
        if result.outcome in ("pass", "differs") and (ratio := tally.ratio_of(result)):
            ratios[result.backend].append(ratio)
    found = [
        f"{backend}: {len(values)} checks, median {report.ratio(float(np.median(values)))}, "
        f"largest {report.ratio(max(values))}"
        for backend, values in ratios.items()
    ]
    alt = f"Histograms of error / budget where the error is not 0. {'; '.join(found)}."
    return pictures.distribution_picture(ratios, alt) if ratios else ""


def strips(results: Sequence[Result], cases: dict[str, Case]) -> list[dict[str, Any]]:
    """Give for each case file its heat map: lines of at most CELLS_PER_LINE checks, a row for each backend."""
    files: dict[str, dict[str, dict[str, Result]]] = defaultdict(lambda: defaultdict(dict))
    for result in results:
        files[cases[result.case].file][result.check][result.backend] = result
    return [_strip(file, checks) for file, checks in files.items()]


def _strip(file: str, checks: dict[str, dict[str, Result]]) -> dict[str, Any]:
    every = [result for row in checks.values() for result in row.values()]
    return {
        "file": file,
        "checks": len(checks),
        "backends": list(dict.fromkeys(result.backend for result in every)),
        "lines": list(_lines([{name: _square(result) for name, result in row.items()} for row in checks.values()])),
        "alt": f"{file}: {_finding(every)}",
    }


def _lines(squares: list[dict]) -> Any:
    rest = iter(squares)
    while line := list(islice(rest, CELLS_PER_LINE)):
        yield line


def _square(result: Result) -> dict[str, str]:
    """Give the fill and the title of one square; a square without a fill is styled by its outcome."""
    ratio = tally.ratio_of(result)
    measured = result.outcome == "pass" and ratio is not None
    fill = to_hex(colormaps["cividis"](min(ratio, 1.0))) if measured else None
    title = f"{result.backend} · {result.check} · {result.outcome} {report.ratio(ratio)}".rstrip()
    return {"fill": fill, "outcome": result.outcome, "title": title}


def _finding(results: Sequence[Result]) -> str:
    """Say in words what a heat map shows: the counts and the largest error within its budget."""
    counts = Counter(result.outcome for result in results)
    said = ", ".join(f"{counts[outcome]} {outcome}" for outcome in tally.GRAVEST_FIRST if counts[outcome])
    passed = [result for result in results if result.outcome == "pass" and tally.ratio_of(result)]
    worst = max(passed, key=tally.ratio_of, default=None)
    if worst is None:
        return f"{said}."
    at = f"{report.ratio(tally.ratio_of(worst))} on {worst.backend} in {worst.check}"
    return f"{said}; the largest error / budget that passed is {at}."
