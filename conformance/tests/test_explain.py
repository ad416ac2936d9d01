"""A wrong output is explained: each mutant is recognised by its numbers, and told apart from the others."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from conformance import explain
from conformance.judging import judge
from conformance.loading import Check, checks, load_cases
from conformance.mutants import Altered, Mutant, mutants
from conformance.results import Result

# On these checks together most of the mutants give numbers that few others give.
TELLING = (
    "steps-with-everything-float16",
    "an-irregular-mask@flash_attention-3x5",
    "gradient-unmoved-by-nan-in-padding-beside-softcap",
    "search-by-euclidean-with-too-few-keys",
    "recall-between-patterns-float16",
    "merge-is-the-whole-with-a-mask",
    "dilated-or-local-under-causal-in-attention",
    "retrieve-top-2-under-causal",
)


@cache
def check(name: str) -> Check:
    return next(check for case in load_cases() for check in checks(case) if check.name == name)


def mutant(name: str) -> Mutant:
    return next(mutant for mutant in mutants() if mutant.name == name)


@cache
def candidates(name: str) -> list:
    return list(explain.recomputed(check(name)))


@pytest.mark.parametrize("name", TELLING)
def test_each_mutant_that_is_wrong_is_a_suspect_of_its_own_outputs(name):
    for wrong, outputs in candidates(name):
        assert wrong in explain.suspects(outputs, check(name), candidates(name))


def test_most_mutants_are_told_apart():
    told = set()
    for name in TELLING:
        found = [
            (wrong, explain.suspects(outputs, check(name), candidates(name))) for wrong, outputs in candidates(name)
        ]
        told |= {wrong.name for wrong, suspected in found if len(suspected) <= explain.FEW}
    assert len(told) >= 110


def result(name: str, at: str, **changes) -> Result:
    return replace(judge(check(at), mutant(name).backend()), backend="somebody", **changes)


@pytest.mark.parametrize(
    ("name", "at", "words"),
    [
        ("softmax-of-columns", "plain-float32", "The softmax runs over the queries."),
        ("scale-by-dv", "values-wider-than-keys", "The scores are divided by sqrt(Dv)."),
        ("heads-a-b-a-b", "steps-with-everything-float32", "Key/value heads are tiled, a b a b"),
        ("fill-of-minus-ten", "an-irregular-mask", "Hidden scores are -10."),
        ("gradient-of-columns", "gradient-plain-float32", "The sum that is taken off is that of the column."),
        ("distance-without-the-root", "search-by-euclidean", "The squared distance is returned."),
    ],
)
def test_a_wrong_result_is_told_in_words(name, at, words):
    told = explain.looks_like(result(name, at), check(at).case)
    assert words in told
    assert told.endswith(f"({name})")


def test_a_fault_of_the_dense_definition_is_recognised_tile_by_tile():
    dense = judge(check("plain-float32"), mutant("softmax-of-columns").backend())
    tiled = Result.of(check("plain-float32@flash_attention"), "somebody", "differs", "")
    told = explain.looks_like(replace(tiled, outputs={"out": dense.outputs["out"]}), check("plain-float32").case)
    assert told == "The softmax runs over the queries. (softmax-of-columns)"


def test_rounding_does_not_hide_a_fault():
    wrong = result("scale-one-unless-given", "plain-float32")
    outputs = {name: np.nextafter(array, np.float32(np.inf)) for name, array in wrong.outputs.items()}
    assert "not divided by sqrt(D)" in explain.looks_like(replace(wrong, outputs=outputs), check("plain-float32").case)


@pytest.mark.parametrize(
    ("name", "at"),
    [
        ("root-of-d-in-float32", "float64-keeps-float64-accuracy"),
        ("denominator-with-an-epsilon", "float64-keeps-float64-accuracy"),
        ("denominator-with-an-epsilon", "softcap-float64"),
        ("tanh-of-nine-at-most", "softcap-of-one-far-beyond-it-float64"),
        ("scale-in-half-precision", "plain-float16"),
    ],
)
def test_a_small_error_is_told_from_other_small_errors(name, at):
    assert explain.looks_like(result(name, at), check(at).case).startswith(mutant(name).wrong)


def test_what_the_backend_passes_rules_mutants_out():
    at = check("nan-in-a-value-of-vanishing-weight")
    wrong = result("values-of-no-weight-skipped", at.name)
    assert explain.looks_like(wrong, at.case).count(" Or: ") == 2
    backend = mutant("values-of-no-weight-skipped").backend()
    passed = [one for case in load_cases() for one in checks(case) if judge(one, backend).outcome == "pass"]
    told = explain.looks_like(wrong, at.case, passed)
    assert told == "A value is skipped when its weight is 0, and not when it is hidden. (values-of-no-weight-skipped)"


def test_where_every_mutant_is_ruled_out_all_are_told():
    at = check("plain-float32")
    passed = [one for case in load_cases() for one in checks(case) if one.op == "attention"]
    wrong = result("softmax-of-columns", at.name)
    assert explain.looks_like(wrong, at.case, passed) == explain.looks_like(wrong, at.case)


def test_what_no_mutant_gives_is_not_explained():
    wrong = result("softmax-of-columns", "plain-float32")
    outputs = {name: array + 1 for name, array in wrong.outputs.items()}
    assert explain.looks_like(replace(wrong, outputs=outputs), check("plain-float32").case) is None


def test_what_many_mutants_give_is_not_explained():
    wrong = result("minus-infinity-from-itself", "empty-row-float32")
    assert explain.looks_like(wrong, check("empty-row-float32").case) is None


@pytest.mark.parametrize("name", ["sums-in-another-order-each-time", "queries-scaled-in-place"])
def test_right_numbers_are_not_explained(name):
    wrong = result(name, "plain-float32")
    assert wrong.outcome == "differs"
    assert explain.looks_like(wrong, check("plain-float32").case) is None


def test_what_passes_or_raises_is_not_explained():
    passed = judge(check("plain-float32"), Altered())
    assert explain.looks_like(passed, check("plain-float32").case) is None
    raised = Result.of(check("plain-float32"), "somebody", "error", "ValueError: no")
    assert explain.looks_like(raised, check("plain-float32").case) is None
