"""What is to be refused and is bent instead until it fits, or refused in the wrong way."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np

from conformance.contract import OPERATIONS
from conformance.mutants.memory import Honest
from conformance.mutants.record import replaces
from impl_numpy import rules

VECTORS = ("q", "k", "v", "d_out", "query", "keys", "values", "state", "patterns")


def each_array(arrays: dict[str, Any], change: Callable[[str, np.ndarray], np.ndarray]) -> dict[str, Any]:
    """The array arguments, each as the change of its name and value gives it; what is no array stays."""
    return {name: change(name, x) if isinstance(x, np.ndarray) else x for name, x in arrays.items()}


def each_option(options: dict[str, Any], change: Callable[[str, Any], Any]) -> dict[str, Any]:
    """The options, each as the change of its name and value gives it."""
    return {name: change(name, x) for name, x in options.items()}


# --- kinds and dtypes ---


@replaces("accepted", "wrong-kind")
def lists_converted(self, op, arrays, options):
    """Lists and numbers are converted to arrays."""
    return {
        name: np.asarray(x, np.float32) if isinstance(x, list | float) else x for name, x in arrays.items()
    }, options


@replaces("accepted", "integer-inputs")
def integers_converted(self, op, arrays, options):
    """Integers, booleans and the real part of complex numbers are computed with."""

    def real(name: str, x: np.ndarray) -> np.ndarray:
        return x.real.astype(np.float32) if name in VECTORS and x.dtype.kind in "iubc" else x

    return each_array(arrays, real), options


@replaces("accepted", "mixed-dtypes")
def dtypes_unified(self, op, arrays, options):
    """Vectors of different dtypes are converted to that of the first."""
    dtype = next((x.dtype for x in arrays.values() if isinstance(x, np.ndarray)), None)
    return each_array(arrays, lambda name, x: x.astype(dtype) if name in VECTORS else x), options


@replaces("padding", "rule-array-unchecked")
def lengths_cut_to_integers(self, lengths):
    """Lengths of any dtype are cut to integers."""
    return rules.Padding(np.asarray(lengths).astype(np.int64))


@replaces("segments", "rule-array-unchecked")
def ids_cut_to_integers(self, q_ids, k_ids=None):
    """Ids of any dtype are cut to integers."""
    return rules.Segments(*(x.astype(np.int64) for x in (q_ids, q_ids if k_ids is None else k_ids)))


# --- numbers and flags ---


@replaces("accepted", "number-unchecked")
def odd_numbers_dropped(self, op, arrays, options):
    """The default stands in for a scale, softcap or beta that is no number, not finite or of a wrong sign."""

    def is_sound(name: str, x: Any) -> bool:
        return isinstance(x, Real) and math.isfinite(x) and (name == "scale" or x > 0)

    numbers = ("scale", "softcap", "beta")
    return arrays, {name: x for name, x in options.items() if name not in numbers or x is None or is_sound(name, x)}


@replaces("accepted", "truthy-flag")
def flags_by_truth(self, op, arrays, options):
    """is_causal and enable_gqa are what bool() makes of them."""
    return arrays, each_option(options, lambda name, x: bool(x) if name in ("is_causal", "enable_gqa") else x)


@replaces("accepted", "truthy-flag")
def true_as_one(self, op, arrays, options):
    """True is the number 1 where a number is due."""
    flags = ("is_causal", "enable_gqa")
    return arrays, each_option(options, lambda name, x: int(x) if isinstance(x, bool) and name not in flags else x)


@replaces("accepted", "unknown-keyword-ignored")
def unknown_keywords_dropped(self, op, arrays, options):
    """A keyword that does not exist is swallowed."""
    return arrays, {name: x for name, x in options.items() if name in OPERATIONS[op].options}


@replaces("accepted", "metric-unchecked")
def unknown_metric_is_dot(self, op, arrays, options):
    """A metric that is not known is the dot product."""
    known = ("dot", "cosine", "euclidean")
    return arrays, each_option(options, lambda name, x: "dot" if name == "metric" and x not in known else x)


@replaces("accepted", "too-many-keys")
def number_of_keys_bounded(self, op, arrays, options):
    """k and top_k are moved between 1 and the number of keys."""

    def bounded(name: str, x: Any) -> Any:
        return min(max(x, 1), arrays["keys"].shape[-2]) if name in ("k", "top_k") else x

    return arrays, each_option(options, bounded)


@replaces("accepted", "size-unchecked")
def sizes_made_whole(self, op, arrays, options):
    """Sizes are cut to whole numbers of at least 1, and updates to at least 0."""

    def whole(name: str, x: Any) -> Any:
        if isinstance(x, list):
            return [whole(name, size) for size in x]
        is_size = name in ("heads", "groups", "steps", "block_size", "k", "top_k") and isinstance(x, int | float)
        return max(int(x), name != "steps") if is_size else x

    return arrays, each_option(options, whole)


@replaces("window", "size-unchecked")
def window_of_any_size(self, left=None, right=None, *, offset=0):
    """A window may have sides below 0."""
    return rules.Window(left, right, offset)


# --- shapes ---


@replaces("accepted", "shape-unchecked")
def extra_values_cut(self, op, arrays, options):
    """Values beyond the last key are cut off."""
    keys = arrays.get("k", arrays.get("keys"))

    def cut(name: str, x: np.ndarray) -> np.ndarray:
        return x[..., : keys.shape[-2], :] if name in ("v", "values") and np.ndim(keys) > 1 else x

    return each_array(arrays, cut), options


@replaces("accepted", "shape-unchecked")
def extra_features_cut(self, op, arrays, options):
    """Queries and keys are compared by the features that both have."""
    pairs = ("q", "k", "query", "keys", "state", "patterns")
    D = min((np.shape(x)[-1] for name, x in arrays.items() if name in pairs and np.ndim(x)), default=0)
    return each_array(arrays, lambda name, x: x[..., :D] if name in pairs and x.ndim else x), options


@replaces("accepted", "heads-unchecked")
def heads_taken_in_turn(self, op, arrays, options):
    """Key/value heads that do not divide the query heads are taken in turn."""
    heads = arrays["q"].shape[-3] if np.ndim(arrays.get("q")) > 2 else 0

    def in_turn(name: str, x: np.ndarray) -> np.ndarray:
        is_odd = heads and name in ("k", "v") and x.ndim > 2 and x.shape[-3] > 0 and heads % x.shape[-3]
        return np.take(x, np.arange(heads) % x.shape[-3], axis=-3) if is_odd else x

    return each_array(arrays, in_turn), options


@replaces("accepted", "mask-bent-to-fit")
def mask_cut_to_size(self, op, arrays, options):
    """A mask or bias that is too long is cut."""
    shape = pairs_of(arrays)

    def cut(name: str, x: np.ndarray) -> np.ndarray:
        return x[..., : shape[0], : shape[1]] if name in ("mask", "bias") and shape and x.ndim > 1 else x

    return each_array(arrays, cut), options


@replaces("accepted", "mask-bent-to-fit")
def mask_turned_to_fit(self, op, arrays, options):
    """A mask or bias (S, T) is transposed."""
    turned = pairs_of(arrays)[::-1]
    is_pair = ("mask", "bias")
    return each_array(arrays, lambda name, x: x.mT if name in is_pair and x.shape[-2:] == turned else x), options


def pairs_of(arrays: dict[str, Any]) -> tuple[int, ...]:
    """The numbers of queries and keys (T, S), or () where there are none."""
    queries, keys = arrays.get("q", arrays.get("query")), arrays.get("k", arrays.get("keys"))
    return (queries.shape[-2], keys.shape[-2]) if np.ndim(queries) > 1 and np.ndim(keys) > 1 else ()


@replaces("accepted", "ambiguous-mask")
def mask_read_as_lengths(self, op, arrays, options):
    """A mask (B, S) that is none (T, S) is taken for one row of keys for each batch element."""
    q, mask, pairs = arrays.get("q"), arrays.get("mask"), pairs_of(arrays)
    if np.ndim(mask) != 2 or np.ndim(q) < 3 or len(mask) != len(q) or len(mask) in (1, pairs[0]):
        return arrays, options
    return arrays | {"mask": mask.reshape(len(mask), *[1] * (q.ndim - 2), -1)}, options


@replaces("accepted", "mask-values-unchecked")
def mask_by_truth(self, op, arrays, options):
    """Whatever is not 0 in a mask is visible."""
    return each_array(arrays, lambda name, x: x != 0 if name == "mask" else x), options


@replaces("accepted", "parts-unchecked")
def parts_cut_to_size(self, op, arrays, options):
    """Parts are converted to the first one's dtype and cut to its rows and features."""
    if "out0" not in arrays:
        return arrays, options
    out, lse = arrays["out0"], arrays["lse0"]

    def cut(name: str, x: np.ndarray) -> np.ndarray:
        like = out if name.startswith("out") else lse
        return x[tuple(slice(size) for size in like.shape)].astype(like.dtype) if x.ndim == like.ndim else x

    return each_array(arrays, cut), options


# --- the errors themselves ---


@replaces("attention", "integer-inputs", "mixed-dtypes", "wrong-kind")
def type_errors_as_value_errors(self, q, k, v, mask=None, **options):
    """A wrong type is a ValueError."""
    try:
        return Honest.attention(self, q, k, v, mask, **options)
    except TypeError as error:
        raise ValueError(str(error)) from error


@replaces("attention", "shape-unchecked", "heads-unchecked", "mask-bent-to-fit")
def value_errors_as_runtime_errors(self, q, k, v, mask=None, **options):
    """A wrong shape is a RuntimeError, as from a matrix product."""
    try:
        return Honest.attention(self, q, k, v, mask, **options)
    except ValueError as error:
        raise RuntimeError(str(error)) from error


@replaces("attention", "ambiguous-mask", "heads-unchecked", "mask-values-unchecked")
def errors_without_a_way_out(self, q, k, v, mask=None, **options):
    """The message says that an argument is wrong, and neither which nor what to do."""
    try:
        return Honest.attention(self, q, k, v, mask, **options)
    except (TypeError, ValueError) as error:
        raise type(error)("invalid argument") from error
