"""What the variants numpy:flash, torch:flash and jax:flash share: attention is answered by flash_attention."""

from __future__ import annotations

from typing import Any

from conformance.adapter import Failed
from conformance.contract import OPERATIONS


class ByFlash:
    """Mixed into a `Mirror`: its attention returns out and lse, computed tile by tile."""

    def supports(self, op: str, dtype: str, options: dict[str, Any], arrays: dict[str, Any]) -> str | None:
        """Leave the other operations to the backend itself."""
        return None if op == "attention" else "flash_attention answers attention only"

    def outputs(self, op: str) -> tuple[str, ...]:
        """Out and lse."""
        return OPERATIONS["flash_attention"].outputs

    def call(self, op: str, arrays: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
        """Call flash_attention; raises Failed if another function has answered, which would not return lse."""
        outputs = super().call("flash_attention", arrays, options)
        if "lse" not in outputs:
            raise Failed("flash_attention did not run: there is no lse")
        return outputs
