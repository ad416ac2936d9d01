"""One case, readable: its fact, clauses and flags, the arrays, the mask as a picture, what is expected."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from conformance.contract import CLAUSES, LAWS
from conformance.loading import Case, Expected, checks
from conformance.oracle_rules import mask_array


def overview(cases: Sequence[Case]) -> Table:
    """List cases in a table: the id with the fact below it, and by what it can be found."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("case", overflow="fold", ratio=1)
    for name in ("operation", "dtype", "clauses", "verdict"):
        table.add_column(name, no_wrap=True, style="dim")
    for case in cases:
        words = Text.assemble((case.id, "bold"), "\n", (case.fact, "dim"))
        table.add_row(words, case.op, case.dtype, " ".join(case.clauses), case.verdict)
    return table


def show(case: Case, flags: dict[str, dict], console: Console) -> None:
    """Print all that is known of a case."""
    console.print(f"[bold]{case.id}[/]  [dim]{case.file}.json, {case.verdict}[/]", Text(case.fact), sep="\n")
    for heading, lines in _sections(case, flags):
        if lines:
            console.print(f"\n[bold]{heading}[/]")
            console.print(*lines, sep="\n", highlight=False)


def _sections(case: Case, flags: dict[str, dict]) -> Iterator[tuple[str, list[str]]]:
    yield "Clauses", [f"[cyan]{clause}[/] {escape(CLAUSES[clause])}" for clause in case.clauses]
    yield "Flags: the bugs it catches", [_flag(flag, flags) for flag in case.flags]
    yield "Laws", [f"[cyan]{law}[/] {escape(LAWS[law])}" for law in case.laws]
    yield f"Call: {case.op}", [f"{name} = {escape(repr(value))}" for name, value in case.options.items()]
    yield "Arrays", [_array(name, value) for name, value in case.arrays.items()]
    yield "Instead of which, for the law", [_array(name, value) for name, value in case.instead.items()]
    yield "Mask: # visible, . hidden", [escape(picture) for picture in [mask(case)] if picture]
    yield "Expected", _expected(case)
    yield "Runs as", [f"python -m conformance run -k {check.name}" for check in checks(case)]


def _flag(flag: str, flags: dict[str, dict]) -> str:
    said = flags.get(flag, {})
    return f"[cyan]{flag}[/] {escape(said.get('bug', ''))} [dim]{escape(said.get('effect', ''))}[/]"


def _expected(case: Case) -> list[str]:
    if case.verdict == "invalid":
        return [f"{case.raises} whose message contains {escape(' and '.join(map(repr, case.says)))}"]
    if case.verdict == "either":
        return ["implementation-defined: the result is shown, and never failed"]
    return [_output(name, expected) for name, expected in case.expect.items()]


def _output(name: str, expected: Expected) -> str:
    if expected.dtype == "text":
        return f"[cyan]{name}[/] text\n{escape(str(expected.values))}"
    head = f"[cyan]{name}[/] {expected.dtype} {expected.shape}\n{_numbers(expected.values)}"
    if expected.budget is None:
        return f"{head}\n[dim]compared exactly[/]"
    return f"{head}\n[dim]error budget\n{_numbers(expected.budget)}[/]"


def _array(name: str, value: Any) -> str:
    if not isinstance(value, np.ndarray):
        return f"[cyan]{name}[/] {escape(repr(value.value))} [dim]deliberately no array[/]"
    return f"[cyan]{name}[/] {value.dtype.name} {value.shape}\n{_numbers(value)}"


def _numbers(array: np.ndarray) -> str:
    """Write an array small: four digits, and of a large one only the ends of each axis."""
    wide = array.astype(np.float32) if array.dtype.name == "bfloat16" else array  # NumPy cannot print it
    ends = 3 if array.ndim < 3 else 1
    return escape(np.array2string(wide, precision=4, threshold=48, edgeitems=ends, max_line_width=100))


def mask(case: Case) -> str | None:
    """Draw the case's mask, be it a rule or an array; None where it has none or a wrong one."""
    if case.verdict == "invalid":
        return None
    if spec := case.options.get("mask"):
        T, S = _sizes(case)
        grid = mask_array(case.arrays, {"mask": spec, "T": T, "S": S}, None)["array"]
        return _picture(np.reshape(np.array(grid.cells, bool), grid.shape))
    given = case.arrays.get("mask")
    return _picture(np.atleast_2d(given)) if isinstance(given, np.ndarray) else None


def _picture(mask: np.ndarray) -> str:
    """Draw the mask as it is, not broadcast: one picture for each leading index."""
    drawn = [
        "\n".join("".join(".#"[bool(seen)] for seen in row) for row in mask[at]) for at in np.ndindex(mask.shape[:-2])
    ]
    return "\n\n".join(drawn)


def _sizes(case: Case) -> tuple[int, int]:
    """Give the numbers of query and key positions; a search and its like have one query position a row."""
    if "T" in case.options:
        return case.options["T"], case.options["S"]
    queries, keys = ("q", "k") if "q" in case.arrays else ("query", "keys")
    return case.arrays[queries].shape[-2], case.arrays[keys].shape[-2]
