"""What the adapters of the three implementations share: they differ only in how arrays are converted."""

from __future__ import annotations

import importlib
from importlib.metadata import version
from platform import python_version
from typing import Any

from conformance.adapters import rules
from conformance.contract import OPERATIONS


class Mirror:
    """An implementation package with the public names of the contract, called by keyword."""

    explains = True
    name: str
    module: str
    libraries: tuple[str, ...]

    def __init__(self) -> None:
        self.package = importlib.import_module(self.module)

    def info(self) -> dict[str, Any]:
        """Say which versions ran, on which device."""
        versions = {library: version(library) for library in self.libraries}
        return {"versions": {"python": python_version(), **versions}, "device": "cpu"}

    def supports(self, op: str, dtype: str, options: dict[str, Any], arrays: dict[str, Any]) -> str | None:
        """Everything is supported: the contract leaves the three implementations no choice."""
        return None

    def outputs(self, op: str) -> tuple[str, ...]:
        """Every output of the operation is returned."""
        return OPERATIONS[op].outputs

    def call(self, op: str, arrays: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
        """Call the package's function of that name."""
        returned = self._run(op, self._arguments(arrays, options))
        values = returned if isinstance(returned, tuple) else (returned,)
        named = zip(OPERATIONS[op].outputs, values, strict=False)
        return {name: value for name, value in named if value is not None}

    def _run(self, op: str, arguments: dict[str, Any]) -> Any:
        """Make the call itself; the variants of a backend differ here."""
        return CALLS.get(op, _call)(self.package, op, arguments)

    def _arguments(self, arrays: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
        """Join arrays and options to keyword arguments, the mask rule built from its description."""
        spec = options.get("mask")
        taken = rules.array_names(spec)
        arguments = {name: value for name, value in arrays.items() if name not in taken}
        arguments |= {name: _option(value) for name, value in options.items() if name != "mask"}
        return arguments | ({"mask": rules.build(self.package, spec, arrays)} if spec else {})


def _option(value: Any) -> Any:
    # JSON knows no tuples.
    return tuple(value) if isinstance(value, list) else value


def _call(package: Any, op: str, arguments: dict[str, Any]) -> Any:
    return getattr(package, op)(**arguments)


def _merge(package: Any, op: str, arguments: dict[str, Any]) -> Any:
    count = sum(name.startswith("out") for name in arguments)
    return package.merge([(arguments[f"out{i}"], arguments[f"lse{i}"]) for i in range(count)])


def _mask_array(package: Any, op: str, arguments: dict[str, Any]) -> Any:
    return arguments["mask"].array(arguments["T"], arguments["S"])


def _mask_picture(package: Any, op: str, arguments: dict[str, Any]) -> str:
    return arguments["mask"].picture(arguments["T"], arguments["S"])


CALLS = {"merge": _merge, "mask_array": _mask_array, "mask_picture": _mask_picture}
