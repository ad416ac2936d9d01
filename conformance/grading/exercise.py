"""What an exercise asks for, as its exercise.toml says.

An exercise is a folder: exercise.toml, stubs answer_FRAMEWORK.py, worked answers worked_FRAMEWORK.py, known wrong
answers wrong_WHAT_FRAMEWORK.py and, where they are needed, values.py (what is predicted) and given_FRAMEWORK.py (the
wrong functions that are to be broken). Its tasks are of four kinds, each a table of the file.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from conformance.loading import Case

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True)
class Demand:
    """A property that an answer has to have, and what to say to one that lacks it.

    Without `cases` it is one of properties.PROPERTIES, looked for on every case of the task. With them it is that the
    `outputs` (all, if none is named) of these cases come out right, and `says` states it in a sentence. `section` is
    the heading of the page under which it is explained.
    """

    name: str
    says: str = ""
    hint: str = ""
    section: str = ""
    cases: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Implement:
    """Write a function: called with `arguments` in this order, it gives `returns` of the operation.

    It is judged on the cases that are named, and on those with one of the `flags` or `clauses` that it has arguments
    for. `ignores` are arrays of a case on which these outputs do not depend, `fixed` are options that the function
    has built in, `defaults` arguments that some case leaves out. `lengths`: each case is judged also with
    sequences of that length.
    """

    function: str
    asks: str
    operation: str
    arguments: tuple[str, ...]
    returns: tuple[str, ...]
    cases: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    clauses: tuple[str, ...] = ()
    ignores: tuple[str, ...] = ()
    fixed: dict[str, Any] = field(default_factory=dict)
    defaults: dict[str, Any] = field(default_factory=dict)
    lengths: tuple[int, ...] = ()
    properties: tuple[Demand, ...] = ()


@dataclass(frozen=True)
class Predict:
    """Predict a value that values.py computes: a number within `tolerance` (absolute), or anything else exactly."""

    name: str
    asks: str
    tolerance: float = 0.0
    choices: tuple[str, ...] = ()
    hint: str = ""
    section: str = ""


@dataclass(frozen=True)
class Break:
    """Find an input on which the function `wrong` of given_FRAMEWORK.py is wrong.

    The learner's function takes nothing and returns `arguments`, arrays of the operation. `copies` names arrays that
    the operation needs and that do not matter here, with those in whose place they stand. `finite`: NaN and infinities
    are no answer.
    """

    function: str
    asks: str
    wrong: str
    operation: str
    arguments: tuple[str, ...]
    returns: tuple[str, ...]
    options: dict[str, Any] = field(default_factory=dict)
    copies: dict[str, str] = field(default_factory=dict)
    finite: bool = False
    hint: str = ""
    section: str = ""


@dataclass(frozen=True)
class Catch:
    """Name a property or a case that the mutant of that name does not survive."""

    name: str
    asks: str
    mutant: str
    hint: str = ""
    section: str = ""


KINDS = {"predict": Predict, "implement": Implement, "break": Break, "catch": Catch}
Task = Implement | Predict | Break | Catch


@dataclass(frozen=True)
class Exercise:
    """An exercise: `page` is that of docs/ which it belongs to, without its ending."""

    folder: Path
    title: str
    page: str
    tasks: tuple[Task, ...]


def load(folder: Path) -> Exercise:
    """Read the exercise of that folder. Raises ValueError that names the file and what is wrong with it."""
    path = folder / "exercise.toml"
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        tasks = [_record(KINDS[kind], table) for kind in content if kind in KINDS for table in content[kind]]
        about = {name: value for name, value in content.items() if name not in KINDS}
        return _record(Exercise, about | {"folder": folder, "tasks": tasks})
    except (tomllib.TOMLDecodeError, TypeError) as error:
        raise ValueError(f"{path}: {error}") from error


def _record(kind: type, table: dict[str, Any]) -> Any:
    """Make the record of a table, with tuples for lists."""
    if unknown := sorted({*table} - {field.name for field in fields(kind)}):
        raise TypeError(f"[[{kind.__name__.lower()}]] has no {', '.join(unknown)}")
    demands = {"properties": tuple(_record(Demand, demand) for demand in table.get("properties", ()))}
    values = table | (demands if "properties" in table else {})
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()})


def chosen(task: Implement, cases: Sequence[Case]) -> list[Case]:
    """Give the cases that judge the function, the smallest first. Raises ValueError for an unknown or unfit id."""
    named = {*task.cases, *(name for demand in task.properties for name in demand.cases)}
    found = [case for case in cases if case.id in named or (_is_tagged(task, case) and _fits(task, case))]
    if missing := sorted(named - {case.id for case in found if _fits(task, case)}):
        raise ValueError(f"{task.function}: these are no cases for it: {', '.join(missing)}")
    return sorted(found, key=size)


def _is_tagged(task: Implement, case: Case) -> bool:
    return bool({*task.flags} & {*case.flags} or {*task.clauses} & {*case.clauses})


def _fits(task: Implement, case: Case) -> bool:
    """Tell whether the function can be asked this: the call is legal, in float32, and nothing of it is left out."""
    if case.verdict != "valid" or case.op != task.operation:
        return False
    floats = {array.dtype.name for array in case.arrays.values() if array.dtype.kind not in "bi"}
    options = {name for name, value in case.options.items() if value != task.fixed.get(name)}
    return floats <= {"float32"} and {*case.arrays, *options} <= {*task.arguments, *task.ignores}


def size(case: Case) -> int:
    """Count the numbers that go in or, where none does, those that come out."""
    sizes = [array.size for array in case.arrays.values()] or [value.values.size for value in case.expect.values()]
    return sum(sizes)
