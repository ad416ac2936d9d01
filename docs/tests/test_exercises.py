"""An exercise on a page: the task, the file, the command, and the folded answer."""

from __future__ import annotations

import re

import pytest

TASK = "```{exercise} adding\nAdd **two** numbers.\n```"
FRAMEWORKS = ("numpy", "torch", "jax")


@pytest.fixture
def exercise(tmp_path):
    """The folder of an exercise of the site."""
    folder = tmp_path / "source" / "exercises" / "adding"
    folder.mkdir(parents=True)
    for name in FRAMEWORKS:
        (folder / f"answer_{name}.py").write_text(f"def add_{name}(a, b): ...\n")
        (folder / f"worked_{name}.py").write_text(f"def added_{name}(a, b): return a + b\n")
    return folder


def test_it_shows_task_file_command_and_answer(build, exercise):
    built = build(TASK)
    assert (built.code, built.said) == (0, "")
    assert "Add <strong>two</strong> numbers." in built.page
    task, _, answer = re.sub("<[^>]*>", "", built.page).partition("A worked answer")
    for name in FRAMEWORKS:
        assert f"python -m conformance grade docs/exercises/adding/answer_{name}.py" in task
        assert f"add_{name}" in task
        assert f"added_{name}" in answer and f"added_{name}" not in task
    assert "<details" in built.page


def test_what_is_given_is_shown_above_the_answer(build, exercise):
    for name in FRAMEWORKS:
        (exercise / f"given_{name}.py").write_text(f"def given_{name}(a, b): return a - b\n")
    page = build(TASK).page
    assert page.index("docs/exercises/adding/given_jax.py") < page.index("docs/exercises/adding/answer_jax.py")


def test_a_missing_file_stops_the_build(build, exercise):
    (exercise / "worked_jax.py").unlink()
    built = build(TASK)
    assert built.code == 1
    assert "the exercise adding lacks exercises/adding/worked_jax.py" in built.said
