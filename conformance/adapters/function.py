"""A plain function as a backend: what it takes is read from its signature, what it returns from two small calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from inspect import Parameter, Signature, signature
from itertools import product
from typing import Any

import numpy as np

from conformance import adapter
from conformance.adapters import rules
from conformance.asking import line
from conformance.contract import OPERATIONS
from conformance.facts import FLOATS, qkv

KINDS = ("numpy", "torch", "jax")
DEFAULTS = {"is_causal": False, "enable_gqa": False, "block_size": None}
_REQUIRED = ("q", "k", "v")
_CONTRACT = {*OPERATIONS["flash_attention"].optional, *OPERATIONS["flash_attention"].options}

# Shapes of q, k, v that a function may be made for: all sizes different, no leading axes, square.
_PROBES = (
    ((2, 3, 4, 5), (2, 3, 7, 5), (2, 3, 7, 6)),
    ((4, 5), (7, 5), (7, 6)),
    ((1, 2, 8, 16), (1, 2, 8, 16), (1, 2, 8, 16)),
)


class Function:
    """attention(q, k, v, mask=None, ...) that someone has written, on NumPy, PyTorch or JAX arrays.

    Its attributes may say more: `outputs` names what it returns, where the shapes do not tell; `rules` is a package
    (or any object) with the functions causal, window, ..., in whose values it wants mask rules; without it a rule
    comes as a boolean array.
    """

    explains = False

    def __init__(self, name: str, function: Callable[..., Any], arrays: str = "numpy", errors: bool = False) -> None:
        if arrays not in KINDS:
            raise LookupError(f"arrays={arrays!r} is none of {', '.join(KINDS)}")
        self.name, self._function, self.refuses = name, function, bool(errors)
        self._signature = _signature(name, function)
        self._kind = adapter.find(arrays)
        self.from_numpy, self.to_numpy, self.is_own = self._kind.from_numpy, self._kind.to_numpy, self._kind.is_own
        self._refused: dict[str, str | None] = {}
        self._probe, returned = next(self._probes(), (None, None))
        self._outputs = getattr(function, "outputs", None) or self._named(returned)

    def info(self) -> dict[str, Any]:
        """Say which versions ran, and the function's signature."""
        return self._kind.info() | {"function": f"{getattr(self._function, '__name__', '')}{self._signature}"}

    def supports(self, op: str, dtype: str, options: dict[str, Any], arrays: dict[str, Any]) -> str | None:
        """Tell which parameter the function lacks, and which dtype it refuses."""
        if op not in ("attention", "flash_attention"):
            return "a function is judged as attention only"
        if op == "flash_attention" and not ("block_size" in options and self._takes("block_size")):
            return "a function is judged once, as attention"
        given = {name: value for name, value in options.items() if value is not DEFAULTS.get(name)}
        missing = [name for name in arrays | given if name in _CONTRACT and not self._takes(name)]
        if missing:
            return f"the function has no parameter {' and no '.join(missing)}"
        if fault := rules.fault(options.get("mask"), arrays):
            return f"a function is given rules as arrays, and this one makes none: {fault}"
        return self._refusal(dtype) if dtype in FLOATS else None

    def outputs(self, op: str) -> tuple[str, ...]:
        """Name what the function returns, as it declares or as its shapes tell."""
        return tuple(self._outputs)

    def call(self, op: str, arrays: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
        """Call the function: q, k and v by their places, the rest by name."""
        spec = options.get("mask")
        taken = rules.array_names(spec)
        arguments = self._defaults() | {name: value for name, value in arrays.items() if name not in taken}
        arguments |= {name: _option(value) for name, value in options.items() if name != "mask"}
        if spec:
            arguments["mask"] = self._rule(spec, arrays)
        returned = self._call({name: value for name, value in arguments.items() if self._passes(name, value)})
        return dict(zip(self._outputs, _values(returned), strict=False))

    def _call(self, arguments: dict[str, Any]) -> Any:
        named = {name: value for name, value in arguments.items() if name not in _REQUIRED}
        return self._function(*(arguments[name] for name in _REQUIRED), **named)

    def _takes(self, name: str) -> bool:
        kinds = [parameter.kind for parameter in self._signature.parameters.values()]
        return name in self._signature.parameters or Parameter.VAR_KEYWORD in kinds

    def _passes(self, name: str, value: Any) -> bool:
        return self._takes(name) or name not in _CONTRACT or value is not DEFAULTS.get(name)

    def _defaults(self) -> dict[str, Any]:
        """Give the contract's defaults of the parameters that have none in the signature."""
        needed = [p.name for p in self._signature.parameters.values() if p.default is p.empty and p.name in _CONTRACT]
        return {name: DEFAULTS.get(name) for name in needed}

    def _rule(self, spec: dict[str, Any], arrays: dict[str, Any]) -> Any:
        if functions := getattr(self._function, "rules", None):
            return rules.build(functions, spec, arrays)
        named = {name: self.to_numpy(arrays[name]) for name in rules.array_names(spec)}
        return self.from_numpy(rules.evaluate(spec, named, arrays["q"].shape[-2], arrays["k"].shape[-2]))

    def _probes(self) -> Iterator[tuple[Any, Any]]:
        """Give the shapes, and what comes back, of each small call that returns."""
        for dtype, shapes in product(FLOATS[::-1], _PROBES):
            try:
                yield shapes, self._try(shapes, dtype)
            except Exception:
                continue

    def _try(self, shapes: Any, dtype: str) -> Any:
        given = {name: self.from_numpy(array) for name, array in qkv(*shapes, dtype).items()}
        return self._call(self._defaults() | given)

    def _refusal(self, dtype: str) -> str | None:
        """Tell whether the dtype alone makes a small call fail that returns in another one."""
        if self._probe and dtype not in self._refused:
            self._refused[dtype] = None
            try:
                self._try(self._probe, dtype)
            except Exception as error:
                self._refused[dtype] = f"the function refuses {dtype}: {line(error)}"
        return self._refused.get(dtype)

    def _named(self, returned: Any) -> tuple[str, ...]:
        """Name what came back from the small call by its shapes."""
        if len(_values(returned)) < 2:
            return ("out",)
        (*B, T, _), (*_, S, _), (*_, Dv) = self._probe
        names = {(*B, T, Dv): "out", (*B, T, S): "weights", (*B, T): "lse"}
        shapes = [tuple(np.shape(value)) for value in _values(returned)]
        if not all(shape in names for shape in shapes) or len(set(shapes)) < len(shapes):
            known = ", ".join(f"{name} {shape}" for shape, name in names.items())
            raise LookupError(
                f"q, k, v of the shapes {self._probe} gave {shapes}, and expected are {known}. "
                'Name what it returns by an attribute of the function: attention.outputs = ("out", "lse")'
            )
        return tuple(names[shape] for shape in shapes)


def _signature(name: str, function: Any) -> Signature:
    """Read the signature; raises LookupError if it is none of an attention."""
    if not callable(function):
        raise LookupError(f"it is a {type(function).__name__}, which cannot be called")
    try:
        found = signature(function)
    except ValueError:
        raise LookupError("its signature cannot be read; wrap it in a Python function") from None
    if missing := [needed for needed in _REQUIRED if needed not in found.parameters]:
        raise LookupError(f"{found} has no {', '.join(missing)}; it has to be like attention(q, k, v, mask=None)")
    variadic = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
    for parameter in found.parameters.values():
        if parameter.default is parameter.empty and parameter.kind not in variadic:
            if parameter.name not in {*_REQUIRED, *_CONTRACT}:
                raise LookupError(f"the parameter {parameter.name} needs a default, no case gives it")
    return found


def _values(returned: Any) -> tuple[Any, ...]:
    values = returned if isinstance(returned, (tuple, list)) else (returned,)
    return tuple(value for value in values if value is not None)


def _option(value: Any) -> Any:
    # JSON knows no tuples.
    return tuple(value) if isinstance(value, list) else value
