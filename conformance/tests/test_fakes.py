"""Fakes: adapters that deceive and judges that are broken. Each is caught, and the result names what it did."""

from __future__ import annotations

import pytest

from conformance import judging, laws, selfcheck
from conformance.compare import Verdict, compare
from conformance.judging import judge
from conformance.loading import checks, load_cases
from conformance.running import Run
from conformance.tally import unasked
from conformance.tests import fakes

CHECKS = {check.name: check for case in load_cases() for check in checks(case)}
PLAIN, UNKNOWN = CHECKS["plain-float32"], CHECKS["refuses-attention-keyword-dropout-p"]

IN_THIS_PROCESS = {
    "Honest": (PLAIN, "pass", ""),
    "ReturnsItsInput": (PLAIN, "differs", "it shares memory with the argument v; the shape is (7, 6), expected (4, 6)"),
    "ReturnsNumPy": (PLAIN, "differs", "out: got a ndarray, which is not an array of the backend's own kind"),
    "IgnoresOptions": (UNKNOWN, "differs", "nothing was raised, expected TypeError"),
    "WritesIntoItsInput": (PLAIN, "differs", "the call modified its argument q"),
    "PromisesMore": (PLAIN, "differs", "weights: it is missing from what the call returned"),
    "AnswersOtherwiseTheSecondTime": (PLAIN, "differs", "other bits when the call is repeated"),
    "SwallowsErrors": (UNKNOWN, "differs", "nothing was raised, expected TypeError"),
    "RefusesEverything": (PLAIN, "unsupported", "not today"),
}
IN_A_PROCESS = {
    "ReadsTheCases": "it read the expected values: attention.json",
    "SearchesItsProcess": "RuntimeError: nothing that is expected is in this process",
    "Hangs": "no answer within 3 s, the process was killed",
    "KillsItsProcess": "the process was killed by signal 11 (SIGSEGV)",
    "EndsItsProcess": "the process ended with exit code 0",
}
RIGHT = Verdict(True, "equal", 0.0, "")


@pytest.mark.parametrize("name", IN_THIS_PROCESS)
def test_an_adapter_that_deceives_is_named_by_what_it_does(name):
    check, outcome, reason = IN_THIS_PROCESS[name]
    result = judge(check, getattr(fakes, name)())
    assert result.outcome == outcome
    assert reason in result.reason


@pytest.mark.parametrize("name", IN_A_PROCESS)
def test_an_adapter_that_cheats_or_dies_is_named_by_what_it_did(name):
    running = Run([PLAIN], [f"conformance.tests.fakes:{name}"], timeout=3.0 if name == "Hangs" else 60.0)
    (result,) = running
    assert (result.outcome, result.reason) == ("error", IN_A_PROCESS[name])


def test_options_that_are_dropped_are_missed_by_the_cases_too():
    found = [judge(check, fakes.IgnoresOptions()) for check in CHECKS.values() if "softcap" in check.options]
    assert [result for result in found if result.outcome == "differs" and result.worst is not None]


def test_a_backend_that_refuses_everything_is_no_backend_that_passes():
    results = [judge(check, fakes.RefusesEverything()) for check in (PLAIN, UNKNOWN)]
    assert unasked(results) == ["honest"]


def test_a_backend_that_cannot_say_what_it_is_is_not_loaded():
    running = Run([PLAIN], ["conformance.tests.fakes:RaisesAtInfo"])
    assert [*running] == []
    assert running.unloaded == {"conformance.tests.fakes:RaisesAtInfo": "RuntimeError: no version"}


def generous(expected, got):
    """Ten times the budget."""
    return compare(type(expected)(expected.dtype, expected.shape, expected.values, 10 * expected.budget), got)


def forgetful(check, reply):
    """The comparison is made, and its result dropped."""
    for name in check.outputs:
        compare(check.case.expect[name], reply.answers[0].outputs.get(name))
    return "pass", "", None


VALID = judging._JUDGES | {"valid": forgetful}
INVALID = judging._JUDGES | {"invalid": lambda check, reply: ("pass", "", None)}
BROKEN = {
    "always right": (judging, "compare", lambda expected, got: RIGHT, "a number that is two budgets off"),
    "generous": (judging, "compare", generous, "a number that is two budgets off"),
    "forgetful": (judging, "_JUDGES", VALID, "a number that is two budgets off"),
    "blind to errors": (judging, "_JUDGES", INVALID, "an error of another kind"),
    "lawless": (laws, "broken", lambda check, answers: None, "other bits in the second call"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_judge_that_is_broken_finds_it_out_by_itself(monkeypatch, name):
    module, function, broken, said = BROKEN[name]
    monkeypatch.setattr(module, function, broken)
    assert selfcheck.fault().startswith(f"{said} is judged as pass")


def test_a_judge_that_is_right_finds_no_fault():
    assert selfcheck.fault() is None
