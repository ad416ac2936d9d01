"""Mask rules, evaluated one pair of a query and a key at a time, from their JSON description."""

from __future__ import annotations

from typing import Any

import numpy as np

from conformance.grids import Grid, Index, fill, indices, read

Rule = dict[str, Any]


def rule_visible(rule: Rule, grids: dict[str, Grid], lead: Index, query: int, key: int) -> bool:
    """Tell whether the rule lets the query at that index of the leading axes see the key."""
    kind = rule["rule"]
    if kind in _COMPOSED:
        return _COMPOSED[kind](rule_visible(part, grids, lead, query, key) for part in rule["of"])
    if kind in _POSITIONAL:
        return _POSITIONAL[kind](rule, query, key)
    return _CARRYING[kind](rule, grids, lead, query, key)


def rule_grids(rule: Rule, arrays: dict[str, np.ndarray]) -> dict[str, Grid]:
    """The arrays that the rule names, by their names."""
    parts = [name for part in rule.get("of", ()) for name in rule_grids(part, arrays)]
    own = [rule[field] for field in ("lengths", "q_ids", "k_ids") if rule.get(field) is not None]
    return {name: read(arrays[name]) for name in (*parts, *own)}


def mask_array(arrays: dict[str, np.ndarray], options: dict[str, Any], _: Any) -> dict[str, Grid]:
    """rule.array(T, S): booleans over the leading axes of the rule's arrays, the queries and the keys."""
    rule = options["mask"]
    grids = rule_grids(rule, arrays)
    lead = np.broadcast_shapes(*_leads(rule, grids))
    shape = (*lead, options["T"], options["S"])
    return {"array": fill(shape, lambda at: rule_visible(rule, grids, at[:-2], at[-2], at[-1]))}


def mask_picture(arrays: dict[str, np.ndarray], options: dict[str, Any], _: Any) -> dict[str, str]:
    """rule.picture(T, S): '#' is visible and '.' hidden; an empty line between the leading axes' pictures."""
    array = mask_array(arrays, options, _)["array"]
    *lead, queries, keys = array.shape
    pictures = []
    for at in indices(tuple(lead)):
        lines = ["".join(".#"[array[(*at, i, j)]] for j in range(keys)) for i in range(queries)]
        pictures.append("\n".join(lines))
    return {"picture": "\n\n".join(pictures)}


def _leads(rule: Rule, grids: dict[str, Grid]) -> list[Index]:
    if "of" in rule:
        return [lead for part in rule["of"] for lead in _leads(part, grids)]
    if rule["rule"] == "padding":
        return [grids[rule["lengths"]].shape]
    return [grids[rule[field]].shape[:-1] for field in ("q_ids", "k_ids") if rule.get(field) is not None]


def _causal(rule: Rule, query: int, key: int) -> bool:
    return key <= query + rule.get("offset", 0)


def _window(rule: Rule, query: int, key: int) -> bool:
    middle = query + rule.get("offset", 0)
    left, right = rule.get("left"), rule.get("right")
    return (left is None or middle - left <= key) and (right is None or key <= middle + right)


def _local(rule: Rule, query: int, key: int) -> bool:
    return abs(query - key) <= (rule["width"] - 1) // 2


def _prefix(rule: Rule, query: int, key: int) -> bool:
    return key < rule["length"]


def _dilated(rule: Rule, query: int, key: int) -> bool:
    return (query - key) % rule["step"] == 0


def _chunked(rule: Rule, query: int, key: int) -> bool:
    return query // rule["size"] == key // rule["size"]


def _padding(rule: Rule, grids: dict[str, Grid], lead: Index, query: int, key: int) -> bool:
    return key < grids[rule["lengths"]][lead]


def _segments(rule: Rule, grids: dict[str, Grid], lead: Index, query: int, key: int) -> bool:
    k_ids = rule.get("k_ids") or rule["q_ids"]
    return grids[rule["q_ids"]][(*lead, query)] == grids[k_ids][(*lead, key)]


_COMPOSED = {"and": all, "or": any, "not": lambda parts: not any(parts)}
_POSITIONAL = {
    "causal": _causal,
    "window": _window,
    "local": _local,
    "prefix": _prefix,
    "dilated": _dilated,
    "chunked": _chunked,
}
_CARRYING = {"padding": _padding, "segments": _segments}
