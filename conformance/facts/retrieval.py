"""Retrieval: attention as a soft dictionary, and the index of the key with the largest weight."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from conformance.facts import FLOATS, Fact, array, drawn, identity, normal, plain, qkv, state, zeros

retrieve = partial(state, op="retrieve")
HOLES = drawn("##.#.##", ".......", "#..####", "##.##..")


def facts() -> Iterator[Fact]:
    """Yield the facts."""
    yield from _lesson()
    yield from _plain()
    yield from _index()
    yield from _masks()
    yield from _shapes()
    yield from _hidden()
    yield from _not_finite()


def dictionary(dtype: str = "float32", values: bool = True) -> dict[str, np.ndarray]:
    """T = 4 queries, S = 7 keys of D = 5 features, values of 6."""
    arrays = dict(zip(("query", "keys", "values"), plain(dtype).values(), strict=True))
    return arrays if values else {name: arrays[name] for name in ("query", "keys")}


def _lesson() -> Iterator[Fact]:
    tokens = 5 * identity(6)
    score = 25 / np.sqrt(6)
    match, rest = 1 / (1 + 4 * np.exp(-score)), 1 / (4 + np.exp(score))
    half, little = 1 / (2 + 3 * np.exp(-score)), 1 / (3 + 2 * np.exp(score))
    blended = [little, little, half, little, half]
    scale = "scale-missing scale-twice"
    for name, told, flags, query, weights, index in (
        ("a-token", "The query that is token 2 puts 0.99985 of its weight on position 2",
         scale, tokens[2], [rest, rest, match, rest, rest], 2),
        ("two-tokens", "The sum of tokens 2 and 4 splits its weight evenly, 0.4999723 each",
         f"{scale} ties-last", tokens[2] + tokens[4], blended, 2),
        ("an-absent-token", "A token that is not in memory is spread evenly: look-up always answers",
         "ties-last", tokens[5], [0.2] * 5, 0),
    ):  # fmt: skip
        output = [5 * weight for weight in weights] + [0]
        yield retrieve(
            f"retrieve-of-{name}",
            f"{told}.",
            "C1 C5 G1",
            flags,
            {"query": query[None], "keys": tokens[:5]},
            paper={"output": [output], "weights": [weights], "index": [index]},
        )


def _plain() -> Iterator[Fact]:
    for dtype in FLOATS:
        yield retrieve(
            f"retrieve-{dtype}",
            f"In {dtype} retrieve is attention, with the index of the largest weight beside it.",
            "A2 B2 G1",
            "dtype-changed keys-and-values-swapped",
            dictionary(dtype),
            laws=("repeat",),
        )
    yield retrieve(
        "retrieve-without-values-blends-the-keys",
        "Without values the output is made of the keys.",
        "G1",
        "scale-missing scale-twice",
        dictionary(values=False),
    )
    yield retrieve(
        "retrieve-of-scores-of-1e4",
        "Scores of +-10000 pick their key without overflow.",
        "F1 G1",
        "no-maximum-subtracted",
        {"query": array([[100, 0], [-100, 0]]), "keys": array([[100, 0], [99, 0], [-100, 0]])},
        scale=1.0,
        paper={"output": [[100, 0], [-100, 0]], "weights": [[1, 0, 0], [0, 0, 1]], "index": [0, 2]},
    )


def _index() -> Iterator[Fact]:
    memory = {"query": array([[1, 0], [0, 1], [-1, 0]]), "keys": array([[0, 2], [3, 0], [0, 2], [3, 0], [-3, 1]])}
    for name, told, options, index in (
        ("is-the-lowest-of-equal-keys", "Of equal keys the first is named", {"scale": 1.0}, [1, 0, 4]),
        ("follows-a-negative-scale", "Under a negative scale the least similar key has the largest weight",
         {"scale": -1.0}, [4, 1, 1]),
        ("is-the-first-key-when-scale-is-zero", "A scale of 0 makes all keys equal, and the first is named",
         {"scale": 0.0}, [0, 0, 0]),
    ):  # fmt: skip
        yield retrieve(
            f"retrieve-index-{name}",
            f"{told}.",
            "G1",
            "ties-last" + (" index-of-raw-score" if options["scale"] <= 0 else ""),
            memory,
            paper={"index": index},
            **options,
        )
    yield retrieve(
        "retrieve-index-skips-a-hidden-twin",
        "Of equal keys the first visible one is named.",
        "D1 G1",
        "ties-last index-of-hidden-key",
        memory | {"mask": drawn("#.###", ".####", "####.")},
        scale=1.0,
        paper={"index": [3, 2, 0]},
    )
    yield retrieve(
        "retrieve-index-of-equal-scores-is-zero",
        "When all keys are alike the index is 0.",
        "G1",
        "ties-last",
        {"query": zeros((4, 5)), "keys": normal((7, 5), seed=7)},
        paper={"index": [0] * 4},
    )


def _masks() -> Iterator[Fact]:
    yield retrieve(
        "retrieve-of-nothing-visible",
        "An empty row has output 0, weights 0 and index -1, and leaves the other rows alone.",
        "D1 E1 G1",
        "index-in-empty-row empty-row-nan empty-row-mean",
        dictionary() | {"mask": HOLES},
    )
    for name, told, change, rule in (
        ("a-mask-of-zeros-and-ones", "a float mask of 0 and 1", {"mask": array(HOLES)}, None),
        ("causal", "a causal rule", {}, {"rule": "causal", "offset": 0}),
        ("a-negated-window", "a composed rule", {},
         {"rule": "not", "of": [{"rule": "window", "left": 1, "right": 1, "offset": 0}]}),
        ("a-prefix-of-nothing", "a rule that hides every key", {}, {"rule": "prefix", "length": 0}),
    ):  # fmt: skip
        yield retrieve(
            f"retrieve-under-{name}",
            f"retrieve respects {told}.",
            "D1 D3 G1",
            "index-of-hidden-key mask-inverted",
            dictionary() | change,
            **({"mask": rule} if rule else {}),
        )
    yield retrieve(
        "retrieve-under-padding",
        "Each sequence looks among its own keys; a length of 0 leaves index -1.",
        "D6 G1",
        "index-in-empty-row index-of-hidden-key",
        batched_dictionary() | {"lengths": array([3, 0], "int64")},
        mask={"rule": "padding", "lengths": "lengths"},
    )


def batched_dictionary() -> dict[str, np.ndarray]:
    """The same with a batch of two."""
    arrays = qkv((2, 4, 5), (2, 7, 5), (2, 7, 6), seed=3)
    return dict(zip(("query", "keys", "values"), arrays.values(), strict=True))


def _shapes() -> Iterator[Fact]:
    shared, empty = "leading-axes-not-broadcast", "empty-axis-rejected"
    for name, told, flag, q, k, v in (
        ("one-memory-for-all", "a memory without leading axes serves every batch", shared,
         (2, 3, 4, 5), (7, 5), (7, 6)),
        ("many-memories", "queries without leading axes look into each memory", shared,
         (4, 5), (2, 3, 7, 5), (2, 3, 7, 6)),
        ("no-queries", "no queries find nothing", empty, (0, 5), (7, 5), (7, 6)),
        ("no-keys", "a memory of no keys answers 0 and -1", empty, (4, 5), (0, 5), (0, 6)),
        ("one-key", "the only key is the answer", "softmax-over-queries", (4, 5), (1, 5), (1, 6)),
    ):  # fmt: skip
        arrays = dict(zip(("query", "keys", "values"), qkv(q, k, v).values(), strict=True))
        yield retrieve(f"retrieve-with-{name}", f"Retrieval: {told}.", "B1 B3 G1", flag, arrays)


def _hidden() -> Iterator[Fact]:
    # Key 2 is seen by nobody.
    arrays = dictionary() | {"mask": HOLES}
    bad = arrays["keys"].copy(), arrays["values"].copy()
    bad[0][2], bad[1][2] = np.nan, np.inf
    for name, told, options in (("", "", {}), ("top-5-", "with top_k too ", {"top_k": 5})):
        yield retrieve(
            f"retrieve-{name}unmoved-by-a-hidden-key",
            f"NaN and infinity at a key that no query sees change nothing {told}bit for bit.",
            "E2 G1",
            "hidden-nan-in-keys hidden-nan-in-values" + (" top-k-takes-hidden-keys" if options else ""),
            arrays,
            laws=("unmoved",),
            instead={"keys": bad[0], "values": bad[1]},
            **options,
        )


def _not_finite() -> Iterator[Fact]:
    memory = {"query": array([[1, 0], [0, 1]]), "keys": array([[2, 0], [np.nan, 1], [3, 1], [1, 2]])}
    memory["values"] = identity(4)
    yield retrieve(
        "retrieve-top-3-ranks-nan-after-numbers",
        "A visible key of NaN ranks after every number, so three good keys leave it out.",
        "E3 G1",
        "nan-ranks-first",
        memory,
        scale=1.0,
        top_k=3,
        paper={"index": [[2, 0, 3], [3, 2, 0]]},
    )
    yield retrieve(
        "retrieve-of-a-visible-nan",
        "A visible key of NaN spoils the output, and the index still names the best number.",
        "E3 G1",
        "nan-ranks-first",
        memory,
        scale=1.0,
        paper={"index": [2, 3]},
    )
