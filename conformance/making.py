"""The only writer of the case files: facts become cases, with the oracle's values and their error budgets.

``python -m conformance.making`` writes cases/*.json and cases/data/*.npz; ``--check`` only compares, byte for byte
(the members of an npz file, since its compression is zlib's affair).
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import pkgutil
import sys
from collections.abc import Iterable
from dataclasses import replace
from decimal import ROUND_HALF_EVEN, ROUND_UP, Context
from pathlib import Path
from typing import Any

import numpy as np

from conformance import budget, facts, policing
from conformance.encoding import encode, encode_numbers, members, write_npz
from conformance.facts import Fact, Given
from conformance.loading import CASES, FORMAT, Expected, load_flags

WIDTH = 110
# Float32 results have 8 digits: with more than 10, cases would only record how exp is rounded on one machine.
VALUE = Context(prec=10, rounding=ROUND_HALF_EVEN)
BUDGET = Context(prec=3, rounding=ROUND_UP)


def main(arguments: list[str] | None = None) -> int:
    """Write or compare the case files; the exit status is 1 when a fact is at fault or a file differs."""
    parser = argparse.ArgumentParser(prog="python -m conformance.making", description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare with the files and write nothing")
    check = parser.parse_args(arguments).check
    stated = stated_facts()
    if faults := policing.faults(stated, load_flags()):
        print(*faults, sep="\n", file=sys.stderr)
        return 1
    files = {name: content for stem, some in stated.items() for name, content in make(stem, some).items()}
    return compare(files) if check else write(files)


def stated_facts() -> dict[str, list[Fact]]:
    """All facts, by the name of their module in conformance.facts."""
    names = sorted(module.name for module in pkgutil.iter_modules(facts.__path__))
    return {name: list(_module(name).facts()) for name in names}


def make(stem: str, some: Iterable[Fact]) -> dict[str, bytes]:
    """The files of one topic: the JSON text and, if any array is long, the npz file; names are relative to cases/."""
    store: dict[str, np.ndarray] = {}
    about = _module(stem).__doc__.splitlines()[0]
    content = {"format": FORMAT, "about": about, "cases": [record(fact, store) for fact in some]}
    files = {f"{stem}.json": (layout(content) + "\n").encode()}
    return files | ({f"data/{stem}.npz": write_npz(store)} if store else {})


def record(fact: Fact, store: dict[str, np.ndarray]) -> dict[str, Any]:
    """The fact as it stands in a case file; long arrays go to the store.

    Raises ValueError when the oracle does not agree with the values that were found on paper.
    """
    common = {
        "id": fact.id,
        "fact": fact.fact,
        "clauses": list(fact.clauses),
        "flags": list(fact.flags),
        "op": fact.op,
        "arrays": {name: _argument(value, store) for name, value in fact.arrays.items()},
        "options": {name: _option(value) for name, value in fact.options.items()},
        "laws": list(fact.laws),
    }
    if fact.instead:
        common["instead"] = {name: encode(array, store) for name, array in fact.instead.items()}
    if fact.either:
        return common | {"verdict": "either"}
    if fact.raises:
        return common | {"verdict": "invalid", "raises": fact.raises, "says": list(fact.says)}
    expect = {name: shortened(output) for name, output in budget.expected(fact.op, fact.arrays, fact.options).items()}
    policing.agree(fact, expect)
    return common | {"verdict": "valid", "expect": {name: _output(value, store) for name, value in expect.items()}}


def shortened(output: Expected) -> Expected:
    """The output with budgets of three digits, rounded up, and values of ten unless float64 is judged."""
    if output.budget is None:
        return output
    values = output.values if output.dtype == "float64" else _rounded(output.values, VALUE, where=output.budget > 0)
    return replace(output, values=values, budget=_rounded(output.budget, BUDGET, where=output.budget > 0))


def layout(value: Any, indent: str = "") -> str:
    """JSON text with a list of numbers on one line, and whatever else does not fit on a line one item a line."""
    line = json.dumps(value, ensure_ascii=False, allow_nan=False)
    if len(indent) + len(line) <= WIDTH or not isinstance(value, dict | list):
        return line
    if isinstance(value, list) and not any(isinstance(item, dict | list) for item in value):
        return line
    inner = indent + "  "
    if isinstance(value, dict):
        items = [f"{json.dumps(name)}: {layout(item, inner)}" for name, item in value.items()]
        opened, closed = "{}"
    else:
        items = [layout(item, inner) for item in value]
        opened, closed = "[]"
    return f"{opened}\n{inner}" + f",\n{inner}".join(items) + f"\n{indent}{closed}"


def compare(files: dict[str, bytes], folder: Path = CASES) -> int:
    """Name the files that differ from what the facts give; 1 if there are any."""
    stale = sorted(name for name in files.keys() | set(_present(folder)) if not _is_current(name, files, folder))
    for name in stale:
        what = "differs" if name in files and (folder / name).exists() else "is missing or has no facts"
        print(f"cases/{name} {what}; run python -m conformance.making", file=sys.stderr)
    return int(bool(stale))


def write(files: dict[str, bytes], folder: Path = CASES) -> int:
    """Write the files and remove those that no facts give any more."""
    for name in set(_present(folder)) - set(files):
        (folder / name).unlink()
    for name, content in files.items():
        if not _is_current(name, files, folder):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
    print(f"wrote {len(files)} files, {sum(map(len, files.values())):,} bytes")
    return 0


def _module(stem: str) -> Any:
    return importlib.import_module(f"conformance.facts.{stem}")


def _present(folder: Path) -> list[str]:
    paths = [path for pattern in ("*.json", "data/*.npz") for path in folder.glob(pattern)]
    return [path.relative_to(folder).as_posix() for path in paths if path.name != "flags.json"]


def _is_current(name: str, files: dict[str, bytes], folder: Path) -> bool:
    if name not in files or not (folder / name).exists():
        return False
    made, found = files[name], (folder / name).read_bytes()
    return members(made) == members(found) if name.endswith(".npz") else made == found


def _argument(value: np.ndarray | Given, store: dict[str, np.ndarray]) -> dict[str, Any]:
    return {"python": value.value} if isinstance(value, Given) else encode(value, store)


def _option(value: Any) -> Any:
    return {"number": str(value)} if isinstance(value, float) and not math.isfinite(value) else value


def _output(output: Expected, store: dict[str, np.ndarray]) -> dict[str, Any]:
    if output.dtype == "text":
        return {"dtype": "text", "lines": output.values.split("\n")}
    numbers = {"dtype": output.dtype, "shape": list(output.shape), "values": encode_numbers(output.values, store)}
    return numbers if output.budget is None else numbers | {"budget": encode_numbers(output.budget, store)}


def _rounded(numbers: np.ndarray, context: Context, where: np.ndarray) -> np.ndarray:
    rounded = [
        float(context.create_decimal_from_float(number)) if inexact else number
        for number, inexact in zip(numbers.ravel().tolist(), where.ravel().tolist(), strict=True)
    ]
    return np.array(rounded, np.float64).reshape(numbers.shape)


if __name__ == "__main__":
    sys.exit(main())
