"""The judge: cases, an oracle and error budgets for attention, masking and retrieval."""

from __future__ import annotations

from typing import Any

__all__ = ["assert_attention_close"]


def __getattr__(name: str) -> Any:
    # The assertion needs the oracle, which the other modules of the judge are imported without.
    if name in __all__:
        from conformance import asserting

        return getattr(asserting, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
