"""Mask rules as the case files spell them: {"rule": "causal", "offset": 0}, {"rule": "and", "of": [...]}, …"""

from __future__ import annotations

import operator
from functools import reduce
from typing import Any

import numpy as np

import impl_numpy
from conformance.asking import line
from conformance.oracle_rules import mask_array

# The arguments of a rule that name arrays of the case, and how many axes of positions such an array has.
ARRAYS = {"lengths": 0, "q_ids": 1, "k_ids": 1}
_JOIN = {"and": operator.and_, "or": operator.or_}


def build(functions: Any, spec: dict[str, Any], arrays: dict[str, Any]) -> Any:
    """Make the rule with the functions of that name (causal, window, …) and the operators & | ~."""
    name = spec["rule"]
    if "of" in spec:
        parts = [build(functions, part, arrays) for part in spec["of"]]
        return ~parts[0] if name == "not" else reduce(_JOIN[name], parts)
    given = {key: value for key, value in spec.items() if key != "rule"}
    return getattr(functions, name)(**{key: _argument(key, value, arrays) for key, value in given.items()})


def array_names(spec: dict[str, Any] | None) -> dict[str, int]:
    """Name the case's arrays that the rule takes, with the number of their axes of positions."""
    if spec is None:
        return {}
    own = {value: ARRAYS[key] for key, value in spec.items() if key in ARRAYS and isinstance(value, str)}
    return reduce(operator.or_, map(array_names, spec.get("of", ())), own)


def evaluate(spec: dict[str, Any], arrays: dict[str, np.ndarray], T: int, S: int) -> np.ndarray:
    """Give the boolean array (*B, T, S) of a rule, for a library that takes no rules; by the oracle."""
    grid = mask_array(arrays, {"mask": spec, "T": T, "S": S}, None)["array"]
    return np.array(grid.cells, np.bool_).reshape(grid.shape)


def fault(spec: dict[str, Any] | None, arrays: dict[str, Any]) -> str | None:
    """Tell why a rule makes no array, if so: a library that takes no rules cannot refuse a wrong one either."""
    if spec is None:
        return None
    given = {name: getattr(arrays[name], "value", arrays[name]) for name in array_names(spec)}
    try:
        build(impl_numpy, spec, given).array(arrays["q"].shape[-2], arrays["k"].shape[-2])
    except (TypeError, ValueError) as error:
        return line(error)
    return None


def _argument(key: str, value: Any, arrays: dict[str, Any]) -> Any:
    return arrays[value] if key in ARRAYS and isinstance(value, str) else value
