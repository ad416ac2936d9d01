"""Files of results are judged: every bit survives, and what is incomplete is refused."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from conformance.compare import Verdict
from conformance.results import Header, Result, read, write
from conformance.tests.backends import check

HEADER = Header("digest", "doubling", {"versions": {"numpy": "2"}}, "2026-01-01T00:00:00+00:00")
WRONG = Verdict(False, "non-finite", math.inf, "out: it differs", (0, 1), math.nan, -math.inf, 0.0)
BITS = np.frombuffer(b"\x01\x00\xc0\x7f\x00\x00\x00\x80", np.float32)  # a NaN with a payload, a negative zero
OUTPUTS = {"out": BITS, "half": np.ones((1, 2), ml_dtypes.bfloat16), "picture": "#.\n##", "none": np.zeros((0, 3))}


def results():
    plain = Result.of(check([1.0]), "doubling", "pass", "")
    return [plain, replace(plain, outcome="differs", worst=WRONG, ms=1.5), replace(plain, outputs=OUTPUTS)]


def test_results_survive_the_file_bit_for_bit(tmp_path):
    write(tmp_path / "run.jsonl", HEADER, iter(results()))
    header, again = read(tmp_path / "run.jsonl")
    assert header == HEADER
    assert [contents(result) for result in again] == [contents(result) for result in results()]


def contents(result):
    """Make a result comparable: NaN by its name, arrays by their bytes."""
    arrays = [(n, o.dtype, o.shape, o.tobytes()) if n != "picture" else (n, o) for n, o in result.outputs.items()]
    return repr({**vars(result), "outputs": arrays})


def test_a_file_is_json_without_extensions(tmp_path):
    write(tmp_path / "run.jsonl", HEADER, results())
    for line in (tmp_path / "run.jsonl").read_text().splitlines():
        json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


@pytest.mark.parametrize(("lost", "why"), [(-1, "footer"), (1, "counts"), (0, "format")])
def test_an_incomplete_file_is_refused(tmp_path, lost, why):
    path = tmp_path / "run.jsonl"
    write(path, HEADER, results())
    lines = path.read_text().splitlines()
    del lines[lost]
    path.write_text("\n".join(lines))
    with pytest.raises(ValueError, match=why):
        read(path)


def test_an_empty_file_is_refused(tmp_path):
    (tmp_path / "run.jsonl").touch()
    with pytest.raises(ValueError, match="format"):
        read(tmp_path / "run.jsonl")


def test_a_run_that_breaks_off_leaves_no_footer(tmp_path):
    def broken():
        yield from results()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "run.jsonl", HEADER, broken())
    with pytest.raises(ValueError, match="footer"):
        read(tmp_path / "run.jsonl")
