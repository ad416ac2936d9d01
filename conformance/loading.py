"""Read the cases, check that they say what they may say, and name the calls that each one makes."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from conformance import contract
from conformance.encoding import Fetch, decode, decode_numbers
from conformance.facts import Given

CASES = Path(__file__).parent / "cases"
FORMAT = 1

_ALWAYS = {"id", "fact", "clauses", "flags", "op", "arrays", "options", "laws", "verdict"}
_BY_VERDICT = {"valid": {"expect"}, "invalid": {"raises", "says"}, "either": set()}


@dataclass(frozen=True)
class Expected:
    """What an output has to be.

    ``values`` are the oracle's (float64, or integers, booleans, one text) and ``budget`` is the largest error
    that is forgiven, element by element; None means that the output is compared exactly. ``dtype`` is the
    name of the output's own dtype, "integer" for any integer dtype, or "text". An lse of -inf says that a row
    is empty: where ``is_lse``, it is no answer to an expected NaN.
    """

    dtype: str
    shape: tuple[int, ...]
    values: np.ndarray | str
    budget: np.ndarray | None = None
    is_lse: bool = False


@dataclass(frozen=True)
class Case:
    """One stored fact: a call, and what has to come of it. The fields are explained in cases/README.md."""

    id: str
    file: str
    fact: str
    clauses: tuple[str, ...]
    flags: tuple[str, ...]
    op: str
    dtype: str
    arrays: dict[str, np.ndarray | Given]
    options: dict[str, Any]
    laws: tuple[str, ...]
    verdict: str
    expect: dict[str, Expected] = field(default_factory=dict)
    raises: str | None = None
    says: tuple[str, ...] = ()
    instead: dict[str, np.ndarray] = field(default_factory=dict)


@dataclass(frozen=True)
class Check:
    """One call that is made for a case; of `outputs`, those that the backend returns are judged."""

    name: str
    case: Case
    op: str
    options: dict[str, Any]
    outputs: tuple[str, ...]


def load_cases(folder: Path = CASES) -> list[Case]:
    """All cases below the folder, in the order of the files' names.

    Raises ValueError that names the file, the case and what is wrong with it.
    """
    cases = [case for path in sorted(folder.glob("*.json")) if path.name != "flags.json" for case in _load(path)]
    ids = [case.id for case in cases]
    if twice := sorted({name for name in ids if ids.count(name) > 1}):
        raise ValueError(f"{folder}: these ids are used more than once: {', '.join(twice)}")
    return cases


def load_flags(folder: Path = CASES) -> dict[str, dict[str, str]]:
    """The flags and their explanations: flag -> {bug, effect, source}."""
    return json.loads((folder / "flags.json").read_text(encoding="utf-8"))


def checks(case: Case) -> list[Check]:
    """The calls by which a case is run: the operation itself first, then its other routes.

    A route of small tiles is left out where one tile holds every pair, and where the call is refused: it would
    only be the same call again.
    """
    routes = contract.routes(case.op)
    return [_check(case, route) for route in routes if not _is_one_tile(case, route)]


def digest(cases: list[Case]) -> str:
    """A SHA-256 of the cases' content, by which two runs tell whether they judged the same."""
    total = hashlib.sha256()
    for case in cases:
        total.update(repr(_content(case)).encode())
    return total.hexdigest()


def decode_options(options: dict[str, Any]) -> dict[str, Any]:
    """Options as they are passed: a number that JSON cannot hold is written as {"number": "nan"}."""
    return {name: _option(value) for name, value in options.items()}


def _check(case: Case, route: contract.Route) -> Check:
    return Check(case.id + route.suffix, case, route.op, case.options | route.options, tuple(case.expect))


def _is_one_tile(case: Case, route: contract.Route) -> bool:
    if "block_size" not in route.options:
        return False
    if case.verdict == "invalid":
        return True
    queries, keys = route.options["block_size"]
    return case.arrays["q"].shape[-2] <= queries and case.arrays["k"].shape[-2] <= keys


def _load(path: Path) -> list[Case]:
    content = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(content, dict) or set(content) != {"format", "about", "cases"}:
        raise ValueError(f"{path.name}: the keys have to be format, about and cases")
    if content["format"] != FORMAT:
        raise ValueError(f"{path.name}: format {content['format']!r}, this version reads format {FORMAT}")
    fetch = _fetch(path)
    return [_named(record, path, fetch) for record in content["cases"]]


def _fetch(path: Path) -> Fetch:
    """Find arrays in the npz file of the same stem, which need not exist when every array is short."""
    data = path.parent / "data" / f"{path.stem}.npz"
    stored = dict(np.load(data)) if data.exists() else {}

    def fetch(name: str) -> np.ndarray:
        if name not in stored:
            raise ValueError(f"data/{data.name} holds no array {name}")
        return stored[name]

    return fetch


def _named(record: dict[str, Any], path: Path, fetch: Fetch) -> Case:
    try:
        _validate(record)
        return _case(record, path.stem, fetch)
    except (ValueError, KeyError, TypeError) as error:
        name = record.get("id", "without an id") if isinstance(record, dict) else record
        raise ValueError(f"{path.name}: case {name}: {error}") from error


def _validate(record: dict[str, Any]) -> None:
    verdict = record.get("verdict")
    _among([verdict], _BY_VERDICT, "verdict")
    keys = _ALWAYS | _BY_VERDICT[verdict] | ({"instead"} if "unmoved" in record.get("laws", ()) else set())
    if set(record) != keys:
        odd = ", ".join(sorted(set(record) ^ keys))
        raise ValueError(f"keys that are missing, unknown or out of place in a case that is {verdict}: {odd}")
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", record["id"]):
        raise ValueError("the id has to be in lower case, words joined by single hyphens")
    _among(record["clauses"], contract.CLAUSES, "clause")
    _among([record["op"]], contract.OPERATIONS, "operation")
    _among(record["laws"], contract.LAWS, "law")
    _among([record["raises"]] if verdict == "invalid" else [], contract.ERRORS, "error kind")
    outputs = {name for route in contract.routes(record["op"]) for name in contract.OPERATIONS[route.op].outputs}
    _among(record.get("expect", ()), outputs, f"output of {record['op']}")


def _among(names: Any, known: Any, what: str) -> None:
    for name in names:
        if name not in known:
            raise ValueError(f"unknown {what} {name!r}; known are {', '.join(sorted(known))}")


def _case(record: dict[str, Any], stem: str, fetch: Fetch) -> Case:
    arrays = {name: _argument(value, fetch) for name, value in record["arrays"].items()}
    return Case(
        id=record["id"],
        file=stem,
        fact=record["fact"],
        clauses=tuple(record["clauses"]),
        flags=tuple(record["flags"]),
        op=record["op"],
        dtype=_main_dtype(arrays),
        arrays=arrays,
        options=decode_options(record["options"]),
        laws=tuple(record["laws"]),
        verdict=record["verdict"],
        expect={name: _expected(name, value, fetch) for name, value in record.get("expect", {}).items()},
        raises=record.get("raises"),
        says=tuple(record.get("says", ())),
        instead={name: decode(value, fetch) for name, value in record.get("instead", {}).items()},
    )


def _argument(value: dict[str, Any], fetch: Fetch) -> np.ndarray | Given:
    return Given(value["python"]) if "python" in value else decode(value, fetch)


def _main_dtype(arrays: dict[str, Any]) -> str:
    """The dtype of the first array, which names the case's arithmetic; "bool" where a rule has no arrays."""
    return next((a.dtype.name for a in arrays.values() if isinstance(a, np.ndarray)), "bool")


def _expected(name: str, record: dict[str, Any], fetch: Fetch) -> Expected:
    if record["dtype"] == "text":
        return Expected("text", (), "\n".join(record["lines"]))
    shape = tuple(record["shape"])
    kind = np.dtype({"integer": "int64", "bool": "bool"}.get(record["dtype"], "float64"))
    values = decode_numbers(record["values"], kind, shape, fetch)
    budget = decode_numbers(record["budget"], kind, shape, fetch) if "budget" in record else None
    return Expected(record["dtype"], shape, values, budget, is_lse=name == "lse")


def _option(value: Any) -> Any:
    return float(value["number"]) if isinstance(value, dict) and "number" in value else value


def _content(case: Case) -> list[Any]:
    return [_bytes(value) for _, value in sorted(vars(case).items())]


def _bytes(value: Any) -> Any:
    """The value with dtype, shape and bytes in the place of arrays: equal content gives equal text."""
    if isinstance(value, np.ndarray):
        return (value.dtype.name, value.shape, value.tobytes())
    if isinstance(value, Expected):
        return [_bytes(part) for part in vars(value).values()]
    if isinstance(value, dict):
        return [(name, _bytes(value[name])) for name in sorted(value)]
    return value
