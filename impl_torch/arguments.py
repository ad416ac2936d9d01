"""Single arguments: what each may be, and the message that says what was wrong, what is legal, and what to do.

A wrong type is a TypeError, a wrong value or shape a ValueError (B6).
"""

from __future__ import annotations

import math
import numbers
import sys

from . import arrays


def array(name, x):
    """Refuse what is no array of this package's kind."""
    if not arrays.is_array(x):
        raise TypeError(f"{name} must be a {arrays.KIND}, got {type(x).__name__}; convert it with {arrays.CONVERT}")


def floating(name, x):
    """Refuse what is no array of one of the four floating dtypes."""
    array(name, x)
    if arrays.dtype_name(x) not in arrays.FLOATS:
        legal = ", ".join(arrays.FLOATS)
        raise TypeError(f"{name} has dtype {arrays.dtype_name(x)}; legal are {legal}: convert it first")


def integers(name, x, least_axes=0):
    """An integer array with at least so many axes, as a copy that belongs to the rule alone (D3)."""
    array(name, x)
    if not arrays.is_integer(x):
        raise TypeError(f"{name} must be an integer array, got dtype {arrays.dtype_name(x)}")
    axes(name, x, least_axes)
    return arrays.owned(x)


def axes(name, x, least):
    """Refuse an array with too few axes."""
    if x.ndim < least:
        raise ValueError(f"{name} must have at least {least} axes, got shape {tuple(x.shape)}")


def same_dtype(**given):
    """Refuse what is no floating array, and arrays that do not share one dtype and one device (A2, B2)."""
    for name, x in given.items():
        floating(name, x)
    if len({arrays.dtype_name(x) for x in given.values()}) > 1:
        found = ", ".join(f"{name} {arrays.dtype_name(x)}" for name, x in given.items())
        raise TypeError(f"{', '.join(given)} must share one dtype, got {found}; convert them to one")
    same_device(**given)


def same_device(**given):
    """Refuse arrays that lie on different devices (A2); what is no array has no device."""
    devices = {name: arrays.device(x) for name, x in given.items() if arrays.is_array(x)}
    if len(set(devices.values())) > 1:
        found = ", ".join(f"{name} on {device}" for name, device in devices.items())
        raise ValueError(f"{', '.join(devices)} must lie on one device, got {found}; move them to one")


def integer(name, x, least=None):
    """A whole number, not below `least`."""
    if isinstance(x, bool) or not isinstance(x, numbers.Integral):
        raise TypeError(f"{name} must be an integer, got {x!r} of type {type(x).__name__}")
    if least is not None and x < least:
        raise ValueError(f"{name} must be an integer >= {least}, got {x}")
    return int(x)


def odd(name, x):
    """A whole odd number, not below 1."""
    x = integer(name, x, least=1)
    if x % 2 == 0:
        raise ValueError(f"{name} must be odd, so that the query itself is in the middle, got {x}")
    return x


def number(name, x, positive=False):
    """Refuse what is no finite real number, given as a Python number or as an array without axes."""
    scalar = arrays.is_array(x) and x.ndim == 0 and (arrays.is_floating(x) or arrays.is_integer(x))
    if not scalar and (isinstance(x, bool) or not isinstance(x, numbers.Real)):
        raise TypeError(f"{name} must be a real number or an array without axes, got {x!r} of type {type(x).__name__}")
    if arrays.is_traced(x):
        return
    if isinstance(x, numbers.Rational) and abs(x) > sys.float_info.max:
        raise ValueError(f"{name} must be finite as a float, got a number beyond {sys.float_info.max}")
    if not -math.inf < x < math.inf:  # torch: compile does not know math.isfinite of a number that varies
        raise ValueError(f"{name} must be finite, got {float(x)}")
    if positive and not x > 0:
        raise ValueError(f"{name} must be > 0, got {float(x)}")


def flag(name, x):
    """Refuse what is neither True nor False."""
    if not isinstance(x, bool):
        raise TypeError(f"{name} must be True or False, got {x!r} of type {type(x).__name__}")


def choice(name, x, legal):
    """Refuse what is not one of the legal words."""
    words = ", ".join(repr(word) for word in legal)
    if not isinstance(x, str):
        raise TypeError(f"{name} must be one of {words}, got {x!r} of type {type(x).__name__}")
    if x not in legal:
        raise ValueError(f"{name} must be one of {words}, got {x!r}")


def pair_of_sizes(name, x):
    """None, or a pair of whole numbers >= 1."""
    if x is None:
        return
    if not isinstance(x, (tuple, list)):
        raise TypeError(f"{name} must be None or a pair (queries, keys), got {x!r} of type {type(x).__name__}")
    if len(x) != 2:
        raise ValueError(f"{name} must be a pair (queries, keys), got {len(x)} numbers")
    for size in x:
        integer(name, size, least=1)
