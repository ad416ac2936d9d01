"""What a file or a module holds under a name: a backend, something that makes one, or a plain function."""

from __future__ import annotations

import importlib
import sys
from difflib import get_close_matches
from importlib.util import module_from_spec, spec_from_file_location
from inspect import Parameter, signature
from pathlib import Path
from types import ModuleType
from typing import Any

from conformance.adapter import Backend
from conformance.adapters.function import Function
from conformance.asking import line

MEMBERS = ("info", "supports", "outputs", "from_numpy", "to_numpy", "is_own", "call")


def backend(spec: str) -> Backend:
    """Make the backend of "file.py:name" or "module:name", with settings for a plain function after commas.

    Raises LookupError, whose message says what is wrong and what to do.
    """
    place, _, rest = spec.rpartition(":")
    name, *settings = rest.split(",")
    found = _attribute(_module(place), place, name)
    made = _without_arguments(found, spec) if _makes_backend(found) else found
    if not _is_backend(made):
        return Function(spec, made, **_settings(settings))
    if settings:
        raise LookupError(f"{', '.join(settings)} is for plain functions, and this is a backend")
    return made


def _module(place: str) -> ModuleType:
    is_file = place.endswith(".py")
    if is_file and not Path(place).is_file():
        raise LookupError(f"there is no file {place}; the folder is {Path.cwd()}")
    try:
        return _file(Path(place)) if is_file else _import(place)
    except (Exception, SystemExit) as error:
        raise LookupError(f"{place} cannot be imported: {line(error)}") from error


def _file(path: Path) -> ModuleType:
    sys.path.insert(0, str(path.resolve().parent))  # as python path/to/file.py does
    spec = spec_from_file_location(path.stem, path)
    module = module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def _import(name: str) -> ModuleType:
    sys.path.insert(0, str(Path.cwd()))  # as python -m does
    return importlib.import_module(name)


def _attribute(module: ModuleType, place: str, name: str) -> Any:
    try:
        return getattr(module, name)
    except AttributeError:
        public = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
        near = get_close_matches(name, public, cutoff=0.4) or public[:5]
        hint = f"; it has {', '.join(near)}" if near else ""
        raise LookupError(f"{place} has no object {name!r}{hint}") from None


def _makes_backend(found: Any) -> bool:
    """Tell whether it is a class of backends, or can be called without arguments."""
    if isinstance(found, type):
        return _is_backend(found)
    if _is_backend(found) or not callable(found):
        return False
    try:
        needed = signature(found).parameters.values()
    except ValueError:  # written in C, without a signature
        return False
    variadic = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
    return all(one.default is not one.empty or one.kind in variadic for one in needed)


def _without_arguments(make: Any, spec: str) -> Any:
    try:
        made = make()
    except Exception as error:
        raise LookupError(f"calling it, to make a backend, raised {line(error)}") from error
    if not _is_backend(made):
        raise LookupError(
            f"it takes no q, k, v, so it was called to make a backend, and gave a {type(made).__name__}"
        )
    return made


def _is_backend(found: Any) -> bool:
    return all(hasattr(found, member) for member in MEMBERS)


def _settings(given: list[str]) -> dict[str, Any]:
    """Read "arrays=torch" and "errors"."""
    settings = dict(text.partition("=")[::2] for text in given)
    if unknown := settings.keys() - {"arrays", "errors"}:
        raise LookupError(f"unknown setting {', '.join(sorted(unknown))}; known are arrays=numpy|torch|jax and errors")
    return {name: value or True for name, value in settings.items()}
