"""Code cells: what they show, and what stops the build."""

from __future__ import annotations

import re

import pytest

from .conftest import cells

INPUT = "```{run} shared\nimport numpy as np\nx = np.array([1.0, 2.0])\n```\n\n"
FIGURE = "from matplotlib import pyplot as plt\nfigure, axes = plt.subplots()\naxes.plot(x)\naxes.set(title='x')\n0"


def test_three_cells_become_tabs_with_their_outputs(build):
    built = build(INPUT + cells("print('one')\n1 + 1", "'two'", "None"))
    assert (built.code, built.said) == (0, "")
    assert re.findall(r"<label[^>]*data-sync-id=\"(\w+)\"[^>]*>\s*(\w+)", built.page) == [
        ("numpy", "NumPy"),
        ("torch", "PyTorch"),
        ("jax", "JAX"),
    ]
    assert outputs(built.page) == ["one\n2\n", "'two'\n"]


def test_the_same_code_three_times_runs_in_each_namespace(build):
    built = build(cells("x = 1", "x = 2", "x = 3") + "Text.\n\n```{run} numpy torch jax\nx * 10\n```")
    assert outputs(built.page) == ["10\n", "20\n", "30\n"]
    assert built.page.count('class="sd-tab-set') == 2


def test_shared_code_is_shown_once_and_seen_by_all(build):
    built = build(INPUT + "```{run} shared\nprint(x.sum())\n```\n\n" + cells("x[0]", "x[1]", "x.size"))
    assert outputs(built.page) == ["3.0\n", "np.float64(1.0)\n", "np.float64(2.0)\n", "2\n"]


def test_a_figure_is_inline_and_carries_its_text(build):
    built = build(INPUT + f'```{{run}} shared\n:alt: "Up to {{x[1]:.1f}}, in\n: one step."\n{FIGURE}\n```')
    assert (built.code, built.said) == (0, "")
    assert built.page.count("<svg role") == 1
    assert 'role="img" aria-label="Up to 2.0, in one step."' in built.page
    assert "currentColor" in built.page


def test_hidden_code_shows_its_output_alone(build):
    built = build("```{run} shared\n:hide:\nprint(6 * 7)\n```")
    assert outputs(built.page) == ["42\n"]
    assert "print" not in built.page.partition("<article")[2].partition("</article")[0]


def test_a_warning_is_shown(build):
    built = build("```{run} numpy\nimport numpy as np\nnp.log(np.zeros(1))\n```")
    assert outputs(built.page) == ["RuntimeWarning: divide by zero encountered in log\narray([-inf])\n"]


def test_an_error_that_is_wanted_is_shown(build):
    built = build("```{run} shared\n:raises: KeyError\n{}['a']\n```")
    assert (built.code, outputs(built.page)) == (0, ["KeyError: 'a'\n"])


def test_a_number_in_the_text_is_computed(build):
    assert 'The sum is <span class="value">3.00</span>.' in build(INPUT + "The sum is {value}`x.sum():.2f`.").page


def test_the_agreement_tells_the_largest_difference(build):
    built = build(cells("x = 1.0", "x = 1.25", "x = 1.0") + "```{agree} x\n:tolerance: 0.5\n```")
    assert built.code == 0
    assert "Largest difference:" in built.page and "2.5e-01" in built.page


@pytest.mark.parametrize(
    ("markdown", "said"),
    [
        pytest.param(cells("1", "1 / 0", "1"), "the PyTorch code raised ZeroDivisionError at line 8", id="exception"),
        pytest.param(cells("1", "1 +", "1"), "the PyTorch code raised SyntaxError", id="syntax"),
        pytest.param(INPUT + f"```{{run}} numpy\n{FIGURE}\n```", "no alternative text", id="figure-without-text"),
        pytest.param(
            f"{INPUT}```{{run}} numpy\n:alt: text\n{FIGURE}\n{FIGURE}\n```", "2 figures are drawn", id="two-figures"
        ),
        pytest.param("```{run} numpy\nobject()\n```", "the output holds an address", id="address"),
        pytest.param("```{run} numpy\n:raises: KeyError\n1\n```", "KeyError was to be raised", id="no-error"),
        pytest.param("```{run} numpy\n:raises: KeyError\n1 / 0\n```", "ZeroDivisionError", id="other-error"),
        pytest.param("```{run} tensorflow\n1\n```", "unknown: tensorflow", id="framework"),
        pytest.param(cells("x = 1", "x = 2", "x = 3") + "```{run} shared\nx\n```", "shared code prints", id="shared"),
        pytest.param(
            cells("x = 1.0", "x = 1.0", "x = 1.1") + "```{agree} x\n```", "x differs by 0.1", id="disagreement"
        ),
        pytest.param(cells("x = 1.0", "x = 1.0", "y = 1.0") + "```{agree} x\n```", "no x in JAX", id="missing"),
        pytest.param(cells("x = [1]", "x = [1]", "x = 1") + "```{agree} x\n```", "x differs by inf", id="shape"),
        pytest.param(
            cells("x = 1.0", "x = 1.0", "x = float('nan')") + "```{agree} x\n```", "x differs by inf", id="nan"
        ),
        pytest.param("The sum is {value}`y`.", "NameError", id="number"),
        pytest.param("[There](nowhere.md)", "nowhere.md", id="link"),
    ],
)
def test_what_is_wrong_stops_the_build(build, markdown, said):
    built = build(markdown)
    assert built.code == 1
    assert said in built.said


def test_a_missing_framework_is_told_where_that_is_allowed(build, monkeypatch):
    monkeypatch.setattr("_ext.cells.is_here", lambda framework: framework != "jax")
    monkeypatch.setattr("_ext.kernel.is_here", lambda framework: framework != "jax")
    page = INPUT + cells("y = 1", "y = 1", "y = 2") + "```{agree} y\n```"
    built = build(page, "-D", "cells_may_lack_frameworks=1")
    assert (built.code, outputs(built.page)) == (0, ["Not run here: JAX is not installed.\n"])


def outputs(page: str) -> list[str]:
    """Give the outputs of the cells, in their order."""
    found = re.findall(r'<div class="output[^"]*"><div class="highlight"><pre>(.*?)</pre>', page, re.DOTALL)
    return [re.sub("<[^>]*>", "", text).replace("&#39;", "'") for text in found]
