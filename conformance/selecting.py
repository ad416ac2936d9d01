"""What the user asked for: which backends, which checks. What does not exist is answered with what does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from importlib.util import find_spec
from itertools import chain
from pathlib import Path

from conformance import adapter
from conformance.contract import CLAUSES, OPERATIONS
from conformance.facts import FLOATS
from conformance.ledger import Entry, load
from conformance.loading import Case, Check, checks

# Which extra brings a built-in backend's library; asked without importing it, which takes seconds.
EXTRAS = {"torch": "torch", "torch-sdpa": "torch", "jax": "jax"}

# Every built-in backend and variant that needs no accelerator.
ALL = [name for name in adapter.BUILT_IN if "accelerator" not in name]


def backends(specs: Sequence[str]) -> list[str]:
    """Give the backends that were asked for, each once; "all" stands for `ALL`.

    Raises ValueError where one is unknown or not installed.
    """
    specs = [name for spec in specs for name in (ALL if spec == "all" else [spec])]
    problems = [problem for spec in specs if (problem := _problem(spec))]
    if problems:
        raise ValueError("\n".join(problems))
    return list(dict.fromkeys(specs))


def with_settings(specs: Sequence[str], arrays: str, errors: bool) -> list[str]:
    """Add the settings to the specs of plain functions. Raises ValueError where there is none to take them."""
    settings = [f"arrays={arrays}"] * bool(arrays) + ["errors"] * errors
    functions = [spec for spec in specs if ":" in spec and spec not in adapter.known() and not spec.startswith("exec:")]
    if settings and not functions:
        raise ValueError("--arrays and --errors are for plain functions: give --backend path/to/file.py:function")
    return [",".join([spec, *settings]) if spec in functions else spec for spec in specs]


def ledger(path: Path | None, specs: Sequence[str]) -> list[Entry] | None:
    """Read the entries that the user has given for the only backend; raises ValueError where there are others."""
    if path is None:
        return None
    if len(specs) > 1:
        raise ValueError("--ledger is for one backend: name it by --backend")
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    return load(specs[0], path)


def _problem(spec: str) -> str | None:
    """Say why a backend cannot run and what to do about it, or None as far as can be told without importing it."""
    extra = EXTRAS.get(spec.partition(":")[0])
    try:
        if adapter.is_known(spec) and extra and not find_spec(extra):
            install = f"pip install 'attention-three-ways[{extra}]'"
            return f"{spec}: {extra} is not installed. Install it with {install}, or name other backends."
    except LookupError as error:
        return f"{spec}: {error.args[0]}.{_nearest(spec, adapter.known())}"
    return None


def select(
    cases: Sequence[Case],
    text: str = "",
    *,
    ops: Sequence[str] = (),
    dtypes: Sequence[str] = (),
    clauses: Sequence[str] = (),
) -> list[Check]:
    """Give the checks whose name or fact contains the text and that have one of the ops, dtypes and clauses.

    Nothing given is no restriction. Raises ValueError, which says what there is, if no check is left.
    """
    _known(ops, OPERATIONS, "operation")
    _known(clauses, CLAUSES, "clause")
    _known(dtypes, sorted({*FLOATS, *(case.dtype for case in cases)}), "dtype")
    found = [check for case in cases for check in checks(case) if _is_asked(check, text, ops, dtypes, clauses)]
    if not found:
        hint = _nearest(text, [case.id for case in cases])
        raise ValueError(f"no case matches.{hint} Loosen the filters, or see them all: python -m conformance list")
    return found


def _is_asked(check: Check, text: str, ops: Sequence[str], dtypes: Sequence[str], clauses: Sequence[str]) -> bool:
    case = check.case
    return (
        (text.lower() in check.name.lower() or text.lower() in case.fact.lower())
        and (not ops or check.op in ops or case.op in ops)
        and (not dtypes or case.dtype in dtypes)
        and (not clauses or bool({*clauses} & {*case.clauses}))
    )


def one(cases: Sequence[Case], name: str) -> Case:
    """Give the case of that id, or of a check's name. Raises ValueError, which names the closest ids."""
    found = next((case for case in cases if case.id == name.partition("@")[0]), None)
    if found is None:
        raise ValueError(f"unknown case {name!r}.{_nearest(name, [case.id for case in cases])}")
    return found


def _known(names: Iterable[str], known: Iterable[str], what: str) -> None:
    for name in names:
        if name not in known:
            raise ValueError(f"unknown {what} {name!r}; known are {', '.join(known)}")


def _nearest(name: str, known: Sequence[str]) -> str:
    """Name up to three that are spelled alike, as the end of a sentence of its own."""
    near = get_close_matches(name, known, n=3, cutoff=0.4)
    return f" Did you mean {', '.join(near)}?" if near else ""


def two_of_each_kind(checks: Sequence[Check]) -> list[Check]:
    """Choose few checks so that each clause, each dtype and each way of calling is met twice, if it can be.

    A variant that compiles for every case shows what is special in it by these.
    """
    wanted = Counter({kind: min(2, n) for kind, n in Counter(chain.from_iterable(map(_kinds, checks))).items()})
    left, chosen = list(checks), []
    while wanted:
        best = max(left, key=lambda check: len(_kinds(check) & wanted.keys()))
        wanted -= Counter(_kinds(best))
        left.remove(best)
        chosen.append(best)
    return chosen


def _kinds(check: Check) -> set[str]:
    return {check.name.partition("@")[2] or check.op, *check.case.clauses, check.case.dtype}
