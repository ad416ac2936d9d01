"""Judge one check on one backend: put the question, and compare what came of it with what the case says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from conformance import laws
from conformance.adapter import Backend
from conformance.asking import Answer, Question, Reply, ask
from conformance.compare import Verdict, compare, differs
from conformance.loading import Check
from conformance.results import Result


def judge(check: Check, backend: Backend) -> Result:
    """Run the check on a backend of this process; whatever the backend raises becomes part of the result."""
    return settle(check, backend.name, ask(question(check), backend))


def question(check: Check) -> Question:
    """Say what a backend is asked for this check; what is expected of it is left out."""
    case = check.case
    calls = (case.arrays, *(laws.calls(check) if case.verdict == "valid" else ()))
    return Question(check.op, case.dtype, check.options, calls, check.outputs, case.verdict == "invalid")


def settle(check: Check, name: str, reply: Reply) -> Result:
    """Give the result of the check on the backend of that name, which gave this reply."""
    if reply.unsupported is not None:
        return Result.of(check, name, "unsupported", reply.unsupported)
    if reply.failed is not None:
        return Result.of(check, name, "error", reply.failed)
    outcome, reason, worst = _JUDGES[check.case.verdict](check, reply)
    first = reply.answers[0]
    outputs = {name: value for name, value in first.outputs.items() if isinstance(value, (np.ndarray, str))}
    return replace(Result.of(check, name, outcome, reason), worst=worst, ms=first.ms, outputs=outputs)


Judgement = tuple[str, str, "Verdict | None"]


def _judge_valid(check: Check, reply: Reply) -> Judgement:
    first = reply.answers[0]
    if first.raised:
        return "error", first.raised.line, None
    verdicts = [_compare(check, first, name) for name in check.outputs if name in reply.returns]
    verdicts += [differs(what, message) for what, message in _of_memory(first)]
    if all(verdict.ok for verdict in verdicts):
        broken = laws.broken(check, reply.answers)
        verdicts += [] if broken is None else [broken]
    worst = max(verdicts, key=lambda verdict: (not verdict.ok, verdict.ratio))
    return ("pass", "", worst) if worst.ok else ("differs", worst.message, worst)


def _judge_invalid(check: Check, reply: Reply) -> Judgement:
    """An invalid call has to raise its own kind of error, and to say what has to be said."""
    answer, kind = reply.answers[0], check.case.raises
    if answer.raised is None:
        return "differs", f"nothing was raised, expected {kind}", None
    # An error that is of two kinds says neither.
    if answer.raised.kinds != (kind,):
        return "differs", f"expected {kind}, raised {answer.raised.line}", None
    missing = [words for words in check.case.says if words not in answer.raised.text] if reply.explains else []
    if missing:
        return "differs", f"the message lacks {missing[0]!r}: {answer.raised.line}", None
    if answer.modified:
        return "differs", _modified(answer), None
    return "pass", answer.raised.line, None


def _judge_either(check: Check, reply: Reply) -> Judgement:
    raised = reply.answers[0].raised
    return "either", raised.line if raised else "the call returns", None


_JUDGES = {"valid": _judge_valid, "invalid": _judge_invalid, "either": _judge_either}


def _compare(check: Check, answer: Answer, name: str) -> Verdict:
    if name not in answer.outputs:
        return differs("kind", f"{name}: it is missing from what the call returned")
    verdict = compare(check.case.expect[name], answer.outputs[name])
    shared = _shared(answer, name) + "; " if name in answer.shared and not verdict.ok else ""
    return replace(verdict, message=f"{name}: {shared}{verdict.message}")


def _of_memory(answer: Answer) -> Iterator[tuple[str, str]]:
    """Say what an answer has changed, or has not for itself."""
    if answer.modified:
        yield "modified", _modified(answer)
    for name in answer.shared:
        yield "shared", f"{name}: {_shared(answer, name)}"
    if answer.overwritten:
        yield "overwritten", f"the next call changed what this one had returned: {', '.join(answer.overwritten)}"


def _shared(answer: Answer, name: str) -> str:
    return f"it shares memory with the argument {answer.shared[name]}"


def _modified(answer: Answer) -> str:
    return f"the call modified its argument {', '.join(answer.modified)}"
