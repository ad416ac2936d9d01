"""Write all cases for other judges and other languages: one JSON file, and all numbers in one safetensors file."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from conformance.encoding import encode_option
from conformance.facts import Given
from conformance.loading import Case, Expected, digest, load_flags

FORMAT = 1
# The names of dtypes in the format, https://huggingface.co/docs/safetensors.
_DTYPES = {
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "int32": "I32",
    "int64": "I64",
    "float16": "F16",
    "bfloat16": "BF16",
    "float32": "F32",
    "float64": "F64",
}


def export(cases: Sequence[Case], folder: Path) -> list[Path]:
    """Write cases.json, cases.safetensors and flags.json into the folder, and give their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors: dict[str, np.ndarray] = {}
    content = {"format": FORMAT, "suite": digest(list(cases)), "cases": [_case(case, tensors) for case in cases]}
    files = {
        "cases.json": _json(content),
        "cases.safetensors": safetensors(tensors),
        "flags.json": _json(load_flags()),
    }
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return [folder / name for name in files]


def _json(content: Any) -> bytes:
    return (json.dumps(content, ensure_ascii=False, allow_nan=False, indent=1) + "\n").encode()


def _case(case: Case, tensors: dict[str, np.ndarray]) -> dict[str, Any]:
    record: dict[str, Any] = {name: getattr(case, name) for name in ("id", "fact", "clauses", "flags", "op")}
    record |= {"topic": case.file, "laws": case.laws, "verdict": case.verdict}
    record["options"] = {name: encode_option(value) for name, value in case.options.items()}
    record["arrays"] = {name: _array(f"{case.id}/{name}", value, tensors) for name, value in case.arrays.items()}
    if case.verdict == "valid":
        record["expect"] = {name: _expected(f"{case.id}/{name}", e, tensors) for name, e in case.expect.items()}
    if case.instead:
        record["instead"] = {n: _array(f"{case.id}/instead/{n}", a, tensors) for n, a in case.instead.items()}
    if case.verdict == "invalid":
        record |= {"raises": case.raises, "says": case.says}
    return record


def _array(name: str, value: np.ndarray | Given, tensors: dict[str, np.ndarray]) -> dict[str, Any]:
    """Put an array's numbers under its name and give its record; complex numbers are pairs on a further axis."""
    if isinstance(value, Given):
        return {"python": value.value}
    pairs = np.iscomplexobj(value)
    tensors[name] = np.stack([value.real, value.imag], axis=-1) if pairs else value
    return {"dtype": value.dtype.name, "shape": value.shape, "tensor": name}


def _expected(name: str, expected: Expected, tensors: dict[str, np.ndarray]) -> dict[str, Any]:
    if isinstance(expected.values, str):
        return {"dtype": expected.dtype, "text": expected.values}
    tensors[f"{name}/expected"] = expected.values
    record = {"dtype": expected.dtype, "shape": expected.shape, "values": f"{name}/expected"}
    if expected.budget is not None:
        tensors[f"{name}/budget"] = expected.budget
        record["budget"] = f"{name}/budget"
    return record


def safetensors(tensors: dict[str, np.ndarray]) -> bytes:
    """Give the arrays as a safetensors file: a length, a JSON header, and the numbers, all little-endian."""
    header, data = {}, []
    end = 0
    for name, array in tensors.items():
        raw = array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
        start, end = end, end + len(raw)
        header[name] = {"dtype": _DTYPES[array.dtype.name], "shape": array.shape, "data_offsets": [start, end]}
        data.append(raw)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # so that the numbers are aligned
    return struct.pack("<Q", len(text)) + text + b"".join(data)
