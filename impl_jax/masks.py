"""Masks: the functions that make mask rules, and how the arguments of a call become visibility.

`mask=` takes an array of 0 and 1 (True = may attend) or a rule; `is_causal` and a bias of -inf hide
pairs too, and a pair is visible only if each of them allows it (D1 to D4, C6).
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax

from . import arguments
from .arrays import is_boolean
from .rules import And, Causal, Chunked, Dilated, Mask, Or, Padding, Prefix, Segments, Window

# --- rules -----------------------------------------------------------------------------------------------


def causal(offset=0):
    """A query sees the keys up to its own position plus offset: key <= query + offset (D4).

    causal(0) aligns the two sequences at their first positions, causal(S - T) at their last.
    Raises TypeError when offset is no integer.
    """
    return Causal(arguments.integer("offset", offset))


def window(left=None, right=None, *, offset=0):
    """A query sees `left` keys before it, itself, and `right` keys after it; None is no bound (D5).

    query + offset - left <= key <= query + offset + right. Raises TypeError when an argument is no integer,
    ValueError when a size is negative.
    """
    left = None if left is None else arguments.integer("left", left, least=0)
    right = None if right is None else arguments.integer("right", right, least=0)
    return Window(left, right, arguments.integer("offset", offset))


def local(width):
    """A query sees `width` keys with itself in the middle: window((width - 1) / 2, (width - 1) / 2) (D5).

    Raises TypeError when width is no integer, ValueError when it is even or < 1.
    """
    side = (arguments.odd("width", width) - 1) // 2
    return window(side, side)


def prefix(length):
    """Every query sees the first `length` keys; joined with causal() it is a prefix language model (D6).

    Raises TypeError when length is no integer, ValueError when it is negative.
    """
    return Prefix(arguments.integer("length", length, least=0))


def padding(lengths):
    """Each sequence has its own number of keys: key < length (D6).

    lengths (*L): integer array that broadcasts against the leading axes of q: (B,) for q (B, T, D),
    (B, 1) for q (B, H, T, D). Raises TypeError when lengths is no integer array.
    """
    return Padding(arguments.integers("lengths", lengths))


def segments(q_ids, k_ids=None):
    """A query sees the keys that carry its own id; k_ids=None takes q_ids for both (D6).

    q_ids (*L, T), k_ids (*L, S): integer arrays whose leading axes broadcast against those of q.
    Raises TypeError when the ids are no integer arrays, ValueError when they have no axis.
    """
    q_ids = arguments.integers("q_ids", q_ids, least_axes=1)
    return Segments(q_ids, q_ids if k_ids is None else arguments.integers("k_ids", k_ids, least_axes=1))


def dilated(step):
    """A query sees every step-th key, counted from itself: (query - key) % step == 0 (D6).

    Raises TypeError when step is no integer, ValueError when it is < 1.
    """
    return Dilated(arguments.integer("step", step, least=1))


def chunked(size):
    """A query sees the keys of its own chunk of `size` positions: query // size == key // size (D6).

    Raises TypeError when size is no integer, ValueError when it is < 1.
    """
    return Chunked(arguments.integer("size", size, least=1))


# --- from arguments to visibility ------------------------------------------------------------------------


def split_mask(mask, is_causal):
    """The two forms in which a mask is used: an array of 0 and 1 or None, and a rule or None."""
    rule = mask if isinstance(mask, Mask) else None
    array = None if rule is not None else mask
    if is_causal:
        rule = causal() if rule is None else rule & causal()
    return array, rule


def as_boolean(mask):
    """A mask of 0 and 1 of any dtype as booleans (D1)."""
    return mask if is_boolean(mask) else mask == 1


def visibility(mask, rule, bias, rows, cols):
    """Which pairs of the two position ranges are visible: boolean, broadcasts to (*B, [H,] t, s) (D4, C6).

    mask (of 0 and 1) and bias are whole arrays, of which this takes its tile; -inf is looked for in the bias as
    it is in the compute dtype. The positions are integer arrays without a gap, since tiles are traced.
    """
    visible = jnp.ones((len(rows), len(cols)), bool)
    if mask is not None:
        visible = visible & as_boolean(cut(mask, rows, cols))
    if rule is not None:
        visible = visible & rule.tile(rows, cols)
    if bias is not None:
        visible = visible & (cut(bias, rows, cols) != -jnp.inf)
    return visible


def cut(array, rows, cols):
    """The tile of an array that broadcasts to (..., T, S); an axis of 1, or one that is absent, stays as it is."""
    if array.ndim >= 1 and array.shape[-1] not in (1, len(cols)):
        array = lax.dynamic_slice_in_dim(array, cols[0], len(cols), axis=-1)
    if array.ndim >= 2 and array.shape[-2] not in (1, len(rows)):
        array = lax.dynamic_slice_in_dim(array, rows[0], len(rows), axis=-2)
    return array


def reach(rule, rows, S):
    """The range of key positions outside of which a rule hides each key from all of a range of queries."""
    first, end = 0, S
    if isinstance(rule, (And, Or)):
        one, other = reach(rule.left, rows, S), reach(rule.right, rows, S)
        if isinstance(rule, Or) and (not one or not other):
            return one or other
        inner, outer = (max, min) if isinstance(rule, And) else (min, max)
        first, end = inner(one.start, other.start), outer(one.stop, other.stop)
    elif isinstance(rule, Causal):
        end = rows[-1] + rule.offset + 1
    elif isinstance(rule, Window):
        first = 0 if rule.left is None else rows[0] + rule.offset - rule.left
        end = S if rule.right is None else rows[-1] + rule.offset + rule.right + 1
    elif isinstance(rule, Prefix):
        end = rule.length
    elif isinstance(rule, Chunked):
        first, end = (row // rule.size * rule.size for row in (rows[0], rows[-1] + rule.size))
    return range(max(0, first), min(S, end))
