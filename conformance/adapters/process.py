"""Another process as a backend, in whatever language: it answers in lines of JSON, as docs/exec-protocol.md says."""

from __future__ import annotations

import shlex
from typing import Any

import numpy as np

from conformance.adapter import Failed, Unsupported
from conformance.adapters import rules
from conformance.adapters.lines import Lines
from conformance.contract import OPERATIONS
from conformance.encoding import BFLOAT16, decode, encode, encode_option

PROTOCOL = 1
HELLO_TIMEOUT = 60.0
ANSWER_TIMEOUT = 30.0
_NUMBERS = ("scale", "softcap", "beta")  # cases have them as 0-d arrays too
_KINDS = {"TypeError": TypeError, "ValueError": ValueError}


class Process:
    """The process of exec:COMMAND, started anew after each failure. It is told arguments, and nothing of what is due.

    Raises LookupError where it does not start or its first answer does not say what it can do.
    """

    explains = False

    def __init__(self, spec: str, timeout: float = ANSWER_TIMEOUT) -> None:
        self.name, self._timeout, self._asked = spec, timeout, 0
        self._command = shlex.split(spec.partition(":")[2])
        self._start()
        self.unasked_errors = None if self._hello.get("errors") else 'errors are not judged: no "errors": true was said'

    def _start(self) -> None:
        self._lines: Lines | None = Lines(self._command)
        try:
            self._hello = self._lines.ask({"protocol": PROTOCOL}, HELLO_TIMEOUT)
        except Failed as error:
            raise LookupError(f"it does not answer the first message: {error}") from None
        if fault := _fault(self._hello):
            self._lines.end()
            raise LookupError(f"its first answer is wrong: {fault}; docs/exec-protocol.md says what it has to be")

    def info(self) -> dict[str, Any]:
        """Say what the process says of itself."""
        said = {name: value for name, value in self._hello.items() if name != "operations"}
        return {"versions": {}, "device": "cpu", **said}

    def supports(self, op: str, dtype: str, options: dict[str, Any], arrays: dict[str, Any]) -> str | None:
        """Tell what the process has not said that it takes."""
        if op not in self._hello["operations"]:
            return f"the process has no {op}"
        if dtype not in self._hello.get("dtypes", [dtype]):
            return f"the process has no {dtype}"
        optional = {*OPERATIONS[op].optional, *OPERATIONS[op].options}
        missing = ({*arrays, *options} & optional) - {*self._hello["operations"][op].get("takes", ())}
        return f"the process takes no {' and no '.join(sorted(missing))}" if missing else None

    def outputs(self, op: str) -> tuple[str, ...]:
        """Name the outputs that the process says it gives."""
        return tuple(self._hello["operations"][op]["outputs"])

    def from_numpy(self, array: np.ndarray) -> np.ndarray:
        """Give the array itself: it goes to the process as text, which leaves it as it is."""
        return array

    def to_numpy(self, array: np.ndarray) -> np.ndarray:
        """Give the array that was decoded."""
        return array

    def is_own(self, value: Any) -> bool:
        """Tell whether an array came."""
        return isinstance(value, np.ndarray)

    def call(self, op: str, arrays: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
        """Ask the process. Raises what it says was raised, Unsupported if it says so, Failed where it fails."""
        if self._lines is None:
            self._start()
        self._asked += 1
        given, told = self._arguments(arrays, options)
        message = {"id": self._asked, "op": op, "arrays": given, "options": told}
        try:
            return self._outputs(self._lines.ask(message, self._timeout))
        except Failed:
            self._lines.end()
            self._lines = None
            raise

    def _arguments(self, arrays: dict[str, Any], options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Give arrays and options as JSON, a mask rule as an array unless the process takes rules."""
        spec = options.get("mask")
        if spec and "q" in arrays and not self._hello.get("rules"):
            if fault := rules.fault(spec, arrays):
                raise Unsupported(f"the process is given rules as arrays, and this one makes none: {fault}")
            mask = rules.evaluate(spec, arrays, arrays["q"].shape[-2], arrays["k"].shape[-2])
            arrays = {name: a for name, a in arrays.items() if name not in rules.array_names(spec)} | {"mask": mask}
            options = {name: value for name, value in options.items() if name != "mask"}
        numbers = {name: a.item() for name, a in arrays.items() if name in _NUMBERS and self.is_own(a) and not a.ndim}
        given = {n: _told(a) if self.is_own(a) else {"python": a} for n, a in arrays.items() if n not in numbers}
        return given, {name: encode_option(value) for name, value in (options | numbers).items()}

    def _outputs(self, answer: dict[str, Any]) -> dict[str, Any]:
        if answer.get("id") != self._asked:
            raise Failed(f"it answered the question {answer.get('id')!r}, asked was {self._asked}")
        if "unsupported" in answer:
            raise Unsupported(f"the process says: {answer['unsupported']}")
        if "raised" in answer:
            raise _KINDS.get(answer["raised"], RuntimeError)(answer.get("message", answer["raised"]))
        if not isinstance(answer.get("outputs"), dict):
            raise Failed("its answer has neither outputs nor raised nor unsupported")
        return {name: _output(name, record) for name, record in answer["outputs"].items()}


def _told(array: np.ndarray) -> dict[str, Any]:
    """Write an array; bfloat16 as numbers, since few languages know its bits."""
    return encode(array.astype(np.float32)) | {"dtype": "bfloat16"} if array.dtype == BFLOAT16 else encode(array)


def _output(name: str, record: Any) -> Any:
    if isinstance(record, str):
        return record
    try:
        with np.errstate(over="ignore"):
            if record["dtype"] == "bfloat16" and "values" in record:
                return decode(record | {"dtype": "float32"}).astype(BFLOAT16)
            return decode(record)
    except (ValueError, TypeError, KeyError) as error:
        raise Failed(f"its output {name} is no array: {type(error).__name__}: {error}") from None


def _fault(hello: dict[str, Any]) -> str | None:
    """Tell what is wrong with the first answer."""
    operations = hello.get("operations")
    if not isinstance(operations, dict) or not operations:
        return '"operations" is missing'
    if unknown := operations.keys() - OPERATIONS.keys():
        return f"there is no operation {', '.join(sorted(unknown))}"
    for op, said in operations.items():
        if not isinstance(said, dict) or not said.get("outputs"):
            return f'{op} names no "outputs"'
    return None
