"""What a mutant is: an honest attention of which one step is wrong, and the flags of the cases that must notice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from conformance.adapters.numpy import NumPy
from conformance.mutants.memory import Honest


class Altered(NumPy):
    """An honest.Attention in the place of a package, as a backend that takes the same route as any other."""

    def __init__(self, name: str = "honest", package: Honest | None = None) -> None:
        self.name, self.package = name, package or Honest()

    def call(self, op: str, arrays: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
        """Call the operation; NumPy's warnings do not matter, since what comes of it is judged."""
        try:
            with np.errstate(all="ignore"):
                return super().call(op, *self.package.accepted(op, arrays, options))
        except (TypeError, ValueError) as error:
            raise self.package.refused(error) from error


@dataclass(frozen=True)
class Mutant:
    """A wrong attention: `step` names the method of Honest that `function` replaces.

    Each of the `flags` names a bug, and at least one case that carries it has to reject this mutant. `wrong` says
    in a sentence what it does.
    """

    name: str
    flags: tuple[str, ...]
    wrong: str
    step: str
    function: Callable[..., Any]

    def backend(self) -> Altered:
        """The mutant as a backend, in its first state."""
        return Altered(self.name, type("Wrong", (Honest,), {self.step: self.function})())


def replaces(step: str, *flags: str) -> Callable[[Callable[..., Any]], Mutant]:
    """Make a mutant of the function below: its name and first line tell what is wrong, it takes the step's place."""
    if not hasattr(Honest, step):
        raise ValueError(f"an honest attention has no step {step!r}")

    def make(function: Callable[..., Any]) -> Mutant:
        return Mutant(function.__name__.replace("_", "-"), flags, function.__doc__.splitlines()[0], step, function)

    return make


def pairs_of(arrays: dict[str, Any]) -> tuple[int, ...]:
    """The numbers of queries and keys (T, S) of a call, or () where it has none."""
    queries, keys = arrays.get("q", arrays.get("query")), arrays.get("k", arrays.get("keys"))
    return (queries.shape[-2], keys.shape[-2]) if np.ndim(queries) > 1 and np.ndim(keys) > 1 else ()


def respelled(options: dict[str, Any], change: Callable[[dict], dict]) -> dict[str, Any]:
    """The options with every part of the mask rule's spelling changed, the innermost first."""

    def walk(spec: dict[str, Any]) -> dict[str, Any]:
        return change(spec | {"of": [walk(part) for part in spec["of"]]} if "of" in spec else spec)

    return options | {"mask": walk(options["mask"])} if options.get("mask") else options
