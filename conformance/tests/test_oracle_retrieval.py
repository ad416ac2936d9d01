"""The oracle's rules, retrieval and heads against values found on paper."""

from __future__ import annotations

import math

import numpy as np
import pytest

from conformance.facts import array, identity, zeros
from conformance.tests.evaluating import run

NAN, INF = math.nan, math.inf


def pattern(rule, T, S, **arrays):
    return run("mask_picture", arrays, {"mask": rule, "T": T, "S": S})["picture"].split("\n")


PICTURES = {
    "causal": ({"rule": "causal"}, ["#....", "##...", "###.."]),
    "causal to the end": ({"rule": "causal", "offset": 2}, ["###..", "####.", "#####"]),
    "window": ({"rule": "window", "left": 1, "right": 0, "offset": 1}, ["##...", ".##..", "..##."]),
    "open window": ({"rule": "window", "left": None, "right": 1}, ["##...", "###..", "####."]),
    "local": ({"rule": "local", "width": 3}, ["##...", "###..", ".###."]),
    "prefix": ({"rule": "prefix", "length": 2}, ["##..."] * 3),
    "dilated": ({"rule": "dilated", "step": 2}, ["#.#.#", ".#.#.", "#.#.#"]),
    "chunked": ({"rule": "chunked", "size": 2}, ["##...", "##...", "..##."]),
    "or": ({"rule": "or", "of": [{"rule": "prefix", "length": 2}, {"rule": "causal"}]}, ["##...", "##...", "###.."]),
    "not": ({"rule": "not", "of": [{"rule": "causal"}]}, [".####", "..###", "...##"]),
    "and": (
        {"rule": "and", "of": [{"rule": "causal"}, {"rule": "not", "of": [{"rule": "prefix", "length": 1}]}]},
        [".....", ".#...", ".##.."],
    ),
}


@pytest.mark.parametrize("name", PICTURES)
def test_rules_look_as_drawn_on_paper(name):
    rule, picture = PICTURES[name]
    assert pattern(rule, 3, 5) == picture


def test_padding_draws_one_picture_for_each_length():
    rule = {"rule": "padding", "lengths": "lengths"}
    lengths = array([1, 3], "int64")
    assert pattern(rule, 2, 3, lengths=lengths) == ["#..", "#..", "", "###", "###"]
    assert run("mask_array", {"lengths": lengths[:, None]}, {"mask": rule, "T": 2, "S": 3})["array"].shape == (
        2,
        1,
        2,
        3,
    )


def test_segments_compare_ids():
    q_ids, k_ids = array([0, 0, 1], "int64"), array([1, 0, 0, 1], "int64")
    assert pattern({"rule": "segments", "q_ids": "q_ids"}, 3, 3, q_ids=q_ids) == ["##.", "##.", "..#"]
    rule = {"rule": "segments", "q_ids": "q_ids", "k_ids": "k_ids"}
    assert pattern(rule, 3, 4, q_ids=q_ids, k_ids=k_ids) == [".##.", ".##.", "#..#"]


def test_a_rule_with_arrays_broadcasts_against_the_leading_axes():
    arrays = {"q": zeros((2, 3, 1, 4)), "k": zeros((2, 3, 5, 4)), "v": zeros((2, 3, 5, 1))}
    arrays["lengths"] = array([[2], [4]], "int64")
    weights = run("attention", arrays, {"mask": {"rule": "padding", "lengths": "lengths"}})["weights"]
    assert (weights[0] > 0).tolist() == [[[True] * 2 + [False] * 3]] * 3
    assert (weights[1] > 0).tolist() == [[[True] * 4 + [False]]] * 3


def test_retrieve_blends_the_keys_and_names_the_best_one():
    arrays = {"query": array([[1.0, 0], [0, 1]]), "keys": array([[0, 2.0], [1, 1], [1, 1]])}
    arrays["mask"] = array([[1, 1, 1], [0, 0, 0]], "bool")
    found = run("retrieve", arrays, {"scale": math.log(2)})
    assert found["weights"] == pytest.approx(np.array([[0.2, 0.4, 0.4], [0, 0, 0]]))
    assert found["output"] == pytest.approx(np.array([[0.8, 1.2], [0, 0]]))
    assert found["index"].tolist() == [1, -1]


def test_retrieve_keeps_the_best_and_renormalises():
    arrays = {"query": array([[1.0], [1.0]]), "keys": array([[0.0], [2], [1], [2]]), "values": identity(4)}
    arrays["mask"] = array([[1, 1, 1, 1], [0, 0, 1, 0]], "bool")
    found = run("retrieve", arrays, {"scale": math.log(2), "top_k": 3})
    assert found["weights"] == pytest.approx(np.array([[0.4, 0.4, 0.2], [1, 0, 0]]))
    assert found["index"].tolist() == [[1, 3, 2], [2, -1, -1]]
    assert found["output"] == pytest.approx(np.array([[0, 0.4, 0.2, 0.4], [0, 0, 1, 0]]))


@pytest.mark.parametrize(
    ("metric", "scores", "indices"),
    [
        ("dot", [6, 6, 2, 0], [1, 3, 0, 2]),
        ("cosine", [1, 1, 0.6, 0], [0, 3, 1, 2]),
        ("euclidean", [0, 2, 2, 8**0.5], [0, 2, 3, 1]),
    ],
)
def test_search_sorts_the_best_first_and_ties_by_index(metric, scores, indices):
    keys = {"dot": [[1, 0], [3, 0], [0, 0], [3, 1]], "cosine": [[5, 0], [3, 4], [0, 0], [1, 0]]}
    keys["euclidean"] = [[2, 0], [4, 2], [2, 2], [0, 0]]
    found = run("search", {"query": array([[2, 0]]), "keys": array(keys[metric])}, {"k": 4, "metric": metric})
    assert found["scores"] == pytest.approx(np.array([scores]))
    assert found["indices"].tolist() == [indices]


@pytest.mark.parametrize(("metric", "pad"), [("dot", -INF), ("euclidean", INF)])
def test_search_ranks_nan_last_and_pads_what_is_hidden(metric, pad):
    arrays = {"query": array([[1.0]]), "keys": array([[NAN], [1], [9]]), "mask": array([[1, 1, 0]], "bool")}
    found = run("search", arrays, {"k": 3, "metric": metric})
    assert found["indices"].tolist() == [[1, 0, -1]]
    assert np.isnan(found["scores"][0, 1]) and found["scores"][0, 2] == pad


def test_recall_moves_to_the_blend_and_its_energy_falls():
    arrays = {"state": array([[1.0, 0]]), "patterns": identity(2)}
    recalled = run("recall", arrays, {"beta": math.log(3), "steps": 1})
    assert recalled["state"] == pytest.approx(np.array([[0.75, 0.25]]))
    lse = math.log(3**0.75 + 3**0.25)
    energies = [0.5 - math.log(4) / math.log(3), 0.3125 - lse / math.log(3)]
    assert recalled["energy"] == pytest.approx(np.array(energies)[:, None])
    assert energies[1] < energies[0]


def test_heads_are_split_merged_and_repeated_as_in_numpy():
    x = array(np.arange(2 * 3 * 8).reshape(2, 3, 8), "bfloat16")
    split = run("split_heads", {"x": x}, {"heads": 4})["x"]
    assert np.array_equal(split, x.astype(float).reshape(2, 3, 4, 2).swapaxes(1, 2))
    assert np.array_equal(run("merge_heads", {"x": split})["x"], x.astype(float))
    assert np.array_equal(run("repeat_kv", {"x": split}, {"groups": 2})["x"], split.repeat(2, axis=1))
