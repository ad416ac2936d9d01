"""A plain function as a backend: what it takes is read from its signature, what it returns from small calls."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature, signature
from typing import Any

from conformance import adapter
from conformance.adapters import rules
from conformance.adapters.probing import Probe, values
from conformance.contract import OPERATIONS
from conformance.facts import FLOATS

KINDS = ("numpy", "torch", "jax")
DEFAULTS = {"is_causal": False, "enable_gqa": False}  # those of the others are None
_REQUIRED = ("q", "k", "v")
_CONTRACT = {*OPERATIONS["flash_attention"].optional, *OPERATIONS["flash_attention"].options}
_WITH_AXES = (*_REQUIRED, "mask", "bias")
_VARIADIC = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


class Function:
    """attention(q, k, v, mask=None, ...) that someone has written, on NumPy, PyTorch or JAX arrays.

    Its attributes may say more: `outputs` names what it returns, where the shapes do not tell; `rules` is a package
    (or any object) with the functions causal, window, ..., of which mask rules are made; without it a rule comes as
    a boolean array. A function that takes more axes than a case has gets leading axes of 1.
    """

    explains = False

    def __init__(self, name: str, function: Callable[..., Any], arrays: str = "numpy", errors: bool = False) -> None:
        if arrays not in KINDS:
            raise LookupError(f"arrays={arrays} is none of {', '.join(KINDS)}")
        self.name, self._function = name, function
        self.unasked_errors = None if errors else "errors are not judged; --errors judges them"
        self._signature = _signature(function)
        self._rules = getattr(function, "rules", None)
        self._kind = adapter.find(arrays)
        self.from_numpy, self.to_numpy, self.is_own = self._kind.from_numpy, self._kind.to_numpy, self._kind.is_own
        self.shares_memory = self._kind.shares_memory
        self._probe = Probe(lambda **given: self._call({n: self.from_numpy(array) for n, array in given.items()}))
        self._outputs = tuple(getattr(function, "outputs", None) or self._probe.outputs())

    def info(self) -> dict[str, Any]:
        """Say which versions ran, and the function's signature."""
        return self._kind.info() | {"function": f"{getattr(self._function, '__name__', '')}{self._signature}"}

    def supports(self, op: str, dtype: str, options: dict[str, Any], arrays: dict[str, Any]) -> str | None:
        """Tell which parameter the function lacks, and which number of axes and which dtype it refuses."""
        if op != "attention" and not (op == "flash_attention" and "block_size" in options):
            return "a function is judged as attention, once"
        given = {name: value for name, value in options.items() if value is not DEFAULTS.get(name)}
        missing = [name for name in arrays | given if name in _CONTRACT and not self._takes(name)]
        if missing:
            return f"the function has no parameter {' and no '.join(missing)}"
        if not self._rules and (fault := rules.fault(options.get("mask"), arrays)):
            return f"a function is given rules as arrays, and this one makes none: {fault}"
        if _axes(arrays) > max(self._probe.axes, default=5) < 5:
            return f"the function takes {max(self._probe.axes)} axes at most"
        refusal = self._probe.refusal(dtype) if dtype in FLOATS else None
        return f"the function refuses {dtype}: {refusal}" if refusal else None

    def outputs(self, op: str) -> tuple[str, ...]:
        """Name what the function returns, as it declares or as its shapes tell."""
        return self._outputs

    def call(self, op: str, arrays: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
        """Call the function: q, k and v by their places, the rest by name."""
        spec = options.get("mask")
        taken = rules.array_names(spec)
        arguments = {name: value for name, value in arrays.items() if name not in taken}
        arguments |= {name: _option(value) for name, value in options.items() if name != "mask"}
        if spec:
            arguments["mask"] = self._rule(spec, arrays)
        axes = self._nearest(_axes(arrays))
        returned = self._call({name: self._lifted(name, value, axes) for name, value in arguments.items()})
        added = axes - _axes(arrays)
        return dict(zip(self._outputs, (_lowered(value, added) for value in values(returned)), strict=False))

    def _call(self, arguments: dict[str, Any]) -> Any:
        """Fill parameters that have no default with the contract's, and leave out defaults that have no parameter."""
        needed = [p.name for p in self._signature.parameters.values() if p.default is p.empty and p.name in _CONTRACT]
        named = {name: DEFAULTS.get(name) for name in needed}
        named |= {name: value for name, value in arguments.items() if self._passes(name, value)}
        return self._function(*(arguments[name] for name in _REQUIRED), **named)

    def _passes(self, name: str, value: Any) -> bool:
        is_default = name in _CONTRACT and value is DEFAULTS.get(name)
        return name not in _REQUIRED and (self._takes(name) or not is_default)

    def _takes(self, name: str) -> bool:
        kinds = [parameter.kind for parameter in self._signature.parameters.values()]
        # **options takes what attention takes; block_size is for those that name it.
        return name in self._signature.parameters or (Parameter.VAR_KEYWORD in kinds and name != "block_size")

    def _rule(self, spec: dict[str, Any], arrays: dict[str, Any]) -> Any:
        if self._rules:
            return rules.build(self._rules, spec, arrays)
        named = {name: self.to_numpy(arrays[name]) for name in rules.array_names(spec)}
        return self.from_numpy(rules.evaluate(spec, named, arrays["q"].shape[-2], arrays["k"].shape[-2]))

    def _nearest(self, axes: int) -> int:
        """Give the number of axes, not below this one, that the function takes."""
        return min((taken for taken in self._probe.axes if taken >= axes), default=axes)

    def _lifted(self, name: str, value: Any, axes: int) -> Any:
        """Add leading axes of 1 where the function needs them; an array that broadcasts keeps the axes it may have."""
        if name in _WITH_AXES and self.is_own(value) and value.ndim >= 2 and value.ndim not in self._probe.axes:
            value = value[(None,) * (axes - value.ndim)]
        return value


def _axes(arrays: dict[str, Any]) -> int:
    return max(len(getattr(arrays.get(name), "shape", ())) for name in _REQUIRED)


def _lowered(value: Any, added: int) -> Any:
    return value[(0,) * added] if added else value


def _signature(function: Any) -> Signature:
    """Read the signature; raises LookupError if it is none of an attention."""
    if not callable(function):
        raise LookupError(f"it is a {type(function).__name__}, which cannot be called")
    try:
        found = signature(function)
    except ValueError:
        raise LookupError("its signature cannot be read; wrap it in a Python function") from None
    if missing := [name for name in _REQUIRED if name not in found.parameters]:
        raise LookupError(f"{found} has no {', '.join(missing)}; it has to be like attention(q, k, v, mask=None)")
    for one in found.parameters.values():
        if one.default is one.empty and one.kind not in _VARIADIC and one.name not in {*_REQUIRED, *_CONTRACT}:
            raise LookupError(f"its parameter {one.name} needs a default, since no case gives it")
    return found


def _option(value: Any) -> Any:
    # JSON knows no tuples.
    return tuple(value) if isinstance(value, list) else value
