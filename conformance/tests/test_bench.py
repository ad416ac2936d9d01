"""The benchmark: who takes part, that a wrong answer is never timed, and what is shown of it."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

from conformance.__main__ import app
from conformance.bench import device
from conformance.bench.contestants import Problem
from conformance.bench.measuring import Measured, measure, sampled_rows, wrong_rows
from conformance.bench.showing import plots, record

SMALL = Problem(1, 2, 9, 9, 4, causal=True)


def test_the_visible_pairs_are_counted():
    assert Problem(1, 1, 3, 5, 2).flops == 4 * 15 * 2
    assert Problem(1, 1, 3, 5, 2, causal=True).flops == 4 * 6 * 2
    assert Problem(1, 1, 3, 5, 2, window=1).flops == 4 * 5 * 2


def test_a_right_output_is_taken_and_a_wrong_one_is_not():
    q, k, v = SMALL.arrays()
    scores = np.where(np.tri(9, dtype=bool), q @ k.swapaxes(-1, -2) / 2, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    right = (weights / weights.sum(-1, keepdims=True) @ v).astype(np.float32)
    assert wrong_rows(sampled_rows(SMALL), right) is None
    assert "row 8 of head 1 is wrong" in wrong_rows(sampled_rows(SMALL), np.where(np.arange(9)[:, None] == 8, 0, right))


def test_two_contestants_take_turns():
    pytest.importorskip("torch", reason="torch, which measures the machine, is not installed")
    first, second = measure(SMALL, ["numpy", "numpy-textbook"], rounds=2)
    assert len(first.seconds) == len(second.seconds) >= 2
    assert first.ratios == [1.0] * len(first.seconds)
    assert json.loads(record(second))["ratio"] == second.ratio > 0


def test_the_plots_have_the_slope(tmp_path):
    results = [Measured("numpy", Problem(1, 1, T, T, 2), seconds=[T * 1e-6], ratios=[1.0], memory=1.0) for T in (8, 16)]
    time, memory = plots(results, tmp_path)
    assert "numpy, ~T^1.0" in re.sub(r"\s+", " ", time.read_text())
    assert memory.exists()


@pytest.mark.parametrize(
    ("arguments", "says"), [(["--shape", "1,2"], "is no shape"), (["--only", "nobody"], "takes no part")]
)
def test_wrong_usage_says_what_to_do(arguments, says):
    done = CliRunner().invoke(app, ["bench", *arguments])
    assert done.exit_code == 2
    assert says in done.output


@pytest.mark.parametrize("framework", device.CONTESTS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_device_script_times_tiles_against_the_fused_kernel(framework, dtype):
    pytest.importorskip(framework)
    problem = Problem(1, 2, 9, 9, 8, causal=True, backward=True, dtype=dtype)
    fused, tiled = device.in_one_process(problem, device.CONTESTS[framework])
    assert tiled.trouble is None and len(tiled.ratios) == len(fused.seconds) == device.ROUNDS


@pytest.mark.parametrize("framework", device.CONTESTS)
def test_the_device_script_says_that_there_is_no_device(framework):
    pytest.importorskip(framework)
    assert device.place(framework, "cpu") == "cpu"
    if framework == "torch" and pytest.importorskip("torch").accelerator.is_available():
        pytest.skip("this machine has an accelerator")
    with pytest.raises(SystemExit, match="finds no accelerator"):
        device.place(framework, "cuda")
