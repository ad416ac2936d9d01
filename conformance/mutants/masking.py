"""Wrong masks: inverted, turned round, dropped, filled with a finite number, or applied at the wrong time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from conformance.mutants.memory import Honest
from conformance.mutants.record import pairs_of, replaces

# --- which pairs ---


@replaces("booleans", "mask-inverted")
def mask_true_hides(self, mask):
    """True hides instead of showing."""
    return mask == 0


@replaces("ruled", "mask-inverted")
def rule_true_hides(self, p, rule):
    """A rule hides what it is to show."""
    return ~rule.tile(p.rows, p.cols)


@replaces("visible", "mask-ignored")
def mask_dropped(self, p):
    """The mask is not applied."""
    return Honest.visible(self, replace(p, mask=None))


@replaces("visible", "mask-ignored-with-causal")
def mask_displaced_by_causal(self, p):
    """Mask and rule are dropped when is_causal is given too."""
    return Honest.visible(self, replace(p, mask=None, rule=None) if p.is_causal else p)


@replaces("visible", "causal-ignored-with-mask")
def causal_displaced_by_a_mask(self, p):
    """is_causal is dropped when a mask or a rule is given too."""
    return Honest.visible(self, p if p.mask is None and p.rule is None else replace(p, is_causal=False))


@replaces("accepted", "mask-transposed")
def mask_turned_round(self, op, arrays, options):
    """The mask is applied as (S, T) where T = S."""
    mask = arrays.get("mask")
    is_square = isinstance(mask, np.ndarray) and mask.ndim > 1 and mask.shape[-1] == mask.shape[-2]
    return arrays | ({"mask": mask.mT} if is_square else {}), options


@replaces("booleans", "mask-shifted")
def mask_one_key_later(self, mask):
    """The mask is applied one key too far to the right."""
    return np.roll(mask == 1, 1, axis=-1) if mask.ndim else mask == 1


@replaces("booleans", "mask-of-the-first-sample")
def mask_of_one_sample_for_all(self, mask):
    """The mask of the first batch element is applied to each."""
    return np.broadcast_to(mask[:1], mask.shape) == 1 if mask.ndim > 2 else mask == 1


@replaces("prepare", "mask-on-query-axis")
def mask_of_keys_given_to_queries(self, *arrays, **options):
    """One row of keys is applied to the queries instead."""
    p = Honest.prepare(self, *arrays, **options)
    T, S = p.sizes
    if p.mask is None or T > S or (p.mask != p.mask[..., :1, :]).any():
        return p
    return replace(p, mask=np.broadcast_to(p.mask[..., 0, :T, None], p.mask.shape))


@replaces("accepted", "mask-per-sample")
def mask_row_for_each_sample(self, op, arrays, options):
    """A mask (T, S) is read as one row of keys for each batch element when B = T."""
    mask, q = arrays.get("mask"), arrays.get("q")
    if not isinstance(mask, np.ndarray) or mask.ndim != 2 or q is None or q.ndim < 3 or len(mask) != len(q):
        return arrays, options
    return arrays | {"mask": mask.reshape(len(mask), *[1] * (q.ndim - 2), -1)}, options


@replaces("accepted", "mask-per-sample")
def mask_of_samples_read_as_queries(self, op, arrays, options):
    """A mask with one row of keys for each batch element is read as (T, S) when B = T."""
    mask, q = arrays.get("mask"), arrays.get("q")
    if np.ndim(mask) < 3 or np.ndim(q) < 3 or mask.shape[:-1] != (q.shape[-2], *[1] * (mask.ndim - 2)):
        return arrays, options
    return arrays | {"mask": mask.reshape(len(mask), -1)}, options


def read_for_each_sample(name, arrays):
    """The arrays with a mask or bias (H, T, S) read as (B, T, S) where B = H."""
    x, q = arrays.get(name), arrays.get("q")
    if not isinstance(x, np.ndarray) or x.ndim != 3 or np.ndim(q) != 4 or len(x) != len(q):
        return arrays
    return arrays | {name: x[:, None]}


@replaces("accepted", "mask-per-sample")
def mask_of_heads_read_as_samples(self, op, arrays, options):
    """A mask (H, T, S) is read as (B, T, S) when B = H."""
    return read_for_each_sample("mask", arrays), options


@replaces("accepted", "bias-per-sample")
def bias_of_heads_read_as_samples(self, op, arrays, options):
    """A bias (H, T, S) is read as (B, T, S) when B = H."""
    return read_for_each_sample("bias", arrays), options


def read_for_each_query(name, arrays):
    """The arrays with a mask or bias (S,) read as one entry for each query where T = S."""
    x, (T, S) = arrays.get(name), pairs_of(arrays) or (0, 1)
    return arrays | {name: x[:, None]} if isinstance(x, np.ndarray) and x.ndim == 1 and T == S else arrays


@replaces("accepted", "mask-on-query-axis")
def mask_of_one_axis_given_to_queries(self, op, arrays, options):
    """A mask (S,) is read as one of queries when T = S."""
    return read_for_each_query("mask", arrays), options


@replaces("accepted", "bias-on-query-axis")
def bias_of_one_axis_given_to_queries(self, op, arrays, options):
    """A bias (S,) is read as one of queries when T = S."""
    return read_for_each_query("bias", arrays), options


@replaces("booleans", "mask-bitwise-not")
def mask_by_bitwise_not(self, mask):
    """An integer mask is inverted with ~ and taken for true or false: ~1 is -2, which is true."""
    return ~(~mask).astype(bool) if mask.dtype.kind in "iu" else mask == 1


@replaces("accepted", "mask-added-as-bias")
def mask_added_to_the_scores(self, op, arrays, options):
    """A mask of 0 and 1 is added to the scores."""
    mask = arrays.get("mask")
    if not isinstance(mask, np.ndarray) or mask.dtype.kind == "c" or "q" not in arrays:
        return arrays, options
    bias = np.asarray(mask.astype(arrays["q"].dtype) + arrays.get("bias", 0))
    return {name: x for name, x in arrays.items() if name != "mask"} | {"bias": bias}, options


# --- how they are hidden ---


@replaces("softmax", "mask-after-softmax")
def mask_on_the_weights(self, p, masked, visible):
    """Hidden weights are set to 0 after the softmax, without dividing again."""
    open_problem = replace(p, mask=None, rule=None, is_causal=False)
    bare = self.logits(open_problem)
    weights, lse = Honest.softmax(self, p, bare.masked, bare.visible)
    return np.where(visible, weights, 0), lse


@replaces("logits", "infinity-multiplied")
def mask_times_infinity(self, p):
    """The mask is made additive by (1 - mask) * -inf, and 0 * -inf is NaN."""
    bare = Honest.logits(self, p)
    if p.mask is None and p.rule is None and not p.is_causal:
        return bare
    return bare._replace(masked=bare.biased + (1 - bare.visible.astype(p.q.dtype)) * -np.inf)


def filled(self, p, fill):
    """The logits with a finite number where hidden, all of them visible to the softmax."""
    bare = Honest.logits(self, p)
    masked = np.where(bare.visible, bare.masked, np.asarray(fill, bare.masked.dtype))
    return bare._replace(masked=masked, visible=np.ones_like(bare.visible))


@replaces("logits", "finite-fill")
def fill_of_zero(self, p):
    """Hidden scores are 0."""
    return filled(self, p, 0)


@replaces("logits", "finite-fill")
def fill_of_minus_ten(self, p):
    """Hidden scores are -10."""
    return filled(self, p, -10)


@replaces("logits", "finite-fill")
def fill_of_minus_1e4(self, p):
    """Hidden scores are -1e4."""
    return filled(self, p, -1e4)


@replaces("logits", "finite-fill")
def fill_of_minus_1e9(self, p):
    """Hidden scores are -1e9."""
    return filled(self, p, -1e9)


@replaces("logits", "finite-fill")
def fill_of_the_lowest_number(self, p):
    """Hidden scores are the lowest number of the compute dtype."""
    return filled(self, p, np.finfo(p.q.dtype).min)


@replaces("logits", "finite-fill")
def fill_of_seven_tenths_of_the_lowest(self, p):
    """Hidden scores are -0.7 times the largest number of the compute dtype."""
    return filled(self, p, -0.7 * np.finfo(p.q.dtype).max)


@replaces("logits", "finite-fill", "empty-row-nan")
def lowest_number_added_for_each_mask(self, p):
    """The lowest number is added for a mask and once more for is_causal: where both hide it becomes -inf."""
    lowest = np.finfo(p.q.dtype).min
    bare = Honest.logits(self, replace(p, mask=None, is_causal=False))
    masks = (Honest.visible(self, replace(p, **only)) for only in ({"is_causal": False}, {"mask": None}))
    added = sum(np.where(seen, 0, lowest) for seen in masks)
    return bare._replace(masked=bare.masked + added.astype(p.q.dtype), visible=np.ones_like(bare.visible))


# --- empty rows ---


@replaces("shift", "empty-row-nan")
def minus_infinity_from_itself(self, top):
    """The maximum of a row is subtracted also where it is -inf."""
    return top


@replaces("logits", "empty-row-mean")
def empty_rows_see_everything(self, p):
    """A row without visible keys is the mean of all values."""
    bare = Honest.logits(self, p)
    empty = ~bare.visible.any(axis=-1, keepdims=True)
    return bare._replace(masked=np.where(empty, 0, bare.masked), visible=bare.visible | empty)


@replaces("lse", "lse-finite-in-empty-row")
def lse_of_an_empty_row_is_zero(self, p, top, total):
    """The lse of an empty row is 0."""
    return np.where(total == 0, 0, Honest.lse(self, p, top, total))


@replaces("lse", "lse-finite-in-empty-row")
def lse_of_an_empty_row_is_plus_infinity(self, p, top, total):
    """The lse of an empty row is +inf."""
    return np.where(total == 0, np.inf, Honest.lse(self, p, top, total))
