"""What a call may be given, and the message that says what was wrong, what is legal, and what to do.

A wrong type is a TypeError, a wrong value or shape a ValueError (B6). Types are looked at before values.
Nothing here depends on the device, the dtype or the size of what is checked.
"""

from __future__ import annotations

import torch

from . import arguments, arrays, rules

# --- attention -------------------------------------------------------------------------------------------


def attention(q, k, v, mask, bias, is_causal, scale, softcap, sinks, enable_gqa):
    """Check the arguments of attention; returns the shape (*B, [H,] T, S) of its weights (B1 to B6)."""
    types(q, k, v, mask, bias, is_causal, scale, softcap, sinks, enable_gqa)
    sizes(q=q, k=k, v=v)
    if enable_gqa:
        groups(q, k, v)
    shape = (*leading(q.shape[-3] if enable_gqa else None, q=q, k=k, v=v), q.shape[-2], k.shape[-2])
    visible_pairs("mask", mask, shape)
    if bias is not None:
        fits("bias", bias, shape)
    if sinks is not None:
        one_sink_a_head(sinks, shape)
    return shape


def types(q, k, v, mask, bias, is_causal, scale, softcap, sinks, enable_gqa):
    """Refuse arguments of a wrong type, and numbers that are not finite (B2, B4, B6)."""
    arguments.same_dtype(q=q, k=k, v=v)
    mask_type("mask", mask)
    for name, x in (("bias", bias), ("sinks", sinks)):
        if x is not None:
            arguments.floating(name, x)
    arguments.flag("is_causal", is_causal)
    arguments.flag("enable_gqa", enable_gqa)
    if scale is not None:
        arguments.number("scale", scale)
    if softcap is not None:
        arguments.number("softcap", softcap, positive=True)
    arguments.same_device(q=q, mask=mask, bias=bias, sinks=sinks)


def sizes(**given):
    """The last two axes of queries, keys and values: one D >= 1 for the first two, one S for the last two (B1)."""
    (q_name, q), (k_name, k), (v_name, v) = given.items()
    for name, x in given.items():
        arguments.axes(name, x, 2)
    features(q_name, q, k_name, k)
    if k.shape[-2] != v.shape[-2]:
        raise ValueError(
            f"{k_name} and {v_name} must have the same number of keys S (axis -2), got {k.shape[-2]} and {v.shape[-2]}"
        )


def features(one_name, one, other_name, other):
    """The last axis: one number of features D >= 1 for both (B1)."""
    if one.shape[-1] != other.shape[-1] or one.shape[-1] == 0:
        raise ValueError(
            f"{one_name} and {other_name} must have the same number of features D >= 1 (axis -1), got {one.shape[-1]} "
            f"and {other.shape[-1]}"
        )


def groups(q, k, v):
    """Axis -3 is the head axis: H a multiple of Hk, and k and v with the same Hk (B5)."""
    for name, x in (("q", q), ("k", k), ("v", v)):
        if x.ndim < 3:
            raise ValueError(f"enable_gqa needs a head axis -3 in {name}, got shape {tuple(x.shape)}")
    H, Hk, Hv = q.shape[-3], k.shape[-3], v.shape[-3]
    if Hk != Hv:
        raise ValueError(f"k and v must have the same number of heads (axis -3) with enable_gqa, got {Hk} and {Hv}")
    if H != 0 and (Hk == 0 or H % Hk):
        raise ValueError(f"with enable_gqa the {H} heads of q must be a multiple of the {Hk} heads of k and v")


def leading(heads=None, **given):
    """The leading axes of some arrays, broadcast as in NumPy; with `heads`, axis -3 has that size instead (B1)."""
    end = -2 if heads is None else -3
    try:
        lead = tuple(torch.broadcast_shapes(*(x.shape[:end] for x in given.values())))
    except RuntimeError:
        found = ", ".join(f"{name} {tuple(x.shape)}" for name, x in given.items())
        hint = "If axis -3 counts heads, and q has a multiple of those of k and v, pass enable_gqa=True"
        advice = f". {hint}" if "q" in given else ""
        raise ValueError(f"the leading axes of {', '.join(given)} do not broadcast: {found}{advice}") from None
    return lead if heads is None else (*lead, heads)


def one_sink_a_head(sinks, shape):
    """sinks is () or (H,), with H the head axis -3 of the scores (C7)."""
    legal = [(), shape[-3:-2]] if len(shape) > 2 else [()]
    if tuple(sinks.shape) not in legal:
        raise ValueError(f"sinks must have the shape {' or '.join(map(str, legal))}, got {tuple(sinks.shape)}")


# --- masks -----------------------------------------------------------------------------------------------


def mask_type(name, mask):
    """Refuse what is neither None, a rule, nor an array of booleans, integers or real numbers (D1, D3)."""
    if mask is None or isinstance(mask, rules.Mask):
        return
    if not arrays.is_array(mask):
        raise TypeError(
            f"{name} must be a mask rule of {__package__} such as causal(), or a {arrays.KIND} of 0 and 1, "
            f"got {type(mask).__name__}; convert it with {arrays.CONVERT}"
        )
    if not (arrays.is_boolean(mask) or arrays.is_integer(mask) or arrays.is_floating(mask)):
        raise TypeError(f"{name} has dtype {arrays.dtype_name(mask)}; legal are booleans, integers and real numbers")
    if arrays.is_floating(mask) and arrays.is_traced(mask):
        raise TypeError(
            f"{name} has dtype {arrays.dtype_name(mask)}, and under tracing its values cannot be seen; legal are "
            f"booleans and integers: pass {name} != 0 for a mask of 0 and 1, or bias= for numbers added to the scores"
        )


def visible_pairs(name, mask, shape):
    """Refuse a mask that does not fit the scores, or an array with other values than 0 and 1 (D1, D2)."""
    if mask is None:
        return
    if not arrays.is_array(mask):
        rule(mask, *shape[-2:], lead=shape[:-2])
        return
    fits(name, mask, shape)
    if arrays.is_boolean(mask) or arrays.is_traced(mask):
        return
    parts = [mask[..., i : i + 256, :] for i in range(0, mask.shape[-2], 256)] if mask.ndim > 1 else [mask]
    if not all(bool(((x == 0) | (x == 1)).all()) for x in parts):
        raise ValueError(
            f"{name} holds other values than 0 and 1 (its dtype is {arrays.dtype_name(mask)}). A mask says True or 1 "
            "for may attend; numbers that are added to the scores go into bias="
        )


def rule(mask, T, S, lead=None):
    """Refuse a rule whose arrays do not fit T queries, S keys and the leading axes of q (D6)."""
    for leaf in mask.leaves():
        for name, size in (("q_ids", T), ("k_ids", S)):
            ids = getattr(leaf, name, None)
            if ids is not None and ids.shape[-1] != size:
                axis = "T" if name == "q_ids" else "S"
                raise ValueError(f"{name} of segments has {ids.shape[-1]} ids (axis -1), but {axis} is {size}")
        if lead is not None and not broadcasts(leaf.lead(), lead):
            raise ValueError(
                f"{leaf} has the leading axes {leaf.lead()}, which do not broadcast to those of q, {lead}; "
                "use (B,) for q (B, T, D) and (B, 1) for q (B, H, T, D)"
            )


def fits(name, x, shape):
    """Refuse an array that does not broadcast to the scores, with both readings of a doubtful shape (B6, D2)."""
    if broadcasts(tuple(x.shape), shape):
        return
    message = f"{name} has shape {tuple(x.shape)}, which does not broadcast to the scores (*B, [H,] T, S) = {shape}"
    raise ValueError(f"{message}. {other_reading(name, x, shape)}")


def other_reading(name, x, shape):
    """What the caller may have meant by a shape that does not fit."""
    T, S = shape[-2:]
    if x.ndim == 2 and len(shape) > 2:
        index = ", ".join([":"] + ["None"] * (len(shape) - 2) + [":"])
        return (
            f"Two axes are read as (T, S) = ({T}, {S}). If they are (B, S), one row of keys for each sequence: "
            f"add axes, {name}[{index}], or use padding(lengths)"
        )
    if x.ndim == 3 and len(shape) > 3:
        return (
            f"Three axes are read as (H, T, S) = {shape[-3:]}. If they are (B, T, S), one picture for each sequence: "
            f"add an axis, {name}[:, None, :, :]"
        )
    return (
        f"Each axis, counted from the right, must be 1 or that of the scores; {name} is never cut, padded or transposed"
    )


def broadcasts(shape, target):
    """Whether an array of one shape broadcasts to the other, without adding to it."""
    if len(shape) > len(target):
        return False
    return all(a in (1, b) for a, b in zip(reversed(shape), reversed(target), strict=False))


# --- the other functions ---------------------------------------------------------------------------------


def output_gradient(d_out, v, shape):
    """d_out has the dtype and the shape of the output, (*B, [H,] T, Dv)."""
    arguments.same_dtype(v=v, d_out=d_out)
    legal = (*shape[:-1], v.shape[-1])
    if tuple(d_out.shape) != legal:
        raise ValueError(f"d_out must have the shape of the output, {legal}, got {tuple(d_out.shape)}")


def merge(parts):
    """A sequence of one or more pairs (out, lse) of one dtype and one shape."""
    if not isinstance(parts, (list, tuple)):
        raise TypeError(f"parts must be a list or tuple of pairs (out, lse), got {type(parts).__name__}")
    if not parts:
        raise ValueError("parts is empty; merge needs one or more pairs (out, lse)")
    for i, part in enumerate(parts):
        if not isinstance(part, (list, tuple)) or len(part) != 2:
            raise TypeError(f"parts[{i}] must be a pair (out, lse), got {type(part).__name__}")
        one_part(i, *part, parts[0][0])


def one_part(i, out, lse, first_out):
    """One pair (out, lse) beside the first one."""
    arguments.same_dtype(**{"parts[0] out": first_out, f"parts[{i}] out": out})
    arguments.floating(f"parts[{i}] lse", lse)
    arguments.same_device(**{f"parts[{i}] out": out, f"parts[{i}] lse": lse})
    arguments.axes(f"parts[{i}] out", out, 1)
    wide = arrays.compute_dtype(out)
    if lse.dtype != wide:
        raise TypeError(
            f"parts[{i}] lse must have dtype {wide} beside out of {arrays.dtype_name(out)}, got {lse.dtype}"
        )
    if out.shape != first_out.shape:
        raise ValueError(
            f"parts[{i}] out has shape {tuple(out.shape)}, parts[0] out {tuple(first_out.shape)}; they must agree"
        )
    if lse.shape != out.shape[:-1]:
        raise ValueError(
            f"parts[{i}] lse must have the shape {tuple(out.shape[:-1])} of the rows of out, got {tuple(lse.shape)}"
        )


def retrieve(query, keys, values, mask, scale, top_k):
    """Check the arguments of retrieve; returns the shape (*B, T, S) of its scores (G1)."""
    given = {"query": query, "keys": keys, "values": values}
    arguments.same_dtype(**given)
    mask_type("mask", mask)
    arguments.same_device(query=query, mask=mask)
    if scale is not None:
        arguments.number("scale", scale)
    sizes(**given)
    shape = (*leading(**given), query.shape[-2], keys.shape[-2])
    visible_pairs("mask", mask, shape)
    if top_k is not None:
        best("top_k", top_k, shape[-1])
    return shape


def search(query, keys, k, mask, metric):
    """Check the arguments of search; returns the shape (*B, T, S) of its scores (G2)."""
    given = {"query": query, "keys": keys}
    arguments.same_dtype(**given)
    mask_type("mask", mask)
    arguments.same_device(query=query, mask=mask)
    for name, x in given.items():
        arguments.axes(name, x, 2)
    features("query", query, "keys", keys)
    arguments.choice("metric", metric, ("dot", "cosine", "euclidean"))
    shape = (*leading(**given), query.shape[-2], keys.shape[-2])
    best("k", k, shape[-1])
    visible_pairs("mask", mask, shape)
    return shape


def best(name, k, S):
    """How many keys are asked for: a whole number from 1 to S."""
    if arguments.integer(name, k) < 1 or k > S:
        raise ValueError(f"{name} must be from 1 to the number of keys S = {S}, got {k}")


def recall(state, patterns, beta, steps):
    """States (*B, D) and patterns (N, D) of one dtype, beta > 0 and steps >= 0 (G3)."""
    arguments.same_dtype(state=state, patterns=patterns)
    arguments.number("beta", beta, positive=True)
    arguments.integer("steps", steps, least=0)
    arguments.axes("state", state, 1)
    if patterns.ndim != 2:
        raise ValueError(f"patterns must have the shape (N, D), got {tuple(patterns.shape)}")
    features("state", state, "patterns", patterns)


def split_heads(x, heads):
    """x (*B, T, E) with E a multiple of heads >= 1."""
    arguments.array("x", x)
    arguments.integer("heads", heads, least=1)
    arguments.axes("x", x, 2)
    if x.shape[-1] % heads:
        raise ValueError(f"the {x.shape[-1]} features of x (axis -1) cannot be split into {heads} heads")


def merge_heads(x):
    """x (*B, H, T, D)."""
    arguments.array("x", x)
    arguments.axes("x", x, 3)


def repeat_kv(x, groups):
    """x (*B, Hk, S, D) and groups >= 1."""
    arguments.array("x", x)
    arguments.integer("groups", groups, least=1)
    arguments.axes("x", x, 3)
