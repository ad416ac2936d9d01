"""Grade a learner's own file with the suite's own cases: python -m conformance grade FILE.

The exercises are folders of docs/exercises; grading.exercise says what is in one.
"""

from __future__ import annotations

from functools import cache

from conformance.grading import breaking, implement, predict
from conformance.grading.exercise import Break, Catch, Predict, Task
from conformance.grading.finding import NOT_STARTED, RIGHT, WRONG, Finding
from conformance.grading.learner import Submission, Unusable, submission
from conformance.loading import Case, load_cases

__all__ = ["EXIT_CODES", "Finding", "Submission", "Unusable", "grade", "submission"]

EXIT_CODES = {RIGHT: 0, WRONG: 1, NOT_STARTED: 3}


def grade(answer: Submission) -> list[Finding]:
    """Judge every task of the exercise that the file answers."""
    cases = _cases()
    return [_grade(task, answer, cases) for task in answer.exercise.tasks]


_cases = cache(load_cases)


def _grade(task: Task, answer: Submission, cases: list[Case]) -> Finding:
    if isinstance(task, Predict):
        return predict.grade(task, answer)
    if isinstance(task, Break):
        return breaking.break_(task, answer)
    if isinstance(task, Catch):
        return breaking.catch(task, answer, cases)
    return implement.grade(task, answer, cases)
