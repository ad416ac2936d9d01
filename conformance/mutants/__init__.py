"""Wrong attentions, retrievals and gradients that the cases have to reject: the judge is proven by them.

Each module holds the mutants of one topic: functions that take the place of one step of honest.Attention.
"""

from __future__ import annotations

import importlib
from functools import cache

from conformance.mutants.record import Altered, Mutant

TOPICS = (
    "scores",
    "masking",
    "positions",
    "weights",
    "leaks",
    "precision",
    "heads",
    "limits",
    "tiles",
    "gradients",
    "merging",
    "retrieving",
    "searching",
    "refusals",
    "shapes",
)

__all__ = ["Altered", "Mutant", "mutants"]


@cache
def mutants() -> tuple[Mutant, ...]:
    """All mutants, topic by topic."""
    modules = [importlib.import_module(f"conformance.mutants.{topic}") for topic in TOPICS]
    return tuple(value for module in modules for value in vars(module).values() if isinstance(value, Mutant))
