"""The exercises: stubs are not started, worked answers are right, and wrong ones lack what they say they lack."""

from __future__ import annotations

import re
from contextlib import nullcontext
from pathlib import Path

import pytest

from conformance import grading
from conformance.grading.breaking import GENERAL, caught_by_property
from conformance.grading.exercise import Catch, Implement, load
from conformance.grading.finding import NOT_STARTED, RIGHT, WRONG, Finding
from conformance.grading.properties import PROPERTIES
from conformance.loading import load_cases
from conformance.mutants import Altered, mutants

DOCS = Path(__file__).parents[2] / "docs"
FOLDERS = sorted(path.parent for path in DOCS.glob("exercises/*/exercise.toml"))
WRONG_ANSWERS = sorted(DOCS.glob("exercises/*/wrong_*.py"))
EXERCISES = pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)


def grade(path: Path) -> list[Finding]:
    """Grade a file as the command line does: in a JAX whose numbers have 32 bits."""
    framework = path.stem.rpartition("_")[2]
    module = pytest.importorskip(framework, reason=f"{framework} is not installed")
    with module.enable_x64(False) if framework == "jax" else nullcontext():
        return grading.grade(grading.submission(path))


def lacked(path: Path) -> str:
    """Name the property that a wrong answer says it lacks."""
    return re.match(r'"""Lacks ([a-z0-9-]+): .+\."""\n', path.read_text(encoding="utf-8"))[1]


def test_there_is_an_exercise_for_each_lesson():
    assert len(FOLDERS) == 14


@EXERCISES
def test_a_stub_is_not_started(folder, framework):
    assert {finding.outcome for finding in grade(folder / f"answer_{framework}.py")} == {NOT_STARTED}


@EXERCISES
def test_a_worked_answer_is_right(folder, framework):
    findings = grade(folder / f"worked_{framework}.py")
    assert [finding for finding in findings if finding.outcome != RIGHT] == []


@pytest.mark.parametrize("path", WRONG_ANSWERS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_wrong_answer_lacks_the_property_that_it_names(path):
    lacks = {finding.lacks for finding in grade(path) if finding.outcome == WRONG}
    assert lacked(path) in lacks


@EXERCISES
def test_a_wrong_answer_shows_that_each_property_is_needed(folder):
    demands = {demand.name for task in load(folder).tasks if isinstance(task, Implement) for demand in task.properties}
    general = {*grading.implement.FIRST, *grading.implement.LAST}
    assert demands - general <= {lacked(path) for path in folder.glob("wrong_*.py")}
    assert any(folder.glob("wrong_*.py"))


@EXERCISES
def test_the_files_of_a_task_are_there(folder):
    for framework in ("numpy", "torch", "jax"):
        assert {(folder / f"{kind}_{framework}.py").exists() for kind in ("answer", "worked")} == {True}
    names = {mutant.name for mutant in mutants()}
    assert {task.mutant for task in load(folder).tasks if isinstance(task, Catch)} <= names


@EXERCISES
def test_the_page_is_that_of_the_folder_and_has_the_sections(folder):
    exercise = load(folder)
    assert exercise.page == f"lessons/{folder.name}"
    told = [demand for task in exercise.tasks for demand in getattr(task, "properties", (task,))]
    sections = {one.section for one in told}
    text = (DOCS / f"{exercise.page}.md").read_text(encoding="utf-8")
    assert sections - {""} <= {*re.findall(r"^#+ (.+)$", text, re.MULTILINE)}
    assert f"```{{exercise}} {folder.name}\n" in text


def test_an_honest_attention_has_every_property():
    cases = load_cases()
    assert {name: caught_by_property(PROPERTIES[name], Altered(), cases) for name in GENERAL} == dict.fromkeys(GENERAL)
