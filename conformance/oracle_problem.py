"""The arguments of one attention call, read into lists of numbers: what every operation starts from."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from conformance.arithmetic import Plain
from conformance.facts import compute_dtype
from conformance.grids import Grid, Index, read
from conformance.oracle_rules import rule_grids, rule_visible

Arrays = dict[str, np.ndarray]
Options = dict[str, Any]


@dataclass(frozen=True)
class Problem:
    """The numbers of one call; ``lead`` is the shape of the leading axes, (*B, [H])."""

    arithmetic: Plain
    q: Grid
    k: Grid
    v: Grid
    visible: Callable[[Index], bool]
    bias: Grid | None
    sinks: Grid | None
    scale: Any
    softcap: Any
    lead: Index
    groups: int

    @property
    def rows(self) -> Index:
        """The shape of the queries, (*B, [H,] T)."""
        return (*self.lead, self.q.shape[-2])

    @property
    def keys(self) -> int:
        """How many keys there are, S."""
        return self.k.shape[-2]

    def key_at(self, at: Index, key: int) -> Index:
        """Where a query finds that key and its value: head h looks into head h // groups."""
        lead = at[:-1]
        return (*lead, key) if self.groups == 1 else (*lead[:-1], lead[-1] // self.groups, key)


def read_problem(arrays: Arrays, options: Options, arithmetic: Plain) -> Problem:
    """Read the arguments; q, k and v are required."""
    q, k, v = (read_numbers(arrays[name], arithmetic) for name in ("q", "k", "v"))
    groups = _groups(q, k) if options.get("enable_gqa") else 1
    leads = [q.shape[:-2], *(_repeated(grid.shape[:-2], groups) for grid in (k, v))]
    compute = compute_dtype(arrays["q"].dtype.name)
    bias = _logits(arrays.get("bias"), compute)
    return Problem(
        arithmetic=arithmetic,
        q=q,
        k=k,
        v=v,
        visible=_visibility(arrays, options, bias),
        bias=bias,
        sinks=_logits(arrays.get("sinks"), compute),
        scale=read_scale(arrays, options, q.shape[-1], arithmetic),
        softcap=read_parameter("softcap", arrays, options, arithmetic),
        lead=np.broadcast_shapes(*leads),
        groups=groups,
    )


def read_numbers(array: np.ndarray, arithmetic: Plain) -> Grid:
    """The array as numbers of the arithmetic."""
    return read(array, lambda cell: entered(cell, arithmetic))


def entered(cell: float, arithmetic: Plain) -> Any:
    """An input's number; NaN stands for infinities too, since what they touch only has to be non-finite."""
    return arithmetic.number(cell if math.isfinite(cell) else math.nan)


def read_scale(arrays: Arrays, options: Options, features: int, arithmetic: Plain) -> Any:
    """The scale that was given, else 1 / sqrt(D)."""
    given = read_parameter("scale", arrays, options, arithmetic)
    if given is not None:
        return given
    return arithmetic.number(1.0) / arithmetic.sqrt(arithmetic.number(float(features)))


def read_parameter(name: str, arrays: Arrays, options: Options, arithmetic: Plain) -> Any:
    """A number that is given as an option or as a 0-d array, else None."""
    given = arrays.get(name, options.get(name))
    return None if given is None else arithmetic.parameter(float(given))


def _groups(q: Grid, k: Grid) -> int:
    return q.shape[-3] // k.shape[-3] if k.shape[-3] else 1


def _repeated(lead: Index, groups: int) -> Index:
    return lead if groups == 1 else (*lead[:-1], lead[-1] * groups)


def _logits(array: np.ndarray | None, compute: str) -> Grid | None:
    """A bias or sinks, in the compute dtype as the contract has it: beyond its range lies infinity."""
    if array is None:
        return None
    with np.errstate(over="ignore"):
        return read(array.astype(compute))


def _visibility(arrays: Arrays, options: Options, bias: Grid | None) -> Callable[[Index], bool]:
    """A pair (*B, [H,] query, key) is visible if is_causal, the rule, the mask and the bias all allow it."""
    rule = options.get("mask")
    grids = rule_grids(rule, arrays) if rule else {}
    mask = read(arrays["mask"]) if "mask" in arrays else None

    def visible(at: Index) -> bool:
        *lead, query, key = at
        return (
            (not options.get("is_causal") or key <= query)
            and (rule is None or rule_visible(rule, grids, tuple(lead), query, key))
            and (mask is None or mask[at] != 0)
            and (bias is None or bias[at] != -math.inf)
        )

    return visible
