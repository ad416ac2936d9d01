"""Wrong tiles: the last one lost, sums that are not rescaled, -inf taken from -inf."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from conformance.mutants.memory import Honest
from conformance.mutants.problem import Rows
from conformance.mutants.record import replaces


@replaces("walk", "last-tile-lost")
def last_tile_left_out(self, p, rows, tiles):
    """A last tile that is not full is left out."""
    return Honest.walk(self, p, rows, [tile for tile in tiles if len(tile) == len(tiles[0])])


@replaces("attention", "last-tile-lost")
def keys_that_nobody_sees_cut_off(self, q, k, v, mask=None, **options):
    """Columns of weights beyond the last key that anything sees are not returned."""
    out, weights = Honest.attention(self, q, k, v, mask, **options)
    seen = np.flatnonzero((weights != 0).any(axis=tuple(range(weights.ndim - 1))))
    return out, weights[..., : seen.max(initial=-1) + 1]


@replaces("shrink", "tiles-merged-without-rescaling")
def earlier_sums_left_as_they_are(self, old, new):
    """Earlier sums are not multiplied by exp(old maximum - new maximum)."""
    return np.ones_like(old)


@replaces("shrink", "first-tile-hidden-nan")
def shrunk_from_nothing_to_nothing(self, old, new):
    """-inf - -inf is computed while the first tiles of a row are all hidden."""
    return np.exp(old - new)


@replaces("extend", "first-tile-hidden-nan", "last-tile-hidden-nan")
def each_tile_with_its_own_maximum(self, tile, state, masked, visible):
    """A tile that is all hidden is normalised by its own maximum, -inf, before it joins the others."""
    own = masked.max(axis=-1, keepdims=True)
    numerators = np.exp(masked - own)
    top = np.maximum(state.top, own)
    shrink, share = self.shrink(state.top, top), np.exp(own - self.shift(top))
    total = state.total * shrink + share * numerators.sum(axis=-1, keepdims=True)
    return Rows(top, total, state.acc * shrink + share * self.blend(numerators, tile.v, visible))


@replaces("extend", "sink-counted-in-each-tile")
def sink_added_in_each_tile(self, tile, state, masked, visible):
    """The sink joins the denominator once for each tile of keys."""
    new = Honest.extend(self, tile, state, masked, visible)
    return new if tile.sinks is None else new._replace(total=new.total + np.exp(tile.sinks - new.top))


@replaces("walk", "bias-ignored")
def bias_not_handed_to_the_tiles(self, p, rows, tiles):
    """The tiles do not get the bias."""
    return Honest.walk(self, replace(p, bias=None), rows, tiles)


@replaces("share", "values-overflow")
def values_summed_up_as_they_are(self, p):
    """Values near the largest number are added up before they are divided by the total."""
    return 1.0
