"""Recall from a modern Hopfield memory: softmax(beta state patterns^T) patterns, and the energy that it lowers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from conformance.facts import FLOATS, Fact, array, identity, normal, state, zeros

recall = partial(state, op="recall")


def facts() -> Iterator[Fact]:
    """Yield the facts."""
    yield from _on_paper()
    yield from _dtypes()
    yield from _steps_and_beta()
    yield from _memory()
    yield from _shapes()
    yield from _magnitudes()
    yield from _not_finite()


def drawn_memory(dtype: str = "float32") -> dict[str, np.ndarray]:
    """B = 3 states and N = 6 patterns of D = 5 features."""
    return {"state": normal((3, 5), dtype, seed=90), "patterns": normal((6, 5), dtype, seed=91)}


def _on_paper() -> Iterator[Fact]:
    yield recall(
        "recall-of-the-only-pattern-takes-one-step",
        "With one pattern p the state becomes p, and the energy goes from |s|^2/2 - s.p to -|p|^2/2.",
        "G3",
        "recall-steps-off-by-one energy-without-square",
        {"state": array([[1, 2]]), "patterns": array([[3, -1]])},
        paper={"state": [[3, -1]], "energy": [[1.5], [-5]]},
    )
    yield recall(
        "recall-of-a-zero-state-is-the-mean",
        "A zero state is equally near to all patterns: it moves to their mean, from the energy -ln(2) / beta.",
        "G3",
        "beta-ignored energy-without-beta",
        {"state": zeros((1, 2)), "patterns": array([[4, 0], [0, 2]])},
        beta=0.5,
        steps=1,
        paper={"state": [[2, 1]]},
    )
    yield recall(
        "recall-halfway-between-two-patterns-stays",
        "The mean of two patterns of equal length is a fixed point, and its energy does not change.",
        "G3",
        "recall-steps-off-by-one energy-without-square",
        {"state": array([[1, 1]]), "patterns": array([[2, 0], [0, 2]])},
        beta=1.0,
        steps=2,
        paper={"state": [[1, 1]], "energy": [[-1 - np.log(2)]] * 3},
    )
    yield recall(
        "recall-in-no-steps-gives-the-state-and-one-energy",
        "steps=0 returns the state as it is, and its energy.",
        "G3",
        "recall-steps-off-by-one",
        drawn_memory(),
        steps=0,
        paper={"state": drawn_memory()["state"]},
    )


def _dtypes() -> Iterator[Fact]:
    for dtype in FLOATS:
        yield recall(
            f"recall-{dtype}",
            f"In {dtype} state and energy keep the dtype.",
            "A2 B2 G3",
            "dtype-changed",
            drawn_memory(dtype),
            steps=3,
            laws=("repeat",),
        )
    for dtype in ("float16", "bfloat16"):
        yield recall(
            f"recall-between-patterns-{dtype}",
            f"Between patterns small differences grow from step to step: a {dtype} state is rounded once, at the end.",
            "B2 G3",
            "recall-rounds-each-step",
            {"state": normal((3, 5), dtype, seed=103), "patterns": normal((6, 5), dtype, seed=104, spread=2)},
            beta=2.0,
            steps=2,
        )


def _steps_and_beta() -> Iterator[Fact]:
    for steps in (1, 2, 5):
        yield recall(
            f"recall-in-{steps}-steps",
            f"{steps} steps give {steps + 1} energies, none above the one before.",
            "G3",
            "recall-steps-off-by-one energy-without-square",
            drawn_memory(),
            steps=steps,
        )
    for name, beta in (("small", 0.1), ("large", 8.0), ("integer", 3)):
        yield recall(
            f"recall-with-a-{name}-beta",
            f"beta={beta} weighs the scores in the update and in the energy.",
            "G3",
            "beta-ignored energy-without-beta",
            drawn_memory(),
            beta=beta,
            steps=2,
        )
    yield recall(
        "recall-with-beta-as-an-array",
        "beta may be an array without axes.",
        "B4 G3",
        "beta-ignored",
        drawn_memory() | {"beta": array(0.5)},
        steps=2,
    )
    yield recall(
        "recall-takes-one-step-with-beta-one-unless-told",
        "Without options one step is taken with beta = 1.",
        "A1 G3",
        "recall-steps-off-by-one",
        drawn_memory(),
    )


def _memory() -> Iterator[Fact]:
    patterns = array([[1, 1, 1, 1, -1, -1, -1, -1], [1, -1, 1, -1, 1, -1, 1, -1], [1, 1, -1, -1, 1, 1, -1, -1]])
    damaged = patterns.copy()
    damaged[0, 4] = 1
    damaged[1, 0] = -1
    damaged[2, :3] = 0
    yield recall(
        "recall-repairs-damaged-patterns",
        "From states with flipped or missing signs one sharp step brings the stored patterns back.",
        "G3",
        "beta-ignored recall-steps-off-by-one",
        {"state": damaged, "patterns": patterns},
        beta=16.0,
        paper={"state": patterns},
    )
    yield recall(
        "recall-with-a-small-beta-blurs-orthogonal-patterns",
        "A small beta leaves the state between the patterns.",
        "G3",
        "beta-ignored",
        {"state": 4 * identity(3), "patterns": 2 * identity(3)},
        beta=0.01,
        steps=3,
    )
    yield recall(
        "recall-counts-equal-patterns-twice",
        "A pattern that is stored twice pulls twice.",
        "G3",
        "recall-steps-off-by-one",
        {"state": array([[0, 0]]), "patterns": array([[3, 0], [3, 0], [0, 3]])},
        paper={"state": [[2, 1]]},
    )


def _shapes() -> Iterator[Fact]:
    for name, told, shape, flags in (
        ("one-state", "a state without leading axes", (5,), "recall-steps-off-by-one"),
        ("two-leading-axes", "two leading axes", (2, 3, 5), "energy-axis-last"),
        ("no-states", "no states", (0, 5), "energy-axis-last empty-axis-rejected"),
    ):
        yield recall(
            f"recall-with-{name}",
            f"The energy has steps + 1 before the leading axes of the states, here {told}.",
            "B1 B3 G3",
            flags,
            {"state": normal(shape, seed=92), "patterns": normal((6, 5), seed=91)},
            steps=2,
        )


def _magnitudes() -> Iterator[Fact]:
    far = {"state": array([[100, 0], [-100, 0]]), "patterns": array([[100, 0], [99, 0], [-100, 0]])}
    for dtype in ("float16", "float32"):
        yield recall(
            f"recall-of-scores-of-1e4-{dtype}",
            f"Scores of +-10000 find their pattern in {dtype} without overflow.",
            "F1 G3",
            "no-maximum-subtracted",
            {name: array(value, dtype) for name, value in far.items()},
            steps=1,
            paper={"state": [[100, 0], [-100, 0]], "energy": [[-5000, -5000]] * 2},
        )


def _not_finite() -> Iterator[Fact]:
    memory = drawn_memory()
    memory["state"][1, 2] = np.nan
    yield recall(
        "recall-of-a-nan-state-stays-in-its-row",
        "A NaN in one state makes that state and its energies not finite, and no other.",
        "E3 G3",
        "visible-nan-spread",
        memory,
        steps=2,
    )
