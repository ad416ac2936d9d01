"""Attention, masking and retrieval.

Written in JAX; the gradient of attention is left to jax.vjp.
"""

from __future__ import annotations

from .attention import Steps, attention, attention_steps
from .flash import flash_attention
from .gradients import Gradients, attention_vjp
from .heads import merge_heads, repeat_kv, split_heads
from .masks import Mask, causal, chunked, dilated, local, padding, prefix, segments, window
from .merging import merge
from .retrieval import Neighbours, Recall, Retrieval, recall, retrieve, search

__all__ = [
    "Gradients",
    "Mask",
    "Neighbours",
    "Recall",
    "Retrieval",
    "Steps",
    "attention",
    "attention_steps",
    "attention_vjp",
    "causal",
    "chunked",
    "dilated",
    "flash_attention",
    "local",
    "merge",
    "merge_heads",
    "padding",
    "prefix",
    "recall",
    "repeat_kv",
    "retrieve",
    "search",
    "segments",
    "split_heads",
    "window",
]
