"""The sources of the three implementations, cut into functions and classes, and the clauses that these cite."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

from conformance.contract import CLAUSES

ROOT = Path(__file__).parents[2]
PACKAGES = ("impl_numpy", "impl_torch", "impl_jax")
HEAD = "head"


def files() -> list[str]:
    """Name the files that the implementations share."""
    return sorted(path.name for path in (ROOT / PACKAGES[0]).glob("*.py"))


@cache
def pieces(package: str, file: str) -> dict[str, str]:
    """Cut a file: the source of each top-level function or class by its name, what comes before them as HEAD."""
    text = (ROOT / package / file).read_text(encoding="utf-8")
    lines, found, head = text.splitlines(), {}, None
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)]) - 1
            head = first if head is None else head
            found[node.name] = "\n".join(lines[first : node.end_lineno])
    before = [line for line in lines[:head] if not line.startswith("# ---")]
    return {HEAD: "\n".join(before).strip(), **found}


def definition(package: str, name: str) -> tuple[str, ast.FunctionDef | ast.ClassDef]:
    """Find a public name: the file that defines it, and its syntax tree. Raises ValueError when there is none."""
    for file in files():
        if name in pieces(package, file) and name != HEAD:
            return file, ast.parse(pieces(package, file)[name]).body[0]
    raise ValueError(f"{package} defines no {name}")


@cache
def citations() -> dict[str, list[tuple[str, str]]]:
    """Give for each clause the places, (file, name), that cite it in any of the implementations."""
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for file in files():
        for name in dict.fromkeys(name for package in PACKAGES for name in pieces(package, file)):
            cited = {clause for package in PACKAGES for clause in clauses_in(pieces(package, file).get(name, ""))}
            for clause in cited:
                found[clause].append((file, name))
    return dict(found)


def clauses_in(text: str) -> set[str]:
    """Give the clauses that a text names, those in between for "D1 to D4"."""
    names = list(CLAUSES)
    found = set(re.findall(r"\b[A-G]\d\b", text)) & set(names)
    for first, last in re.findall(r"\b([A-G]\d) to ([A-G]\d)\b", text):
        found |= set(names[names.index(first) : names.index(last) + 1])
    return found
