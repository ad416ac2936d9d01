"""A site of one page, built with the configuration of the documentation."""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

import pytest
from sphinx.cmd.build import build_main

DOCS = Path(__file__).parents[1]
sys.path.insert(0, str(DOCS))


@dataclass
class Built:
    """Where the site is, the exit code of the build, what it said, and the HTML of its page."""

    site: Path
    code: int
    said: str

    @property
    def page(self) -> str:
        return (self.site / "index.html").read_text(encoding="utf-8")


@pytest.fixture
def build(tmp_path, capfd):
    """Build a site whose only page is the given Markdown, as the release is built: warnings are errors."""

    def build(markdown: str, *options: str) -> Built:
        source, site = tmp_path / "source", tmp_path / "site"
        source.mkdir(exist_ok=True)
        (source / "index.md").write_text(f"# A page\n\n{markdown}\n", encoding="utf-8")
        flags = ["-n", "-W", "--keep-going", "-q", "-j1", "-E", "-c", str(DOCS), "-d", str(tmp_path / "doctrees")]
        with warnings.catch_warnings():  # what other people's extensions deprecate is not what is tested here
            warnings.simplefilter("ignore")
            code = build_main([*flags, *options, str(source), str(site)])
        return Built(site, code, capfd.readouterr().err)

    return build


def cells(numpy: str, torch: str, jax: str) -> str:
    """Give three cells that become one set of tabs."""
    codes = {"numpy": numpy, "torch": torch, "jax": jax}
    return "".join(f"```{{run}} {name}\n{code}\n```\n\n" for name, code in codes.items())
