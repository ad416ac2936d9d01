"""Mask rules drawn by hand: the boolean array, the picture, and what the picture makes of equal scores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from conformance import contract
from conformance.facts import Fact, drawn, pattern, shares, state


@dataclass(frozen=True)
class Drawing:
    """A rule, its clause, the bugs that change it, and its picture: rows of # and . for queries over keys."""

    name: str
    clause: str
    flags: str
    rule: dict[str, Any]
    rows: str


def causal(offset: int = 0) -> dict[str, Any]:
    """The rule causal(offset) as the cases spell it."""
    return {"rule": "causal", "offset": offset}


def window(left: int | None, right: int | None, offset: int = 0) -> dict[str, Any]:
    """The rule window(left, right, offset=offset) as the cases spell it."""
    return {"rule": "window", "left": left, "right": right, "offset": offset}


def joined(word: str, *rules: dict[str, Any]) -> dict[str, Any]:
    """Rules joined by "and", "or" or "not"."""
    return {"rule": word, "of": list(rules)}


_LOCAL = {"rule": "local", "width": 3}
_PREFIX = {"rule": "prefix", "length": 2}
_ALIGN = "causal-alignment causal-off-by-one causal-transposed"
_LEFT, _RIGHT = "window-off-by-one-left", "window-off-by-one-right"

DRAWINGS = (
    Drawing("causal", "D4", _ALIGN, causal(), "#...... ##..... ###.... ####..."),
    Drawing("causal-on-a-square", "D4", "causal-off-by-one causal-transposed", causal(), "#.. ##. ###"),
    Drawing("causal-of-more-queries", "D4", _ALIGN, causal(), "#. ## ## ## ##"),
    Drawing("causal-of-one-query", "D4", _ALIGN, causal(), "#..."),
    Drawing(
        "causal-lower-right", "D4", f"{_ALIGN} causal-offset-ignored", causal(3), "####... #####.. ######. #######"
    ),
    Drawing("causal-decode", "D4", "causal-offset-ignored", causal(3), "####"),
    Drawing("causal-decode-in-a-larger-buffer", "D4", "causal-offset-ignored", causal(2), "###."),
    Drawing("causal-shifted-up", "D4", "causal-offset-ignored", causal(-1), "... #.. ##."),
    Drawing("causal-lower-right-of-more-queries", "D4", _ALIGN, causal(-3), ".. .. .. #. ##"),
    Drawing("causal-beyond-the-last-key", "D4", "causal-offset-ignored", causal(99), "### ###"),
    Drawing("causal-before-the-first-key", "D4", "causal-offset-ignored", causal(-99), "... ..."),
    Drawing("window-one-each-side", "D5", f"{_LEFT} {_RIGHT}", window(1, 1), "##..... ###.... .###... ..###.."),
    Drawing("window-itself", "D5", f"{_LEFT} {_RIGHT}", window(0, 0), "#.. .#. ..#"),
    Drawing("window-one-to-the-left", "D5", _LEFT, window(1, 0), "#..... ##.... .##... ..##.. ...##. ....##"),
    Drawing("window-two-to-the-left", "D5", _LEFT, window(2, 0), "#..... ##.... ###... .###.. ..###. ...###"),
    Drawing("window-to-the-right", "D5", _RIGHT, window(0, 2), "###.... .###... ..###.. ...###."),
    Drawing(
        "window-without-left-bound",
        "D5",
        f"window-none-is-zero {_RIGHT}",
        window(None, 1),
        "##..... ###.... ####... #####..",
    ),
    Drawing(
        "window-without-right-bound",
        "D5",
        f"window-none-is-zero {_LEFT}",
        window(1, None),
        "####### ####### .###### ..#####",
    ),
    Drawing("window-without-bounds", "D5", "window-none-is-zero", window(None, None), "### ###"),
    Drawing("window-shifted", "D5", "window-offset-ignored", window(1, 0, 3), "..##... ...##.. ....##. .....##"),
    Drawing("window-shifted-back", "D5", "window-offset-ignored", window(0, 1, -1), "#.. ##. .##"),
    Drawing("window-shifted-out", "D5", "window-offset-ignored", window(1, 1, 5), "... ..."),
    Drawing("local-of-three", "D5", f"{_LEFT} {_RIGHT} local-width-doubled", _LOCAL, "##... ###.. .###. ..### ...##"),
    Drawing("local-of-one", "D5", "local-width-doubled", {"rule": "local", "width": 1}, "#.. .#. ..#"),
    Drawing("prefix", "D6", "prefix-off-by-one", _PREFIX, "##..... ##..... ##..... ##....."),
    Drawing("prefix-of-nothing", "D6", "prefix-off-by-one", {"rule": "prefix", "length": 0}, "... ..."),
    Drawing("dilated-by-two", "D6", "dilated-phase", {"rule": "dilated", "step": 2}, "#.#.#.# .#.#.#. #.#.#.# .#.#.#."),
    Drawing(
        "dilated-by-three", "D6", "dilated-phase", {"rule": "dilated", "step": 3}, "#..#..# .#..#.. ..#..#. #..#..#"
    ),
    Drawing("chunked-by-one", "D6", "chunk-boundary", {"rule": "chunked", "size": 1}, "#.. .#. ..#"),
    Drawing(
        "chunked-by-two", "D6", "chunk-boundary", {"rule": "chunked", "size": 2}, "##..... ##..... ..##... ..##..."
    ),
    Drawing(
        "chunked-by-three", "D6", "chunk-boundary", {"rule": "chunked", "size": 3}, "###.... ###.... ###.... ...###."
    ),
    Drawing(
        "prefix-or-causal",
        "D3",
        "rules-joined-by-the-other-word",
        joined("or", _PREFIX, causal()),
        "##..... ##..... ###.... ####...",
    ),
    Drawing(
        "causal-and-window",
        "D3",
        "rules-joined-by-the-other-word",
        joined("and", causal(), window(2, 2)),
        "#...... ##..... ###.... .###...",
    ),
    Drawing("not-causal", "D3", "not-ignored", joined("not", causal()), ".## ..# ..."),
    Drawing("not-not-causal", "D3", "causal-off-by-one", joined("not", joined("not", causal())), "#.. ##. ###"),
    Drawing("everything-but-itself", "D3", "not-ignored", joined("not", window(0, 0)), ".## #.# ##."),
    Drawing(
        "dilated-or-local-under-causal",
        "D3",
        "rules-joined-by-the-other-word",
        joined("and", joined("or", {"rule": "dilated", "step": 3}, _LOCAL), causal()),
        "#...... ##..... .##.... #.##...",
    ),
    Drawing(
        "three-joined",
        "D3",
        "rules-joined-by-the-other-word not-ignored",
        joined("and", causal(), window(1, None), joined("not", {"rule": "prefix", "length": 1})),
        "... .#. .##",
    ),
)


def facts() -> Iterator[Fact]:
    """Yield the facts."""
    for drawing in DRAWINGS:
        yield from _of_one(drawing)
    yield from _of_no_size()


def spelled(rule: dict[str, Any]) -> str:
    """The call that makes the rule, such as "causal(0) & window(left=1, right=2, offset=0)"."""
    parts = [f"({spelled(part)})" if part["rule"] in ("and", "or") else spelled(part) for part in rule.get("of", [])]
    if rule["rule"] == "not":
        return f"~{parts[0]}"
    if parts:
        return {"and": " & ", "or": " | "}[rule["rule"]].join(parts)
    return f"{rule['rule']}({', '.join(f'{name}={rule[name]}' for name in contract.RULES[rule['rule']])})"


def _of_one(drawing: Drawing) -> Iterator[Fact]:
    rows = tuple(drawing.rows.split())
    clauses, flags = tuple(sorted({"D3", drawing.clause})), tuple(drawing.flags.split())
    options = {"mask": drawing.rule, "T": len(rows), "S": len(rows[0])}
    name, rule = drawing.name, spelled(drawing.rule)
    fact = f"{rule} gives a boolean array, True where the pair is visible."
    yield Fact(f"{name}-array", fact, clauses, flags, "mask_array", {}, options, paper={"array": drawn(*rows)})
    fact = f"{rule} is drawn with # for visible and . for hidden, one line a query."
    paper = {"picture": "\n".join(rows)}
    yield Fact(f"{name}-picture", fact, clauses, flags, "mask_picture", {}, options, paper=paper)
    if len(rows) > 3 or len(rows[0]) > 5:  # more than one tile
        yield _in_attention(drawing, rows, clauses)


def _in_attention(drawing: Drawing, rows: tuple[str, ...], clauses: tuple[str, ...]) -> Fact:
    return state(
        f"{drawing.name}-in-attention",
        f"Under {spelled(drawing.rule)} the visible keys share the weight.",
        f"C4 {' '.join(clauses)}",
        f"{drawing.flags} tile-positions-local",
        pattern(len(rows), len(rows[0])),
        mask=drawing.rule,
        paper={"out": shares(*rows)},
    )


def _of_no_size() -> Iterator[Fact]:
    for T, S in ((0, 3), (3, 0), (0, 0)):
        options = {"mask": causal(), "T": T, "S": S}
        fact = f"The array of a rule for T = {T} and S = {S} has that shape."
        yield Fact(f"rule-array-{T}-{S}", fact, ("B3", "D3"), ("empty-axis-rejected",), "mask_array", {}, options)
    options = {"mask": causal(), "T": 3, "S": 0}
    fact = "The picture of three queries and no keys is three empty lines."
    flags = ("empty-axis-rejected",)
    paper = {"picture": "\n\n"}
    yield Fact("rule-picture-3-0", fact, ("B3", "D3"), flags, "mask_picture", {}, options, paper=paper)
