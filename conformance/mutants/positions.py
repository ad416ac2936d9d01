"""Wrong rules: causal, windows, padding, segments and the others, one position off, turned round or dropped."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import impl_numpy
from conformance.mutants.memory import Honest
from conformance.mutants.record import pairs_of, replaces, respelled
from impl_numpy import rules

EVERYTHING = impl_numpy.window()

# --- causal ---


@replaces("causal", "causal-off-by-one")
def causal_without_self(self, offset=0):
    """A query does not see its own position."""
    return impl_numpy.causal(offset - 1)


@replaces("causal", "causal-off-by-one")
def causal_with_the_next(self, offset=0):
    """A query sees the position after its own."""
    return impl_numpy.causal(offset + 1)


@replaces("causal", "causal-transposed")
def causal_upper_triangle(self, offset=0):
    """A query sees its own position and the future."""
    return ~impl_numpy.causal(offset - 1)


@replaces("causal", "causal-offset-ignored")
def causal_without_offset(self, offset=0):
    """The offset is not used."""
    return impl_numpy.causal()


@replaces("causal_rule", "causal-alignment")
def causal_aligned_at_the_last_key(self, p):
    """is_causal is aligned at the last query and key instead of the first."""
    T, S = p.sizes
    return impl_numpy.causal(S - T)


@replaces("causal_rule", "causal-alignment")
def causal_aligned_at_the_last_key_if_queries_are_more(self, p):
    """is_causal is aligned at the last query and key when there are more queries than keys."""
    T, S = p.sizes
    return impl_numpy.causal(min(0, S - T))


@replaces("accepted", "causal-alignment")
def causal_rules_aligned_at_the_last_key(self, op, arrays, options):
    """causal() is aligned at the last query and key instead of the first."""
    T, S = (options["T"], options["S"]) if "T" in options else pairs_of(arrays) or (0, 0)

    def aligned(spec):
        return spec | {"offset": spec["offset"] + S - T} if spec["rule"] == "causal" else spec

    return arrays, respelled(options, aligned)


@replaces("visible", "causal-ignored")
def causal_dropped(self, p):
    """is_causal is not applied."""
    return Honest.visible(self, replace(p, is_causal=False))


# --- windows ---


def shifted(left, right, offset, *, by_left=0, by_right=0):
    """A window whose sides are moved outwards by so many keys, also below zero."""
    left, right = (None if side is None else side + by for side, by in ((left, by_left), (right, by_right)))
    return rules.Window(left, right, offset)


@replaces("window", "window-off-by-one-left")
def window_one_short_on_the_left(self, left=None, right=None, *, offset=0):
    """The left side counts the query itself: it has one key too few."""
    return shifted(left, right, offset, by_left=-1)


@replaces("window", "window-off-by-one-left")
def window_one_long_on_the_left(self, left=None, right=None, *, offset=0):
    """The left side has one key too many."""
    return shifted(left, right, offset, by_left=1)


@replaces("window", "window-off-by-one-right")
def window_one_short_on_the_right(self, left=None, right=None, *, offset=0):
    """The right side has one key too few."""
    return shifted(left, right, offset, by_right=-1)


@replaces("window", "window-off-by-one-right")
def window_one_long_on_the_right(self, left=None, right=None, *, offset=0):
    """The right side has one key too many."""
    return shifted(left, right, offset, by_right=1)


@replaces("window", "window-offset-ignored")
def window_without_offset(self, left=None, right=None, *, offset=0):
    """The offset is not used."""
    return impl_numpy.window(left, right)


@replaces("window", "window-none-is-zero")
def window_side_none_is_zero(self, left=None, right=None, *, offset=0):
    """A side that is left out sees nothing instead of everything."""
    return impl_numpy.window(left or 0, right or 0, offset=offset)


@replaces("local", "local-width-doubled")
def local_width_on_each_side(self, width):
    """local(width) sees width keys on each side."""
    return impl_numpy.window(width, width)


# --- padding, segments and the others ---


@replaces("padding", "padding-ignored")
def padding_dropped(self, lengths):
    """Lengths are not applied."""
    return EVERYTHING


@replaces("padding", "padding-off-by-one")
def padding_shows_its_first_key(self, lengths):
    """padding(lengths) shows key <= length."""
    return impl_numpy.padding(np.asarray(lengths + 1))


class PaddedQueries(rules.Padding):
    """query < length."""

    def visible(self, query, key):
        return query < self.lengths[..., None, None]


@replaces("padding", "padding-on-query-axis")
def padding_of_queries(self, lengths):
    """Lengths count queries instead of keys."""
    return PaddedQueries(lengths)


@replaces("segments", "segments-ignored")
def segments_dropped(self, q_ids, k_ids=None):
    """Segment ids are not applied."""
    return EVERYTHING


def counted(ids):
    """How often the id has changed up to each position."""
    return np.concatenate([np.zeros_like(ids[..., :1]), np.cumsum(np.diff(ids) != 0, axis=-1)], axis=-1)


@replaces("segments", "segments-only-neighbours")
def segments_by_their_changes(self, q_ids, k_ids=None):
    """Segments are counted by the changes of the ids: an id that comes back is another segment."""
    return impl_numpy.segments(counted(q_ids), None if k_ids is None else counted(k_ids))


@replaces("prefix", "prefix-off-by-one")
def prefix_with_one_more(self, length):
    """prefix(n) shows key <= n."""
    return impl_numpy.prefix(length + 1)


class DilatedFromZero(rules.Dilated):
    """key % step == 0."""

    def visible(self, query, key):
        return key % self.step == 0


@replaces("dilated", "dilated-phase")
def dilated_from_the_first_key(self, step):
    """dilated(step) counts keys from 0 and not from the query."""
    return DilatedFromZero(step)


class ChunkedFromOne(rules.Chunked):
    """(query + 1) // size == (key + 1) // size."""

    def visible(self, query, key):
        return super().visible(query + 1, key + 1)


@replaces("chunked", "chunk-boundary")
def chunked_from_one(self, size):
    """Chunks are counted from position 1."""
    return ChunkedFromOne(size)


class ChunkedWithOneMore(rules.Chunked):
    """The own chunk, and the first key of the next."""

    def visible(self, query, key):
        return super().visible(query, key) | (key == (query // self.size + 1) * self.size)


@replaces("chunked", "chunk-boundary")
def chunked_up_to_the_next(self, size):
    """A chunk ends with the first key of the next one."""
    return ChunkedWithOneMore(size)


# --- joining and tiles ---


@replaces("accepted", "not-ignored")
def not_dropped(self, op, arrays, options):
    """~rule is the rule itself."""
    return arrays, respelled(options, lambda spec: spec["of"][0] if spec["rule"] == "not" else spec)


@replaces("accepted", "rules-joined-by-the-other-word")
def and_read_as_or(self, op, arrays, options):
    """& is evaluated as |."""
    return arrays, respelled(options, lambda spec: spec | {"rule": "or"} if spec["rule"] == "and" else spec)


@replaces("accepted", "rules-joined-by-the-other-word")
def or_read_as_and(self, op, arrays, options):
    """| is evaluated as &."""
    return arrays, respelled(options, lambda spec: spec | {"rule": "and"} if spec["rule"] == "or" else spec)


@replaces("ruled", "tile-positions-local")
def rule_starts_anew_in_each_tile(self, p, rule):
    """A rule is evaluated with positions that start at 0 in each tile."""
    return rule.tile(range(len(p.rows)), range(len(p.cols)))


@replaces("ruled", "tile-positions-local")
def positions_of_queries_start_anew_after_128(self, p, rule):
    """Queries go in chunks of 128, and a rule is evaluated with their positions in the chunk."""
    return rule.visible(np.asarray(p.rows, int)[:, None] % 128, np.asarray(p.cols, int))


@replaces("ruled", "positions-wrap")
def positions_of_keys_in_eight_bits(self, p, rule):
    """Positions of keys are kept in eight bits: key 256 looks like key 0."""
    return rule.visible(np.asarray(p.rows, int)[:, None], np.asarray(p.cols, int) % 256)


@replaces("ruled", "positions-wrap")
def positions_of_queries_in_eight_bits(self, p, rule):
    """Positions of queries are kept in eight bits: query 256 looks like query 0."""
    return rule.visible(np.asarray(p.rows, int)[:, None] % 256, np.asarray(p.cols, int))
