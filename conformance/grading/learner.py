"""A learner's file: found, imported, and its functions called; what goes wrong in it is told with its line."""

from __future__ import annotations

import linecache
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from conformance.asking import Answer, Question, ask, line
from conformance.grading.exercise import Exercise, load
from conformance.selecting import EXTRAS

FRAMEWORKS = ("numpy", "torch", "jax")


class Unusable(ValueError):
    """The file cannot be graded at all; the message is one line for the learner."""


@dataclass(frozen=True)
class Submission:
    """A learner's file: the exercise that it answers, its framework, and the names that it defines."""

    path: Path
    exercise: Exercise
    framework: str
    names: dict[str, Any]


def submission(path: Path) -> Submission:
    """Import the file. Raises Unusable if there is none, if it answers no exercise, or if the import fails."""
    if not path.is_file():
        raise Unusable(f"{path}: there is no such file; give one like docs/exercises/NAME/answer_numpy.py")
    framework = re.search(rf"_({'|'.join(FRAMEWORKS)})\.py$", path.name)
    if framework is None:
        raise Unusable(f"{path}: the name has to tell the framework, as in {' or '.join(map(_named, FRAMEWORKS))}")
    if not (path.parent / "exercise.toml").is_file():
        raise Unusable(f"{path} answers no exercise: there is no exercise.toml beside it; leave it in its folder")
    if not find_spec(framework[1]):
        remedy = f"pip install 'attention-three-ways[{EXTRAS[framework[1]]}]'"
        raise Unusable(f"{path}: {framework[1]} is not installed. Install it with {remedy}")
    return Submission(path, load(path.parent), framework[1], imported(path))


def _named(framework: str) -> str:
    return f"answer_{framework}.py"


def imported(path: Path) -> dict[str, Any]:
    """Run the file and give its names; its neighbours can be imported from it. Raises Unusable."""
    names: dict[str, Any] = {"__name__": path.stem, "__file__": str(path)}
    with _neighbours(path.parent):
        try:
            exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), names)
        except (Exception, SystemExit) as error:
            raise Unusable(f"{path} cannot be imported: {told(error, path)}") from error
    return names


@contextmanager
def _neighbours(folder: Path) -> Iterator[None]:
    """Let the folder's modules be imported, and forget them afterwards: every exercise has its own of that name."""
    before = set(sys.modules)
    place = str(folder.resolve())
    sys.path.insert(0, place)
    try:
        yield
    finally:
        sys.path.remove(place)
        for name in set(sys.modules) - before:
            if str(Path(getattr(sys.modules[name], "__file__", None) or "/").parent) == place:
                del sys.modules[name]


def told(error: BaseException, path: Path) -> str:
    """Say an error in one line, with the line of the file that led to it."""
    said = f"{type(error).__name__}: {error.msg}" if isinstance(error, SyntaxError) else line(error)
    return f"{said} ({place(error, path)})"


def place(error: BaseException, path: Path) -> str:
    """Name the last line of the file that led to the error."""
    number = lineno(error, path)
    return f"{path.name}, line {number}: {linecache.getline(str(path), number).strip()}" if number else path.name


def remedy(error: BaseException, path: Path, axes: int) -> str:
    """Give a hint for two slips that arrays invite, "" for any other error; `axes` is the most that an array has."""
    if re.search(r"truth value of an array|boolean value of tensor", str(error), re.IGNORECASE):
        return "and, or, not and a < b < c take one truth value; between arrays write (...) & (...), | and ~."
    if axes > 2 and re.search(r"\.T\b", place(error, path)):
        return "There are leading axes here: .T turns all axes round, .mT the last two."
    return ""


def lineno(error: BaseException, path: Path) -> int | None:
    """Give the number of the last line of the file that led to the error, if any did."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return error.lineno
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return frames[-1].lineno if frames else None


def is_unwritten(error: BaseException | None, path: Path) -> bool:
    """Tell whether the file itself says that this is not written yet; a framework raises that error as well."""
    if not isinstance(error, NotImplementedError):
        return False
    return traceback.extract_tb(error.__traceback__)[-1].filename == str(path)


class Written:
    """A function of a file in the place of a backend; `error` is what its last call raised."""

    explains = refuses = False

    def __init__(
        self, framework: str, function: Callable, arguments: tuple[str, ...], returns: tuple[str, ...]
    ) -> None:
        self.name, self.function = framework, function
        self.arguments, self.returns = arguments, returns
        self.error: BaseException | None = None
        arrays = ARRAYS[framework]()
        self.from_numpy, self.to_numpy, self.is_own = arrays.from_numpy, arrays.to_numpy, arrays.is_own

    def supports(self, op: str, dtype: str, options: dict[str, Any], arrays: dict[str, Any]) -> None:
        """Whatever is asked is asked of it: what it cannot take was left out before."""

    def outputs(self, op: str) -> tuple[str, ...]:
        """Name what it returns."""
        return self.returns

    def call(self, op: str, arrays: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
        """Call the function; NumPy's warnings do not matter, since what comes of it is judged."""
        given = arrays | options
        self.error = None
        try:
            with np.errstate(all="ignore"):
                returned = self.function(*(given[name] for name in self.arguments))
        except (Exception, SystemExit) as error:
            self.error = error
            raise RuntimeError(str(error)) from error
        values = returned if isinstance(returned, tuple) and len(returned) <= len(self.returns) else (returned,)
        return dict(zip(self.returns, values, strict=False))  # what is missing is a verdict of its own


def answered(backend: Any, op: str, given: dict[str, Any], returns: tuple[str, ...]) -> Answer:
    """Ask a backend with these arguments, NumPy arrays and plain values."""
    arrays = {name: value for name, value in given.items() if isinstance(value, np.ndarray)}
    options = {name: value for name, value in given.items() if name not in arrays}
    question = Question(op, dtype="float32", options=options, calls=(arrays,), outputs=returns, invalid=False)
    return ask(question, backend).answers[0]


class JaxArrays:
    """Conversion between NumPy and JAX arrays, as JAX does it when it is left alone: integers have 32 bits."""

    def __init__(self) -> None:
        import jax

        self.from_numpy, self.to_numpy = lambda array: jax.device_put(np.array(array)), np.array
        self.is_own = lambda value: isinstance(value, jax.Array)


def _numpy() -> Any:
    from conformance.adapters.numpy import NumPy

    return NumPy()


def _torch() -> Any:
    from conformance.adapters.torch import Tensors

    return Tensors()


ARRAYS = {"numpy": _numpy, "torch": _torch, "jax": JaxArrays}
