"""Results: what became of a check on a backend, and the file of JSON lines that holds those of one run."""

from __future__ import annotations

import base64
import json
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from conformance.compare import Verdict
from conformance.facts import dtype_of
from conformance.loading import Check

FORMAT = 1


@dataclass(frozen=True)
class Result:
    """What became of one check on one backend.

    `outcome` is "pass", "differs" (a wrong answer), "error" (an exception, a crash, a hang), "unsupported" (the
    backend says why), "either" (implementation-defined: shown, never failed) or "known" (a ledger lists it).
    `worst` is the gravest verdict of all outputs, None where nothing could be compared.
    """

    backend: str
    check: str
    case: str
    clauses: tuple[str, ...]
    flags: tuple[str, ...]
    op: str
    outcome: str
    reason: str = ""
    worst: Verdict | None = None
    ms: float = 0.0
    outputs: dict[str, np.ndarray | str] = field(default_factory=dict)

    @classmethod
    def of(cls, check: Check, backend: str, outcome: str, reason: str) -> Result:
        """Make the result of a check, with nothing measured."""
        case = check.case
        return cls(backend, check.name, case.id, case.clauses, case.flags, check.op, outcome, reason)


@dataclass(frozen=True)
class Header:
    """The first line of a file: `suite` is the digest of the cases, `started` a time in ISO 8601."""

    suite: str
    backend: str
    info: dict[str, Any]
    started: str


def write(path: Path, header: Header, results: Iterable[Result]) -> None:
    """Write one run of one backend: a header line, a line for each result as it comes, a footer line.

    Without its footer a file is one of an interrupted run, and `read` refuses it.
    """
    counts: Counter[str] = Counter()
    with path.open("w", encoding="utf-8") as file:
        print(_dump({"format": FORMAT, **asdict(header)}), file=file)
        for result in results:
            counts[result.outcome] += 1
            print(_dump(_encode(result)), file=file, flush=True)
        print(_dump({"counts": counts, "complete": True}), file=file)


def read(path: Path) -> tuple[Header, list[Result]]:
    """Read what `write` wrote. Raises ValueError for a file without its footer or of another format."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    if not lines or lines[0].pop("format", None) != FORMAT:
        raise ValueError(f"{path}: this is no file of results in format {FORMAT}")
    if not lines[-1].get("complete"):
        raise ValueError(f"{path}: the footer is missing, the run was interrupted: run it again")
    results = [_decode(record) for record in lines[1:-1]]
    if Counter(result.outcome for result in results) != lines[-1]["counts"]:
        raise ValueError(f"{path}: the results are not those that the footer counts, lines are missing or added")
    return Header(**lines[0]), results


def _dump(record: dict[str, Any]) -> str:
    return json.dumps(record, allow_nan=False, ensure_ascii=False)


def _encode(result: Result) -> dict[str, Any]:
    record = {**vars(result), "outputs": {name: _encode_output(o) for name, o in result.outputs.items()}}
    worst = vars(result.worst) if result.worst is not None else None
    return record | {"worst": worst and {name: _encode_number(value) for name, value in worst.items()}}


def _decode(record: dict[str, Any]) -> Result:
    outputs = {name: _decode_output(output) for name, output in record["outputs"].items()}
    clauses, flags = tuple(record["clauses"]), tuple(record["flags"])
    worst = record["worst"] and _decode_verdict(record["worst"])
    return Result(**record | {"outputs": outputs, "clauses": clauses, "flags": flags, "worst": worst})


def _decode_verdict(record: dict[str, Any]) -> Verdict:
    numbers = {name: _decode_number(record[name]) for name in ("ratio", "expected", "got", "budget")}
    index = record["index"] if record["index"] is None else tuple(record["index"])
    return Verdict(**record | numbers | {"index": index})


def _encode_number(value: Any) -> Any:
    # JSON knows neither NaN nor infinities.
    return {"number": str(value)} if isinstance(value, float) and not math.isfinite(value) else value


def _decode_number(value: Any) -> Any:
    return float(value["number"]) if isinstance(value, dict) else value


def _encode_output(output: np.ndarray | str) -> dict[str, Any] | str:
    """Keep every bit of an array: its bytes in base64."""
    if isinstance(output, str):
        return output
    data = base64.b64encode(output.tobytes()).decode()
    return {"dtype": output.dtype.name, "shape": output.shape, "base64": data}


def _decode_output(output: dict[str, Any] | str) -> np.ndarray | str:
    if isinstance(output, str):
        return output
    data = base64.b64decode(output["base64"])
    return np.frombuffer(data, dtype_of(output["dtype"])).reshape(output["shape"])
