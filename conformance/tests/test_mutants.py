"""The judge is proven: each wrong attention is rejected by cases that name its bug, and each flag is needed."""

from __future__ import annotations

from functools import cache
from io import StringIO

import pytest
from rich.console import Console
from typer.testing import CliRunner

from conformance import __main__ as command_line
from conformance.judging import judge
from conformance.loading import Case, checks, load_cases, load_flags
from conformance.mutants import Altered, mutants, proving
from conformance.mutants.record import replaces


@cache
def cases() -> list[Case]:
    return load_cases()


@cache
def carriers() -> dict:
    return proving.by_flag(cases())


@pytest.mark.parametrize("mutant", mutants(), ids=lambda mutant: mutant.name)
def test_it_is_rejected_under_each_of_its_flags(mutant):
    assert [flag for flag in mutant.flags if not proving.is_rejected(mutant, carriers()[flag])] == []


def test_each_flag_is_that_of_a_mutant():
    assert {flag for mutant in mutants() for flag in mutant.flags} == load_flags().keys()


def test_each_case_catches_every_bug_that_its_flags_name():
    assert proving.unearned(cases()) == set()


def test_the_honest_attention_that_they_alter_passes_every_case():
    honest = Altered()
    results = [judge(check, honest) for case in cases() for check in checks(case)]
    assert [(result.check, result.reason) for result in results if result.outcome not in ("pass", "either")] == []


def test_each_has_a_name_of_its_own_and_says_what_is_wrong():
    names = [mutant.name for mutant in mutants()]
    assert len(set(names)) == len(names)
    assert [mutant.name for mutant in mutants() if not mutant.wrong.endswith(".") or not mutant.flags] == []


def test_a_step_that_does_not_exist_cannot_be_replaced():
    with pytest.raises(ValueError, match="no step 'sclae'"):
        replaces("sclae", "scale-missing")


def some(count: int) -> list[Case]:
    """Give the first cases of two files."""
    return [case for case in cases() if case.file == "scale"][:count] + [
        case for case in cases() if case.file == "heads"
    ]


@pytest.fixture
def console(monkeypatch) -> Console:
    few = tuple(mutant for mutant in mutants() if mutant.name in ("scale-zero-is-none", "lists-converted"))
    monkeypatch.setattr(proving, "mutants", lambda: few)
    return Console(file=StringIO(), width=200)


def test_the_table_counts_the_checks_that_noticed(console):
    assert not proving.show(some(9), console, full=False)
    text = console.file.getvalue()
    assert "A scale of 0 is taken for no scale." in text
    assert "2 mutants, not rejected: lists-converted" in text


def test_the_matrix_has_a_column_for_each_file(console):
    proving.show(some(3), console, full=True)
    text = console.file.getvalue()
    assert "scale: rejects 1 mutants, 1 of them alone" in text
    assert "heads: rejects 0 mutants, 0 of them alone" in text


@pytest.mark.parametrize(("rejected", "code"), [(True, 0), (False, 1)])
def test_the_command_ends_with_1_when_a_mutant_is_not_rejected(monkeypatch, rejected, code):
    monkeypatch.setattr(proving, "show", lambda cases, console, full: rejected)
    assert CliRunner().invoke(command_line.app, ["mutants"]).exit_code == code
