"""Runs are judged: nothing that a backend does takes the others with it."""

from __future__ import annotations

import numpy as np
import pytest

from conformance.loading import Expected
from conformance.running import Run
from conformance.tests.backends import CRASHES, DOUBLING, EXITS, HANGS, RAISES, TOUCHY, check


def run(checks, backends, **settings):
    running = Run(checks, backends, **settings)
    return {(result.backend, result.check): result for result in running}, running


def test_a_crash_an_exit_and_a_hang_are_errors_and_the_rest_goes_on():
    numbers = {"crashes": CRASHES, "exits": EXITS, "hangs": HANGS, "raises": RAISES, "first": 1.0, "last": 2.0}
    checks = [check([x], name) for name, x in numbers.items()]
    results, running = run(checks, [TOUCHY], timeout=3.0)
    reasons = {name: result.reason for (_, name), result in results.items()}
    assert reasons == {
        "crashes": "the process was killed by signal 8 (SIGFPE)",
        "exits": "the process ended with exit code 3",
        "hangs": "no answer within 3 s, the process was killed",
        "raises": "ValueError: x must be positive",
        "first": "",
        "last": "",
    }
    assert {name for (_, name), result in results.items() if result.outcome == "error"} == {*reasons} - {
        "first",
        "last",
    }
    assert running.info[TOUCHY]["versions"] == {"doubling": "1.2"}


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ("conformance.tests.backends:Unloadable", "the process ended with exit code 7"),
        ("conformance.tests.backends:Absent", "conformance.tests.backends has no object 'Absent'"),
        ("nonsense", "unknown backend 'nonsense'"),
    ],
)
def test_a_backend_that_does_not_start_gives_no_results(spec, why):
    results, running = run([check([1.0], "a"), check([1.0], "b")], [spec, DOUBLING])
    assert [*results] == [(DOUBLING, "a"), (DOUBLING, "b")]
    assert [*running.unloaded] == [spec] and running.unloaded[spec].startswith(why)


def test_several_backends_and_processes_give_each_result_once():
    checks = [check([float(n)], f"n{n}") for n in range(1, 80)]
    running = Run(checks, [DOUBLING, TOUCHY], jobs=3)
    names = [(result.backend, result.check) for result in running]
    assert sorted(names) == sorted((b, c.name) for b in (DOUBLING, TOUCHY) for c in checks)


def test_a_check_that_the_judge_cannot_judge_is_an_error():
    broken = Expected("float32", (1,), np.ones(1), np.array([np.nan]))
    results, _ = run([check([1.0], expect={"x": broken})], [DOUBLING])
    (result,) = results.values()
    assert result.outcome == "error"
    assert result.reason.startswith("the judge could not judge it: ValueError: an error budget is NaN")
