"""The pictures that teach: every mask rule drawn, and the two heat maps of weights, computed when they are drawn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import impl_numpy
from conformance import pictures
from impl_numpy import Mask, causal, chunked, dilated, local, padding, prefix, segments, window

T, S = 6, 6


@dataclass(frozen=True)
class Drawing:
    """A picture with the call that makes its content, and one sentence that says what is seen."""

    call: str
    finding: str
    svg: str


def masks() -> list[Drawing]:
    """Draw the rules one by one, and then what comes of joining them."""
    ids, lengths = np.array([0, 0, 1, 1, 1, 2]), np.array([4])
    return [
        _mask("causal()", causal(), "Each query sees itself and the past."),
        _mask("causal()", causal(), "Fewer queries than keys: the first positions are aligned.", T=3),
        _mask("causal(S - T)", causal(S - 3), "The last positions are aligned: the last query sees all.", T=3),
        _mask("window(1, 2)", window(1, 2), "One key before, the query's own, two after."),
        _mask("window(2, 0)", window(2, 0), "A window that slides over the past: three keys."),
        _mask("local(3)", local(3), "Itself and its two neighbours, as a convolution of width 3."),
        _mask("prefix(2)", prefix(2), "Every query sees the first two keys."),
        _mask("padding([4])", padding(lengths), "The last two keys are padding."),
        _mask("segments([0, 0, 1, 1, 1, 2])", segments(ids), "Three packed sequences: each sees itself."),
        _mask("dilated(2)", dilated(2), "Every second key, counted from the query."),
        _mask("chunked(3)", chunked(3), "Two chunks that do not see each other."),
        _mask("prefix(2) | causal()", prefix(2) | causal(), "A prefix language model: all see the prefix."),
        _mask("causal() & padding([4])", causal() & padding(lengths), "The past, without the padding."),
        _mask("causal() & segments(…)", causal() & segments(ids), "The past of one's own packed sequence."),
        _mask("causal() & dilated(2)", causal() & dilated(2), "Every second key of the past."),
        _mask("~local(3)", ~local(3), "All but the neighbourhood."),
    ]


def _mask(call: str, rule: Mask, finding: str, T: int = T) -> Drawing:
    visible = rule.array(T, S).reshape(T, S)
    rows = "; ".join(f"query {query}: {_keys(row)}" for query, row in enumerate(visible))
    return Drawing(call, finding, pictures.mask_picture(visible, f"{call}. {finding} Visible keys, {rows}."))


def _keys(row: np.ndarray) -> str:
    return ", ".join(str(key) for key in np.flatnonzero(row)) or "none"


def lesson() -> list[Drawing]:
    """Draw the weights of a query that equals one key, and causal weights."""
    tokens = np.eye(6, dtype=np.float32) * 5
    _, found = impl_numpy.attention(tokens[2:3], tokens[:5], tokens[:5])
    draw = np.random.RandomState(0).standard_normal
    q, k, v = (draw((5, 8)).astype(np.float32) for _ in "qkv")
    _, masked = impl_numpy.attention(q, k, v, causal())
    return [
        _weights("Attention weights, query = token 2", found, _retrieval(found)),
        _weights("Causal attention weights", masked, _causality(masked)),
    ]


def _weights(title: str, weights: np.ndarray, finding: str) -> Drawing:
    return Drawing(title, finding, pictures.weights_picture(weights, f"{title}. {finding}"))


def _retrieval(weights: np.ndarray) -> str:
    best = int(weights[0].argmax())
    return f"Key {best} gets {weights[0, best]:.3f} of the weight: the query finds the key that it equals."


def _causality(weights: np.ndarray) -> str:
    future = float(np.triu(weights, 1).sum())
    return f"The total weight on future keys is {future:g}; query 0 sees only itself, so its weight is 1."
