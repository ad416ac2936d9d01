"""What README.md and the contract say is so: the example, the commands, the links, the names of the clauses."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import numpy as np
import pytest

from conformance.contract import CLAUSES

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CONTRACT = (ROOT / "docs" / "contract.md").read_text(encoding="utf-8")


def blocks(language: str, text: str = README) -> list[str]:
    """Give the code blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def test_the_example_gives_what_it_shows(framework):
    code = {"numpy": 0, "torch": 1, "jax": 2}
    names = {}
    exec(blocks("python")[code[framework]], names)
    assert f"impl_{framework}" in names["attention"].__module__
    rows = [line.split() for line in blocks("text")[0].splitlines()]
    assert names["rule"].picture(4, 4).splitlines() == [picture for picture, *_ in rows]
    shown = np.array([weights for _, *weights in rows], dtype=float)
    np.testing.assert_allclose(np.asarray(names["weights"]), shown, atol=5e-4)


def test_the_first_two_commands_are_the_main_job_and_the_tests():
    job, tests = blocks("sh")[:2]
    nox = "python3 -m venv .venv && .venv/bin/pip install -q nox && .venv/bin/nox -s "
    assert (job, tests) == (f"{nox}conformance\n", f"{nox}tests\n")


def test_each_session_of_the_noxfile_says_in_one_line_what_it_does():
    module = ast.parse((ROOT / "noxfile.py").read_text(encoding="utf-8"))
    functions = [node for node in module.body if isinstance(node, ast.FunctionDef)]
    sessions = [node for node in functions if node.decorator_list]
    assert {"conformance", "tests"} < {session.name for session in sessions}
    assert [s.name for s in sessions if "\n" in (ast.get_docstring(s) or "\n")] == []


@pytest.mark.parametrize("page", ["README.md", *(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))])
def test_links_lead_to_files_and_headings(page):
    path = ROOT / page
    for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text(encoding="utf-8")):
        if "://" not in target:
            file, _, heading = target.partition("#")
            linked = path.parent / file if file else path
            assert linked.exists(), target
            assert not heading or heading in headings(linked), target


def headings(path: Path) -> list[str]:
    """Give the anchors of a page's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return [re.sub(r"[^\w\- ]", "", title).lower().replace(" ", "-") for title in titles]


def test_the_contract_has_every_clause_in_order():
    assert re.findall(r"^### (.*)$", CONTRACT, re.MULTILINE) == list(CLAUSES)


def test_the_contract_names_every_public_name(framework):
    package = importlib.import_module(f"impl_{framework}")
    assert [name for name in package.__all__ if not re.search(rf"\b{name}\b", CONTRACT)] == []
