"""Small NumPy attentions for the tests of the budget: right in several orders of rounding, or somewhere too coarse."""

from __future__ import annotations

import math

import numpy as np

from conformance.facts import compute_dtype, dtype_of


def dense(inputs, *, scale_on="scores", base2=False, low=None, coarse=()):
    """out, weights and lse of q, k, v by the textbook; the ``coarse`` steps are rounded to the dtype ``low``.

    The scale is multiplied into the "queries", the "keys" or the "scores"; ``base2`` folds log2(e) into it. The steps
    are "scores", "softmax" (every intermediate of it), "weights" and "sums" (every partial sum).
    """
    q, k, v = (widened(inputs[name]) for name in "qkv")
    scale, exp, unit = folded(q, base2)
    scores = kept(scaled(q, k, scale, scale_on), "scores" in coarse, low)
    in_softmax = "softmax" in coarse
    top = scores.max(axis=-1, keepdims=True)
    terms = kept(exp(kept(scores - top, in_softmax, low)), in_softmax, low)
    whole = summed(terms, in_softmax or "sums" in coarse, low)[..., None]
    weights = kept(terms / whole, in_softmax or "weights" in coarse, low)
    out = summed(weights[..., None, :] * np.swapaxes(v, -1, -2)[..., None, :, :], "sums" in coarse, low)
    lse = unit * top[..., 0] + np.log(whole[..., 0])
    return narrowed({"out": out, "weights": weights, "lse": lse}, inputs)


def tiled(inputs, *, size, base2=False, scale_on="queries", backwards=False):
    """out and lse with a running maximum and sum over tiles of that many keys, divided once at the end."""
    q, k, v = (widened(inputs[name]) for name in "qkv")
    scale, exp, unit = folded(q, base2)
    top = np.full((*q.shape[:-1], 1), -np.inf, q.dtype)
    whole, acc = np.zeros_like(top), np.zeros((*q.shape[:-1], v.shape[-1]), q.dtype)
    starts = range(0, k.shape[-2], size)
    for start in reversed(starts) if backwards else starts:
        scores = scaled(q, k[..., start : start + size, :], scale, scale_on)
        higher = np.maximum(top, scores.max(axis=-1, keepdims=True))
        terms, shrink = exp(scores - higher), exp(top - higher)
        whole = whole * shrink + terms.sum(axis=-1, keepdims=True)
        acc = acc * shrink + terms @ v[..., start : start + size, :]
        top = higher
    return narrowed({"out": acc / whole, "lse": (unit * top + np.log(whole))[..., 0]}, inputs)


def gradients(inputs, d_out, *, delta_from="keys", low=None):
    """dq, dk and dv by hand; the weights are rounded to ``low``."""
    q, k, v, d_out = (widened(x) for x in (*(inputs[name] for name in "qkv"), d_out))
    scale = q.dtype.type(1 / math.sqrt(q.shape[-1]))
    scores = scaled(q, k, scale, "scores")
    terms = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = kept(terms / terms.sum(axis=-1, keepdims=True), low is not None, low)
    d_weights = d_out @ np.swapaxes(v, -1, -2)
    delta = (weights * d_weights) if delta_from == "keys" else d_out * (weights @ v)
    d_scores = scale * weights * (d_weights - delta.sum(axis=-1, keepdims=True))
    across = np.swapaxes(d_scores, -1, -2)
    return narrowed({"dq": d_scores @ k, "dk": across @ q, "dv": np.swapaxes(weights, -1, -2) @ d_out}, inputs)


def widened(array):
    return array.astype(compute_dtype(array.dtype.name))


def narrowed(outputs, inputs):
    """Each output in its own dtype: that of the inputs, or the compute dtype for lse."""
    return {name: x if name == "lse" else x.astype(inputs["q"].dtype) for name, x in outputs.items()}


def folded(q, base2):
    """The scale, the exponential that goes with it, and what brings the maximum back to natural logarithms."""
    scale = q.dtype.type(1 / math.sqrt(q.shape[-1]))
    if not base2:
        return scale, np.exp, q.dtype.type(1)
    return scale * q.dtype.type(math.log2(math.e)), np.exp2, q.dtype.type(math.log(2))


def scaled(q, k, scale, scale_on):
    across = np.swapaxes(k, -1, -2)
    if scale_on == "queries":
        return (scale * q) @ across
    return q @ (scale * across) if scale_on == "keys" else scale * (q @ across)


def kept(x, coarse, low):
    return x.astype(dtype_of(low)).astype(x.dtype) if coarse else x


def summed(terms, coarse, low):
    """The sum along the last axis; a coarse one rounds every partial sum."""
    if not coarse:
        return terms.sum(axis=-1)
    total = np.zeros(terms.shape[:-1], terms.dtype)
    for place in range(terms.shape[-1]):
        total = kept(total + terms[..., place], True, low)
    return total
