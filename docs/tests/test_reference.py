"""The reference: it is made from the sources and the cases as they are, and every file and clause has its place."""

from __future__ import annotations

import re

import pytest
from _ext import clauses, reference, sources

from conformance.contract import CLAUSES, SHOWN_BY_TESTS

from .conftest import DOCS


def test_each_file_has_a_page_and_the_list_names_it():
    listed = (DOCS / "side_by_side" / "index.md").read_text(encoding="utf-8").split()
    for file in sources.files():
        page = DOCS / f"{reference.side_by_side(file)}.md"
        assert f"{{side_by_side}} {file}" in page.read_text(encoding="utf-8")
        assert page.stem in listed


def test_the_api_page_shows_every_public_name():
    page = (DOCS / "reference" / "api.md").read_text(encoding="utf-8")
    shown = [name for names in re.findall(r"{api} (.*)", page) for name in names.split()]
    import impl_numpy

    assert sorted(shown) == sorted(impl_numpy.__all__)


def test_a_file_is_cut_without_loss():
    for package in sources.PACKAGES:
        for file in sources.files():
            source = (sources.ROOT / package / file).read_text(encoding="utf-8")
            assert all(piece in source for name, piece in sources.pieces(package, file).items() if name != sources.HEAD)


def test_a_function_is_shown_from_the_three_sources(build):
    built = build("```{side_by_side} heads.py merge_heads\n```")
    assert built.code == 0, built.said
    assert built.page.count("def</span>") == 3


def test_a_whole_file_has_a_section_for_each_function(build):
    built = build("```{side_by_side} heads.py\n```")
    anchors = re.findall(r'<section id="(\w+)"', built.page)
    assert {"head", "split_heads", "merge_heads", "repeat_kv"} <= set(anchors)


def test_a_public_name_is_shown_with_call_and_docstring(build):
    built = build("```{api} causal Mask\n```")
    assert built.code == 0, built.said
    assert '<section id="causal">' in built.page
    assert "Raises" in built.page
    assert "picture(T, S)" in re.sub("<[^>]*>", "", built.page)


@pytest.mark.parametrize(
    ("markdown", "said"),
    [
        ("```{side_by_side} nowhere.py\n```", "no file nowhere.py"),
        ("```{side_by_side} heads.py nothing\n```", "heads.py has no nothing"),
        ("```{api} nothing\n```", "defines no nothing"),
    ],
)
def test_what_is_not_there_stops_the_build(build, markdown, said):
    built = build(markdown)
    assert built.code == 1
    assert said in built.said


def test_every_clause_has_cases_or_tests():
    cases = clauses.by_clause()
    assert [clause for clause in CLAUSES if not cases[clause] and clause not in SHOWN_BY_TESTS] == []


def test_a_clause_names_the_functions_that_cite_it():
    assert ("attention.py", "scaled_scores") in sources.citations()["C1"]
    assert ("softmax.py", "softmax") in sources.citations()["E1"]


def test_a_range_of_clauses_cites_those_in_between():
    assert sources.clauses_in("as they should (D1 to D4, C6)") == {"D1", "D2", "D3", "D4", "C6"}
    assert sources.clauses_in("no clause: A9, AB1, H1") == set()


def test_cases_stand_below_their_first_clause_and_are_linked_from_the_others(build):
    built = build("```{cases}\n```")
    assert built.code == 0, built.said
    case = next(case for case in clauses.by_clause()["E2"] if case.clauses[0] != "E2")
    assert built.page.count(f'id="{case.id}"') == 1
    part = built.page.partition('<section id="E2">')[2].partition("</section>")[0]
    assert f'href="#{case.id}"' in part
