"""What is to be refused and is bent instead until it fits, or refused in the wrong way."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np

from conformance.contract import OPERATIONS
from conformance.mutants.memory import Honest
from conformance.mutants.record import replaces, respelled
from impl_numpy import rules

VECTORS = ("q", "k", "v", "d_out", "query", "keys", "values", "state", "patterns")


def is_array(x: Any) -> bool:
    """Whether an argument is an array."""
    return isinstance(x, np.ndarray)


def each_array(arrays: dict[str, Any], change: Callable[[str, np.ndarray], np.ndarray]) -> dict[str, Any]:
    """The array arguments, each as the change of its name and value gives it; what is no array stays."""
    return {name: change(name, x) if is_array(x) else x for name, x in arrays.items()}


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

    def counted(name: str, x: Any) -> Any:
        return int(x) if isinstance(x, bool) and name not in ("is_causal", "enable_gqa") else x

    return arrays, respelled(each_option(options, counted), lambda spec: each_option(spec, counted))


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
        is_size = name in ("heads", "groups", "steps", "k", "top_k") and isinstance(x, int | float)
        return max(int(x), name != "steps") if is_size else x

    return arrays, each_option(options, whole)


@replaces("accepted", "size-unchecked")
def tile_sizes_made_up(self, op, arrays, options):
    """A block_size that is no pair of sizes is one of 8 by 8."""
    sizes = options.get("block_size")
    is_pair = isinstance(sizes, list) and len(sizes) == 2 and all(isinstance(size, int) and size > 0 for size in sizes)
    return arrays, options if sizes is None or is_pair else options | {"block_size": [8, 8]}


@replaces("accepted", "size-unchecked")
def rules_of_any_size(self, op, arrays, options):
    """Numbers of rules are cut to whole numbers that are legal; what is no number is 0."""
    least = {"offset": -(2**30), "step": 1, "size": 1, "width": 1}

    def whole(name: str, x: Any) -> Any:
        if name in ("rule", "of", "lengths", "q_ids", "k_ids") or (name in ("left", "right") and x is None):
            return x
        number = max(int(x) if isinstance(x, int | float) else 0, least.get(name, 0))
        return number | 1 if name == "width" else number

    return arrays, respelled(options, lambda spec: each_option(spec, whole))


@replaces("split_heads", "size-unchecked")
def features_left_over_dropped(self, x, heads):
    """Features that cannot be shared evenly are left out."""
    return Honest.split_heads(self, x[..., : x.shape[-1] // heads * heads] if heads > 0 else x, heads)


# --- the errors themselves ---


@replaces("refused", "integer-inputs", "mixed-dtypes", "wrong-kind")
def type_errors_as_value_errors(self, error):
    """A wrong type is a ValueError."""
    return ValueError(str(error)) if isinstance(error, TypeError) else error


@replaces("refused", "shape-unchecked", "heads-unchecked")
def value_errors_as_runtime_errors(self, error):
    """A wrong shape is a RuntimeError, as it is from a matrix product."""
    return RuntimeError(str(error)) if isinstance(error, ValueError) else error


@replaces("refused", "ambiguous-mask", "heads-unchecked", "mask-values-unchecked")
def errors_without_a_way_out(self, error):
    """The message says that an argument is wrong, and neither which nor what to do."""
    return type(error)("invalid argument")
