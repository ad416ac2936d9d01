"""What is refused in a mask, a bias, sinks and a mask rule, and which way out the message names.

The sizes are B = 2, T = 4, S = 5, D = 3, Dv = 1, and H = 8 over one shared key/value head.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from conformance.facts import Fact, Given, array, normal, qkv
from conformance.facts.errors import BASES, PLAIN, refused, spelled

SHARED = qkv((2, 8, 4, 3), (2, 1, 5, 3), (2, 1, 5, 1))
GROUPED = qkv((2, 8, 4, 3), (2, 2, 5, 3), (2, 2, 5, 1))

# Name, fact, base, the mask's shape, and what the message contains beside "mask" and that shape.
WRONG_SHAPES = (
    ("batch-by-keys", "A mask (B, S) is no mask (T, S); the message offers both ways out.", SHARED, (2, 5),
     ("mask[:, None, None, :]", "padding(lengths)")),
    ("batch-by-keys-without-heads", "A mask (B, S) over (B, T, D) inputs is no mask (T, S).", PLAIN, (2, 5),
     ("mask[:, None, :]", "padding(lengths)")),
    ("heads-by-queries", "A mask (H, T) is not turned round to fit.", SHARED, (8, 4), ()),
    ("too-long", "A mask longer than S is not cut.", PLAIN, (4, 6), ()),
    ("too-short", "A mask shorter than S is not padded.", PLAIN, (4, 3), ()),
    ("transposed", "A mask (S, T) is not transposed.", PLAIN, (5, 4), ()),
    ("too-many-queries", "A mask of T + 1 rows is not cut.", PLAIN, (2, 5, 5), ()),
    ("extra-axis", "A mask adds no leading axis.", PLAIN, (3, 2, 4, 5), ()),
    ("extra-axis-of-one", "A mask adds no leading axis, not even one of size 1.", PLAIN, (1, 2, 4, 5), ()),
    ("per-batch-without-head-axis", "A mask (B, T, S) over heads lacks its head axis.", SHARED, (2, 4, 5), ()),
    ("key-value-heads", "A mask has H heads or one, not Hk.", GROUPED, (2, 2, 4, 5), ()),
    ("one-axis", "A mask (T,) is no mask (S,).", PLAIN, (4,), ()),
)  # fmt: skip
# Name, fact, dtype, the value that stands for "visible", the one for "hidden".
WRONG_VALUES = (
    ("int8-minus-one", "-1, which is ~0 in int8, is neither 0 nor 1.", "int8", -1, -2),
    ("uint8-254", "254 and 255, which are ~1 and ~0 in uint8, are neither 0 nor 1.", "uint8", 255, 254),
    ("int64-two", "A mask that counts is refused; only 0 and 1 are known.", "int64", 2, 0),
    ("int32-segment-ids", "Segment ids are no mask.", "int32", 3, 7),
    ("float32-additive", "0 and -inf are a bias, and the message says so.", "float32", 0, -np.inf),
    ("float32-lowest", "0 and the lowest float32 are a bias, no mask.", "float32", 0, -3.4028235e38),
    ("float16-additive", "0 and -10000 are a bias, no mask.", "float16", 0, -10000),
    ("float64-half", "A mask has no shades: 0.5 is refused.", "float64", 1, 0.5),
    ("float32-nan", "NaN in a mask is neither visible nor hidden.", "float32", 1, np.nan),
    ("bfloat16-minus-one", "-1 in a bfloat16 mask is refused.", "bfloat16", 1, -1),
)
CLAUSES = {"causal": "D4", "window": "D5", "local": "D5"}
# Rule, argument, value, error kind.
WRONG_RULES = (
    ("causal", "offset", 0.5, "TypeError"),
    ("causal", "offset", "1", "TypeError"),
    ("causal", "offset", True, "TypeError"),
    ("causal", "offset", None, "TypeError"),
    ("window", "left", -1, "ValueError"),
    ("window", "right", -2, "ValueError"),
    ("window", "left", 1.5, "TypeError"),
    ("window", "right", "all", "TypeError"),
    ("window", "left", True, "TypeError"),
    ("window", "offset", 0.5, "TypeError"),
    ("local", "width", 4, "ValueError"),
    ("local", "width", 0, "ValueError"),
    ("local", "width", -3, "ValueError"),
    ("local", "width", 3.0, "TypeError"),
    ("prefix", "length", -1, "ValueError"),
    ("prefix", "length", 2.0, "TypeError"),
    ("dilated", "step", 0, "ValueError"),
    ("dilated", "step", -2, "ValueError"),
    ("dilated", "step", 1.5, "TypeError"),
    ("chunked", "size", 0, "ValueError"),
    ("chunked", "size", -1, "ValueError"),
    ("chunked", "size", 2.5, "TypeError"),
)
# Name, fact, the rule's arrays, error kind, what the message contains.
WRONG_RULE_ARRAYS = (
    ("padding-float", "Lengths are counted, not measured: floats are refused.",
     {"lengths": array([2, 3])}, "TypeError", ("lengths", "float32")),
    ("padding-bool", "Booleans are no lengths.",
     {"lengths": array([True, False], "bool")}, "TypeError", ("lengths", "bool")),
    ("padding-text", "A text is no array of lengths.",
     {"lengths": Given("two")}, "TypeError", ("lengths", "str")),
    ("padding-batch", "Three lengths do not fit a batch of two.",
     {"lengths": array([2, 3, 1], "int64")}, "ValueError", ("(3,)",)),
    ("padding-extra-axis", "Lengths add no leading axis.",
     {"lengths": array([[2, 3]] * 3, "int64")}, "ValueError", ("(3, 2)",)),
    ("segments-float", "Ids are integers: floats are refused.",
     {"q_ids": array([[0, 0, 1, 1]] * 2), "k_ids": array([[0, 0, 1, 1, 1]] * 2, "int64")},
     "TypeError", ("q_ids", "float32")),
    ("segments-float-keys", "Ids of keys are integers as well.",
     {"q_ids": array([[0, 0, 1, 1]] * 2, "int64"), "k_ids": array([[0, 0, 1, 1, 1]] * 2)},
     "TypeError", ("k_ids", "float32")),
    ("segments-number", "One number is no list of ids.",
     {"q_ids": array(1, "int64"), "k_ids": array([0, 0, 1, 1, 1], "int64")}, "ValueError", ("q_ids", "()")),
    ("segments-queries", "There is one id for each query.",
     {"q_ids": array([0, 0, 1], "int64"), "k_ids": array([0, 0, 1, 1, 1], "int64")},
     "ValueError", ("q_ids", "3", "4")),
    ("segments-keys", "There is one id for each key.",
     {"q_ids": array([0, 0, 1, 1], "int64"), "k_ids": array([0, 0, 1, 1, 1, 1], "int64")},
     "ValueError", ("k_ids", "6", "5")),
    ("segments-keys-left-out", "Ids of the queries do not fit the keys when S differs from T.",
     {"q_ids": array([0, 0, 1, 1], "int64")}, "ValueError", ("k_ids", "4", "5")),
    ("segments-batch", "Ids of three sequences do not fit a batch of two.",
     {"q_ids": array([[0, 0, 1, 1]] * 3, "int64"), "k_ids": array([0, 0, 1, 1, 1], "int64")},
     "ValueError", ("(3,)",)),
)  # fmt: skip


def wrong_shapes() -> Iterator[Fact]:
    for name, fact, base, shape, says in WRONG_SHAPES:
        call = {"clause": "D2", "base": base, "change": {"mask": np.ones(shape, bool)}}
        call["options"] = {"enable_gqa": True} if base is GROUPED else {}
        flag = "ambiguous-mask" if says else "mask-bent-to-fit"
        words = ("mask", str(shape), *says)
        yield refused(f"mask-{name}", fact, "ValueError", words, flag, **call)
        if says == ():
            bias = {**call, "clause": "C6", "change": {"bias": normal(shape, seed=31)}}
            words = ("bias", str(shape))
            yield refused(f"bias-{name}", fact.replace("mask", "bias"), "ValueError", words, flag, **bias)


def wrong_values() -> Iterator[Fact]:
    for name, fact, dtype, visible, hidden in WRONG_VALUES:
        mask = array([[visible, visible, visible, hidden, hidden]] * 4, dtype)
        call = {"clause": "D1", "change": {"mask": mask}}
        flag = "mask-bitwise-not" if name in ("int8-minus-one", "uint8-254") else "mask-values-unchecked"
        yield refused(f"mask-{name}", fact, "ValueError", ("mask", dtype, "bias="), flag, **call)


def wrong_kinds() -> Iterator[Fact]:
    ones = [[True] * 5] * 4
    for name, fact, change, says in (
        ("mask-complex", "A complex mask is refused.", {"mask": array(ones, "complex64")}, ("mask", "complex64")),
        ("mask-list", "A list is no mask; it is not converted.", {"mask": Given(ones)}, ("mask", "list")),
        ("mask-text", "The word 'causal' is no mask rule.", {"mask": Given("causal")}, ("mask", "str")),
        ("mask-true", "True is no mask.", {"mask": Given(True)}, ("mask", "bool")),
        ("bias-list", "A list is no bias; it is not converted.", {"bias": Given([0.0] * 5)}, ("bias", "list")),
        ("bias-integer", "An integer bias is refused.", {"bias": array(ones, "int32")}, ("bias", "int32")),
        ("bias-boolean", "A boolean bias is a mask, and is refused.", {"bias": array(ones, "bool")},
         ("bias", "bool")),
        ("bias-complex", "A complex bias is refused.", {"bias": array(ones, "complex64")}, ("bias", "complex64")),
        ("sinks-list", "A list is no array of sinks.", {"sinks": Given([0.0] * 8)}, ("sinks", "list")),
        ("sinks-integer", "Integer sinks are refused.", {"sinks": array([0] * 8, "int32")}, ("sinks", "int32")),
    ):  # fmt: skip
        yield refused(name, fact, "TypeError", says, "wrong-kind", base=SHARED, change=change)


def wrong_sinks() -> Iterator[Fact]:
    for name, fact, base, shape in (
        ("sinks-seven-for-eight-heads", "Seven sinks do not fit eight heads.", SHARED, (7,)),
        ("sinks-per-batch", "Sinks have no batch axis.", SHARED, (2, 8)),
        ("sinks-per-key-value-head", "Sinks belong to the query heads, not to the key/value heads.", GROUPED, (2,)),
        ("sinks-without-heads", "Without a head axis there is one sink.", qkv((4, 3), (5, 3), (5, 1)), (3,)),
    ):
        call = {"clause": "C7", "base": base, "change": {"sinks": normal(shape, seed=32)}}
        call["options"] = {"enable_gqa": True} if base is GROUPED else {}
        yield refused(name, fact, "ValueError", ("sinks", str(shape)), "shape-unchecked", **call)


def wrong_rules() -> Iterator[Fact]:
    for rule, argument, value, raises in WRONG_RULES:
        spec = {"rule": rule, argument: value}
        fact = f"{rule} refuses {argument}={value!r} with a {raises}."
        name = f"{rule}-{argument}-{spelled(value)}"
        says = (argument,) if value in (None, True, "1", "all") else (argument, str(value))
        flag = "truthy-flag" if value is True else "size-unchecked"
        call = {"op": "mask_array", "clause": CLAUSES.get(rule, "D6"), "options": {"mask": spec}}
        yield refused(name, fact, raises, says, flag, **call)


def wrong_rule_arrays() -> Iterator[Fact]:
    for name, fact, arrays, raises, says in WRONG_RULE_ARRAYS:
        call = {"clause": "D6", "change": arrays, "options": {"mask": _over(arrays)}}
        yield refused(name, fact, raises, says, "rule-array-unchecked", **call)
    lengths = {"lengths": array([2, 3], "int64")}
    fact = "Lengths (B,) do not fit inputs (B, H, T, D), which take (B, 1)."
    call = {"clause": "D6", "base": SHARED, "change": lengths, "options": {"mask": _over(lengths)}}
    words = ("(2,)", "(B, 1)")
    yield refused("padding-without-head-axis", fact, "ValueError", words, "ambiguous-mask", **call)


def _over(arrays: dict[str, Any]) -> dict[str, Any]:
    """The rule that takes these arrays."""
    return {"rule": "padding" if "lengths" in arrays else "segments", **{name: name for name in arrays}}


def other_operations() -> Iterator[Fact]:
    """The same masks are refused by the operations that have no route of their own."""
    for op in ("attention_steps", "attention_vjp", "retrieve", "search"):
        name, call = op.replace("_", "-"), {"op": op, "base": BASES[op]}
        long, shades = {"mask": np.ones((4, 6), bool)}, {"mask": array([[1, 1, 0.5, 0, 0]] * 4)}
        fact = f"{op} does not cut a mask that is longer than S."
        words = ("mask", "(4, 6)")
        yield refused(
            f"{name}-mask-too-long", fact, "ValueError", words, "mask-bent-to-fit", clause="D2", change=long, **call
        )
        fact = f"{op} refuses 0.5 in a mask."
        words = ("mask", "float32")
        yield refused(
            f"{name}-mask-half", fact, "ValueError", words, "mask-values-unchecked", clause="D1", change=shades, **call
        )


def facts() -> Iterator[Fact]:
    """Every refusal that is about a mask, a bias, sinks or a rule."""
    yield from wrong_shapes()
    yield from wrong_values()
    yield from wrong_kinds()
    yield from wrong_sinks()
    yield from wrong_rules()
    yield from wrong_rule_arrays()
    yield from other_operations()
