"""The sources stay small: short functions, short files, and no drawer for what has no name."""

from __future__ import annotations

import ast
from pathlib import Path
from statistics import median

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("impl_numpy", "impl_torch", "impl_jax", "conformance", "docs")
FOUND = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
PATHS = sorted([ROOT / "noxfile.py", *(path for path in FOUND if "_build" not in path.parts)])
DRAWERS = {"utils.py", "util.py", "common.py", "helpers.py", "misc.py"}


def test_there_are_sources():
    assert len(PATHS) > 30


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_file_is_small_and_so_are_its_functions(path):
    lines = path.read_text(encoding="utf-8").count("\n")
    assert lines <= 300
    assert path.name not in DRAWERS
    assert [name for name, lines in lengths(path) if lines > 50] == []


def test_the_median_function_has_at_most_ten_lines():
    assert median(lines for path in PATHS for _, lines in lengths(path)) <= 10


def lengths(path: Path) -> list[tuple[str, int]]:
    """Give each function with its number of lines, its docstring not counted."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [(node.name, node.end_lineno - node.lineno + 1 - docstring_lines(node)) for node in functions]


def docstring_lines(function) -> int:
    if ast.get_docstring(function) is None:
        return 0
    docstring = function.body[0]
    return docstring.end_lineno - docstring.lineno + 1
