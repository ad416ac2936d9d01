"""Judge what a learner found against a wrong function: an input on which it fails, or a property that it lacks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from conformance.adapter import find
from conformance.asking import Answer
from conformance.budget import expected
from conformance.compare import Verdict, compare
from conformance.grading.exercise import Break, Catch
from conformance.grading.finding import RIGHT, WRONG, Finding, advice, not_started
from conformance.grading.learner import ARRAYS, Submission, Written, answered, imported, is_unwritten, told
from conformance.grading.properties import PROPERTIES, Property, Trial
from conformance.judging import judge
from conformance.loading import Case, checks
from conformance.mutants import Altered, mutants

LARGEST = 128  # numbers in one array: what is expected of attention is computed number by number
OUTPUTS = ("out", "weights")
GENERAL = (
    "returns-arrays",
    "dtype-kept",
    "has-the-shape",
    "inputs-unchanged",
    "stays-finite",
    "rows-sum-to-1",
    "hidden-weights-are-0",
    "empty-rows-are-0",
    "hidden-changes-nothing",
)


# --- an input on which a given function fails ---


def break_(task: Break, submission: Submission) -> Finding:
    """Accept the input if attention computes it and the given function gets it wrong."""
    function = submission.names.get(task.function)
    if not callable(function):
        return _wrong(task, submission, f"the file defines no function {task.function}", "is-defined")
    try:
        returned = function()
    except (Exception, SystemExit) as error:
        if is_unwritten(error, submission.path):
            return not_started(task.function, task.asks)
        return _wrong(task, submission, f"it raises {told(error, submission.path)}", "runs")
    given = tuple(returned) if isinstance(returned, (tuple, list)) else (returned,)
    if problem := _unfit(task, submission.framework, given):
        return _wrong(task, submission, problem, "is-an-input")
    return _tried(task, submission, _arrays(task, submission.framework, given))


def _unfit(task: Break, framework: str, given: tuple[Any, ...]) -> str | None:
    """Say why this cannot be the input, or None if it can."""
    own = ARRAYS[framework]()
    if len(given) != len(task.arguments):
        got = ", ".join(type(value).__name__ for value in given) or "nothing"
        return f"it has to return {', '.join(task.arguments)}, and returns {got}"
    for name, value in zip(task.arguments, given, strict=True):
        if not own.is_own(value):
            return f"{name} is a {type(value).__name__}; it has to be an array of {framework}"
        if (dtype := own.to_numpy(value).dtype) != np.float32:
            return f"{name} has the dtype {dtype.name}; it has to be float32"
        if np.prod(value.shape) > LARGEST:
            return f"{name} has the shape {tuple(value.shape)}; a smaller input will do, of at most {LARGEST} numbers"
        if task.finite and not np.isfinite(own.to_numpy(value)).all():
            return f"{name} holds NaN or an infinity; find numbers"
    return None


def _arrays(task: Break, framework: str, given: tuple[Any, ...]) -> dict[str, np.ndarray]:
    own = ARRAYS[framework]()
    arrays = {name: own.to_numpy(value) for name, value in zip(task.arguments, given, strict=True)}
    return arrays | {name: arrays[other] for name, other in task.copies.items()}


def _tried(task: Break, submission: Submission, arrays: dict[str, np.ndarray]) -> Finding:
    """Put the input to attention itself, then to the wrong function."""
    if raised := answered(find("numpy"), task.operation, arrays | task.options, task.returns).raised:
        return _wrong(task, submission, f"attention itself refuses this input: {raised.line}", "is-an-input")
    path = submission.path.with_name(f"given_{submission.framework}.py")
    wrong = Written(submission.framework, imported(path)[task.wrong], task.arguments, task.returns)
    answer = answered(wrong, task.operation, {name: arrays[name] for name in task.arguments}, task.returns)
    if wrong.error:
        return _wrong(task, submission, f"{task.wrong} cannot compute it: {told(wrong.error, path)}", "is-an-input")
    due = expected(task.operation, arrays, task.options)
    verdicts = {name: compare(due[name], answer.outputs[name]) for name in task.returns}
    return _settled(task, submission, verdicts)


def _settled(task: Break, submission: Submission, verdicts: dict[str, Verdict]) -> Finding:
    for name, verdict in verdicts.items():
        if not verdict.ok:
            return Finding(task.function, RIGHT, f"{task.wrong} fails on it: {name}: {verdict.message}")
    worst = max(verdicts.values(), key=lambda verdict: verdict.ratio)
    return _wrong(task, submission, f"{task.wrong} gets this input right: {worst.message}", "breaks-it")


# --- a property or a case that a mutant does not survive ---


def catch(task: Catch, submission: Submission, cases: Sequence[Case]) -> Finding:
    """Accept the name of a property or a case on which the mutant fails."""
    guess = submission.names.get(task.name, ...)
    if guess is ...:
        return not_started(task.name, task.asks)
    mutant = next(mutant for mutant in mutants() if mutant.name == task.mutant)
    case = next((case for case in cases if case.id == guess), None)
    if case is None and guess not in GENERAL:
        said = f"{guess!r} is neither a case nor one of the properties {', '.join(GENERAL)}"
        return _wrong(task, submission, said, "is-a-check")
    backend = mutant.backend()
    found = caught_by_case(case, backend) if case else caught_by_property(PROPERTIES[guess], backend, cases)
    if found:
        return Finding(task.name, RIGHT, f"{guess} sees it: {found}")
    return _wrong(task, submission, f"{guess} does not see it: {mutant.wrong}", "catches-it")


def caught_by_property(wanted: Property, backend: Altered, cases: Sequence[Case]) -> str | None:
    """Say on which case of attention the backend lacks the property, or None."""
    for case in cases:
        if case.op == "attention" and case.dtype == "float32" and case.verdict == "valid":
            trial = _trial(case, backend)
            if not trial.answer.raised and (verdict := wanted.breaks(trial)) is not None:
                return f"{case.id}: {verdict.message}"
    return None


def _trial(case: Case, backend: Altered) -> Trial:
    def ask(arrays: dict[str, np.ndarray]) -> Answer:
        return answered(backend, case.op, arrays | case.options, OUTPUTS)

    return Trial(case, OUTPUTS, ask(case.arrays), ask)


def caught_by_case(case: Case, backend: Altered) -> str | None:
    """Say what the case finds wrong with the backend, or None."""
    results = [judge(check, backend) for check in checks(case)]
    return next((result.reason for result in results if result.outcome in ("differs", "error")), None)


def _wrong(task: Break | Catch, submission: Submission, said: str, lacks: str) -> Finding:
    name = task.function if isinstance(task, Break) else task.name
    notes = (("asked", task.asks), *advice(submission.exercise.page, task))
    return Finding(name, WRONG, said, lacks, notes)
