"""One test a check and backend; what a ledger lists has to fail as listed, and what is unsupported is skipped."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from conformance import report, selecting, tally
from conformance.contract import CLAUSES
from conformance.ledger import Ledger, load
from conformance.loading import Check, checks, load_cases
from conformance.results import Result
from conformance.suite.conftest import desk_of
from conformance.suite.plugin import backends
from conformance.workers import Desk

OWN = ("numpy", "torch", "jax")
CHECKS = [check for case in load_cases() for check in checks(case)]


class KnownDifference(Exception):
    """A wrong answer that is as its ledger says."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make the tests of each backend that was asked for."""
    named, desk = backends(metafunc.config), desk_of(metafunc.config)
    try:
        specs = selecting.backends(named or [name for name in OWN if find_spec(name)])
        # What is named is loaded now, so that it can be refused, and since ledgers depend on versions.
        ledgers = {spec: Ledger(load(spec), desk.info(spec) if named else {}) for spec in specs}
    except (ValueError, LookupError) as error:
        raise pytest.UsageError(str(error)) from None
    if "check" in metafunc.fixturenames:
        tests = [test for spec in specs for test in _tests(spec, ledgers[spec])]
        metafunc.parametrize(("spec", "check", "ledger"), tests)
    else:
        metafunc.parametrize("ledger", ledgers.values(), ids=ledgers.keys())


def _tests(spec: str, ledger: Ledger) -> Iterator:
    for check in CHECKS:
        entry = ledger.entry(check)
        known = pytest.mark.xfail(strict=True, raises=KnownDifference, reason=entry.reason) if entry else ()
        yield pytest.param(spec, check, ledger, id=f"{spec}-{check.name}", marks=known)


def test_check(spec: str, check: Check, ledger: Ledger, desk: Desk) -> None:
    result = ledger.settle(desk.result(spec, check))
    if result.outcome == "unsupported":
        pytest.skip(result.reason)
    if result.outcome == "known":
        raise KnownDifference(result.reason)
    if result.outcome in tally.WRONG:
        pytest.fail(explained(check, result), pytrace=False)


def explained(check: Check, result: Result) -> str:
    """Say what is wrong, by which clauses, and what repeats it."""
    clauses = [f"  {clause} {CLAUSES[clause]}" for clause in check.case.clauses]
    call = f"{check.op}({report.arguments(check.case)})"
    return "\n".join([f"{result.outcome}: {result.reason}", check.case.fact, *clauses, call, report.reproduce(result)])


def test_every_entry_of_the_ledger_fits_a_check(ledger: Ledger) -> None:
    assert ledger.problems(CHECKS) == []
