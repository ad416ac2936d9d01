"""Backends in another process are judged: they are told no expected values, and every way to fail has a name."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from conformance import adapter
from conformance.adapter import Failed
from conformance.adapters.process import Process
from conformance.compare import same_bits
from conformance.facts import dtype_of
from conformance.judging import judge
from conformance.loading import checks, load_cases

CHECKS = {check.name: check for case in load_cases() for check in checks(case)}
EXAMPLES = Path(__file__).parents[1] / "examples"
HELLO = '{"operations": {"attention": {"outputs": ["out"], "takes": ["mask"]}}}'

# A process that answers the first message, and the others by the lines that a test gives.
SCRIPT = """
import json, os, signal, sys, time
print(sys.stdin.readline() and {hello!r}, flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    {body}
"""
NUMBERS = "print(json.dumps({'id': asked['id'], 'outputs': {'out': %s}}), flush=True)"


@pytest.fixture
def process(tmp_path):
    """Make a backend of a process whose body is given."""
    made = []

    def make(body, hello=HELLO, timeout=20.0):
        script = tmp_path / f"process_{len(made)}.py"
        script.write_text(SCRIPT.format(hello=hello, body=body))
        made.append(Process(f"exec:{sys.executable} {script}", timeout))
        return made[-1]

    yield make
    for backend in made:
        if backend._lines is not None:
            backend._lines.end()


def outcome(backend, name="plain-float32"):
    result = judge(CHECKS[name], backend)
    return result.outcome, result.reason


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("sys.exit(3)", "the process ended with code 3"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "the process was killed by signal 9"),
        ("time.sleep(60)", "no answer within 1 s, the process was killed"),
        ("print('Traceback', flush=True)", "its answer is no JSON object: 'Traceback'"),
        ("print('[1]', flush=True)", "its answer is no JSON object: '[1]'"),
        ("print('{\"id\": 99}', flush=True)", "it answered the question 99, asked was 1"),
        ("print(json.dumps({'id': asked['id']}), flush=True)", "its answer has neither outputs nor raised nor unsup"),
        (NUMBERS % "{'dtype': 'float32', 'shape': [2], 'values': [1]}", "its output out is no array: ValueError: 1 n"),
        (NUMBERS % "{'dtype': 'float33', 'shape': [1], 'values': [1]}", "its output out is no array: TypeError"),
        (NUMBERS % "[1, 2]", "its output out is no array: TypeError"),
    ],
)
def test_each_failure_is_an_error_by_name_and_the_process_starts_anew(process, body, said):
    backend = process(body, timeout=1.0 if "sleep" in body else 20.0)
    found, reason = outcome(backend)
    assert found == "error" and reason.startswith(said)
    assert outcome(backend)[1].startswith(said.replace("asked was 1", "asked was 2"))


def test_a_failure_is_an_error_also_where_an_error_is_due(process):
    backend = process("sys.exit(3)", HELLO[:-1] + ', "errors": true}')
    assert outcome(backend, "refuses-attention-scale-nan")[0] == "unsupported"  # it takes no scale
    assert outcome(backend, "refuses-mask-complex") == ("error", "the process ended with code 3")


def test_refusals_count_by_their_kind_and_only_if_it_says_so(process):
    raises = "print(json.dumps({'id': asked['id'], 'raised': 'TypeError', 'message': 'no'}), flush=True)"
    assert outcome(process(raises), "refuses-mask-complex")[1] == 'errors are not judged: no "errors": true was said'
    backend = process(raises, HELLO[:-1] + ', "errors": true}')
    assert outcome(backend, "refuses-mask-complex") == ("pass", "TypeError: no")
    assert outcome(backend) == ("error", "TypeError: no")


def test_what_it_does_not_take_is_not_asked(process):
    backend = process("sys.exit(3)", HELLO[:-1] + ', "dtypes": ["float32"]}')
    assert outcome(backend, "plain-float64") == ("unsupported", "the process has no float64")
    assert outcome(backend, "refuses-attention-scale-nan")[0] == "unsupported"
    assert backend.supports("attention", "float32", {"scale": 1.0}, {}) == "the process takes no scale"
    assert backend.supports("merge", "float32", {}, {}) == "the process has no merge"


def test_unsupported_is_its_own_word(process):
    backend = process("print(json.dumps({'id': asked['id'], 'unsupported': 'too small'}), flush=True)")
    assert outcome(backend) == ("unsupported", "the process says: too small")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "bool", "int32"])
def test_every_number_survives_the_way_there_and_back(process, dtype):
    backend = process(NUMBERS % "asked['arrays']['q']")
    array = np.array([[0.1, -0.0, 3.0], [1e-8, 1, 60000]]).astype(dtype_of(dtype))
    if array.dtype.kind == "f":
        array[0] = np.nan, np.inf, -np.inf
    out = backend.call("attention", {"q": array, "k": array, "v": array}, {})["out"]
    assert same_bits(out, array)


def test_it_is_told_the_arguments_and_nothing_else(process, tmp_path):
    seen = tmp_path / "seen.json"
    backend = process(f"open({str(seen)!r}, 'w').write(line); sys.exit(0)")
    arrays = {"q": np.ones((2, 1)), "k": np.ones((3, 1)), "v": [1], "scale": np.array(2.0)}
    with pytest.raises(Failed):
        backend.call("attention", arrays, {"mask": {"rule": "causal"}, "softcap": float("inf")})
    told = json.loads(seen.read_text())
    assert told["options"] == {"softcap": {"number": "inf"}, "scale": 2.0}
    assert told["arrays"]["mask"] == {"dtype": "bool", "shape": [2, 3], "values": [1, 0, 0, 1, 1, 0]}
    assert told["arrays"]["v"] == {"python": [1]}
    assert set(told) == {"id", "op", "arrays", "options"}


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("no-such-command-anywhere", "the command cannot be started"),
        ("", "the command cannot be started"),
        (f"{sys.executable} -c pass", "it does not answer the first message: the process ended with code 0"),
    ],
)
def test_what_does_not_start_says_why(command, said):
    with pytest.raises(LookupError, match=said):
        Process(f"exec:{command}")


@pytest.mark.parametrize(
    ("hello", "said"),
    [
        ("{}", '"operations" is missing'),
        ('{"operations": {"attend": {}}}', "there is no operation attend"),
        ('{"operations": {"attention": {}}}', 'attention names no "outputs"'),
    ],
)
def test_a_wrong_first_answer_says_what_is_wrong(process, hello, said):
    with pytest.raises(LookupError, match=f"its first answer is wrong: {said}"):
        process("pass", hello)


def test_a_command_is_found_by_its_name():
    backend = adapter.find(f"exec:{sys.executable} {EXAMPLES / 'plain_python.py'}")
    assert backend.outputs("attention") == ("out",)
    backend._lines.end()


@pytest.mark.parametrize(("interpreter", "file"), [(sys.executable, "plain_python.py"), ("node", "attention.js")])
def test_the_examples_are_right(interpreter, file):
    if not shutil.which(interpreter):
        pytest.skip(f"{interpreter} is not installed")
    backend = Process(f"exec:{interpreter} {EXAMPLES / file}")
    results = [judge(check, backend) for check in CHECKS.values() if check.op == "attention"]
    backend._lines.end()
    found = [result.outcome for result in results]
    assert not {*found} & {"differs", "error"}
    assert found.count("pass") > 100


def test_the_example_is_short():
    assert len((EXAMPLES / "plain_python.py").read_text().splitlines()) < 60
