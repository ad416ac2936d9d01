"""Heads are split, merged and repeated by copying numbers, one by one."""

from __future__ import annotations

from conformance.arithmetic import Plain
from conformance.grids import Grid, fill, read
from conformance.oracle_problem import Arrays, Options


def split_heads(arrays: Arrays, options: Options, arithmetic: Plain) -> dict[str, Grid]:
    """(*B, T, H * D) -> (*B, H, T, D)."""
    x = read(arrays["x"], arithmetic.number)
    heads = options["heads"]
    *lead, length, width = x.shape
    size = width // heads
    return {"x": fill((*lead, heads, length, size), lambda at: x[(*at[:-3], at[-2], at[-3] * size + at[-1])])}


def merge_heads(arrays: Arrays, options: Options, arithmetic: Plain) -> dict[str, Grid]:
    """(*B, H, T, D) -> (*B, T, H * D)."""
    x = read(arrays["x"], arithmetic.number)
    *lead, heads, length, size = x.shape
    shape = (*lead, length, heads * size)
    return {"x": fill(shape, lambda at: x[(*at[:-2], at[-1] // size, at[-2], at[-1] % size)])}


def repeat_kv(arrays: Arrays, options: Options, arithmetic: Plain) -> dict[str, Grid]:
    """(*B, Hk, S, D) -> (*B, Hk * groups, S, D): the copies of a head stand side by side."""
    x = read(arrays["x"], arithmetic.number)
    groups = options["groups"]
    *lead, heads, length, size = x.shape
    shape = (*lead, heads * groups, length, size)
    return {"x": fill(shape, lambda at: x[(*at[:-3], at[-3] // groups, *at[-2:])])}
