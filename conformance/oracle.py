"""The oracle: every operation by its definition, in scalar loops over plain lists, from the contract alone.

It shares no line with the implementations and is slow on purpose: a reader checks it against the contract,
a test against values found on paper. The parts: oracle_problem (arguments), oracle_rules (masks),
oracle_attention, oracle_gradients, oracle_retrieval and oracle_heads; arithmetic.py holds its numbers.
"""

from __future__ import annotations

from conformance.arithmetic import Plain
from conformance.grids import Grid
from conformance.oracle_attention import attention, attention_steps, merge
from conformance.oracle_gradients import attention_vjp
from conformance.oracle_heads import merge_heads, repeat_kv, split_heads
from conformance.oracle_problem import Arrays, Options
from conformance.oracle_retrieval import recall, retrieve, search
from conformance.oracle_rules import mask_array, mask_picture

_OPERATIONS = {
    "attention": attention,
    "attention_steps": attention_steps,
    "flash_attention": attention,
    "attention_vjp": attention_vjp,
    "merge": merge,
    "mask_array": mask_array,
    "mask_picture": mask_picture,
    "retrieve": retrieve,
    "search": search,
    "recall": recall,
    "split_heads": split_heads,
    "merge_heads": merge_heads,
    "repeat_kv": repeat_kv,
}


def evaluate(op: str, arrays: Arrays, options: Options, arithmetic: Plain) -> dict[str, Grid | str]:
    """Every output of the operation, as grids of the arithmetic's numbers (a picture is one text).

    ``attention`` and ``flash_attention`` are one function here and give ``out``, ``weights`` and ``lse``.
    Non-finite numbers come out as the contract has them: NaN where something visible is not finite.
    """
    if op not in _OPERATIONS:
        raise ValueError(f"the oracle has no operation {op!r}; it has {', '.join(_OPERATIONS)}")
    return _OPERATIONS[op](arrays, options, arithmetic)
