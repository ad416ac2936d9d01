"""Put a question to a backend, and bring to NumPy whatever comes of it.

A question is a check without what is expected of it: it is all that the backend's process is told.
"""

from __future__ import annotations

import builtins
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from conformance.adapter import Backend, Failed, Unsupported
from conformance.compare import Foreign, same_bits
from conformance.contract import ERRORS
from conformance.facts import Given

Arrays = dict[str, Any]


@dataclass(frozen=True)
class Question:
    """Calls of one operation with the same options: the case's own, then those that its laws need.

    `calls` are the array arguments of each call, NumPy arrays or `Given`. `outputs` names what will be judged,
    any of which the backend may return. `invalid` tells that the call has to be refused.
    """

    op: str
    dtype: str
    options: dict[str, Any]
    calls: tuple[Arrays, ...]
    outputs: tuple[str, ...]
    invalid: bool


@dataclass(frozen=True)
class Raised:
    """An exception: `kinds` are those of the contract's error kinds that it is, `line` says it in one line."""

    kinds: tuple[str, ...]
    text: str
    line: str


@dataclass(frozen=True)
class Answer:
    """What came of a call: outputs (NumPy arrays, text, or `Foreign`), or the error that was raised.

    `modified` names the arguments that the call has changed, `shared` tells which output has the memory of which
    argument, `overwritten` names the outputs that the calls after it have changed. `ms` is the time until the outputs
    were there.
    """

    outputs: dict[str, Any] = field(default_factory=dict)
    raised: Raised | None = None
    modified: tuple[str, ...] = ()
    shared: dict[str, str] = field(default_factory=dict)
    overwritten: tuple[str, ...] = ()
    ms: float = 0.0


@dataclass(frozen=True)
class Reply:
    """What came of a question: the answers, or why it cannot be asked, or why there is no answer.

    There is an answer for each call up to the first that raises. `returns` names the outputs that the backend
    returns, `explains` tells that the words of its errors are judged.
    """

    answers: tuple[Answer, ...] = ()
    returns: tuple[str, ...] = ()
    explains: bool = False
    unsupported: str | None = None
    failed: str | None = None


def ask(question: Question, backend: Backend) -> Reply:
    """Put the question to the backend; whatever its library raises becomes part of the reply."""
    try:
        if reason := _unsupported(question, backend):
            return Reply(unsupported=reason)
        answers = _answers(question, backend)
    except Unsupported as error:
        return Reply(unsupported=str(error))
    except Failed as error:
        return Reply(failed=str(error))
    return Reply(answers, tuple(backend.outputs(question.op)), backend.explains)


def _unsupported(question: Question, backend: Backend) -> str | None:
    if question.invalid and (reason := getattr(backend, "unasked_errors", None)):
        return reason
    reason = backend.supports(question.op, question.dtype, question.options, question.calls[0])
    if reason is None and question.outputs and not {*question.outputs} & {*backend.outputs(question.op)}:
        return f"it does not return {', '.join(question.outputs)}"
    return reason


def _answers(question: Question, backend: Backend) -> tuple[Answer, ...]:
    first, returned = _answer(question, question.calls[0], backend)
    others = tuple(_further(question, backend)) if first.raised is None else ()
    return (replace(first, overwritten=_overwritten(backend, first, returned)), *others)


def _further(question: Question, backend: Backend) -> Iterator[Answer]:
    for arrays in question.calls[1:]:
        answer, _ = _answer(question, arrays, backend)
        yield answer
        if answer.raised:
            return


def _answer(question: Question, arrays: Arrays, backend: Backend) -> tuple[Answer, Arrays]:
    """Make a call: the answer, and what was returned as it came."""
    own = {
        name: array.value if isinstance(array, Given) else backend.from_numpy(array) for name, array in arrays.items()
    }
    outputs: Arrays = {}
    returned: Arrays = {}
    raised = None
    start = time.perf_counter()
    try:
        returned = backend.call(question.op, dict(own), question.options)
        outputs = {name: _to_numpy(backend, value) for name, value in returned.items()}
    except (Unsupported, Failed):
        raise
    except Exception as error:
        raised = Raised(_kinds(error), str(error), line(error))
    ms = 1000 * (time.perf_counter() - start)
    answer = Answer(outputs, raised, _modified(backend, arrays, own), _shared(backend, returned, own), ms=ms)
    return answer, returned


def _to_numpy(backend: Backend, value: Any) -> Any:
    if backend.is_own(value):
        return backend.to_numpy(value)
    return value if isinstance(value, str) else Foreign(type(value).__name__)


def _kinds(error: Exception) -> tuple[str, ...]:
    return tuple(name for name in ERRORS if isinstance(error, getattr(builtins, name)))


def _modified(backend: Backend, arrays: Arrays, own: Arrays) -> tuple[str, ...]:
    given = {name: array for name, array in arrays.items() if not isinstance(array, Given)}
    return tuple(name for name, array in given.items() if not same_bits(array, backend.to_numpy(own[name])))


def _shared(backend: Backend, returned: Arrays, own: Arrays) -> dict[str, str]:
    shares = getattr(backend, "shares_memory", lambda one, other: one is other)
    outputs, arguments = ({n: a for n, a in some.items() if backend.is_own(a)} for some in (returned, own))
    return {output: name for output, a in outputs.items() for name, b in arguments.items() if shares(a, b)}


def _overwritten(backend: Backend, answer: Answer, returned: Arrays) -> tuple[str, ...]:
    own = {name: value for name, value in returned.items() if backend.is_own(value) and name in answer.outputs}
    return tuple(name for name, value in own.items() if not same_bits(answer.outputs[name], backend.to_numpy(value)))


def line(error: BaseException) -> str:
    """Give an error in one line: its class and the first line of its message, cut to 300 characters."""
    text = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {text}"[:300]
