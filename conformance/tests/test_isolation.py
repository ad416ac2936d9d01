"""Each implementation needs its own framework alone, and none knows of another or of the judge."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OWN = {"impl_numpy": set(), "impl_torch": {"torch"}, "impl_jax": {"jax"}}
PROJECT = {*OWN, "conformance"}

IMPORT_BLOCKED = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"{{name}} is blocked", name=name)

sys.meta_path.insert(0, Blocked())
import {package}
print(*sys.modules)
"""


@pytest.mark.parametrize("package", OWN)
def test_imports_with_its_own_framework_alone(package):
    for framework in OWN[package]:
        pytest.importorskip(framework, reason=f"{framework} is not installed")
    blocked = {"torch", "jax"} - OWN[package] | PROJECT - {package}
    imported = modules_of(IMPORT_BLOCKED.format(blocked=blocked, package=package))
    assert package in imported
    assert not imported & blocked


@pytest.mark.parametrize("package", ["torch", "jax", "impl_torch"])
def test_the_block_itself_holds(package):
    with pytest.raises(subprocess.CalledProcessError):
        modules_of(IMPORT_BLOCKED.format(blocked={package}, package=package))


def modules_of(program: str) -> set[str]:
    """Run a program in a Python of its own and give the top-level modules that it prints."""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in done.stdout.split()}


@pytest.mark.parametrize("package", OWN)
def test_imports_neither_another_implementation_nor_the_judge(package):
    for path in (ROOT / package).rglob("*.py"):
        assert not imports(path) & (PROJECT - {package}), path


def imports(path: Path) -> set[str]:
    """Give the top-level names that a file imports absolutely."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add(node.module.partition(".")[0])
    return found
