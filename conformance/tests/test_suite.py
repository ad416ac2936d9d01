"""The pytest front is judged: what passes, fails, is skipped, and is expected to fail, by its own outcome."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.loading import checks, load_cases
from conformance.tests.backends import CRASHES, DOUBLING, TOUCHY, check
from conformance.workers import Desk

ROOT = Path(__file__).parents[2]
SUITE = "-rA -p no:cacheprovider -p conformance.suite.plugin --pyargs conformance.suite".split()


def suite(folder, *arguments, modules=()):
    """Run pytest away from the repository, as others do, and give its exit code and output."""
    for name, text in modules:
        (folder / name).write_text(text)
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", *SUITE, *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def test_a_test_a_check_with_an_id_of_backend_and_check(tmp_path):
    code, text = suite(tmp_path, "--backend", "numpy", "-k", "one-key or every_entry")
    assert code == 0, text
    for case in (case for case in load_cases() if "one-key" in case.id):
        for one in checks(case):
            assert f"test_check[numpy-{one.name}]" in text
    assert "PASSED" in text and "test_every_entry_of_the_ledger_fits_a_check[numpy]" in text


def test_a_wrong_function_fails_and_what_it_lacks_is_skipped_with_the_reason(tmp_path):
    code, text = suite(tmp_path, "--backend", "conformance.tests.kernels:upside_down", "-k", "true-may-attend")
    assert code == 1
    assert "differs: out: " in text
    assert "D1 True or 1 is visible, False or 0 hidden" in text
    assert "--backend conformance.tests.kernels:upside_down -k true-may-attend" in text
    assert "a function is judged as attention, once" in text


@pytest.mark.parametrize("name", ["nunpy", "nowhere.py:attention"])
def test_a_backend_that_cannot_be_loaded_is_wrong_usage(tmp_path, name):
    code, text = suite(tmp_path, "--backend", name)
    assert code == 2 and f"UsageError: {name}: " in text


LEDGER = """
import pytest
from conformance.ledger import Entry
from conformance.suite import test_checks

ENTRIES = [
    Entry("differs", "True hides there", "2026", case="true-may-attend", says="elements differ"),
    Entry("differs", "gone", "2026", case="one-key"),
    Entry("error", "it fails otherwise now", "2026", case="an-irregular-mask"),
    Entry("differs", "no such case", "2026", case="nothing-at-all"),
]
test_checks.load = lambda spec: ENTRIES
"""


def test_the_ledger_is_strict_both_ways(tmp_path):
    names = "true-may-attend or one-key] or an-irregular-mask] or every_entry"
    arguments = ["-p", "entries", "--backend", "conformance.tests.kernels:upside_down", "-k", names]
    code, text = suite(tmp_path, *arguments, modules=[("entries.py", LEDGER)])
    assert code == 1
    kernel = "test_checks.py::test_check[conformance.tests.kernels:upside_down-"
    assert f"{kernel}true-may-attend] - True hides there" in summary(text, "XFAIL")
    assert f"{kernel}one-key]" in summary(text, "FAILED") and "[XPASS(strict)] gone" in text
    assert f"{kernel}an-irregular-mask]" in summary(text, "FAILED")
    assert "case 'nothing-at-all': the entry fits no case" in text


def summary(text, outcome):
    """Give the lines of that outcome at the end of pytest's report, without the folders before the file's name."""
    lines = [line.split(maxsplit=1)[1] for line in text.splitlines() if line.startswith(f"{outcome} ")]
    return "\n".join(line[line.index("test_checks.py") :] for line in lines)


def test_a_desk_goes_on_after_a_crash():
    desk = Desk(timeout=20.0)
    assert desk.info(DOUBLING)["versions"] == {"doubling": "1.2"}
    assert desk.result(TOUCHY, check([CRASHES])).reason == "the process was killed by signal 8 (SIGFPE)"
    assert desk.result(TOUCHY, check([1.0])).outcome == "pass"
    with pytest.raises(LookupError, match=r"conformance.tests.backends:Absent: .*has no object 'Absent'"):
        desk.info("conformance.tests.backends:Absent")
    desk.close()
