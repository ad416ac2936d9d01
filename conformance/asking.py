"""Make one call of a backend, and bring to NumPy whatever comes of it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Any

from conformance.adapter import Backend
from conformance.compare import same_bits
from conformance.facts import Given


@dataclass(frozen=True)
class Answer:
    """What came of a call: outputs, or the error that was raised.

    `outputs` are NumPy arrays; `foreign` names those that are no array of the backend's own kind and stay as they
    were. `modified` names the arguments that the call has changed. `ms` is the time until the outputs were there.
    """

    outputs: dict[str, Any] = field(default_factory=dict)
    foreign: frozenset[str] = frozenset()
    raised: Exception | None = None
    modified: tuple[str, ...] = ()
    ms: float = 0.0


def ask(backend: Backend, op: str, arrays: dict[str, Any], options: dict[str, Any]) -> Answer:
    """Call the operation on copies of these NumPy arrays; a `Given` argument is passed as it is."""
    own = {
        name: array.value if isinstance(array, Given) else backend.from_numpy(array) for name, array in arrays.items()
    }
    start = time.perf_counter()
    answer = _call(backend, op, own, options)
    ms = 1000 * (time.perf_counter() - start)
    return replace(answer, ms=ms, modified=_modified(backend, arrays, own))


def _call(backend: Backend, op: str, own: dict[str, Any], options: dict[str, Any]) -> Answer:
    try:
        returned = backend.call(op, dict(own), options)
        foreign = frozenset(name for name, value in returned.items() if not backend.is_own(value))
        outputs = {name: value if name in foreign else backend.to_numpy(value) for name, value in returned.items()}
    except Exception as error:
        return Answer(raised=error)
    return Answer(outputs, foreign)


def _modified(backend: Backend, arrays: dict[str, Any], own: dict[str, Any]) -> tuple[str, ...]:
    given = {name: array for name, array in arrays.items() if not isinstance(array, Given)}
    return tuple(name for name, array in given.items() if not same_bits(array, backend.to_numpy(own[name])))


def line(error: Exception) -> str:
    """Give an error in one line: its class and the first line of its message, cut to 300 characters."""
    text = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {text}"[:300]
