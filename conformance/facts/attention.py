"""The definition on plain inputs: every dtype, every number of leading axes, broadcasting, and axes of size 0."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from conformance.facts import FLOATS, Fact, array, batched, identity, plain, qkv, square, state, zeros

_ORDER = "softmax-over-queries keys-and-values-swapped scale-missing scale-twice"


def facts() -> Iterator[Fact]:
    """Yield the facts."""
    yield from _on_paper()
    yield from _dtypes()
    yield from _squares()
    yield from _sizes()
    yield from _leading_axes()
    yield from _broadcasting()
    yield from _empty_axes()


def _on_paper() -> Iterator[Fact]:
    yield state(
        "zero-queries-give-the-mean-of-the-values",
        "Zero queries score every key 0, so each output row is the mean of the values and lse is ln 3.",
        "C1 C5 C8",
        "lse-base-2 softmax-over-queries",
        {"q": zeros((2, 2)), "k": array([[1, 2], [3, 4], [5, 6]]), "v": array([[3], [6], [0]])},
        paper={"out": [[3], [3]], "weights": np.full((2, 3), 1 / 3), "lse": [np.log(3)] * 2},
    )
    e = np.exp(1 / np.sqrt(2))
    yield state(
        "two-keys-share-by-the-logistic-function",
        "With scores 1/sqrt(2) and 0 the first key gets e^(1/sqrt(2)) / (e^(1/sqrt(2)) + 1), which is 0.6698.",
        "B4 C1 C5",
        "scale-missing scale-twice",
        {"q": array([[1, 0]]), "k": identity(2), "v": identity(2)},
        paper={"out": [[e / (e + 1), 1 / (e + 1)]], "lse": [np.log(e + 1)]},
    )
    yield state(
        "one-key-takes-all-the-weight",
        "A single key has weight 1, so every output row is its value and lse is the score.",
        "A2 C5 C8",
        "lse-without-maximum output-shares-memory",
        {"q": array([[2], [-3]]), "k": array([[5]]), "v": array([[7, 8, 9]])},
        paper={"out": [[7, 8, 9]] * 2, "weights": [[1], [1]], "lse": [10, -15]},
    )
    yield state(
        "one-query-and-one-key-give-a-copy-of-the-value",
        "With one query and one key out is a copy of the value, which keeps memory of its own.",
        "A2 C5 C8",
        "lse-without-maximum output-shares-memory",
        {"q": array([[2]]), "k": array([[5]]), "v": array([[7, 8, 9]])},
        paper={"out": [[7, 8, 9]], "weights": [[1]], "lse": [10]},
    )


def _dtypes() -> Iterator[Fact]:
    for dtype in FLOATS:
        is_half = dtype in ("float16", "bfloat16")
        lse = "lse-base-2 lse-in-input-dtype" if is_half else "lse-base-2"
        # The rounding to a half type hides what the order of a sum has changed.
        bits = "" if is_half else "run-dependent-bits batch-dependent-bits "
        yield state(
            f"plain-{dtype}",
            f"The plain definition holds in {dtype}, and the outputs have the inputs' dtype.",
            "A1 A2 B2 C1 C5 C8 F2",
            f"{_ORDER} scale-by-value-size dtype-changed {lse} lse-without-scale input-modified layout-misread "
            "output-overwritten",
            plain(dtype),
            laws=("repeat", "layout", "kept"),
        )
        yield state(
            f"batch-and-heads-{dtype}",
            f"Batch and head axes are independent in {dtype}: each element alone gives the same bits.",
            "A1 A2 B2 C5 F2 F3",
            f"{bits}softmax-over-heads scale-by-embedding-size last-tile-lost",
            batched(dtype),
            laws=("repeat", "alone"),
        )
    yield state(
        "float64-keeps-float64-accuracy",
        "Float64 inputs with scores near 30 are computed in float64 throughout.",
        "B2 F2",
        "float64-in-float32 epsilon-in-denominator",
        {name: 4 * value for name, value in plain("float64").items()},
    )


def _squares() -> Iterator[Fact]:
    yield state(
        "equal-sizes-do-not-hide-a-swap",
        "With T=S, D=Dv and four heads the plain definition holds.",
        "A1 C1 C5 F3",
        f"{_ORDER} queries-and-keys-swapped layout-swapped softmax-over-heads scale-after-softmax "
        "scale-by-embedding-size",
        square(),
        laws=("alone",),
    )
    yield state(
        "equal-sizes-do-not-hide-a-swap-under-causal",
        "With T=S and D=Dv the causal definition holds.",
        "A1 C4 D4",
        "layout-swapped queries-and-keys-swapped causal-transposed causal-off-by-one causal-ignored layout-misread",
        square(),
        laws=("layout",),
        is_causal=True,
    )


def _sizes() -> Iterator[Fact]:
    sizes = {
        "one-query": ("A single query", (1, 5), (7, 5), (7, 6)),
        "one-key": ("A single key", (4, 5), (1, 5), (1, 6)),
        "more-queries-than-keys": ("T > S", (7, 5), (4, 5), (4, 6)),
        "values-narrower-than-keys": ("D = 8 with Dv = 3", (4, 8), (7, 8), (7, 3)),
        "values-wider-than-keys": ("D = 3 with Dv = 8", (4, 3), (7, 3), (7, 8)),
    }
    for name, (what, q, k, v) in sizes.items():
        yield state(
            name,
            f"{what} changes nothing in the definition, and the scale comes from D alone.",
            "A1 B4 C1 C5",
            "scale-by-value-size",
            qkv(q, k, v, seed=3),
        )


def _leading_axes() -> Iterator[Fact]:
    for lead in ((3,), (2, 1, 1, 3)):
        yield state(
            f"{len(lead)}-leading-axes",
            f"Leading axes of sizes {lead} are independent.",
            "A1 B1 F3",
            "batch-dependent-bits softmax-over-heads",
            qkv((*lead, 4, 5), (*lead, 7, 5), (*lead, 7, 6), seed=4),
            laws=("alone",),
        )


def _broadcasting() -> Iterator[Fact]:
    q, k, v = (2, 3, 4, 5), (2, 3, 7, 5), (2, 3, 7, 6)
    shapes = {
        "keys-and-values-without-leading-axes": (q, k[2:], v[2:]),
        "one-shared-key-value-head": (q, (2, 1, 7, 5), (2, 1, 7, 6)),
        "queries-without-leading-axes": (q[2:], k, v),
        "queries-and-keys-broadcast-each-other": ((2, 1, 4, 5), (1, 3, 7, 5), (1, 3, 7, 6)),
        "only-values-lack-the-batch": (q, k, v[1:]),
    }
    for name, (q_shape, k_shape, v_shape) in shapes.items():
        yield state(
            name,
            f"The leading axes of q {q_shape}, k {k_shape} and v {v_shape} broadcast as in NumPy.",
            "B1 C5",
            "leading-axes-not-broadcast",
            qkv(q_shape, k_shape, v_shape, seed=5),
        )
    for name, (k_lead, v_lead) in {
        "two-axes-of-values": ((), (2, 3)),
        "an-axis-of-one-of-values": ((), (1,)),
        "an-axis-of-one-of-keys-and-values": ((1,), (1,)),
    }.items():
        yield state(
            f"{name}-in-every-output",
            f"Leading axes {k_lead} of k and {v_lead} of v that q does not have are axes of out, weights and lse.",
            "B1 C5 C8",
            "leading-axis-lost",
            qkv((4, 5), (*k_lead, 7, 5), (*v_lead, 7, 6), seed=5),
        )
    for name, k_lead in (("no", ()), ("one", (1,))):
        yield state(
            f"single-queries-that-share-keys-with-{name}-batch-axis",
            f"A batch of single queries over keys with leading axes {k_lead}: each alone has the bits of all together.",
            "B1 F3",
            "batch-dependent-bits",
            qkv((2, 1, 5), (*k_lead, 7, 5), (*k_lead, 7, 6), seed=5),
            laws=("alone",),
        )


def _empty_axes() -> Iterator[Fact]:
    shapes = {
        "no-queries": ("T = 0", (2, 3, 0, 5), (2, 3, 7, 5), (2, 3, 7, 6)),
        "no-batch": ("A batch axis of 0", (0, 3, 4, 5), (0, 3, 7, 5), (0, 3, 7, 6)),
        "no-heads": ("A head axis of 0", (2, 0, 4, 5), (2, 0, 7, 5), (2, 0, 7, 6)),
        "no-value-features": ("Dv = 0", (2, 3, 4, 5), (2, 3, 7, 5), (2, 3, 7, 0)),
    }
    for name, (what, *sizes) in shapes.items():
        yield state(
            name,
            f"{what} is legal and gives outputs of the shapes that the contract states.",
            "B3",
            "empty-axis-rejected",
            qkv(*sizes, seed=6),
        )
    yield state(
        "no-keys",
        "With S = 0 every row is empty: out is 0 and lse is -inf.",
        "B3 E1",
        "empty-axis-rejected lse-finite-in-empty-row",
        qkv((2, 3, 4, 5), (2, 3, 0, 5), (2, 3, 0, 6), seed=6),
        paper={"out": np.zeros((2, 3, 4, 6)), "lse": np.full((2, 3, 4), -np.inf)},
    )
    for name, what, dtype, T, S in (("queries", "T", "bfloat16", 0, 7), ("keys", "S", "float16", 4, 0)):
        yield state(
            f"no-{name}-beside-a-leading-axis-of-keys",
            f"With {what} = 0 an axis that only k and v have is an axis of every output, which is {dtype} as they are.",
            "A2 B1 B3" + (" E1" if S == 0 else ""),
            "dtype-changed leading-axis-lost",
            qkv((T, 5), (2, S, 5), (2, S, 6), dtype, seed=6),
        )
    no_keys = qkv((4, 5), (0, 5), (0, 6), seed=6)
    yield state(
        "no-keys-under-causal",
        "With S = 0 causal has nothing to hide: out is 0 and lse is -inf.",
        "B3 D4 E1",
        "empty-axis-rejected lse-finite-in-empty-row",
        no_keys,
        is_causal=True,
        paper={"out": np.zeros((4, 6)), "lse": [-np.inf] * 4},
    )
    yield state(
        "no-keys-under-a-mask-of-no-columns",
        "With S = 0 a mask of shape (T, 0) is legal and every row is empty.",
        "B3 D2 E1",
        "empty-axis-rejected lse-finite-in-empty-row",
        no_keys | {"mask": zeros((4, 0), "bool")},
        paper={"out": np.zeros((4, 6)), "lse": [-np.inf] * 4},
    )
