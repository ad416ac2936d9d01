"""The JAX implementation under the user's jit, without jit, and its flash_attention in the place of attention."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from conformance.adapter import Failed, Unsupported
from conformance.adapters import tracing
from conformance.adapters.flash import ByFlash
from conformance.adapters.jax import Jax
from impl_jax import Mask


class Jitted(Jax):
    """Each public function of impl_jax inside of one jax.jit: arrays and rules are traced, the rest is constant."""

    name = "jax:jit"

    def __init__(self) -> None:
        super().__init__()
        self._jitted: dict[str, Callable[..., Any]] = {}
        self._traced: set[str] = set()

    def supports(self, op: str, dtype: str, options: dict[str, Any], arrays: dict[str, Any]) -> str | None:
        """Leave out what needs values."""
        if op == "mask_picture":
            return "a picture needs values, which cannot be seen while they are traced"
        return tracing.hidden_value(arrays)

    def _run(self, op: str, arguments: dict[str, Any]) -> Any:
        """Call the jitted function; raises Failed if it ran on values, without a trace."""
        traced = {name: value for name, value in arguments.items() if isinstance(value, jax.Array | Mask)}
        constant = {name: value for name, value in arguments.items() if name not in traced}
        key = f"{op} {constant}"
        if key not in self._jitted:
            self._jitted[key] = jax.jit(lambda one, given: self._body(key, one, op, constant | given))
        returned = self._jitted[key](jnp.ones(()), traced)
        if key not in self._traced:
            raise Failed("jax.jit traced nothing")
        return returned

    def _body(self, key: str, one: jax.Array, op: str, arguments: dict[str, Any]) -> Any:
        if isinstance(one, jax.core.Tracer):
            self._traced.add(key)
        return super()._run(op, arguments)


class Eager(Jax):
    """impl_jax with jax.disable_jit(): every line runs on values."""

    name = "jax:eager"

    def supports(self, op: str, dtype: str, options: dict[str, Any], arrays: dict[str, Any]) -> str | None:
        """Leave out what would take minutes, line by line."""
        if op in ("flash_attention", "attention_vjp"):
            return "loops over tiles and derivatives take minutes without jit"
        return None

    def _run(self, op: str, arguments: dict[str, Any]) -> Any:
        """Call the function; raises Failed if a jit inside of it would still be traced, Unsupported if JAX says so."""
        with jax.disable_jit():
            if jax.jit(lambda one: isinstance(one, jax.core.Tracer))(jnp.ones(())):
                raise Failed("jax.disable_jit had no effect")
            try:
                return super()._run(op, arguments)
            except ValueError as error:
                if "not supported in disable_jit() mode" in str(error):  # a scan of no steps
                    raise Unsupported(str(error)) from None
                raise


class Flash(ByFlash, Jax):
    """impl_jax.flash_attention."""

    name = "jax:flash"
