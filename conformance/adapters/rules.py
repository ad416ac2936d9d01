"""Mask rules as the case files spell them: {"rule": "causal", "offset": 0}, {"rule": "and", "of": [...]}, …"""

from __future__ import annotations

import operator
from functools import reduce
from typing import Any

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


def _argument(key: str, value: Any, arrays: dict[str, Any]) -> Any:
    return arrays[value] if key in ARRAYS and isinstance(value, str) else value
