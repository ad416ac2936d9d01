"""The command line: what it runs, what it prints, what it writes, and the exit code it ends with."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from typer.testing import CliRunner

from conformance import __main__ as command_line
from conformance import adapter, selecting, selfcheck, smoke
from conformance.ledger import Entry
from conformance.loading import Case, checks, load_cases, load_flags
from conformance.results import read
from conformance.tests.handmade import FLAGS, case

CASES = [case("causal-sees-the-first-key"), case("expects-seven", wrong=True, clauses=("E1",))]


@pytest.fixture(autouse=True)
def cases(monkeypatch) -> list[Case]:
    monkeypatch.setattr(command_line, "load_cases", lambda: CASES)
    monkeypatch.setattr(command_line, "load_flags", lambda: FLAGS)
    monkeypatch.setenv("COLUMNS", "200")
    return CASES


def call(*arguments: str, code: int) -> str:
    """Give what is printed, without line breaks; the exit code has to be that one."""
    done = CliRunner().invoke(command_line.app, [*arguments])
    assert done.exit_code == code, done.output
    return " ".join(done.output.split())


def test_what_passes_ends_with_0_and_is_written(tmp_path):
    page, lines = tmp_path / "new" / "report.html", tmp_path / "results.jsonl"
    written = "--report", str(page), "--json", str(lines)
    text = call("run", "--backend", "numpy", "-k", "causal", *written, code=0)
    assert "Nothing differs: 3 pass." in text
    header, results = read(lines)
    assert (header.backend, [result.outcome for result in results]) == ("numpy", ["pass"] * 3)
    assert [result.check for result in results] == [check.name for check in selecting.select(CASES, "causal")]
    assert "Nothing differs" in page.read_text(encoding="utf-8")


def test_what_differs_ends_with_1():
    text = call("run", "--backend", "numpy", "--clause", "E1", code=1)
    assert "3 of 3 checks went wrong" in text
    assert "-k expects-seven@flash_attention-3x5" in text


def test_the_command_that_a_failure_prints_repeats_it():
    text = call("run", "--backend", "numpy", "-k", "expects-seven@flash_attention-3x5", code=1)
    arguments = re.search(r"python -m conformance (run --backend numpy -k \S+)", text)[1].split()
    assert "1 of 1 checks went wrong" in call(*arguments, code=1)


def test_a_plain_function_is_judged_and_what_it_lacks_is_named():
    text = call("run", "--backend", "conformance.tests.kernels:raises", "-k", "causal", code=1)
    assert "1 conformance.tests.kernels:raises: the function has no parameter mask" in text
    assert "conformance.tests.kernels:raises: every check is unsupported, so nothing was judged" in text


def test_smoke_runs_five_cases_and_says_what_the_first_failure_means(monkeypatch):
    monkeypatch.setattr(command_line, "load_cases", load_cases)
    monkeypatch.setattr(command_line, "load_flags", load_flags)
    assert "speaks against the adapter" in call("run", "--backend", "numpy", "--smoke", code=0)
    text = call("run", "--backend", "conformance.tests.kernels:upside_down", "--smoke", code=1)
    assert "Smoke test of conformance.tests.kernels:upside_down pass one-key pass plain-float32 " in text
    assert "true-may-attend: The mask does not arrive, or True hides there" in text
    assert "none of the smoke cases matches" in call("run", "--smoke", "--op", "merge", code=2)


def test_every_smoke_case_is_there():
    assert {*smoke.STEPS} <= {case.id for case in load_cases() if case.op == "attention"}


def test_a_broken_judge_gives_no_verdict(monkeypatch):
    monkeypatch.setattr(selfcheck, "fault", lambda: "a NaN is judged as pass")
    done = CliRunner().invoke(command_line.app, ["run", "--backend", "numpy"])
    assert done.exit_code != 0 and "the judge is broken" in str(done.exception)


def test_fail_fast_stops_at_the_first_wrong_answer():
    assert "1 of 1 checks went wrong" in call(
        "run", "--backend", "numpy", "-k", "seven", "--jobs", "1", "--fail-fast", code=1
    )


def test_several_backends_are_written_to_a_file_each(tmp_path):
    names = "a", "my/kernel.py:attention"
    results = [command_line.Result.of(check, name, "pass", "") for name in names for check in selecting.select(CASES)]
    command_line.write_json(tmp_path / "r.jsonl", results, {}, CASES)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.a.jsonl", "r.my_kernel.py_attention.jsonl"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--backend", "nunpy"], "Did you mean numpy"),
        (["--backend", "no_such_module:backend"], "No module named 'no_such_module'"),
        (["--backend", "numpy", "-k", "causal-sees-the-frist"], "Did you mean causal-sees-the-first-key?"),
        (["--backend", "numpy", "--op", "atention"], "known are attention"),
        (["--backend", "numpy", "--dtype", "int3"], "known are bfloat16, float16"),
        (["--backend", "numpy", "--clause", "Z9"], "known are A1"),
        (["--backend", "numpy", "--op", "merge"], "python -m conformance list"),
        (["--jobs", "0"], "--jobs"),
        (["--backend", "numpy", "--arrays", "torch"], "--arrays and --errors are for plain functions"),
        (["--backend", "nowhere.py:attention"], "nowhere.py:attention: there is no file nowhere.py"),
        (["--backend", "nowhere.py"], "give path/to/file.py:function"),
        (["--backend", "conformance.tests.kernels:queries"], "has no q, k, v; it has to be like attention(q, k, v"),
        (["--backend", "conformance.tests.kernels:attention", "--arrays", "cupy"], "none of numpy, torch, jax"),
        (["--backend", "exec:no-such-command"], "the command cannot be started"),
    ],
)
def test_wrong_usage_ends_with_2_and_says_what_to_do(arguments, said):
    assert said in call("run", *arguments, code=2)


def test_a_missing_framework_names_the_extra_that_brings_it(monkeypatch):
    monkeypatch.setattr(selecting, "find_spec", lambda name: None)
    text = call("run", code=2)
    for name in ("torch", "jax", "torch-sdpa"):
        assert f"{name}: " in text
    assert "pip install 'attention-three-ways[jax]'" in text


def test_list_shows_the_cases_that_are_asked_for():
    text = call("list", "--clause", "E1", code=0)
    assert "expects-seven" in text and "causal-sees" not in text
    assert "1 cases, 3 checks" in text


def test_show_tells_all_of_a_case():
    text = call("show", "causal-sees-the-first-key@flash_attention", code=0)
    for said in (
        "The first query sees the first key.",
        "D4 causal(n): key <= query + n",
        "mask-inverted True is read as hide",
        "q float32 (4, 3) [[0. 0. 0.]",
        "###...",
        "out float32 (4, 6) [[1. 0. 0. 0. 0. 0. ]",
        "python -m conformance run -k causal-sees-the-first-key@flash_attention-3x5",
    ):
        assert said in text


def test_show_of_an_unknown_case_names_the_closest():
    assert "Did you mean expects-seven?" in call("show", "expects-sevn", code=2)


def test_a_difference_in_the_ledger_fails_nothing(monkeypatch):
    entry = Entry(kind="differs", reason="it is seven there", seen="2026-01", case="expects-seven*")
    monkeypatch.setattr(command_line, "load", lambda backend: [entry])
    assert "Nothing differs: 3 known." in call("run", "--backend", "numpy", "-k", "seven", code=0)


def test_a_ledger_may_be_given(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('[[known]]\nkind = "differs"\ncase = "plain-*"\nreason = "it is so"\nseen = "2026-01"\n')
    wrong = "run", "--backend", "conformance.tests.kernels:upside_down", "--ledger", str(path)
    assert "case 'plain-*': the entry fits no case" in call(*wrong, "-k", "seven", code=1)
    assert "numpy is judged without a ledger" in call("run", "--backend", "numpy", "--ledger", str(path), code=2)
    assert "--ledger is for one backend" in call("run", "--ledger", str(path), code=2)
    assert "there is no file" in call("run", "--backend", "torch-sdpa", "--ledger", "absent.toml", code=2)


def test_a_ledger_entry_that_no_longer_holds_fails_the_run(monkeypatch):
    entry = Entry(kind="differs", reason="it was zero once", seen="2026-01", case="causal-sees-the-first-key")
    monkeypatch.setattr(command_line, "load", lambda backend: [entry])
    text = call("run", "--backend", "numpy", "-k", "causal", code=1)
    assert "ledger of numpy: causal-sees-the-first-key: listed as differs" in text
    assert "The run failed for 1 problem, though no check went wrong: 3 pass." in text


def test_slow_variants_are_asked_two_checks_of_each_kind():
    every = [check for one in load_cases() for check in checks(one)]
    few = selecting.two_of_each_kind(every)
    assert len(few) == len({check.name for check in few}) < len(every) / 40
    for kinds in (lambda check: check.case.clauses, lambda check: [check.case.dtype], lambda check: [check.op]):
        have, all_there_are = (Counter(kind for check in some for kind in kinds(check)) for some in (few, every))
        assert all(have[kind] >= min(2, n) for kind, n in all_there_are.items())


def test_all_stands_for_every_backend_that_needs_no_accelerator():
    named = selecting.backends(["jax", "all"])
    assert len(named) == len({*named}) and named[0] == "jax"
    assert {*adapter.BUILT_IN} - {*named} == {"torch:accelerator", "torch:accelerator-flash"}
