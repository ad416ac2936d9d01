"""Shapes that are to be refused and are cut, repeated or given axes until they fit."""

from __future__ import annotations

import numpy as np

from conformance.mutants.record import pairs_of, replaces
from conformance.mutants.refusals import VECTORS, each_array, is_array

# --- vectors ---


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


@replaces("accepted", "shape-unchecked")
def output_gradient_broadcast(self, op, arrays, options):
    """d_out is cut and broadcast to the shape of the output."""
    d_out, q, v = (arrays.get(name) for name in ("d_out", "q", "v"))
    if np.ndim(d_out) < 2 or np.ndim(q) < 2 or np.ndim(v) < 2 or d_out.shape[-2] not in (1, q.shape[-2]):
        return arrays, options
    lead = np.broadcast_shapes(d_out.shape[:-2], q.shape[:-2])
    shape = (*lead, q.shape[-2], v.shape[-1])
    return arrays | {"d_out": np.broadcast_to(d_out[..., : v.shape[-1]], shape).copy()}, options


@replaces("accepted", "shape-unchecked")
def axes_added(self, op, arrays, options):
    """A vector without the axes that are due gets them."""
    least = {"merge_heads": 3, "repeat_kv": 3, "recall": 1}.get(op, 2)
    due = {
        name: x[(None,) * max(0, least - x.ndim)]
        for name, x in arrays.items()
        if name in (*VECTORS, "x") and is_array(x)
    }
    return arrays | due, options


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


@replaces("accepted", "mask-bent-to-fit")
def mask_repeated_until_it_fits(self, op, arrays, options):
    """A mask or bias that does not broadcast is repeated and cut until it has the right number of elements."""
    pairs, queries = pairs_of(arrays), arrays.get("q", arrays.get("query"))
    shape = (*queries.shape[:-2], *pairs) if pairs else ()

    def fitted(name: str, x: np.ndarray) -> np.ndarray:
        return x if name not in ("mask", "bias") or not pairs or fits(x, shape) else np.resize(x, shape)

    return each_array(arrays, fitted), options


def fits(x: np.ndarray, shape: tuple[int, ...]) -> bool:
    """Whether an array broadcasts to the shape and adds nothing to it."""
    return x.ndim <= len(shape) and all(a in (1, b) for a, b in zip(x.shape[::-1], shape[::-1], strict=False))


@replaces("accepted", "ambiguous-mask")
def mask_read_as_lengths(self, op, arrays, options):
    """A mask (B, S) that is none (T, S) is taken for one row of keys for each batch element."""
    q, mask, pairs = arrays.get("q"), arrays.get("mask"), pairs_of(arrays)
    if np.ndim(mask) != 2 or np.ndim(q) < 3 or len(mask) != len(q) or len(mask) in (1, pairs[0]):
        return arrays, options
    return arrays | {"mask": mask.reshape(len(mask), *[1] * (q.ndim - 2), -1)}, options


@replaces("accepted", "mask-values-unchecked", "mask-bitwise-not")
def mask_by_truth(self, op, arrays, options):
    """Whatever is not 0 in a mask is visible."""
    return each_array(arrays, lambda name, x: x != 0 if name == "mask" else x), options


@replaces("accepted", "parts-unchecked")
def parts_cut_to_size(self, op, arrays, options):
    """Parts are converted to the first one's dtype and cut to the rows and features that all of them have."""
    if op != "merge" or "out0" not in arrays:
        return arrays, options
    rows = min(np.shape(x)[-2 if name.startswith("out") else -1] for name, x in arrays.items())
    width = min(np.shape(x)[-1] for name, x in arrays.items() if name.startswith("out"))

    def cut(name: str, x: np.ndarray) -> np.ndarray:
        like = arrays[f"{name[:3]}0"]
        x = x[..., 0] if x.ndim > like.ndim else x
        return (x[..., :rows, :width] if name.startswith("out") else x[..., :rows]).astype(like.dtype)

    return each_array(arrays, cut), options


@replaces("accepted", "parts-unchecked")
def nothing_merged_to_nothing(self, op, arrays, options):
    """A merge of no parts gives a row of its own."""
    nothing = {"out0": np.zeros((1, 1), np.float32), "lse0": np.full(1, -np.inf, np.float32)}
    return arrays or (nothing if op == "merge" else {}), options


@replaces("accepted", "rule-array-unchecked")
def lengths_and_ids_cut_to_size(self, op, arrays, options):
    """Lengths and ids are cut to the batch, ids repeated to the number of positions."""
    queries, pairs = arrays.get("q"), pairs_of(arrays)
    if np.ndim(queries) != 3:
        return arrays, options
    given = {name: x for name, x in arrays.items() if name in ("lengths", "q_ids", "k_ids") and is_array(x)}
    if "q_ids" in given:
        given.setdefault("k_ids", given["q_ids"])
        options = options | {"mask": options["mask"] | {"k_ids": "k_ids"}}
    sizes = {"q_ids": pairs[0], "k_ids": pairs[1]}
    given = {name: cut_to(x, len(queries), sizes.get(name)) for name, x in given.items() if x.ndim}
    return arrays | given, options


def cut_to(x: np.ndarray, batch: int, positions: int | None) -> np.ndarray:
    """Lengths (B,), or ids (B, positions) and (positions,), of an array that may have too many or too few."""
    if positions is None:
        return x.reshape(-1)[:batch]
    return np.take(x[:batch] if x.ndim > 1 else x, np.arange(positions) % x.shape[-1], axis=-1)
