"""The check of a built site: each kind of fault is found, and a sound site passes."""

from __future__ import annotations

import shutil
from pathlib import Path

import check
import pytest

PAGE = """<!doctype html><html><head><script src="a.js"></script></head><body>
<h1 id="top">A page</h1><a href="#top">up</a> <a href="https://example.org/">outside</a>{}</body></html>"""


@pytest.fixture
def site(tmp_path) -> Path:
    """A sound site of one page."""
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "a.js").write_text("0;\n")
    write(folder)
    return folder


def write(site: Path, body: str = "") -> None:
    (site / "index.html").write_text(PAGE.replace("{}", body), encoding="utf-8")


def test_a_sound_site_passes(site, capsys):
    assert check.main(site, shutil.copytree(site, site.parent / "other")) == 0
    assert "1 pages, nothing wrong" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ('<a href="nowhere.html">a</a>', "index.html links"),
        ('<a href="#nowhere">a</a>', "index.html links"),
        ('<script src="https://example.org/a.js"></script>', "<script> https://example.org/a.js"),
        ('<img src="//example.org/a.png" alt="">', "<img> //example.org/a.png"),
        ('<link rel="stylesheet" href="http://example.org/a.css">', "<link> http://example.org/a.css"),
    ],
)
def test_a_fault_of_a_page_is_found(site, body, found, capsys):
    write(site, body)
    assert check.main(site) == 1
    assert found in capsys.readouterr().out


@pytest.mark.parametrize("style", ["@import 'a.css';", "a { src: url(https://example.org/a.woff2) }"])
def test_a_style_that_loads_from_outside_is_found(site, style, capsys):
    (site / "a.css").write_text(style)
    assert check.main(site) == 1
    assert "a.css loads" in capsys.readouterr().out


@pytest.mark.parametrize("change", [lambda other: write(other, "!"), lambda other: (other / "a.js").unlink()])
def test_a_second_build_with_other_bytes_is_found(site, change):
    other = shutil.copytree(site, site.parent / "other")
    change(other)
    assert len(list(check.differences(site, other))) == 1


def test_without_a_browser_it_says_what_it_did_not_check(site, monkeypatch, capsys):
    monkeypatch.setattr(check, "BROWSERS", ("no-such-browser",))
    assert check.main(site) == 0
    assert "NOT CHECKED: the formulas and the heat maps" in capsys.readouterr().out


# --- in the browser --------------------------------------------------------------------------------------


@pytest.fixture
def browser() -> str:
    return check.find_browser() or pytest.skip("no browser is installed: formulas and heat maps are NOT CHECKED")


def test_a_formula_is_typeset(build, browser):
    assert check.seen_in_browser(build("So $x^2$ it is.").site, browser) == []


def test_a_formula_that_cannot_be_typeset_is_found(build, browser):
    [found] = check.seen_in_browser(build(r"So $\nosuch{x}$ it is, and $x$.").site, browser)
    assert found.startswith("index.html: not typeset: ")


HEATMAP = """```{run} shared
import numpy as np
q, k = np.random.default_rng(1).standard_normal((2, 5, 3))
```

```{heatmap} q k
:alt: Weights.
```
"""


@pytest.fixture
def heatmap(build) -> Path:
    built = build(HEATMAP)
    assert built.code == 0, built.said
    return built.site


def test_the_heat_map_shows_the_weights_of_the_oracle(heatmap, browser):
    assert check.seen_in_browser(heatmap, browser) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("/ temperature", "* temperature"),
        ("key <= query]", "key < query]"),
        ("<= width]", "< width]"),
        ("weight * Math.log(weight)", "weight * Math.log2(weight)"),
        ("weight.toFixed(2)", "weight.toFixed(1)"),
        ("Math.exp(score - top)", "Math.exp(score - top) + 1e-9"),
    ],
)
def test_a_mistake_in_the_heat_map_is_found(heatmap, browser, old, new):
    script = heatmap / "_static" / "heatmap.js"
    source = script.read_text(encoding="utf-8")
    assert old in source
    script.write_text(source.replace(old, new), encoding="utf-8")
    assert check.seen_in_browser(heatmap, browser)
