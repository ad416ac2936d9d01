"""Mask rules as values: from a query position and a key position, whether the pair is visible.

A rule is frozen, composes with & | ~, compares by value, prints itself, draws itself, and can be
evaluated for any tile of positions without the rest (D3). True means "may attend" (D1). The functions
that make rules, and check what they are given, stand in masks.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from . import arguments, checks
from .arrays import is_array, listed, same

FARTHEST = 2**30  # no position lies further away


class Mask:
    """A rule that says which pairs of a query position and a key position are visible."""

    def visible(self, query, key):
        """Whether each pair of positions is visible: integer arrays (t, 1) and (1, s) give boolean (*L, t, s)."""
        raise NotImplementedError

    def covers(self, rows, cols):
        """True if each pair of the two position ranges is visible, False if none is, None if that is not known."""
        return None

    def leaves(self):
        """The simple rules that this one is made of."""
        return [self]

    def lead(self):
        """The shape of the leading axes (*L) that the arrays of a simple rule bring along."""
        return ()

    def array(self, T, S):
        """The rule as a boolean array (*L, T, S), True = may attend. T, S: integers >= 0, else an error (B6)."""
        T, S = arguments.integer("T", T, least=0), arguments.integer("S", S, least=0)
        checks.rule(self, T, S)
        return self.tile(range(T), range(S)).copy()

    def tile(self, rows, cols):
        """The rule on two ranges of positions, as a boolean array (*L, t, s)."""
        query, key = np.asarray(rows, int)[:, None], np.asarray(cols, int)[None, :]
        seen = self.visible(query, key)
        return np.broadcast_to(seen, np.broadcast_shapes(seen.shape, (len(rows), len(cols))))

    def picture(self, T, S):
        """The rule as text: one line a query, '#' visible and '.' hidden; one picture for each leading index."""
        seen = self.array(T, S)
        pictures = seen.reshape(math.prod(seen.shape[:-2]), T, S).tolist()
        return "\n\n".join("\n".join("".join(".#"[pair] for pair in row) for row in rows) for rows in pictures)

    def __and__(self, other):
        return And(self, other) if isinstance(other, Mask) else NotImplemented

    def __or__(self, other):
        return Or(self, other) if isinstance(other, Mask) else NotImplemented

    def __invert__(self):
        return Not(self)

    def __eq__(self, other):
        if type(self) is not type(other):
            return NotImplemented
        return all(same(getattr(self, f.name), getattr(other, f.name)) for f in fields(self))

    def __hash__(self):
        return hash((type(self).__name__, *(frozen(getattr(self, f.name)) for f in fields(self))))


# --- the rules -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Causal(Mask):
    """key <= query + offset (D4)."""

    offset: int

    def visible(self, query, key):
        return key <= query + bounded(self.offset)

    def covers(self, rows, cols):
        if cols[-1] <= rows[0] + self.offset:
            return True
        return False if cols[0] > rows[-1] + self.offset else None

    def __repr__(self):
        return f"causal({self.offset})"


@dataclass(frozen=True, eq=False, repr=False)
class Window(Mask):
    """query + offset - left <= key <= query + offset + right; None is no bound (D5)."""

    left: int | None
    right: int | None
    offset: int

    def visible(self, query, key):
        ahead = key - query
        seen = np.ones_like(ahead, dtype=bool)
        if self.left is not None:
            seen = seen & (ahead >= bounded(self.offset - self.left))
        if self.right is not None:
            seen = seen & (ahead <= bounded(self.offset + self.right))
        return seen

    def covers(self, rows, cols):
        right = True if self.right is None else Causal(self.offset + self.right).covers(rows, cols)
        left = True if self.left is None else Not(Causal(self.offset - self.left - 1)).covers(rows, cols)
        return both(left, right)

    def __repr__(self):
        offset = f", offset={self.offset}" if self.offset else ""
        return f"window({self.left}, {self.right}{offset})"


@dataclass(frozen=True, eq=False, repr=False)
class Prefix(Mask):
    """key < length (D6)."""

    length: int

    def visible(self, query, key):
        return key < bounded(self.length)

    def covers(self, rows, cols):
        if cols[-1] < self.length:
            return True
        return False if cols[0] >= self.length else None

    def __repr__(self):
        return f"prefix({self.length})"


@dataclass(frozen=True, eq=False, repr=False)
class Padding(Mask):
    """key < length, with a length (*L) of its own for each leading index (D6)."""

    lengths: Any

    def visible(self, query, key):
        return key < self.lengths[..., None, None]

    def lead(self):
        return self.lengths.shape

    def __repr__(self):
        return f"padding({listed(self.lengths)})"


@dataclass(frozen=True, eq=False, repr=False)
class Segments(Mask):
    """Query and key carry the same id: q_ids (*L, T), k_ids (*L, S) (D6)."""

    q_ids: Any
    k_ids: Any

    def visible(self, query, key):
        return self.q_ids[..., query] == self.k_ids[..., key]

    def lead(self):
        return np.broadcast_shapes(self.q_ids.shape[:-1], self.k_ids.shape[:-1])

    def __repr__(self):
        return f"segments({listed(self.q_ids)}, {listed(self.k_ids)})"


@dataclass(frozen=True, eq=False, repr=False)
class Dilated(Mask):
    """query - key is a multiple of step (D6)."""

    step: int

    def visible(self, query, key):
        return (query - key) % bounded(self.step) == 0

    def __repr__(self):
        return f"dilated({self.step})"


@dataclass(frozen=True, eq=False, repr=False)
class Chunked(Mask):
    """Query and key lie in the same chunk of size positions (D6)."""

    size: int

    def visible(self, query, key):
        return query // bounded(self.size) == key // bounded(self.size)

    def covers(self, rows, cols):
        first, last = (rows[0] // self.size, cols[0] // self.size), (rows[-1] // self.size, cols[-1] // self.size)
        if first == last and first[0] == first[1]:
            return True
        return False if last[0] < first[1] or last[1] < first[0] else None

    def __repr__(self):
        return f"chunked({self.size})"


@dataclass(frozen=True, eq=False, repr=False)
class And(Mask):
    """Visible where both rules allow it."""

    left: Mask
    right: Mask

    def visible(self, query, key):
        return self.left.visible(query, key) & self.right.visible(query, key)

    def covers(self, rows, cols):
        return both(self.left.covers(rows, cols), self.right.covers(rows, cols))

    def leaves(self):
        return self.left.leaves() + self.right.leaves()

    def __repr__(self):
        return f"{operand(self.left, And)} & {operand(self.right)}"


@dataclass(frozen=True, eq=False, repr=False)
class Or(Mask):
    """Visible where either rule allows it."""

    left: Mask
    right: Mask

    def visible(self, query, key):
        return self.left.visible(query, key) | self.right.visible(query, key)

    def covers(self, rows, cols):
        return Not(And(Not(self.left), Not(self.right))).covers(rows, cols)

    def leaves(self):
        return self.left.leaves() + self.right.leaves()

    def __repr__(self):
        return f"{operand(self.left, Or)} | {operand(self.right)}"


@dataclass(frozen=True, eq=False, repr=False)
class Not(Mask):
    """Visible where the rule forbids it."""

    rule: Mask

    def visible(self, query, key):
        return np.logical_not(self.rule.visible(query, key))

    def covers(self, rows, cols):
        inside = self.rule.covers(rows, cols)
        return None if inside is None else not inside

    def leaves(self):
        return self.rule.leaves()

    def __repr__(self):
        return f"~{operand(self.rule)}"


# --- what the rules share --------------------------------------------------------------------------------


def bounded(number):
    """A plain number of a rule, kept in the range where it can be compared with positions; larger ones act alike."""
    return max(-FARTHEST, min(number, FARTHEST))


def both(one, other):
    """ "And" for answers that may be unknown: False wins over None, None over True (Kleene's logic)."""
    if one is False or other is False:
        return False
    return None if one is None or other is None else True


def frozen(field):
    """A field of a rule as something to hash: an array counts by its shape."""
    return field.shape if is_array(field) else field


def operand(rule, chain=None):
    """A rule as it is printed beside an operator; parentheses go around a pair that is no chain of the same kind."""
    return f"({rule})" if isinstance(rule, (And, Or)) and type(rule) is not chain else f"{rule}"
