"""Heads: splitting features into heads, joining them, and sharing key/value heads between query heads."""

from __future__ import annotations

import numpy as np

from . import checks


def split_heads(x, heads):
    """Split the features of x (*B, T, E) into heads (*B, H, T, E / H), of which each has neighbouring features.

    Raises TypeError when x is no array or heads no integer, ValueError when E is no multiple of heads.
    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.2.2.
    """
    checks.split_heads(x, heads)
    *lead, T, E = x.shape
    return np.array(x.reshape(*lead, T, heads, E // heads).swapaxes(-3, -2), order="C")


def merge_heads(x):
    """Join the heads of x (*B, H, T, D) into features (*B, T, H * D); the inverse of split_heads.

    Raises TypeError when x is no array, ValueError when it has fewer than three axes.
    Source: Vaswani et al. 2017, section 3.2.2 ("Concat").
    """
    checks.merge_heads(x)
    *lead, H, T, D = x.shape
    return np.array(x.swapaxes(-3, -2), order="C").reshape(*lead, T, H * D)


def repeat_kv(x, groups):
    """Give each key/value head of x (*B, Hk, S, D) to `groups` query heads in a row: (*B, Hk * groups, S, D).

    Query head h then uses key/value head h // groups (B5). Raises TypeError when x is no array or groups no
    integer, ValueError when x has fewer than three axes or groups < 1.
    Source: Ainslie et al. 2023, "GQA: Training Generalized Multi-Query Transformer Models", section 2.2.
    """
    checks.repeat_kv(x, groups)
    return np.repeat(np.asarray(x), groups, axis=-3)
