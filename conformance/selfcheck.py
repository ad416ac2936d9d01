"""The judge judges answers whose verdict is known before it is believed in a run: a broken judge is found at once."""

from __future__ import annotations

import numpy as np

from conformance.asking import Answer, Raised, Reply
from conformance.judging import settle
from conformance.loading import Case, Check, Expected

_VALUES = np.array([1.0, 0.0, np.nan])
_EXPECTED = Expected("float32", (3,), _VALUES, np.array([1e-6, 0.0, 0.0]))
_NAMES = {"id": "miniature", "file": "", "fact": "", "clauses": (), "flags": (), "op": "merge_heads"}
_FIELDS = _NAMES | {"dtype": "float32", "arrays": {}, "options": {}}
_CASE = Case(**_FIELDS, laws=("repeat",), verdict="valid", expect={"x": _EXPECTED})
_INVALID = Case(**_FIELDS, laws=(), verdict="invalid", raises="ValueError")


def _answer(*numbers: float, dtype: str = "float32") -> Answer:
    return Answer({"x": np.array(numbers, dtype)})


_RIGHT = _answer(1, 0, np.nan)

# What each answer is, the case, the answers, and what the judge has to find in it.
MINIATURES = (
    ("a right answer", _CASE, (_RIGHT, _RIGHT), "pass"),
    ("a number that is two budgets off", _CASE, (_answer(1 + 2e-6, 0, np.nan),), "values"),
    ("a number that has to be exact and is not", _CASE, (_answer(1, 1e-30, np.nan),), "values"),
    ("a NaN in the place of a number", _CASE, (_answer(np.nan, 0, np.nan),), "non-finite"),
    ("a number in the place of a NaN", _CASE, (_answer(1, 0, 0),), "non-finite"),
    ("another dtype", _CASE, (_answer(1, 0, np.nan, dtype="float64"),), "dtype"),
    ("another shape", _CASE, (_answer(1, 0),), "shape"),
    ("no output", _CASE, (Answer(),), "kind"),
    ("other bits in the second call", _CASE, (_RIGHT, _answer(1 + 2e-7, 0, np.nan)), "repeat"),
    ("an argument that was modified", _CASE, (Answer(_RIGHT.outputs, modified=("x",)),), "modified"),
    ("an output that is an argument", _CASE, (Answer(_RIGHT.outputs, shared={"x": "x"}),), "shared"),
    ("an output that did not last", _CASE, (Answer(_RIGHT.outputs, overwritten=("x",)),), "overwritten"),
    ("an error where a value is due", _CASE, (Answer(raised=Raised(("ValueError",), "", "")),), "error"),
    ("an error of the right kind", _INVALID, (Answer(raised=Raised(("ValueError",), "", "")),), "pass"),
    ("an error of another kind", _INVALID, (Answer(raised=Raised(("TypeError",), "", "")),), "differs"),
    ("no error where one is due", _INVALID, (_RIGHT,), "differs"),
)


def fault() -> str | None:
    """Name the first answer that the judge takes for something else than it is, or give None."""
    for what, case, answers, due in MINIATURES:
        result = settle(Check(case.id, case, case.op, {}, tuple(case.expect)), "miniature", Reply(answers, ("x",)))
        found = result.worst.what if result.worst is not None and not result.worst.ok else result.outcome
        if found != due:
            return f"{what} is judged as {found}, which is {due}"
    return None
