"""The three implementations are mirrors: the same files, with the same names, parameters and first sentences.

Only syntax trees are read, so the check needs none of the frameworks. Bodies may differ, and so may
everything in `arrays.py` but its names. PyTorch takes a derivative of one's own as a class and nothing else:
such a class counts as a part of the function that applies it.
"""

from __future__ import annotations

import ast
import inspect
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = [ROOT / "impl_numpy", ROOT / "impl_torch", ROOT / "impl_jax"]
BODIES_FREE = "arrays.py"
OWN_DERIVATIVE = "torch.autograd.Function"


def test_the_three_implementations_mirror_each_other():
    assert list(differences(PACKAGES)) == []


def differences(packages: list[Path]) -> Iterator[str]:
    """Name each place where a package does not mirror the first one."""
    first, *others = packages
    for other in others:
        for file in sorted(files(first) ^ files(other)):
            yield f"{file} is in one of {first.name} and {other.name} only"
        for file in sorted(files(first) & files(other)):
            left, right = (outline(package / file) for package in (first, other))
            yield from (f"{file}: {line}" for line in unlike(first.name, left, other.name, right))


def files(package: Path) -> set[str]:
    return {path.relative_to(package).as_posix() for path in package.rglob("*.py")}


def unlike(left_name: str, left: dict, right_name: str, right: dict) -> Iterator[str]:
    """Compare two outlines: which names they have, in which order, and what each name stands for."""
    if list(left) != list(right):
        yield f"{left_name} has {list(left)}, {right_name} has {list(right)}"
    for name in left.keys() & right.keys():
        if left[name] != right[name]:
            yield f"{name} is {left[name]} in {left_name} and {right[name]} in {right_name}"


def outline(path: Path) -> dict[str, object]:
    """Give what has to be the same of one file, by qualified name in the order of the file."""
    module = ast.parse(path.read_text(encoding="utf-8"))
    found = dict(_definitions(module, ""))
    if path.name == BODIES_FREE:
        return dict.fromkeys(found)
    return {"__doc__": first_paragraph(module), "__all__": public_names(module), **found}


def _definitions(parent: ast.AST, prefix: str) -> Iterator[tuple[str, object]]:
    for node in parent.body:
        if isinstance(node, ast.FunctionDef):
            yield prefix + node.name, (signature(node), first_paragraph(node))
        elif isinstance(node, ast.ClassDef) and OWN_DERIVATIVE not in map(ast.unparse, node.bases):
            yield prefix + node.name, (fields(node), first_paragraph(node))
            yield from _definitions(node, f"{prefix}{node.name}.")


def signature(function: ast.FunctionDef) -> str:
    """Give the parameters with their kinds and defaults; of an annotation only that it is there."""
    for node in ast.walk(function.args):
        if isinstance(node, ast.arg) and node.annotation:
            node.annotation = ast.Name("annotated")
    return f"({ast.unparse(function.args)}){' -> annotated' if function.returns else ''}"


def fields(node: ast.ClassDef) -> list[str]:
    """Give the annotated names of a class: the fields of a NamedTuple or a dataclass, in their order."""
    return [ast.unparse(line.target) for line in node.body if isinstance(line, ast.AnnAssign)]


def first_paragraph(node: ast.AST) -> str:
    """Give the first paragraph of a docstring, whatever its line breaks."""
    return " ".join(inspect.cleandoc(ast.get_docstring(node) or "").split("\n\n")[0].split())


def public_names(module: ast.Module) -> list[str] | None:
    """Give the list that a module assigns to `__all__`."""
    assigned = (node for node in module.body if isinstance(node, ast.Assign))
    values = [ast.literal_eval(node.value) for node in assigned if ast.unparse(node.targets[0]) == "__all__"]
    return list(values[0]) if values else None


# --- the check is checked: a change in one package alone is found ---------------------------------------

SOURCE = '''"""Attention."""

__all__ = ["attend"]


class Steps:
    """Every step."""

    scores: object


def attend(q, k, mask=None, *, scale=None):
    """Blend values.

    More about it.
    """
    return q
'''


@pytest.fixture
def copies(tmp_path):
    """Three packages that mirror each other."""
    packages = [tmp_path / name for name in ("one", "two", "three")]
    for package in packages:
        package.mkdir()
        (package / "attention.py").write_text(SOURCE)
        (package / BODIES_FREE).write_text("def finite(x):\n    return x\n")
    return packages


def test_a_mirror_with_other_bodies_is_a_mirror(copies):
    change(copies[2], "attention.py", "return q", "return k")
    change(copies[2], "attention.py", "More about it.", "Something else.")
    change(copies[2], "attention.py", "\n\n\ndef attend", f"\n\n\nclass Walk({OWN_DERIVATIVE}): ...\n\n\ndef attend")
    change(copies[2], BODIES_FREE, "finite(x)", "finite(array)")
    assert list(differences(copies)) == []


@pytest.mark.parametrize("package", [0, 1, 2])
@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        pytest.param("attention.py", "mask=None", "allowed=None", id="renamed-parameter"),
        pytest.param("attention.py", "mask=None", "mask=0", id="default"),
        pytest.param("attention.py", "q, k,", "k, q,", id="order-of-parameters"),
        pytest.param("attention.py", "*, scale", "scale", id="kind"),
        pytest.param("attention.py", "(q, ", "(q: object, ", id="annotation"),
        pytest.param("attention.py", "Blend values.", "Mix values.", id="docstring"),
        pytest.param("attention.py", '"""Attention."""', '"""Focus."""', id="module-docstring"),
        pytest.param("attention.py", "scores: object", "score: object", id="field"),
        pytest.param("attention.py", "def attend", "def attention", id="renamed-function"),
        pytest.param("attention.py", "class Steps", "def step(): ...\n\nclass Steps", id="extra-function"),
        pytest.param("attention.py", '["attend"]', '["attend", "Steps"]', id="all"),
        pytest.param(BODIES_FREE, "def finite", "def is_finite", id="name-in-arrays"),
    ],
)
def test_one_change_breaks_the_mirror(copies, package, file, old, new):
    change(copies[package], file, old, new)
    assert list(differences(copies))


@pytest.mark.parametrize("package", [0, 1, 2])
def test_a_missing_file_breaks_the_mirror(copies, package):
    (copies[package] / "attention.py").unlink()
    assert any("attention.py is in one of" in line for line in differences(copies))


def test_a_renamed_parameter_in_the_real_package_is_found(tmp_path):
    copy = Path(shutil.copytree(PACKAGES[1], tmp_path / "impl_torch"))
    change(copy, "attention.py", "is_causal=False", "causal=False")
    assert list(differences([PACKAGES[0], copy, PACKAGES[2]]))


def change(package: Path, file: str, old: str, new: str) -> None:
    text = (package / file).read_text(encoding="utf-8")
    assert old in text
    (package / file).write_text(text.replace(old, new), encoding="utf-8")
