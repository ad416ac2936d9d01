"""Run the code of one page: a namespace for each framework, and what each piece of code printed, gave and drew."""

from __future__ import annotations

import ast
import contextlib
import io
import traceback
import warnings
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import matplotlib
import numpy as np

from conformance.pictures import STYLE, svg

matplotlib.use("agg")
from matplotlib import pyplot  # after the backend is chosen, so that no screen is looked for

FRAMEWORKS = {"numpy": "NumPy", "torch": "PyTorch", "jax": "JAX"}


class CellError(Exception):
    """A piece of code does not do what its page says; the message is for the page's author."""


@dataclass
class Output:
    """What a piece of code gave: its printed text, last value included, and at most one figure as SVG."""

    text: str
    figure: str | None


@dataclass
class Raised:
    """What a piece of code raised, at which line of the page."""

    kind: str
    message: str
    line: int


@dataclass
class Page:
    """The namespaces of one page, by framework; its source, and what its {value} roles gave."""

    name: str
    source: str = ""
    spaces: dict[str, dict[str, Any]] = field(default_factory=lambda: {name: {} for name in FRAMEWORKS})
    values: list[str] = field(default_factory=list)

    def run(self, code: str, framework: str, line: int = 1, alt: str = "", raises: str | None = None) -> Output:
        """Run the code, which starts at that line of the page, in the namespace of the framework.

        `alt` describes its figure, as `text` fills it in; `raises` names the error that the code has to raise.
        Raises CellError when it does anything else.
        """
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), matplotlib.rc_context(STYLE):
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                error = _execute(code, self.name, line, self.spaces[framework])
            if (error and error.kind) != raises:
                raise CellError(_unlike(FRAMEWORKS[framework], error, raises))
            figure = _figure(self.text(alt, framework))
        lines = [f"{warning.category.__name__}: {warning.message}\n" for warning in warned]
        lines += [printed.getvalue(), f"{error.kind}: {error.message}\n" if error else ""]
        return Output(_without_addresses("".join(lines)), figure)

    def text(self, template: str, framework: str = "numpy") -> str:
        """Fill in what stands in braces, as an f-string in the namespace of the framework does."""
        try:
            return eval(f"f{template!r}", self.spaces[framework])
        except Exception as error:
            raise CellError(f"{template!r} raised {type(error).__name__}: {error}") from error

    def difference(self, name: str, tolerance: float) -> float:
        """Give the largest absolute difference of a variable between the frameworks that are installed.

        Raises CellError when it is missing somewhere, or differs in shape, in what is NaN or infinite, or by more
        than the tolerance.
        """
        spaces = {label: self.spaces[key] for key, label in FRAMEWORKS.items() if is_here(key)}
        if missing := [label for label, space in spaces.items() if name not in space]:
            raise CellError(f"there is no {name} in {', '.join(missing)}")
        found = {label: np.asarray(space[name]).astype(float) for label, space in spaces.items()}
        first, *others = found.values()
        largest = max((_distance(first, other) for other in others), default=0.0)
        if not largest <= tolerance:
            listed = "\n".join(f"{label}: {array.tolist()}" for label, array in found.items())
            raise CellError(f"{name} differs by {largest:.3g}, and {tolerance:g} is the most that may be\n{listed}")
        return largest


def is_here(framework: str) -> bool:
    """Tell whether the framework is installed."""
    return find_spec(framework) is not None


def _execute(code: str, name: str, line: int, space: dict[str, Any]) -> Raised | None:
    """Run the code and print its last value, as a notebook does."""
    try:
        tree = ast.increment_lineno(ast.parse(code), line - 1)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, name, "exec", dont_inherit=True), space)
        if last is None:
            return None
        value = eval(compile(ast.Expression(last.value), name, "eval", dont_inherit=True), space)
        if value is not None:
            print(repr(value))
    except Exception as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == name]
        return Raised(type(error).__name__, str(error), lines[-1] if lines else line)
    return None


def _unlike(label: str, error: Raised | None, raises: str | None) -> str:
    wanted = f", and {raises} was to be raised" if raises else ""
    if error is None:
        return f"the {label} code raised nothing{wanted}"
    return f"the {label} code raised {error.kind} at line {error.line} of the page{wanted}: {error.message}"


def _without_addresses(text: str) -> str:
    if " at 0x" in text:
        raise CellError(f"the output holds an address, which differs from build to build:\n{text}")
    return text


def _figure(alt: str) -> str | None:
    """Draw the open figure and close it."""
    figures = [pyplot.figure(number) for number in pyplot.get_fignums()]
    pyplot.close("all")
    if len(figures) > 1:
        raise CellError(f"{len(figures)} figures are drawn at once; draw one, with several axes, or use several cells")
    if figures and not alt:
        raise CellError("a figure has no alternative text: say with :alt: what is seen, and what it shows")
    return svg(figures[0], alt) if figures else None


def _distance(one: np.ndarray, other: np.ndarray) -> float:
    """The largest difference; infinite when the shapes differ, or what is NaN or infinite."""
    if one.shape != other.shape:
        return float("inf")
    same = (one == other) | (np.isnan(one) & np.isnan(other))
    with np.errstate(invalid="ignore"):
        apart = np.where(same, 0, np.abs(one - other))
    return float(np.nan_to_num(apart, nan=np.inf).max(initial=0))
