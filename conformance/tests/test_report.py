"""The reports say what the results say: counts, order, colours, and how to repeat a failure."""

from __future__ import annotations

import math
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from matplotlib import colormaps
from matplotlib.colors import to_rgb
from rich.console import Console

from conformance import gallery, html, pictures, report, tally
from conformance.tests.handmade import FLAGS, case, result

GOOD, BAD = case("good"), case("bad", clauses=("E1",), file="rows")
CASES = [GOOD, BAD]
RESULTS = [
    result(GOOD, "numpy", ratio=0.5),
    result(GOOD, "torch", ratio=0.25),
    result(BAD, "numpy", "differs", 30.0),
    result(BAD, "torch", "unsupported", None, reason="it has no such rows"),
]
INFOS = {"numpy": {"versions": {"numpy": "2.0"}, "device": "cpu"}, "torch": {}}


def printed(*, width: int = 120, problems=()) -> str:
    console = Console(width=width, record=True, file=None, quiet=False)
    with console.capture() as capture:
        report.show(RESULTS, CASES, FLAGS, problems, console)
    return capture.get()


def test_the_worst_clause_stands_first():
    assert list(tally.matrix(RESULTS)) == ["E1", "C5", "D4"]


def test_a_cell_counts_what_was_judged():
    cells = tally.matrix(RESULTS)["E1"]
    assert (cells["numpy"].passed, cells["numpy"].judged, cells["numpy"].outcome) == (0, 1, "differs")
    assert (cells["torch"].judged, cells["torch"].outcome) == (0, "unsupported")


@pytest.mark.parametrize("outcome", ["differs", "error", "known", "either", "unsupported"])
def test_a_cell_has_the_colour_of_its_gravest_outcome(outcome):
    graver = tally.cell([result(GOOD), result(GOOD, outcome=outcome)]).outcome
    assert graver == (outcome if outcome in ("differs", "error", "known") else "pass")


def test_a_nan_is_the_worst_of_errors():
    assert tally.cell([result(GOOD, ratio=0.9), result(BAD, outcome="differs", ratio=math.nan)]).ratio == math.inf


def test_agreement_is_measured_in_budgets():
    (pair,) = tally.agreement(RESULTS, CASES)
    assert (pair.first, pair.second, pair.checks, pair.identical, pair.check) == ("numpy", "torch", 1, 0, "good")
    assert pair.ratio == pytest.approx(0.25)


def test_equal_outputs_agree_where_they_are_not_finite():
    pair = [result(GOOD, name, ratio=math.nan) for name in ("numpy", "torch")]
    assert [p.ratio for p in tally.agreement(pair, CASES)] == [0.0]


def test_outputs_of_another_shape_do_not_agree():
    other = result(GOOD, "torch")
    other.outputs["out"] = np.zeros((3, 3))
    assert [pair.ratio for pair in tally.agreement([RESULTS[0], other], CASES)] == [math.inf]


def test_a_failure_is_printed_with_all_that_is_needed_to_act_on_it():
    text = printed()
    for words in (
        "E1 an empty row",
        "mask-inverted: True is read as hide",
        "q: float32 (4, 3)",
        "'rule': 'causal'",
        "the worst by 30 budgets",
        "python -m conformance run --backend numpy -k bad",
        "1 of 4 checks went wrong: 2 pass, 1 differs, 1 unsupported.",
    ):
        assert words in text


def test_many_failures_are_all_named():
    many = [result(case(f"case-{at}"), outcome="error", ratio=None) for at in range(25)]
    console = Console(width=120)
    with console.capture() as capture:
        report.show(many, [case(f"case-{at}") for at in range(25)], FLAGS, [], console)
    assert all(f"-k case-{at}\n" in re.sub(r" *│\n", "\n", capture.get()) for at in range(25))


def test_a_ledger_problem_is_printed_and_counted():
    text = printed(problems=["ledger of torch: gone"])
    assert "ledger of torch: gone" in text
    assert "and there is more: 1 problem:" in text


def test_a_narrow_terminal_keeps_the_numbers():
    lines = printed(width=80).splitlines()
    assert max(map(len, lines)) <= 80
    assert any("C5" in line and "1/1  0.50" in line and "1/1  0.25" in line for line in lines)


@pytest.mark.parametrize(
    ("value", "text"), [(None, ""), (0.0, "0.00"), (0.254, "0.25"), (3.0, "3.00"), (4e7, "4e+07"), (math.inf, "inf")]
)
def test_a_ratio_is_short(value, text):
    assert report.ratio(value) == text


class Page(HTMLParser):
    """What has to be looked at in a page: its text, its pictures, its ids and what it loads from elsewhere."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.pictures, self.ids, self.loaded, self.words = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if tag in ("svg", "img"):
            self.pictures.append(given.get("aria-label") or given.get("alt"))
        self.ids += [given["id"]] if "id" in given else []
        addresses = [given.get("src"), given.get("href"), given.get("xlink:href")]
        self.loaded += [address for address in addresses if address and not address.startswith(("#", "data:"))]

    def handle_data(self, data):
        self.words.append(data)


@pytest.fixture(scope="module")
def page() -> str:
    return html.page(RESULTS, CASES, FLAGS, [], INFOS)


def test_the_page_needs_nothing_else(page):
    assert Page(page).loaded == []
    assert "@import" not in page and "url(http" not in page


def test_every_picture_says_what_it_shows(page):
    found = Page(page).pictures
    assert all(found)
    assert any("rows: 1 differs, 1 unsupported" in words for words in found)
    assert any("numpy: 2 checks, median 15.25, largest 30.00" in words for words in found)


def test_an_id_is_unique_in_the_page(page):
    ids = Page(page).ids
    assert len(ids) == len(set(ids))


def test_the_page_holds_the_failure_the_reasons_and_the_versions(page):
    words = " ".join(" ".join(Page(page).words).split())
    for said in ("1 of 4 checks went wrong", "run --backend numpy -k bad", "it has no such rows", "numpy 2.0"):
        assert said in words


def test_the_page_is_the_same_each_time(page):
    assert html.page(RESULTS, CASES, FLAGS, [], INFOS) == page


def test_the_page_escapes_what_a_backend_says():
    angry = result(BAD, outcome="error", ratio=None, reason="<script>alert(1)</script>")
    assert "<script>" not in html.page([angry], CASES, FLAGS, [], INFOS)


def test_the_gallery_draws_what_the_rules_say():
    drawn = {drawing.call: drawing.svg for drawing in gallery.masks()}
    assert "query 2: 0, 1, 2; query 3: 1, 2, 3" in drawn["window(2, 0)"]
    assert "query 0: 0; query 1: 0, 1" in drawn["causal()"]
    assert "#000000" not in "".join(drawn.values())


def test_the_lesson_finds_its_key_and_hides_the_future():
    retrieval, masked = gallery.lesson()
    assert "Key 2 gets 1.000 of the weight" in retrieval.finding
    assert "future keys is 0;" in masked.finding


@pytest.mark.parametrize("level", np.linspace(0, 1, 101))
def test_numbers_in_cells_can_be_read(level):
    colour = colormaps["cividis"](level)
    text = to_rgb(pictures.number_colour(colour))
    dark, light = sorted(map(pictures.luminance, (colour, text)))
    assert (light + 0.05) / (dark + 0.05) >= 4.5
