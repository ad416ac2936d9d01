"""Check a built site: python docs/check.py SITE [OTHER]. Exit code 1 when something is wrong.

Nothing is loaded from outside; every link within the site leads somewhere; in a browser every formula is typeset, and
the heat maps show the oracle's weights; OTHER, a second build, has the same bytes.
"""

from __future__ import annotations

import filecmp
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

LOADS = {
    "script": "src",
    "link": "href",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "audio": "src",
}
OUTSIDE = re.compile(r"(https?:)?//")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    " --disable-component-update --disable-sync --allow-file-access-from-files --virtual-time-budget=60000 --dump-dom"
).split()
LOOK = Path(__file__).parent / "_ext" / "look.js"


def main(site: Path, other: Path | None = None) -> int:
    """Print what is wrong with the site; give the exit code."""
    wrong = [*loaded_from_outside(site), *dead_links(site), *differences(site, other)]
    if browser := find_browser():
        wrong += seen_in_browser(site, browser)
    else:
        print(f"NOT CHECKED: the formulas and the heat maps, because none of {', '.join(BROWSERS)} is installed.")
    print(*wrong or [f"{len(pages(site))} pages, nothing wrong"], sep="\n")
    return 1 if wrong else 0


def pages(site: Path) -> list[Path]:
    """Give the pages of the site."""
    return sorted(site.rglob("*.html"))


class Loads(HTMLParser):
    """Collects what a page loads from outside by itself; a link that a reader may follow is not one."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.outside: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        address = dict(attributes).get(LOADS.get(tag, ""))
        if address and OUTSIDE.match(address):
            self.outside.append(f"<{tag}> {address}")


def loaded_from_outside(site: Path) -> Iterator[str]:
    """Name each script, style, font and picture that is loaded from another place than the site."""
    for page in pages(site):
        for found in Loads(page.read_text(encoding="utf-8")).outside:
            yield f"{page.relative_to(site)} loads {found}"
    for style in sorted(site.rglob("*.css")):
        for found in re.findall(
            r"url\(\s*[\"']?((?:https?:)?//[^)]*)\)|@import[^;]*", style.read_text(encoding="utf-8")
        ):
            yield f"{style.relative_to(site)} loads {found}"


def dead_links(site: Path) -> Iterator[str]:
    """Name each link that leads to no file or no anchor of the site."""
    beside = Path(sys.executable).parent  # where pip put it, whether or not the environment is activated
    lychee = shutil.which("lychee", path=f"{beside}{os.pathsep}{os.environ['PATH']}")
    command = [lychee or "lychee", "--offline", "--include-fragments", "--no-progress", "--format", "json"]
    done = subprocess.run([*command, *map(str, pages(site))], capture_output=True, text=True)
    if done.returncode not in (0, 2):
        yield f"lychee failed: {done.stderr.strip()}"
        return
    for page, errors in json.loads(done.stdout)["error_map"].items():
        for error in errors:
            yield f"{Path(page).relative_to(site)} links {error['url']}: {error['status']['text']}"


def differences(site: Path, other: Path | None) -> Iterator[str]:
    """Name each file that the two builds do not share, byte by byte."""
    if other is None:
        return
    names = {path.relative_to(root) for root in (site, other) for path in root.rglob("*") if path.is_file()}
    for name in sorted(names):
        one, two = site / name, other / name
        if not (one.exists() and two.exists() and filecmp.cmp(one, two, shallow=False)):
            yield f"{name} differs between the two builds"


def find_browser() -> str | None:
    """Give the path of an installed browser."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def seen_in_browser(site: Path, browser: str) -> list[str]:
    """Open the pages that scripts change, in one run of the browser, and name what look.js finds wrong."""
    live = [page for page in pages(site) if re.search(r'class="(math|heatmap)\b', page.read_text(encoding="utf-8"))]
    addresses = json.dumps({page.relative_to(site).as_posix(): page.resolve().as_uri() for page in live})
    with tempfile.TemporaryDirectory() as folder:
        start = Path(folder) / "look.html"
        start.write_text(
            f"<script>const pages = {addresses};\n{LOOK.read_text(encoding='utf-8')}</script>", encoding="utf-8"
        )
        command = [browser, *FLAGS, f"--user-data-dir={folder}/profile", start.as_uri()]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    found = re.search(r'<pre id="found">(.*?)</pre>', done.stdout, re.DOTALL)
    return json.loads(unescape(found[1])) if found else [f"the browser did not come to an end: {done.stderr[-500:]}"]


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:3])))
