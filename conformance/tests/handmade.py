"""Cases and results made by hand, so that what is reported of them is known beforehand."""

from __future__ import annotations

import numpy as np

from conformance.compare import Verdict
from conformance.loading import Case, Expected
from conformance.results import Result

FLAGS = {"mask-inverted": {"bug": "True is read as hide", "effect": "the wrong keys are seen", "source": ""}}


def case(name: str, *, wrong: bool = False, clauses: tuple[str, ...] = ("C5", "D4"), file: str = "masks") -> Case:
    """A query of zeros sees two keys, causally: it takes the first, or so is expected if this is not `wrong`."""
    q, k = np.zeros((1, 3), np.float32), np.ones((2, 3), np.float32)
    out = Expected("float32", (1, 2), np.array([[7.0 if wrong else 1.0, 0.0]]), np.full((1, 2), 1e-6))
    return Case(
        id=name,
        file=file,
        fact="The first query sees the first key.",
        clauses=clauses,
        flags=("mask-inverted",),
        op="attention",
        dtype="float32",
        arrays={"q": q, "k": k, "v": np.eye(2, dtype=np.float32)},
        options={"mask": {"rule": "causal", "offset": 0}},
        laws=(),
        verdict="valid",
        expect={"out": out},
    )


def result(case: Case, backend: str = "numpy", outcome: str = "pass", ratio: float | None = 0.25, **more) -> Result:
    """A result with one output, out, that lies `ratio` budgets beside what is expected."""
    worst, reason = None, more.pop("reason", "")
    out = case.expect["out"]
    if ratio is not None:
        got = float(out.values[0, 0] + ratio * 1e-6)
        reason = reason or ("" if outcome == "pass" else f"out: the worst by {ratio:.3g} budgets")
        worst = Verdict(outcome == "pass", "values", ratio, reason, (0, 0), float(out.values[0, 0]), got, 1e-6)
    outputs = {"out": out.values + (ratio or 0.0) * 1e-6}
    names = backend, case.id, case.id, case.clauses, case.flags, case.op
    return Result(*names, outcome, reason, worst, 1.0, outputs, **more)
