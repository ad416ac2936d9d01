"""Judge a function that a learner has written: property by property, each from the smallest input to the largest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from conformance.asking import Answer, line
from conformance.budget import expected
from conformance.compare import Verdict
from conformance.grading.exercise import Demand, Implement, chosen, size
from conformance.grading.finding import RIGHT, WRONG, Finding, advice, not_started
from conformance.grading.learner import Submission, Written, answered, is_unwritten, place, remedy
from conformance.grading.properties import PROPERTIES, Trial
from conformance.loading import Case

FIRST = ("returns-arrays", "dtype-kept", "has-the-shape", "inputs-unchanged")
LAST = ("values",)
SMALL = 8  # an array of so many numbers is printed, a larger one is told by its shape


@dataclass(frozen=True)
class Attempt:
    """A trial of the learner's function, and what it raised."""

    trial: Trial
    error: BaseException | None


def grade(task: Implement, submission: Submission, cases: Sequence[Case]) -> Finding:
    """Judge the function of the submission on the cases of the task."""
    function = submission.names.get(task.function)
    if not callable(function):
        return Finding(task.function, WRONG, f"the file defines no function {task.function}", "is-defined")
    written = Written(submission.framework, function, task.arguments, task.returns)
    attempts = [_attempt(task, case, written) for case in _inputs(task, cases)]
    if any(is_unwritten(attempt.error, submission.path) for attempt in attempts):
        return not_started(task.function, task.asks)
    broken = next(_broken(task, submission, attempts), None)
    return broken or Finding(task.function, RIGHT, _checked(task, attempts))


def _broken(task: Implement, submission: Submission, attempts: Sequence[Attempt]) -> Iterator[Finding]:
    """Give what is wrong, the most telling property first."""
    for attempt in attempts:
        if attempt.error:
            yield _raises(task, submission, attempt)
    for demand in demands(task):
        for trial in (attempt.trial for attempt in attempts if _tells(task, demand, attempt.trial.case)):
            if (verdict := _verdict(demand, trial)) is not None:
                yield _lacks(task, submission, demand, trial, verdict)


def demands(task: Implement) -> list[Demand]:
    """Give all that is demanded of the function, in the order in which it is looked for."""
    own = {demand.name: demand for demand in task.properties}
    general = {name: own.get(name) or Demand(name) for name in (*FIRST, *LAST)}
    middle = [demand for demand in task.properties if demand.name not in general]
    return [*(general[name] for name in FIRST), *middle, *(general[name] for name in LAST)]


def _tells(task: Implement, demand: Demand, case: Case) -> bool:
    """Tell whether the case shows the property; the cases of one demand are left to it and to the general ones."""
    if demand.cases or demand.name in (*FIRST, *LAST):
        return not demand.cases or case.id in demand.cases
    return case.id in task.cases or all(case.id not in other.cases for other in task.properties)


def _verdict(demand: Demand, trial: Trial) -> Verdict | None:
    """Give the verdict of a trial that lacks the property, None if it has it."""
    if not demand.cases:
        return PROPERTIES[demand.name].breaks(trial)
    return next((verdict for verdict in trial.verdicts(demand.outputs) if not verdict.ok), None)


# --- the inputs ---


def _inputs(task: Implement, cases: Sequence[Case]) -> list[Case]:
    whole = chosen(task, cases)
    return sorted([*whole, *(_resized(case, length) for case in whole for length in task.lengths)], key=size)


def _resized(case: Case, length: int) -> Case:
    """The case with sequences of that length, and what is then expected; arrays can only be cut."""
    arrays = {name: array[..., :length, :] for name, array in case.arrays.items()}
    options = case.options | ({"T": length, "S": length} if case.op == "mask_array" else {})
    name = f"{case.id}, with a length of {length}"
    return replace(case, id=name, arrays=arrays, options=options, expect=expected(case.op, arrays, options))


def _attempt(task: Implement, case: Case, written: Written) -> Attempt:
    def ask(arrays: dict[str, np.ndarray]) -> Answer:
        given = task.defaults | named(replace(case, arrays=arrays))
        return answered(written, task.operation, {name: given[name] for name in task.arguments}, task.returns)

    answer = ask(case.arrays)
    return Attempt(Trial(case, task.returns, answer, ask), written.error)


def named(case: Case) -> dict[str, Any]:
    """Everything that a case gives, by name; a mask gives the positions i and j of its pairs and its rule's numbers."""
    given = case.arrays | case.options
    if case.op == "mask_array":
        i, j = np.indices((case.options["T"], case.options["S"]))
        given |= {"i": i, "j": j} | _numbers(case.options["mask"])
    return {name: _narrowed(value) for name, value in given.items()}


def _narrowed(value: Any) -> Any:
    """Integers of 32 bits: those of 64 are not what JAX has, unless it is told to."""
    is_wide = isinstance(value, np.ndarray) and value.dtype == np.int64
    return value.astype(np.int32) if is_wide else value


def _numbers(rule: dict[str, Any]) -> dict[str, int]:
    """The numbers of a rule and of the rules that it joins."""
    own = {name: value for name, value in rule.items() if isinstance(value, int)}
    for part in rule.get("of", ()):
        own |= _numbers(part)
    return own


# --- what is said ---


def _raises(task: Implement, submission: Submission, attempt: Attempt) -> Finding:
    said = f"runs: it raises {line(attempt.error)}"
    source = (("at", place(attempt.error, submission.path)),)
    axes = max((np.ndim(value) for value in named(attempt.trial.case).values()), default=0)
    demand = Demand("runs", hint=remedy(attempt.error, submission.path, axes))
    notes = (*_input(task, attempt.trial.case), *source, *advice(submission.exercise.page, demand))
    return Finding(task.function, WRONG, said, "runs", notes)


def _lacks(task: Implement, submission: Submission, demand: Demand, trial: Trial, verdict: Verdict) -> Finding:
    of_the_case = demand.cases or demand.name in LAST
    clause = trial.case.clauses[0] if of_the_case else PROPERTIES[demand.name].clause
    notes = (*_input(task, trial.case), ("found", verdict.message), *_pictures(trial, verdict))
    said = f"{demand.name}: {demand.says or PROPERTIES[demand.name].says}"
    return Finding(task.function, WRONG, said, demand.name, (*notes, *advice(submission.exercise.page, demand, clause)))


def _input(task: Implement, case: Case) -> Iterator[tuple[str, str]]:
    given = task.defaults | named(case)
    yield "input", ", ".join(f"{name} {_shown(given[name])}" for name in task.arguments)
    yield "case", case.id if "," in case.id else f"{case.id} (python -m conformance show {case.id})"


def _shown(value: Any) -> str:
    if not isinstance(value, np.ndarray):
        return f"= {value}"
    if value.size > SMALL:
        return str(value.shape)
    numbers = np.array2string(value, separator=", ", precision=4, floatmode="maxprec")
    return f"{value.shape} = {' '.join(numbers.split())}"


def _pictures(trial: Trial, verdict: Verdict) -> Iterator[tuple[str, str]]:
    """Draw a mask beside the one that is expected, # visible and . hidden."""
    if trial.case.op == "mask_array" and verdict.what == "values":
        yield "expected", _drawn(trial.case.expect["array"].values)
        yield "got", _drawn(trial.answer.outputs["array"])


def _drawn(mask: np.ndarray) -> str:
    return "\n".join("".join(".#"[int(visible)] for visible in row) for row in mask)


def _checked(task: Implement, attempts: Sequence[Attempt]) -> str:
    given = named(attempts[-1].trial.case)
    shapes = ", ".join(f"{name} {np.shape(given[name])}" for name in task.arguments if np.shape(given.get(name)))
    names = ", ".join(demand.name for demand in demands(task))
    return f"checked on inputs up to {shapes}: {names}"
