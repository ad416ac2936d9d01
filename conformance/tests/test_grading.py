"""The command that grades: its exit codes, and what it says of an answer that is wrong in each way there is."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from conformance.__main__ import app
from conformance.compare import Verdict
from conformance.grading import learner
from conformance.grading.exercise import load
from conformance.grading.predict import agrees
from conformance.grading.properties import PROPERTIES, Trial
from conformance.grading.report import together

EXERCISES = Path(__file__).parents[2] / "docs" / "exercises"
RIGHT = "def kv_heads(x, groups):\n    return np.repeat(x, groups, axis=-3)\n"


@pytest.fixture
def write(tmp_path):
    """Write an answer to the exercise `heads` and give its path."""

    def write(text: str, name: str = "mine_numpy.py") -> Path:
        shutil.copy(EXERCISES / "heads" / "exercise.toml", tmp_path)
        path = tmp_path / name
        path.write_text(f"import numpy as np\n{text}", encoding="utf-8")
        return path

    return write


def call(path: Path, code: int) -> str:
    """Give what is printed; the exit code has to be that one, and there is no traceback."""
    done = CliRunner().invoke(app, ["grade", str(path)])
    assert done.exit_code == code, done.output
    assert "Traceback" not in done.output
    return done.output


def test_a_right_answer_ends_with_0_and_says_what_was_checked(write):
    text = call(write(RIGHT), 0)
    assert "checked on inputs up to x (2, 4, 3, 7, 5): returns-arrays, dtype-kept" in text
    assert text.splitlines()[-1] == "right"


def test_a_wrong_answer_ends_with_1_and_says_all_that_helps():
    lines = [line.strip() for line in call(EXERCISES / "gradients" / "wrong_without_row_sum_numpy.py", 1).splitlines()]
    name = "gradient-of-one-key-is-zero-in-q-and-k"
    for line in (
        "dk-sums-to-0: The sum of dk over the keys is 0: one vector added to every key changes no weight.",
        "input    q (1, 2) = [[ 2., -1.]], k (1, 2) = [[3., 5.]], v (1, 3) = [[7., 8., 9.]], "
        "d_out (1, 3) = [[ 1., -2., 4.]]",
        f"case     {name} (python -m conformance show {name})",
        "found    the sum of dk over the keys at (0,): expected 0, got 38.1837654",
    ):
        assert line in lines
    assert any(line.startswith("hint     dS = W * (dW") for line in lines)
    assert any(line.startswith("read on  docs/lessons/gradients.md") and line.endswith("C5") for line in lines)


def test_a_stub_ends_with_3(write):
    text = call(write("def kv_heads(x, groups):\n    raise NotImplementedError\n"), 3)
    assert text.splitlines()[-1] == "not started"


def test_a_wrong_mask_is_drawn_beside_the_right_one():
    text = call(EXERCISES / "masks_gallery" / "wrong_one_off_each_numpy.py", 1)
    assert "expected ##... ##... ..##. ..##. ....# got" in " ".join(text.split())


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("mine.py", RIGHT, "the name has to tell the framework"),
        (
            "mine_numpy.py",
            "def kv_heads(x, groups)\n",
            "SyntaxError: expected ':' (mine_numpy.py, line 2: ",
        ),
        ("mine_numpy.py", "import no_such_module\n", "No module named 'no_such_module'"),
        ("mine_numpy.py", "raise SystemExit('no')\n", "SystemExit: no (mine_numpy.py, line 2"),
        ("mine_numpy.py", "1 / 0\n", "ZeroDivisionError: division by zero (mine_numpy.py, line 2: 1 / 0)"),
    ],
)
def test_what_cannot_be_imported_ends_with_2_and_one_line(write, name, text, said):
    output = call(write(text, name), 2)
    assert said in output
    assert len(output.splitlines()) == 1


def test_what_is_no_exercise_ends_with_2(tmp_path):
    assert "there is no such file" in call(tmp_path / "answer_numpy.py", 2)
    (tmp_path / "answer_numpy.py").touch()
    assert "there is no exercise.toml beside it" in call(tmp_path / "answer_numpy.py", 2)


def test_a_missing_framework_is_named_with_its_remedy(write, monkeypatch):
    monkeypatch.setattr(learner, "find_spec", lambda name: None)
    assert "pip install 'attention-three-ways[torch]'" in call(write("", "mine_torch.py"), 2)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("return x.no_such_name", "AttributeError: 'numpy.ndarray' object has no attribute 'no_such_name'"),
        ("exit('stop')", "runs: it raises SystemExit: stop"),
        ("return kv_heads(x, groups)", "runs: it raises RecursionError"),
        ("return None", "returns-arrays: It returns what is asked for"),
        ("x * groups", "x: it is None; does the function end with a return?"),
        ("return x if x > 0 else -x", "hint     and, or, not and a < b < c take one truth value"),
        ("return x @ x.T", "hint     There are leading axes here: .T turns all axes round, .mT the last two."),
        ("return x, x", "x: got a tuple"),
        ("return ()", "x: it is missing, the function has to return x"),
        ("return x.tolist()", "x: got a list"),
        ("return np.repeat(x, groups, axis=-3).astype(float)", "x: the dtype is float64, expected float32"),
        ("return x", "x: the shape is (2, 1, 1), expected (4, 1, 1)"),
        ("x *= 1.5; return np.repeat(x, groups, axis=-3)", "it has changed its argument x"),
    ],
)
def test_a_function_that_fails_is_told_how(write, body, said):
    assert said in call(write(f"def kv_heads(x, groups):\n    {body}\n"), 1)


def test_an_exception_is_told_with_the_line_of_the_file(write):
    text = call(write("def kv_heads(x, groups):\n    groups = 0\n    return np.ones(3) @ np.ones(4)\n"), 1)
    assert "at       mine_numpy.py, line 4: return np.ones(3) @ np.ones(4)" in text


def test_a_function_that_is_not_there_is_wrong(write):
    assert "the file defines no function kv_heads" in call(write("kv_heads = 3\n"), 1)


def test_a_neighbour_can_be_imported(write):
    write(RIGHT, "helping_numpy.py")
    assert "right" in call(write("from helping_numpy import kv_heads\n"), 0)


def test_an_exercise_says_what_is_wrong_with_its_description(tmp_path):
    (tmp_path / "exercise.toml").write_text('title = "t"\npage = "p"\n[[predict]]\nname = "n"\nask = "a"\n')
    with pytest.raises(ValueError, match=r"exercise.toml: \[\[predict\]\] has no ask"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("guess", "value", "tolerance", "agreed"),
    [
        (0.7, 0.704, 0.005, True),
        (0.7, 0.706, 0.005, False),
        ("0.7 or so", 0.7, 0.005, False),
        (None, 0.7, 0.005, False),
        (float("nan"), 0.7, 0.005, False),
        (np.float32(0.7), 0.7, 1e-6, True),
        ([2, 3], (2, 3), 0.0, True),
        ((3, 2), (2, 3), 0.0, False),
        (np.array([2, 3]), (2, 3), 0.0, True),
        (np.ones((2, 2)), (2, 3), 0.0, False),
        (np.ones(2), 1.0, 0.1, False),
        ("nan", "nan", 0.0, True),
        (1, True, 0.0, True),
    ],
)
def test_a_prediction_agrees_within_its_tolerance(guess, value, tolerance, agreed):
    assert agrees(guess, value, tolerance) is agreed


@pytest.mark.parametrize(
    ("guess", "said"),
    [
        ("0.7", "predicted 0.7, and something else is computed, not within 0.001 of it"),
        ("[0.2] * 5", "predicted [0.2, 0.2, 0.2, 0.2, 0.2], and one number is asked for"),
    ],
)
def test_a_wrong_prediction_keeps_the_right_one_for_a_second_try(tmp_path, guess, said):
    folder = shutil.copytree(EXERCISES / "soft_dictionary", tmp_path / "soft_dictionary")
    path = folder / "mine_numpy.py"
    path.write_text(f"weight_of_each_match = {guess}\nlook_up = None\n", encoding="utf-8")
    text = call(path, 1)
    assert said in text
    assert "0.499972" not in text


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ("np.ones((1, 1)), np.ones((1, 1))", "q has the dtype float64; it has to be float32"),
        ("np.ones((1, 1))", "it has to return q, k, and returns ndarray"),
        ("()", "it has to return q, k, and returns nothing"),
        ("[[1.0]], [[1.0]]", "q is a list; it has to be an array of numpy"),
    ],
)
def test_what_cannot_be_an_input_is_told_why(tmp_path, returned, said):
    folder = shutil.copytree(EXERCISES / "numerics", tmp_path / "numerics")
    path = folder / "mine_numpy.py"
    path.write_text(f"import numpy as np\n\n\ndef breaks_it():\n    return {returned}\n", encoding="utf-8")
    assert said in call(path, 1)


def test_each_property_is_a_sentence_and_gives_a_verdict_or_none():
    for name, wanted in PROPERTIES.items():
        assert wanted.says.endswith(".") and "\n" not in wanted.says, name
    assert isinstance(PROPERTIES["returns-arrays"].breaks(missing()), Verdict)


def missing() -> Trial:
    from conformance.asking import Answer
    from conformance.tests.handmade import case

    return Trial(case("nothing-comes-back"), ("out",), Answer(), lambda arrays: Answer())


def test_one_wrong_task_makes_the_exercise_wrong_and_one_stub_leaves_it_unfinished():
    from conformance.grading.finding import Finding

    def outcome(*outcomes):
        return together([Finding("task", outcome, "") for outcome in outcomes])

    assert outcome("right", "not started", "wrong") == "wrong"
    assert outcome("right", "not started") == "not started"
    assert outcome("right", "right") == "right"
