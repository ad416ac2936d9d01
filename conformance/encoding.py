"""How the arrays of a case are written in JSON, and how they are read back without losing a bit.

A short array is a flat list of numbers beside its dtype and shape; a long one is kept in an npz file and
named by its SHA-256. JSON knows neither NaN nor infinity, so these are the strings "nan", "inf" and "-inf".
bfloat16 is stored as its uint16 bits, complex numbers as pairs.
"""

from __future__ import annotations

import hashlib
import io
import math
import zipfile
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

LONGEST_LIST = 64
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
Fetch = Callable[[str], np.ndarray]


def npy(array: np.ndarray) -> bytes:
    """The array as a file of NumPy's own format, version 1.0, in C order."""
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.ascontiguousarray(array), version=(1, 0))
    return buffer.getvalue()


def sha256(array: np.ndarray) -> str:
    """The SHA-256 of the array's npy file, so of its dtype, its shape and its numbers."""
    return hashlib.sha256(npy(array)).hexdigest()


def encode_numbers(array: np.ndarray, store: dict[str, np.ndarray] | None) -> Any:
    """The array's numbers as a flat list, or, where there is a store, the name under which it has a long one."""
    if store is not None and array.size > LONGEST_LIST:
        digest = sha256(array)
        store[digest[:16]] = array
        return {"sha256": digest}
    numbers = [_plain(number) for number in array.ravel()]
    if not _same(decode_numbers(numbers, array.dtype, array.shape), array):
        raise ValueError(f"these {array.dtype} numbers change on their way through JSON: {numbers}")
    return numbers


def decode_numbers(
    numbers: Any, dtype: np.dtype, shape: tuple[int, ...], fetch: Fetch | None = None
) -> np.ndarray:
    """The array that `encode_numbers` wrote; `fetch` finds a stored one by its SHA-256.

    Raises ValueError when the count does not fit the shape or the stored array is not what its name says.
    """
    if isinstance(numbers, dict):
        return _fetched(numbers["sha256"], dtype, shape, fetch)
    size = int(np.prod(shape, dtype=int))
    if len(numbers) != size:
        raise ValueError(f"{len(numbers)} numbers for the shape {tuple(shape)}, which takes {size}")
    plain = np.array([float(n) if isinstance(n, str) else n for n in numbers], None if numbers else float)
    return plain.astype(dtype).reshape(shape)


def encode(array: np.ndarray, store: dict[str, np.ndarray] | None = None) -> dict[str, Any]:
    """The JSON record of an array: dtype, shape and numbers (bits for bfloat16, pairs for complex).

    Without a store the numbers of a long array too are a list.
    """
    record = {"dtype": array.dtype.name, "shape": list(array.shape)}
    if array.dtype == BFLOAT16:
        return record | {"bits": encode_numbers(array.view(np.uint16), store)}
    if array.dtype.kind == "c":
        pairs = np.stack([array.real, array.imag], axis=-1)
        return record | {"pairs": encode_numbers(pairs, store)}
    return record | {"values": encode_numbers(array, store)}


def decode(record: dict[str, Any], fetch: Fetch | None = None) -> np.ndarray:
    """The array of a JSON record.

    Raises ValueError, with what is wrong, for a record that `encode` cannot have written.
    """
    shape = tuple(record["shape"])
    if "bits" in record:
        return decode_numbers(record["bits"], np.dtype(np.uint16), shape, fetch).view(BFLOAT16)
    dtype = np.dtype(record["dtype"])
    if "pairs" in record:
        pairs = decode_numbers(record["pairs"], np.empty(0, dtype).real.dtype, (*shape, 2), fetch)
        return (pairs[..., 0] + 1j * pairs[..., 1]).astype(dtype)
    return decode_numbers(record["values"], dtype, shape, fetch)


def write_npz(arrays: dict[str, np.ndarray]) -> bytes:
    """An npz file whose bytes depend on the arrays (and the zlib) alone: sorted names, one fixed date."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in sorted(arrays):
            entry = zipfile.ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0))
            archive.writestr(entry, npy(arrays[name]), zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def members(npz: bytes) -> dict[str, bytes]:
    """What an npz file holds, without the compression, which differs between builds of zlib."""
    with zipfile.ZipFile(io.BytesIO(npz)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def encode_option(value: Any) -> Any:
    """An option as JSON can hold it: NaN and infinities as {"number": "nan"}."""
    return {"number": str(value)} if isinstance(value, float) and not math.isfinite(value) else value


def _plain(number: np.generic) -> Any:
    if number.dtype.kind != "f":
        return int(number)
    # The shortest decimal that gives this number back in its own dtype.
    return float(str(number)) if np.isfinite(number) else str(number)


def _same(one: np.ndarray, other: np.ndarray) -> bool:
    return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")


def _fetched(digest: str, dtype: np.dtype, shape: tuple[int, ...], fetch: Fetch) -> np.ndarray:
    array = fetch(digest[:16])
    if (array.dtype, array.shape) != (dtype, shape):
        found = f"{array.dtype} {array.shape}"
        raise ValueError(f"the stored array {digest[:8]} is {found}, the record says {dtype} {shape}")
    if sha256(array) != digest:
        raise ValueError(f"the stored array {digest[:8]} has the SHA-256 {sha256(array)[:8]}")
    return array
