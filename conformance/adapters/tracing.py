"""What cannot be asked of a function while it is traced: its arrays have no values then (contract D1)."""

from __future__ import annotations

from typing import Any

import numpy as np


def hidden_value(arrays: dict[str, Any]) -> str | None:
    """Tell why a mask is refused, or wrongly taken, because tracing hides its values; None if it is not."""
    mask = arrays.get("mask")
    if not isinstance(mask, np.ndarray) or np.iscomplexobj(mask):
        return None
    if mask.dtype.kind not in "biu":
        return "a float mask is refused while it is traced, since its values cannot be seen (D1)"
    if not np.isin(mask, (0, 1)).all():
        return "the values of an integer mask cannot be seen while it is traced (D1)"
    return None
