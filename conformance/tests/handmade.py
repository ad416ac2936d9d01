"""Cases and results made by hand, so that what is reported of them is known beforehand."""

from __future__ import annotations

import numpy as np

from conformance.compare import Verdict
from conformance.loading import Case, Expected
from conformance.results import Result

FLAGS = {"mask-inverted": {"bug": "True is read as hide", "effect": "the wrong keys are seen", "source": ""}}


def case(name: str, *, wrong: bool = False, clauses: tuple[str, ...] = ("C5", "D4"), file: str = "masks") -> Case:
    """Queries of zeros see the keys causally, and share their weight among them, unless the case is `wrong`."""
    q, k = np.zeros((4, 3), np.float32), np.ones((6, 3), np.float32)
    values = np.tri(4, 6) / np.arange(1, 5)[:, None]
    values[0, 0] = 7.0 if wrong else 1.0
    out = Expected("float32", values.shape, values, np.full(values.shape, 1e-6))
    return Case(
        id=name,
        file=file,
        fact="The first query sees the first key.",
        clauses=clauses,
        flags=("mask-inverted",),
        op="attention",
        dtype="float32",
        arrays={"q": q, "k": k, "v": np.eye(6, dtype=np.float32)},
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
