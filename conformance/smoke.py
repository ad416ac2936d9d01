"""Five cases for the first contact with a backend: they tell a bad adapter from a bad backend."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from conformance.loading import Check
from conformance.results import Result

# The ids of the cases, from the simplest on, and what it means if the first failure is there.
STEPS = {
    "one-key": "With one key the answer is its value: the adapter hands over or brings back something else. "
    "Look at from_numpy, call, to_numpy and outputs before anything else.",
    "plain-float32": "All sizes differ: q, k and v are confused or an axis is, or the scale 1/sqrt(D) is missing.",
    "plain-float64": "The adapter turns float64 into float32 on the way, or the backend computes in float32.",
    "true-may-attend": "The mask does not arrive, or True hides there: the adapter has to turn it round.",
    "scale-zero": "An option does not arrive, or a scale of 0 is taken for none: look at how call passes options.",
}


def only(checks: Sequence[Check]) -> list[Check]:
    """Keep the five, in their order. Raises ValueError where none of them is there."""
    by_name = {check.name: check for check in checks}
    found = [by_name[name] for name in STEPS if name in by_name]
    if not found:
        raise ValueError(f"none of the smoke cases matches: {', '.join(STEPS)}. Loosen the filters.")
    return found


def show(results: Sequence[Result], console: Console) -> None:
    """Print for each backend what came of the five, and what the first failure means."""
    for backend in dict.fromkeys(result.backend for result in results):
        console.print(f"\n[bold]Smoke test of {backend}[/]")
        own = [result for result in results if result.backend == backend]
        for result in own:
            console.print(Text.assemble(f"  {result.outcome:12}", result.check, (f"  {result.reason}", "dim")))
        if failed := next((result for result in own if result.outcome in ("differs", "error")), None):
            console.print(Text(f"{failed.case}: {STEPS[failed.case]}", "red"))
        else:
            console.print(Text("Nothing speaks against the adapter: what fails from here on is the backend.", "green"))
