"""The notebooks: they hold the page, and they run as they are."""

from __future__ import annotations

import nbformat
import pytest
from _ext.notebooks import notebook
from nbclient import NotebookClient

from .conftest import DOCS, cells

MODEL = (DOCS / "lessons" / "soft_dictionary.md").read_text(encoding="utf-8")


def sources(markdown: str, framework: str = "torch", values: tuple[str, ...] = ()) -> list[str]:
    """Give the cells after the first one, which tells what the notebook needs."""
    made = notebook(markdown, framework, list(values))
    nbformat.validate(made)
    return [f"{cell.cell_type}: {cell.source}" for cell in made.cells[1:]]


def test_it_holds_the_text_and_the_code_of_its_framework():
    page = "# Title\n\n```{run} shared\nx = 1\n```\n\n" + cells("x", "y", "z") + "End.\n"
    assert sources(page) == ["markdown: # Title", "code: x = 1", "code: y", "markdown: End."]
    assert sources("```{run} numpy jax\nx\n```") == []


def test_options_of_a_cell_are_left_out_and_a_wanted_error_is_marked():
    page = '```{run} shared\n:alt: "a\n: b"\n:raises: KeyError\n{}[0]\n```'
    assert sources(page) == ["code: {}[0]"]
    assert notebook(page, "jax", []).cells[1].metadata["tags"] == ["raises-exception"]


def test_numbers_are_filled_in_and_links_into_the_documentation_end():
    page = "See [the contract](../contract.md#a1), [there](https://example.org/) and {value}`x:.1f` of {value}`y`."
    assert sources(page, values=("1.5", "2")) == [
        "markdown: See the contract, [there](https://example.org/) and 1.5 of 2."
    ]


def test_answers_stay_folded_and_those_with_code_are_opened():
    assert sources("```{dropdown} Answers\nYes.\n```") == [
        "markdown: <details>\n<summary>Answers</summary>\n\nYes.\n\n</details>"
    ]
    assert sources("````{dropdown} Answers\nYes.\n\n```{run} torch\nx\n```\n````") == [
        "markdown: **Answers**\n\nYes.",
        "code: x",
    ]


def test_boxes_exercises_and_what_only_a_page_can_show():
    assert sources(":::{note}\nMind.\n:::") == ["markdown: **Note.**\n\nMind."]
    assert sources("```{exercise} dictionary\nDo it.\n```")[0].endswith("docs/exercises/dictionary/answer_torch.py`")
    assert sources("```{agree} x\n```") == []


def test_code_that_is_only_shown_stays():
    shown = "```python\nf[0](x)  # {run}`it`\n```"
    assert sources(f"See [it](a.md).\n\n{shown}") == [f"markdown: See it.\n\n{shown}"]


def test_a_directive_that_has_no_form_in_a_notebook_stops_the_build(build):
    built = build(cells("1", "1", "1") + "```{figure} a.svg\n```")
    assert built.code != 0
    assert "{figure} has no form in a notebook" in built.said


def test_the_page_links_its_notebooks(build):
    built = build(cells("1", "1", "1"))
    for framework in ("numpy", "torch", "jax"):
        assert f'href="notebooks/index-{framework}.ipynb"' in built.page
        nbformat.validate(nbformat.read(built.site / "notebooks" / f"index-{framework}.ipynb", 4))


@pytest.mark.filterwarnings("ignore")  # those of Jupyter's own parts
@pytest.mark.parametrize("framework", ["numpy", "torch", "jax"])
def test_the_model_lesson_runs_as_a_notebook(framework):
    made = notebook(MODEL, framework, [])
    NotebookClient(made, timeout=300, resources={"metadata": {"path": str(DOCS.parent)}}).execute()
    code = [cell for cell in made.cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in code)
    assert any("found: 2" in output.get("text", "") for cell in code for output in cell.outputs)
