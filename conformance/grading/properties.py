"""Properties that an answer has to have, each looked for on one call: the first break of it is a verdict.

A function here is the property of its name; its docstring says it in one sentence, the number is the clause.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from conformance.asking import Answer
from conformance.budget import expected
from conformance.compare import Foreign, Verdict, compare, different_bits, differs, same_bits, told_apart
from conformance.loading import Case


@dataclass(frozen=True)
class Trial:
    """A call that was made for a case, and the way to make it again with other arrays in the place of some."""

    case: Case
    returns: tuple[str, ...]
    answer: Answer
    again: Callable[[dict[str, np.ndarray]], Answer]

    def verdicts(self, outputs: tuple[str, ...] = ()) -> list[Verdict]:
        """Compare these outputs (none named: all) with what is expected, in their order."""
        return [_compare(self, name) for name in outputs or self.returns]

    def output(self, name: str) -> np.ndarray:
        """An output in float64."""
        return self.answer.outputs[name].astype(np.float64)


@dataclass(frozen=True)
class Property:
    """`breaks` gives the verdict of a trial that lacks the property, else None; `outputs` are those that it reads."""

    name: str
    says: str
    clause: str
    outputs: tuple[str, ...]
    breaks: Callable[[Trial], Verdict | None]


PROPERTIES: dict[str, Property] = {}


def _property(clause: str, *outputs: str) -> Callable[[Callable], Callable]:
    """Make a property of the function below."""

    def make(function: Callable[[Trial], Verdict | None]) -> Callable:
        name = function.__name__.replace("_", "-")
        PROPERTIES[name] = Property(name, function.__doc__, clause, outputs, function)
        return function

    return make


# --- of every answer ---


@_property("A2")
def returns_arrays(trial: Trial) -> Verdict | None:
    """It returns what is asked for, as arrays of its own framework."""
    return _first(trial, "kind")


@_property("A2")
def dtype_kept(trial: Trial) -> Verdict | None:
    """Its outputs have the dtype of its inputs; a mask is boolean."""
    return _first(trial, "dtype")


@_property("A1")
def has_the_shape(trial: Trial) -> Verdict | None:
    """Its outputs have the shape that follows from the shapes of its inputs."""
    return _first(trial, "shape")


@_property("A2")
def inputs_unchanged(trial: Trial) -> Verdict | None:
    """It does not write into its arguments."""
    changed = ", ".join(trial.answer.modified)
    return differs("modified", f"it has changed its argument {changed}") if changed else None


@_property("F1")
def stays_finite(trial: Trial) -> Verdict | None:
    """It gives a number where a number is due, also for scores of 10,000 and without a visible key."""
    return _first(trial, "non-finite")


@_property("E2")
def hidden_changes_nothing(trial: Trial) -> Verdict | None:
    """Whatever stands where nothing is to be seen, be it NaN, changes no output, bit for bit."""
    if "unmoved" not in trial.case.laws:
        return None
    other = trial.again(trial.case.arrays | trial.case.instead)
    for name in trial.returns:
        before, after = trial.answer.outputs[name], other.outputs.get(name)
        if not same_bits(before, after):
            return _moved(name, before, after)
    return None


@_property("F2")
def values(trial: Trial) -> Verdict | None:
    """Its outputs are those of the definition, as far as rounding allows."""
    return next((verdict for verdict in trial.verdicts() if not verdict.ok), None)


# --- of weights ---


@_property("C5", "weights")
def rows_sum_to_1(trial: Trial) -> Verdict | None:
    """The weights of a query sum to 1, if it sees any key."""
    due = trial.case.expect["weights"]
    seen = ~_hidden(trial).all(axis=-1)
    sums, allowed = trial.output("weights").sum(axis=-1), due.budget.sum(axis=-1)
    return _off("the sum of a row of weights", sums, due.values.sum(axis=-1), allowed, where=seen)


@_property("E4", "weights")
def hidden_weights_are_0(trial: Trial) -> Verdict | None:
    """A key that a query does not see has a weight of exactly 0, as long as the query sees another one."""
    hidden = _hidden(trial)
    where = hidden & ~hidden.all(axis=-1, keepdims=True)
    return _off("the weight of a hidden key", trial.output("weights"), 0 * hidden, 0 * hidden, where=where)


@_property("E1", "weights")
def empty_rows_are_0(trial: Trial) -> Verdict | None:
    """A query that sees no key has weights and an output of exactly 0."""
    empty = _hidden(trial).all(axis=-1, keepdims=True)
    for name in (name for name in ("weights", "out") if name in trial.returns):
        got = trial.output(name)
        where = np.broadcast_to(empty, got.shape)
        verdict = _off(f"{name} of a query that sees no key", got, 0 * where, 0 * where, where=where)
        if verdict is not None:
            return verdict
    return None


@_property("C5", "out")
def equal_scores_average(trial: Trial) -> Verdict | None:
    """With q = 0 every score is equal, and the output is the mean of the values in sight."""
    arrays = trial.case.arrays | {"q": np.zeros_like(trial.case.arrays["q"])}
    due = expected(trial.case.op, arrays, trial.case.options)["out"]
    verdict = compare(due, trial.again(arrays).outputs.get("out"))
    return None if verdict.ok else replace(verdict, message=f"out with q = 0: {verdict.message}")


# --- of gradients, and of the update ---


@_property("C5", "dv")
def dv_sums_to_d_out(trial: Trial) -> Verdict | None:
    """The sum of dv over the keys is that of d_out over the queries, since each row of weights sums to 1."""
    due = trial.case.expect["dv"]
    got, allowed = trial.output("dv").sum(axis=-2), due.budget.sum(axis=-2)
    return _off("the sum of dv over the keys", got, due.values.sum(axis=-2), allowed)


@_property("C5", "dk")
def dk_sums_to_0(trial: Trial) -> Verdict | None:
    """The sum of dk over the keys is 0: one vector added to every key changes no weight."""
    got, allowed = trial.output("dk").sum(axis=-2), trial.case.expect["dk"].budget.sum(axis=-2)
    return _off("the sum of dk over the keys", got, 0 * got, allowed)


@_property("G3", "state")
def energy_falls(trial: Trial) -> Verdict | None:
    """No update raises the energy of a state."""
    before = trial.case.expect["energy"]
    there = trial.case.arrays | {"state": trial.answer.outputs["state"]}
    after = expected(trial.case.op, there, trial.case.options | {"steps": 0})["energy"]
    allowed = before.budget[0] + after.budget[0]
    risen = np.maximum(after.values[0], before.values[0])
    return _off("the energy of the new state, where it may not rise,", risen, before.values[0], allowed)


# --- how they are found ---


def _compare(trial: Trial, name: str) -> Verdict:
    if name not in trial.answer.outputs:
        wanted = ", ".join(trial.returns)
        return differs("kind", f"{name}: it is missing, the function has to return {wanted}")
    got = trial.answer.outputs[name]
    if isinstance(got, Foreign) and got.kind == "NoneType":
        return differs("kind", f"{name}: it is None; does the function end with a return?")
    verdict = compare(trial.case.expect[name], got)
    return replace(verdict, message=f"{name}: {verdict.message}")


def _first(trial: Trial, what: str) -> Verdict | None:
    return next((verdict for verdict in trial.verdicts() if verdict.what == what and not verdict.ok), None)


def _moved(name: str, before: np.ndarray, after: Any) -> Verdict:
    """The verdict of an output that has other bits once what is hidden was replaced."""
    if not isinstance(after, np.ndarray) or after.shape != before.shape or after.dtype != before.dtype:
        return differs("unmoved", f"{name}: with other numbers where nothing is to be seen it is no such array")
    index = tuple(int(i) for i in np.argwhere(different_bits(before, after))[0])
    numbers = {"index": index, "expected": before[index].item(), "got": after[index].item()}
    a, b = told_apart(numbers["expected"], numbers["got"])
    message = f"{name}: with other numbers where nothing is to be seen, {a} at {index} becomes {b}"
    return differs("unmoved", message, **numbers)


def _hidden(trial: Trial) -> np.ndarray:
    """Tell which pairs are hidden: a weight there is 0, and no error is forgiven."""
    weights = trial.case.expect["weights"]
    return (weights.values == 0) & (weights.budget == 0)


def _off(what: str, got: Any, due: Any, allowed: Any, where: Any = True) -> Verdict | None:
    """Give the verdict of the first number that is further than allowed from the number that is due."""
    with np.errstate(invalid="ignore"):
        wrong = np.atleast_1d(where & np.isfinite(due) & ~(np.abs(got - due) <= allowed))
    if not wrong.any():
        return None
    index = tuple(int(i) for i in np.argwhere(wrong)[0])
    a, b = (float(np.broadcast_to(x, wrong.shape)[index]) for x in (due, got))
    message = "{} at {}: expected {}, got {}".format(what, index, *told_apart(a, b))
    return differs("property", message, index=index, expected=a, got=b)
