"""What was found about one task of an exercise."""

from __future__ import annotations

from dataclasses import dataclass

RIGHT, WRONG, NOT_STARTED = "right", "wrong", "not started"


@dataclass(frozen=True)
class Finding:
    """The outcome of a task, and what to say about it.

    `said` is one sentence. Of a wrong answer, `lacks` names the property that it has not got and `notes` are further
    lines, each with a heading: the input, what to think about, where to read on.
    """

    task: str
    outcome: str
    said: str
    lacks: str = ""
    notes: tuple[tuple[str, str], ...] = ()


def not_started(task: str, asks: str) -> Finding:
    """The finding of a task whose stub is as it was."""
    return Finding(task, NOT_STARTED, asks)


def reading(page: str, section: str, clause: str = "") -> str:
    """Name the page and, if they are known, its section and the clause of the contract."""
    where = f'docs/{page}.md, "{section}"' if section else f"docs/{page}.md"
    return f"{where}; docs/contract.md, {clause}" if clause else where


def advice(page: str, task_or_demand, clause: str = "") -> tuple[tuple[str, str], ...]:
    """Give the notes that lead on: the hint, if there is one, and where to read."""
    hint = (("hint", task_or_demand.hint),) if task_or_demand.hint else ()
    return (*hint, ("read on", reading(page, task_or_demand.section, clause)))
