"""What every operation refuses, with which kind of error, and which words the message contains.

Masks and mask rules have a file of their own, mask_errors. The sizes are B = 2, T = 4, S = 5, D = 3, Dv = 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from conformance.facts import Fact, Given, array, normal, qkv

PLAIN = qkv((2, 4, 3), (2, 5, 3), (2, 5, 1))
HEADS = qkv((2, 8, 4, 3), (2, 2, 5, 3), (2, 2, 5, 1))
BASES = {
    "attention": PLAIN,
    "attention_steps": PLAIN,
    "flash_attention": PLAIN,
    "attention_vjp": {**PLAIN, "d_out": normal((2, 4, 1), seed=13)},
    "merge": {},
    "mask_array": {},
    "retrieve": {"query": PLAIN["q"], "keys": PLAIN["k"], "values": PLAIN["v"]},
    "search": {"query": PLAIN["q"], "keys": PLAIN["k"]},
    "recall": {"state": normal((2, 3), seed=14), "patterns": normal((5, 3), seed=15)},
    "split_heads": {"x": normal((2, 4, 6), seed=16)},
    "merge_heads": {"x": normal((2, 3, 4, 6), seed=17)},
    "repeat_kv": {"x": normal((2, 3, 4, 6), seed=17)},
}
NEEDED = {
    "mask_array": {"T": 4, "S": 5},
    "search": {"k": 2},
    "split_heads": {"heads": 2},
    "repeat_kv": {"groups": 2},
}
NAN, INF = float("nan"), float("inf")

# Operation, option, value, error kind, flag, and what the message contains beside the option's name.
WRONG_OPTIONS = (
    ("attention", "scale", NAN, "ValueError", "number-unchecked", "nan"),
    ("attention", "scale", INF, "ValueError", "number-unchecked", "inf"),
    ("attention", "scale", -INF, "ValueError", "number-unchecked", "-inf"),
    ("attention", "scale", "half", "TypeError", "number-unchecked", "str"),
    ("attention", "scale", True, "TypeError", "truthy-flag", "bool"),
    ("attention", "softcap", 0, "ValueError", "number-unchecked", "0"),
    ("attention", "softcap", -30.0, "ValueError", "number-unchecked", "-30"),
    ("attention", "softcap", NAN, "ValueError", "number-unchecked", "nan"),
    ("attention", "softcap", INF, "ValueError", "number-unchecked", "inf"),
    ("attention", "softcap", "thirty", "TypeError", "number-unchecked", "str"),
    ("attention", "softcap", True, "TypeError", "truthy-flag", "bool"),
    ("attention", "is_causal", 1, "TypeError", "truthy-flag", "int"),
    ("attention", "is_causal", "no", "TypeError", "truthy-flag", "str"),
    ("attention", "is_causal", None, "TypeError", "truthy-flag", "None"),
    ("attention", "enable_gqa", 1, "TypeError", "truthy-flag", "int"),
    ("attention", "enable_gqa", "yes", "TypeError", "truthy-flag", "str"),
    ("attention_steps", "scale", NAN, "ValueError", "number-unchecked", "nan"),
    ("attention_vjp", "scale", NAN, "ValueError", "number-unchecked", "nan"),
    ("attention_vjp", "softcap", 0, "ValueError", "number-unchecked", "0"),
    ("flash_attention", "block_size", [0, 5], "ValueError", "size-unchecked", "0"),
    ("flash_attention", "block_size", [3, -2], "ValueError", "size-unchecked", "-2"),
    ("flash_attention", "block_size", [3], "ValueError", "size-unchecked", "pair"),
    ("flash_attention", "block_size", [3, 5, 7], "ValueError", "size-unchecked", "pair"),
    ("flash_attention", "block_size", [2.5, 5], "TypeError", "size-unchecked", "2.5"),
    ("flash_attention", "block_size", "auto", "TypeError", "size-unchecked", "str"),
    ("flash_attention", "block_size", 64, "TypeError", "size-unchecked", "int"),
    ("retrieve", "top_k", 0, "ValueError", "too-many-keys", "0"),
    ("retrieve", "top_k", -1, "ValueError", "too-many-keys", "-1"),
    ("retrieve", "top_k", 6, "ValueError", "too-many-keys", "6"),
    ("retrieve", "top_k", 2.0, "TypeError", "size-unchecked", "float"),
    ("retrieve", "top_k", True, "TypeError", "truthy-flag", "bool"),
    ("retrieve", "scale", NAN, "ValueError", "number-unchecked", "nan"),
    ("search", "k", 0, "ValueError", "too-many-keys", "0"),
    ("search", "k", -1, "ValueError", "too-many-keys", "-1"),
    ("search", "k", 6, "ValueError", "too-many-keys", "6"),
    ("search", "k", 2.0, "TypeError", "size-unchecked", "float"),
    ("search", "k", True, "TypeError", "truthy-flag", "bool"),
    ("search", "metric", "manhattan", "ValueError", "metric-unchecked", "euclidean"),
    ("search", "metric", "Cosine", "ValueError", "metric-unchecked", "cosine"),
    ("search", "metric", 3, "TypeError", "metric-unchecked", "int"),
    ("recall", "beta", 0, "ValueError", "number-unchecked", "0"),
    ("recall", "beta", -1.0, "ValueError", "number-unchecked", "-1"),
    ("recall", "beta", NAN, "ValueError", "number-unchecked", "nan"),
    ("recall", "beta", INF, "ValueError", "number-unchecked", "inf"),
    ("recall", "beta", "hot", "TypeError", "number-unchecked", "str"),
    ("recall", "beta", True, "TypeError", "truthy-flag", "bool"),
    ("recall", "steps", -1, "ValueError", "size-unchecked", "-1"),
    ("recall", "steps", 1.5, "TypeError", "size-unchecked", "1.5"),
    ("recall", "steps", True, "TypeError", "truthy-flag", "bool"),
    ("split_heads", "heads", 4, "ValueError", "size-unchecked", "6"),
    ("split_heads", "heads", 0, "ValueError", "size-unchecked", "0"),
    ("split_heads", "heads", -2, "ValueError", "size-unchecked", "-2"),
    ("split_heads", "heads", 2.0, "TypeError", "size-unchecked", "float"),
    ("repeat_kv", "groups", 0, "ValueError", "size-unchecked", "0"),
    ("repeat_kv", "groups", -1, "ValueError", "size-unchecked", "-1"),
    ("repeat_kv", "groups", 1.5, "TypeError", "size-unchecked", "1.5"),
)
UNKNOWN = (
    ("attention", "causal"),
    ("attention", "attn_mask"),
    ("attention", "dropout_p"),
    ("attention_steps", "block_size"),
    ("attention_vjp", "is_casual"),
    ("retrieve", "is_causal"),
    ("search", "top_k"),
    ("recall", "scale"),
    ("merge_heads", "heads"),
)


def refused(name: str, fact: str, raises: str, says: tuple[str, ...], flag: str, **call: Any) -> Fact:
    """The fact that one argument of an otherwise good call is refused.

    `call` may hold op, clause, options, base (the good arrays) and `change` (those that are replaced or added).
    """
    op = call.get("op", "attention")
    arrays = {**call.get("base", BASES[op]), **call.get("change", {})}
    options = {**NEEDED.get(op, {}), **call.get("options", {})}
    clauses = (call.get("clause", "B6"),)
    return Fact(f"refuses-{name}", fact, clauses, (flag,), op, arrays, options, raises=raises, says=says)


def spelled(value: Any) -> str:
    """The value in the letters that an id may have."""
    text = str(value).lower().replace("-", "minus ").replace(".", " point ")
    return "-".join("".join(c if c.isalnum() else " " for c in text).split())


def wrong_options() -> Iterator[Fact]:
    for op, option, value, raises, flag, word in WRONG_OPTIONS:
        name = f"{op}-{option}-{spelled(value)}".replace("_", "-")
        fact = f"{op} refuses {option}={value!r} with a {raises}."
        clause = "B4" if option in ("scale", "softcap") else "B6"
        options = {option: value}
        yield refused(name, fact, raises, (option, word), flag, op=op, clause=clause, options=options)


def unknown_keywords() -> Iterator[Fact]:
    for op, keyword in UNKNOWN:
        name = f"{op}-keyword-{keyword}".replace("_", "-")
        fact = f"{op} has no keyword {keyword} and does not pass over it in silence."
        call = {"op": op, "clause": "B4", "options": {keyword: 1}}
        yield refused(name, fact, "TypeError", (keyword,), "unknown-keyword-ignored", **call)


def wrong_dtypes() -> Iterator[Fact]:
    for op, names in (
        ("attention", "qkv"),
        ("attention_vjp", ("q", "d_out")),
        ("retrieve", ("query", "keys", "values")),
        ("search", ("query", "keys")),
        ("recall", ("state", "patterns")),
    ):
        for name in names:
            yield from _wrong_dtypes_of(op, name)


def _wrong_dtypes_of(op: str, name: str) -> Iterator[Fact]:
    for dtype in ("int32", "complex64", "bool", "float64"):
        mixed = dtype == "float64"
        flag = "mixed-dtypes" if mixed else "integer-inputs"
        words = ("float32", "float64") if mixed else (name, dtype)
        told = "beside float32 arrays " if mixed else ""
        fact = f"{op} takes no {dtype} {name} {told}and converts nothing."
        call = {"op": op, "clause": "B2", "change": {name: array(BASES[op][name], dtype)}}
        yield refused(f"{op}-{name}-{dtype}".replace("_", "-"), fact, "TypeError", words, flag, **call)


def wrong_kinds() -> Iterator[Fact]:
    """Arguments that are no arrays."""
    flag = "wrong-kind"
    for name, value, kind in (("q", [[1.0, 2.0]], "A list"), ("k", None, "None"), ("v", 1.5, "A number")):
        fact = f"{kind} as {name} is refused, not converted: it is no array."
        yield refused(f"{name}-{spelled(kind)}", fact, "TypeError", (name,), flag, change={name: Given(value)})
    for op, name in (("attention_vjp", "d_out"), ("search", "keys"), ("recall", "state"), ("split_heads", "x")):
        fact = f"{op} refuses a list as {name}; it does not convert it."
        call = {"op": op, "change": {name: Given([[1.0, 2.0], [3.0, 4.0]])}}
        yield refused(f"{op}-{name}-list".replace("_", "-"), fact, "TypeError", (name, "list"), flag, **call)


def mixed_halves() -> Iterator[Fact]:
    change = {"q": array(PLAIN["q"], "float16"), "k": array(PLAIN["k"], "bfloat16")}
    change["v"] = array(PLAIN["v"], "float16")
    fact = "float16 queries and bfloat16 keys are refused: there is no dtype that both stand for."
    words = ("float16", "bfloat16")
    yield refused("two-half-types", fact, "TypeError", words, "mixed-dtypes", clause="B2", change=change)


def wrong_shapes() -> Iterator[Fact]:
    # Name, fact, the arrays' shapes, what the message contains.
    flag = "shape-unchecked"
    for name, fact, shapes, says in (
        ("q-without-axes", "A query needs two axes; a number is refused.", {"q": ()}, ("q", "()")),
        ("q-of-one-axis", "A query needs two axes; (D,) is refused.", {"q": (3,)}, ("q", "(3,)")),
        ("k-of-one-axis", "Keys need two axes; (D,) is refused.", {"k": (3,)}, ("k", "(3,)")),
        ("d-zero", "D = 0 leaves nothing to compare.", {"q": (2, 4, 0), "k": (2, 5, 0)}, ("D", "0")),
        ("features-unequal", "q and k share D.", {"k": (2, 5, 7)}, ("q", "k", "3", "7")),
        ("features-unequal-without-queries", "Shapes are judged when T = 0 too.",
         {"q": (2, 0, 3), "k": (2, 5, 7)}, ("q", "k", "3", "7")),
        ("fewer-values-than-keys", "k and v share S.", {"v": (2, 4, 1)}, ("k", "v", "5", "4")),
        ("more-values-than-keys", "Extra values are refused, not cut.", {"v": (2, 9, 1)}, ("k", "v", "5", "9")),
        ("one-value-for-all-keys", "S is no axis that broadcasts.", {"v": (2, 1, 1)}, ("k", "v", "5", "1")),
        ("one-feature-for-all", "D is no axis that broadcasts.", {"k": (2, 5, 1)}, ("q", "k", "3", "1")),
        ("batches-unequal", "Batches of 2 and 11 do not broadcast.", {"q": (11, 4, 3)}, ("q", "k", "2", "11")),
        ("value-batch-unequal", "Keys and values share the batch.", {"v": (7, 5, 1)}, ("k", "v", "2", "7")),
    ):  # fmt: skip
        change = {name: array(normal(shape, seed=21)) for name, shape in shapes.items()}
        yield refused(name, fact, "ValueError", says, flag, clause="B1", change=change)


def wrong_heads() -> Iterator[Fact]:
    on = {"enable_gqa": True}
    for name, fact, options, base, says in (
        ("heads-8-to-2-without-gqa", "8 and 2 heads do not broadcast; enable_gqa is the way.", {}, HEADS,
         ("8", "2", "enable_gqa")),
        ("heads-8-to-3", "8 query heads cannot share 3 key/value heads.", on, _heads(8, 3, 3), ("8", "3")),
        ("heads-3-to-8", "Fewer query heads than key/value heads are refused.", on, _heads(3, 8, 8), ("3", "8")),
        ("heads-8-to-0", "8 query heads cannot share none.", on, _heads(8, 0, 0), ("8", "0")),
        ("key-heads-2-value-heads-4", "k and v have the same heads.", on, _heads(8, 2, 4), ("2", "4")),
        ("gqa-without-head-axis", "enable_gqa needs a head axis.", on, qkv((4, 3), (5, 3), (5, 1)),
         ("enable_gqa",)),
    ):  # fmt: skip
        yield refused(name, fact, "ValueError", says, "heads-unchecked", clause="B5", options=options, base=base)


def _heads(H: int, Hk: int, Hv: int) -> dict[str, np.ndarray]:
    return qkv((2, H, 4, 3), (2, Hk, 5, 3), (2, Hv, 5, 1))


def wrong_gradients() -> Iterator[Fact]:
    for name, fact, shape, says in (
        ("d-out-too-wide", "d_out has the shape of the output.", (2, 4, 7), ("d_out", "(2, 4, 7)")),
        ("d-out-without-batch", "d_out does not broadcast.", (4, 1), ("d_out", "(4, 1)")),
        ("d-out-one-query", "d_out of one query is refused for four.", (2, 1, 1), ("d_out", "(2, 1, 1)")),
    ):
        call = {"op": "attention_vjp", "change": {"d_out": normal(shape, seed=13)}}
        yield refused(name, fact, "ValueError", says, "shape-unchecked", **call)


def wrong_memories() -> Iterator[Fact]:
    """Shapes that retrieve, search, recall and the head functions refuse, by the names of their own arguments."""
    for op, name, fact, shapes, says in (
        ("retrieve", "features", "query and keys share D.", {"keys": (2, 5, 7)}, ("query", "keys", "3", "7")),
        ("retrieve", "values", "keys and values share S.", {"values": (2, 9, 1)}, ("keys", "values", "5", "9")),
        ("retrieve", "query", "A query needs two axes.", {"query": (3,)}, ("query", "(3,)")),
        ("search", "features", "query and keys share D.", {"keys": (2, 5, 7)}, ("query", "keys", "3", "7")),
        ("search", "batches", "Batches of 2 and 11 do not broadcast.", {"keys": (11, 5, 3)}, ("keys", "11")),
        ("search", "keys", "Keys need two axes.", {"keys": (3,)}, ("keys", "(3,)")),
        ("search", "d-zero", "D = 0 leaves nothing to compare.", {"query": (2, 4, 0), "keys": (2, 5, 0)}, ("D", "0")),
        ("recall", "features", "A state has the patterns' D.", {"patterns": (5, 7)}, ("state", "patterns", "3", "7")),
        ("recall", "patterns", "Patterns have two axes.", {"patterns": (2, 5, 3)}, ("patterns", "(2, 5, 3)")),
        ("recall", "state", "A state needs an axis.", {"state": ()}, ("state", "()")),
        ("split_heads", "axes", "Splitting needs positions and features.", {"x": (6,)}, ("x", "(6,)")),
        ("merge_heads", "axes", "Joining needs a head axis.", {"x": (4, 6)}, ("x", "(4, 6)")),
        ("repeat_kv", "axes", "Repeating needs a head axis.", {"x": (4, 6)}, ("x", "(4, 6)")),
    ):
        change = {name: array(normal(shape, seed=22)) for name, shape in shapes.items()}
        call = {"op": op, "change": change}
        yield refused(f"{op}-shape-{name}".replace("_", "-"), fact, "ValueError", says, "shape-unchecked", **call)


def wrong_parts() -> Iterator[Fact]:
    out, lse = normal((2, 4, 6), seed=18), normal((2, 4), seed=19)
    first = {"out0": out, "lse0": lse}
    for name, fact, raises, arrays, says in (
        ("merge-of-nothing", "There is nothing to merge without parts.", "ValueError", {}, ("parts",)),
        ("merge-widths", "Parts have one Dv.", "ValueError", _part(first, out[..., :5], lse), ("6", "5")),
        ("merge-rows", "Parts have the same rows.", "ValueError", _part(first, out[:, :3], lse[:, :3]), ("4", "3")),
        ("merge-lse-shape", "lse has one number a row.", "ValueError", _part(first, out, lse[:, :3]), ("lse",)),
        ("merge-lse-axis", "lse has no feature axis.", "ValueError", _part(first, out, out), ("lse",)),
        ("merge-dtypes", "Parts share one dtype.", "TypeError",
         _part(first, out.astype(np.float64), lse.astype(np.float64)), ("float32", "float64")),
        ("merge-integers", "An integer out is refused.", "TypeError", _part(first, out.astype(np.int32), lse),
         ("out", "int32")),
        ("merge-integer-lse", "An integer lse is refused.", "TypeError", _part(first, out, lse.astype(np.int32)),
         ("lse", "int32")),
    ):  # fmt: skip
        yield refused(name, fact, raises, says, "parts-unchecked", op="merge", base=arrays)


def _part(first: dict[str, np.ndarray], out: np.ndarray, lse: np.ndarray) -> dict[str, np.ndarray]:
    return {**first, "out1": out, "lse1": lse}


def facts() -> Iterator[Fact]:
    """Every refusal that is not about a mask."""
    yield from wrong_dtypes()
    yield from mixed_halves()
    yield from wrong_kinds()
    yield from wrong_shapes()
    yield from wrong_heads()
    yield from wrong_options()
    yield from unknown_keywords()
    yield from wrong_gradients()
    yield from wrong_parts()
    yield from wrong_memories()
