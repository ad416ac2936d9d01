"""The contract as data: the clauses in one line each, the operations in one record each, and their routes.

The full text of the clauses is docs/contract.md. A case cites clauses by these ids.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

CLAUSES = {
    "A1": "attention is dense and returns the weights; flash_attention is the same, in O(T + S) memory",
    "A2": "inputs are never modified; outputs have memory of their own, and the inputs' kind, device and dtype",
    "A3": "the framework's transforms work: jit, vmap, grad, compile, forward mode; float32 means float32",
    "B1": "leading axes broadcast; k and v share S, q and k share D >= 1",
    "B2": "q, k, v share one floating dtype; half types are computed in float32, float64 stays float64",
    "B3": "T = 0, S = 0, Dv = 0 and a batch or head axis of 0 are legal",
    "B4": "scale is finite, 1/sqrt(D) unless given; softcap is finite and > 0; unknown keywords are refused",
    "B5": "enable_gqa: query head h uses key/value head h // (H // Hk); without it head axes only broadcast",
    "B6": "a wrong type is a TypeError, a wrong value or shape a ValueError; the message says what to do",
    "C1": "scores = scale * q k^T",
    "C2": "capped = softcap * tanh(scores / softcap)",
    "C3": "biased = capped + bias",
    "C4": "masked = biased where visible, else -inf",
    "C5": "weights = softmax over keys, out = weights v",
    "C6": "bias has any floating dtype and broadcasts; a bias of -inf hides that pair",
    "C7": "sinks: one extra logit per head in the denominator, without a value",
    "C8": "lse is the natural log of the softmax denominator: scale, softcap, bias, mask and sink included",
    "D1": "True or 1 is visible, False or 0 hidden, in any dtype; other values in a mask are refused",
    "D2": "a mask array broadcasts right-aligned to (*B, [H,] T, S); it is never cut, padded or transposed",
    "D3": "mask rules are values that compose with & | ~ and give array(T, S) and picture(T, S)",
    "D4": "causal(n): key <= query + n; is_causal is causal(0); mask, bias, is_causal must all allow",
    "D5": "window(left, right, offset) counts the pair itself; None is unbounded; local(width) is centred",
    "D6": "prefix, padding, segments, dilated, chunked; lengths and ids broadcast against q's leading axes",
    "D7": "a rule that carries arrays passes through transforms",
    "E1": "an empty row gives out 0, weights 0, lse -inf (the sink, with a sink) and gradients of exactly 0",
    "E2": "nothing at a hidden pair changes any output or gradient, bit for bit",
    "E3": "what is visible counts: a NaN there gives a non-finite output there, and only there",
    "E4": "weights at hidden pairs are exactly 0, and so are dk and dv of a key that no query sees",
    "E5": "-inf has no finite stand-in: a visible score of -3e38 beats every hidden one",
    "F1": "scores of +-1e4 give finite, correct results in every dtype",
    "F2": "accuracy is judged element by element against a derived error budget",
    "F3": "the same call twice, and a batch of one, give the same bits",
    "F4": "merge is associative, commutative, its identity (0, -inf); keys split anywhere merge to the whole",
    "G1": "retrieve is attention as a soft dictionary, with the index of the best visible key and top_k",
    "G2": "search is exact, best first, ties by lowest index, padded with index -1",
    "G3": "recall applies the modern Hopfield update and returns energies that never rise",
}

# One call on fixed arrays cannot show a transform: the transform tests of each implementation do.
SHOWN_BY_TESTS = ("A3", "D7")

ERRORS = ("TypeError", "ValueError")
LAWS = {
    "repeat": "the same call twice gives the same bits",
    "alone": "each element of the first leading axis alone gives its bits",
    "unmoved": "with the arrays of `instead` every output keeps its bits",
    "kept": "a call of other values leaves the outputs of the first as they are",
    "layout": "arrays that lie in memory column by column give the expected outputs too",
}
RULES = {
    "causal": ("offset",),
    "window": ("left", "right", "offset"),
    "local": ("width",),
    "prefix": ("length",),
    "padding": ("lengths",),
    "segments": ("q_ids", "k_ids"),
    "dilated": ("step",),
    "chunked": ("size",),
    "and": ("of",),
    "or": ("of",),
    "not": ("of",),
}


@dataclass(frozen=True)
class Operation:
    """What a call takes and returns; ``arrays`` are required, ``optional`` ones are not."""

    name: str
    arrays: tuple[str, ...]
    outputs: tuple[str, ...]
    optional: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Route:
    """One of the calls by which a case is run: its operation, the options it adds, the check's suffix."""

    op: str
    suffix: str = ""
    options: dict[str, Any] = field(default_factory=dict)


_EXTRAS = ("mask", "bias", "sinks", "scale", "softcap")  # scale and softcap may be 0-d arrays
_OPTIONS = ("is_causal", "scale", "softcap", "enable_gqa", "mask")

OPERATIONS = {
    operation.name: operation
    for operation in (
        Operation("attention", ("q", "k", "v"), ("out", "weights"), _EXTRAS, _OPTIONS),
        Operation(
            "attention_steps",
            ("q", "k", "v"),
            ("scores", "capped", "biased", "masked", "weights", "lse", "out"),
            _EXTRAS,
            _OPTIONS,
        ),
        Operation("flash_attention", ("q", "k", "v"), ("out", "lse"), _EXTRAS, (*_OPTIONS, "block_size")),
        Operation("attention_vjp", ("q", "k", "v", "d_out"), ("dq", "dk", "dv", "dbias"), _EXTRAS, _OPTIONS),
        Operation("merge", (), ("out", "lse")),  # out0, lse0, out1, lse1, ... as many as there are parts
        Operation("mask_array", (), ("array",), options=("mask", "T", "S")),
        Operation("mask_picture", (), ("picture",), options=("mask", "T", "S")),
        Operation(
            "retrieve",
            ("query", "keys"),
            ("output", "weights", "index"),
            ("values", "mask", "scale"),
            ("scale", "top_k", "mask"),
        ),
        Operation("search", ("query", "keys"), ("scores", "indices"), ("mask",), ("k", "metric", "mask")),
        Operation("recall", ("state", "patterns"), ("state", "energy"), ("beta",), ("beta", "steps")),
        Operation("split_heads", ("x",), ("x",), options=("heads",)),
        Operation("merge_heads", ("x",), ("x",)),
        Operation("repeat_kv", ("x",), ("x",), options=("groups",)),
    )
}

# An attention case stores out, weights and lse; each route is judged on those that it returns.
ROUTES = {
    "attention": (
        Route("attention"),
        Route("flash_attention", "@flash_attention"),
        Route("flash_attention", "@flash_attention-3x5", {"block_size": [3, 5]}),
    )
}


def routes(op: str) -> tuple[Route, ...]:
    """The calls by which a case of that operation is run; the first is the operation itself."""
    return ROUTES.get(op, (Route(op),))
