"""Compare what a learner predicts with what is computed then."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from conformance.grading.exercise import Predict
from conformance.grading.finding import RIGHT, WRONG, Finding, advice, not_started
from conformance.grading.learner import Submission, imported


@cache
def computed(folder: Path, framework: str) -> dict[str, Any]:
    """The values that the exercise's values.py computes with the implementation of that framework."""
    return imported(folder / "values.py")["values"](framework)


def grade(task: Predict, submission: Submission) -> Finding:
    """Judge the prediction of that name in the submission."""
    guess = submission.names.get(task.name, ...)
    if guess is ...:
        return not_started(task.name, task.asks)
    value = computed(submission.exercise.folder, submission.framework)[task.name]
    within = f", within {task.tolerance:g}" if task.tolerance else ""
    if problem := _problem(task, guess, value):
        notes = (("asked", task.asks), *advice(submission.exercise.page, task))
        return Finding(task.name, WRONG, problem, "prediction", notes)
    return Finding(task.name, RIGHT, f"predicted {_shown(guess)}, computed {_shown(value)}{within}")


def _problem(task: Predict, guess: Any, value: Any) -> str | None:
    """Say what is wrong with a guess, or None; the right value stays unsaid, so that there is a second try."""
    if task.choices and _plain(guess) not in task.choices:
        return f"predicted {guess!r}, which has to be one of {', '.join(map(repr, task.choices))}"
    if agrees(guess, value, task.tolerance):
        return None
    if task.tolerance and not _is_number(guess):
        return f"predicted {_shown(guess)}, and one number is asked for"
    within = f", not within {task.tolerance:g} of it" if task.tolerance else ""
    return f"predicted {_shown(guess)}, and something else is computed{within}"


def agrees(guess: Any, value: Any, tolerance: float) -> bool:
    """Tell whether a number is within the tolerance, anything else equal; a list or an array is as good as a tuple."""
    if not tolerance:
        return _plain(guess) == _plain(value)
    try:
        return abs(float(guess) - float(value)) <= tolerance
    except (TypeError, ValueError):
        return False


def _is_number(guess: Any) -> bool:
    try:
        float(guess)
    except (TypeError, ValueError):
        return False
    return True


def _plain(value: Any) -> Any:
    value = value.tolist() if hasattr(value, "tolist") else value
    return tuple(value) if isinstance(value, (list, tuple)) else value


def _shown(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else repr(value)
