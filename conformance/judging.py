"""Judge one check on one backend: make the call, and compare what came of it with what the case says."""

from __future__ import annotations

import builtins
from dataclasses import replace

import numpy as np

from conformance import laws
from conformance.adapter import Backend
from conformance.asking import Answer, ask, line
from conformance.compare import Verdict, compare, differs
from conformance.contract import ERRORS
from conformance.loading import Check
from conformance.results import Result


def judge(check: Check, backend: Backend) -> Result:
    """Run the check on the backend; whatever the backend raises becomes part of the result."""
    if reason := _unsupported(check, backend):
        return Result.of(check, backend.name, "unsupported", reason)
    answer = ask(backend, check.op, check.case.arrays, check.options)
    outcome, reason, worst = _JUDGES[check.case.verdict](check, backend, answer)
    outputs = {name: value for name, value in answer.outputs.items() if isinstance(value, (np.ndarray, str))}
    result = Result.of(check, backend.name, outcome, reason)
    return replace(result, worst=worst, ms=answer.ms, outputs=outputs)


Judgement = tuple[str, str, "Verdict | None"]


def _unsupported(check: Check, backend: Backend) -> str | None:
    reason = backend.supports(check.op, check.case.dtype, check.options, check.case.arrays)
    if reason is None and check.outputs and not _judged(check, backend):
        return f"it does not return {', '.join(check.outputs)}"
    return reason


def _judged(check: Check, backend: Backend) -> list[str]:
    returned = backend.outputs(check.op)
    return [name for name in check.outputs if name in returned]


def _judge_valid(check: Check, backend: Backend, answer: Answer) -> Judgement:
    if answer.raised:
        return "error", line(answer.raised), None
    verdicts = [_compare(check, answer, name) for name in _judged(check, backend)]
    verdicts += [differs("modified", _modified(answer))] if answer.modified else []
    if all(verdict.ok for verdict in verdicts):
        breaks = (laws.broken(law, check, backend, answer) for law in check.case.laws)
        verdicts += [verdict for verdict in breaks if verdict is not None]
    worst = max(verdicts, key=lambda verdict: (not verdict.ok, verdict.ratio))
    return ("pass", "", worst) if worst.ok else ("differs", worst.message, worst)


def _judge_invalid(check: Check, backend: Backend, answer: Answer) -> Judgement:
    """An invalid call has to raise its own kind of error, and to say what has to be said."""
    error, kind = answer.raised, check.case.raises
    if error is None:
        return "differs", f"nothing was raised, expected {kind}", None
    missing = [words for words in check.case.says if words not in str(error)] if backend.explains else []
    if not _is_kind(error, kind):
        return "differs", f"expected {kind}, raised {line(error)}", None
    if missing:
        return "differs", f"the message lacks {missing[0]!r}: {line(error)}", None
    if answer.modified:
        return "differs", _modified(answer), None
    return "pass", line(error), None


def _judge_either(check: Check, backend: Backend, answer: Answer) -> Judgement:
    return "either", line(answer.raised) if answer.raised else "the call returns", None


_JUDGES = {"valid": _judge_valid, "invalid": _judge_invalid, "either": _judge_either}


def _compare(check: Check, answer: Answer, name: str) -> Verdict:
    if name not in answer.outputs:
        return differs("kind", f"{name}: it is missing from what the call returned")
    verdict = compare(check.case.expect[name], answer.outputs[name], own=name not in answer.foreign)
    return replace(verdict, message=f"{name}: {verdict.message}")


def _is_kind(error: Exception, kind: str | None) -> bool:
    """Tell whether an error is of that kind, and of no other kind that the contract tells apart from it."""
    return [name for name in ERRORS if isinstance(error, getattr(builtins, name))] == [kind]


def _modified(answer: Answer) -> str:
    return f"the call modified its argument {', '.join(answer.modified)}"
