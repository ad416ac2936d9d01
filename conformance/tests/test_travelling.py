"""Files that travel are judged: results that are compared elsewhere, ledger entries, cases for other languages."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from conformance import comparing, exporting, ledger, proposing
from conformance.facts import Given, dtype_of
from conformance.loading import digest, load_cases
from conformance.results import Header, write
from conformance.tests.handmade import case, result
from conformance.tests.test_isolation import IMPORT_BLOCKED

ROOT = Path(__file__).parents[2]
CASES = [case("sees-the-first-key"), case("sees-the-second-key")]
INFO = {"versions": {"python": "3.11.7", "torch": "2.13.0+cpu"}, "device": "cpu", "float32_matmul_precision": "highest"}


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Write a file of results of a backend; without results, both cases pass a quarter of a budget off."""
    monkeypatch.setattr(comparing, "load_cases", lambda: CASES)

    def make(name, backend="numpy", results=None, suite=None):
        header = Header(suite or digest(CASES), backend, INFO, "2026-01-02T03:04:05+00:00")
        path = tmp_path / f"{name}.jsonl"
        write(path, header, [result(case, backend) for case in CASES] if results is None else results)
        return str(path)

    return make


def test_what_agrees_ends_with_0_and_says_what_ran(written, capsys):
    other = [result(case, "torch", ratio=-0.5) for case in CASES]
    assert comparing.main([written("a"), written("b", "torch", other)]) == 0
    text = capsys.readouterr().out
    assert "numpy: 2 checks, 2026-01-02T03:04:05+00:00; python 3.11.7, torch 2.13.0+cpu, device cpu" in text
    assert "float32_matmul_precision highest" in text
    assert "numpy and torch: 2 checks, 0 of them equal; the largest gap is 0.75 budgets, in sees-the-first-key" in text


def test_a_gap_of_more_than_two_budgets_ends_with_1(written, capsys):
    far = [result(CASES[0], "torch", ratio=-2.0)]
    assert comparing.main([written("a"), written("b", "torch", far)]) == 1
    assert "the largest gap is 2.25 budgets" in capsys.readouterr().out


def test_an_outcome_that_differs_ends_with_1_and_its_reason(written, capsys):
    wrong = [result(CASES[0], "torch", "error", None, reason="it crashed"), result(CASES[1], "torch")]
    assert comparing.main([written("a"), written("b", "torch", wrong)]) == 1
    assert "sees-the-first-key: numpy pass, torch error: it crashed" in capsys.readouterr().out


@pytest.mark.parametrize("outcome", ["known", "unsupported"])
def test_what_a_ledger_lists_or_cannot_be_asked_is_no_difference(written, outcome):
    excused = [result(CASES[0], "torch", outcome, 9.0 if outcome == "known" else None)]
    assert comparing.main([written("a"), written("b", "torch", excused)]) == 0


def test_one_backend_in_two_places_is_told_apart_by_the_files(written, capsys):
    assert comparing.main([written("here"), written("there")]) == 0
    assert "here.jsonl and there.jsonl: 2 checks, 2 of them equal; no gap" in capsys.readouterr().out


def test_other_cases_are_refused(written, capsys):
    assert comparing.main([written("a"), written("b", suite="f" * 64)]) == 2
    assert "b.jsonl was made with other cases (ffffffffffff)" in capsys.readouterr().err


@pytest.mark.parametrize(("names", "said"), [(["a"], "two files of results"), (["a", "absent"], "absent.jsonl")])
def test_what_cannot_be_compared_ends_with_2(written, tmp_path, capsys, names, said):
    written("a")
    assert comparing.main([str(tmp_path / f"{name}.jsonl") for name in names]) == 2
    assert said in capsys.readouterr().err


def test_comparing_needs_numpy_alone():
    blocked = {"torch", "jax", "typer", "rich", "matplotlib", "jinja2", "mpmath", "packaging", "pytest"}
    program = IMPORT_BLOCKED.format(blocked=blocked, package="conformance.comparing")
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, check=True)


def test_proposed_entries_describe_the_results_that_they_were_made_of(tmp_path):
    names = [CASES[0], case("another"), case("a-third"), case("right")]
    reasons = ["out: 3 of 24 elements differ, the worst by 7 budgets", "out: 9 of 24 elements differ, the worst by 2"]
    results = [result(one, "peer", "differs", 7.0, reason=said) for one, said in zip(names, reasons, strict=False)]
    results += [result(names[2], "peer", "error", None, reason="ValueError: 'q' is wrong"), result(names[3], "peer")]
    text = proposing.entries(Header("", "peer", INFO, "2026-01-02T03:04:05+00:00"), results)
    path = tmp_path / "peer.toml"
    path.write_text(text)
    entries = ledger.load("peer", path)
    assert [(e.case, e.kind, e.applies) for e in entries] == [
        ("another", "differs", "torch==2.13.0"),
        ("sees-the-first-key", "differs", "torch==2.13.0"),
        ("a-third", "error", "torch==2.13.0"),
    ]
    settled = [ledger.Ledger(entries, INFO).settle(one).outcome for one in results]
    assert settled == ["known", "known", "known", "pass"]
    assert entries[0].seen == "2026-01-02, torch 2.13.0+cpu"


def read_safetensors(data):
    """Read the format from its description alone."""
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    names = {code: name for name, code in exporting._DTYPES.items()}
    found = {}
    for name, entry in header.items():
        start, end = entry["data_offsets"]
        raw = data[8 + length + start : 8 + length + end]
        found[name] = np.frombuffer(raw, dtype_of(names[entry["dtype"]])).reshape(entry["shape"])
    return found


def test_exported_cases_hold_every_bit(tmp_path):
    cases = load_cases()
    paths = exporting.export(cases, tmp_path / "new")
    assert [path.name for path in paths] == ["cases.json", "cases.safetensors", "flags.json"]
    content, tensors = json.loads(paths[0].read_text()), read_safetensors(paths[1].read_bytes())
    assert content["suite"] == digest(cases)
    by_id = {record["id"]: record for record in content["cases"]}
    assert rebuilt_digest(cases, by_id, tensors) == digest(cases)


def rebuilt_digest(cases, by_id, tensors):
    """Put the arrays of the export into the cases, so that one lost bit changes the digest."""

    def array(record):
        if "python" in record:
            return Given(record["python"])
        found = tensors[record["tensor"]]
        pairs = record["dtype"] == "complex64"
        return (found[..., 0] + 1j * found[..., 1]).astype("complex64") if pairs else found

    def output(record, expected):
        if "text" in record:
            return replace(expected, values=record["text"])
        budget = tensors[record["budget"]] if "budget" in record else None
        return replace(expected, values=tensors[record["values"]], budget=budget)

    rebuilt = []
    for one in cases:
        record = by_id[one.id]
        arrays = {name: array(value) for name, value in record["arrays"].items()}
        expect = {name: output(value, one.expect[name]) for name, value in record.get("expect", {}).items()}
        instead = {name: array(value) for name, value in record.get("instead", {}).items()}
        rebuilt.append(replace(one, arrays=arrays, expect=expect, instead=instead))
    return digest(rebuilt)
