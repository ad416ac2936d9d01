"""Ledgers are judged: strict both ways, silent only outside their versions, refused to the three implementations."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conformance.ledger import JUDGED_WITHOUT, Entry, Ledger, load
from conformance.results import Result
from conformance.tests.backends import check

INFO = {"versions": {"peer": "2.3.0+cpu"}}
CHECK = check([1.0], "empty-row-gives-zero", clauses=("E1",), flags=("empty-row-mean",))


def entry(**fields):
    return Entry(**{"kind": "differs", "reason": "it gives the mean", "seen": "peer 2.3.0"} | fields)


def result(outcome, reason="out: 3 of 4 elements differ"):
    return Result.of(CHECK, "peer", outcome, reason)


def settle(entries, *results, info=INFO):
    ledger = Ledger(entries, info)
    return [ledger.settle(one) for one in results], ledger.problems([CHECK])


@pytest.mark.parametrize(
    "fields",
    [
        {"case": CHECK.name},
        {"case": "empty-row-*"},
        {"clause": "E1"},
        {"flag": "empty-row-mean"},
        {"case": "empty-*", "clause": "E1", "flag": "empty-row-mean"},
    ],
)
def test_a_listed_difference_is_known(fields):
    (settled,), problems = settle([entry(**fields)], result("differs"))
    assert (settled.outcome, problems) == ("known", [])
    assert settled.reason == "it gives the mean (out: 3 of 4 elements differ)"


def test_a_listed_error_is_known():
    (settled,), problems = settle([entry(case="*", kind="error")], result("error"))
    assert (settled.outcome, problems) == ("known", [])


@pytest.mark.parametrize("outcome", ["differs", "error", "pass", "unsupported", "either"])
def test_what_is_not_listed_stays_as_it_is(outcome):
    (settled,), problems = settle([], result(outcome))
    assert (settled.outcome, problems) == (outcome, [])


@pytest.mark.parametrize(
    ("outcome", "why"),
    [
        ("pass", "but it is pass: remove it from the ledger"),
        ("either", "but it is either: remove it"),
        ("error", "but now it is error: RuntimeError: no kernel"),
        ("unsupported", "but now it is unsupported"),
    ],
)
def test_what_is_not_as_listed_is_a_problem_with_its_name(outcome, why):
    (settled,), (problem,) = settle([entry(case=CHECK.name)], result(outcome, "RuntimeError: no kernel"))
    assert settled.outcome == outcome
    assert problem.startswith(f"{CHECK.name}: listed as differs (case '{CHECK.name}'), {why}")


def test_a_difference_that_says_something_else_is_a_problem():
    listed = entry(case=CHECK.name, says="non-finite")
    assert settle([listed], result("differs", "non-finite at (0,)"))[1] == []
    (settled,), (problem,) = settle([listed], result("differs"))
    assert settled.outcome == "differs"
    assert "listed as differs with 'non-finite'" in problem and problem.endswith("out: 3 of 4 elements differ")


def test_a_pattern_may_take_in_what_is_unsupported():
    (settled,), problems = settle([entry(clause="E1")], result("unsupported", "no lse"))
    assert (settled.outcome, problems) == ("unsupported", [])


@pytest.mark.parametrize("fields", [{"case": "empty-row"}, {"clause": "E2"}, {"case": "empty-*", "flag": "other"}])
def test_an_entry_that_fits_no_case_is_a_problem(fields):
    _, (problem,) = settle([entry(**fields)])
    assert problem.endswith("the entry fits no case")


def test_an_entry_whose_case_was_not_run_is_none():
    assert settle([entry(case=CHECK.name)]) == ([], [])


def test_a_check_that_is_listed_twice_is_a_problem():
    _, (problem,) = settle([entry(case="empty-*"), entry(clause="E1")], result("differs"))
    assert problem == f"{CHECK.name}: listed more than once: case 'empty-*'; clause 'E1'"


@pytest.mark.parametrize(
    ("applies", "outcome"),
    [("peer>=2.3", "known"), ("peer==2.3.*", "known"), ("peer<2.3", "differs"), ("other>=1", "differs")],
)
def test_an_entry_rests_outside_its_versions(applies, outcome):
    (settled,), problems = settle([entry(case=CHECK.name, applies=applies)], result("differs"))
    assert (settled.outcome, problems) == (outcome, [])


def test_an_entry_that_rests_is_not_missed():
    assert settle([entry(case="gone", applies="peer>=3")])[1] == []


def written(path, text):
    path.write_text(text, encoding="utf-8")
    return path


GOOD = '[[known]]\nkind = "differs"\ncase = "a"\nreason = "r"\nseen = "s"\n'


def test_a_ledger_is_read(tmp_path):
    assert load("peer", written(tmp_path / "peer.toml", GOOD)) == [entry(case="a", reason="r", seen="s")]


def test_a_list_of_cases_is_as_many_entries(tmp_path):
    entries = load("peer", written(tmp_path / "peer.toml", GOOD.replace('"a"', '["a", "b-*"]')))
    assert entries == [entry(case=case, reason="r", seen="s") for case in ("a", "b-*")]


def test_a_backend_without_a_ledger_has_no_entries():
    assert load("unheard-of") == []


@pytest.mark.parametrize("backend", [*JUDGED_WITHOUT, "numpy:readonly"])
def test_the_three_implementations_may_have_no_ledger(backend, tmp_path):
    assert load(backend) == []
    with pytest.raises(ValueError, match="judged without a ledger"):
        load(backend, written(tmp_path / "own.toml", GOOD))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (GOOD.replace("differs", "pass"), "kind 'pass'"),
        (GOOD.replace('reason = "r"\n', ""), "reason"),
        (GOOD.replace("case", "cases"), "cases"),
        (GOOD.replace('case = "a"\n', ""), "none of case, clause and flag"),
        (GOOD.replace("known", "unknown"), r"\[\[known\]\]"),
    ],
)
def test_a_broken_ledger_is_refused(tmp_path, text, why):
    with pytest.raises(ValueError, match=why):
        load("peer", written(tmp_path / "peer.toml", text))


def test_the_route_is_part_of_the_name():
    route = replace(result("differs"), check=f"{CHECK.name}@flash_attention")
    (settled,), _ = settle([entry(case=CHECK.name)], route)
    assert settled.outcome == "differs"
