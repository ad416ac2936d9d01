"""Draw the matrix of a run as SVG, from its files of results:

python -m conformance run --json run.jsonl; python docs/images/draw_matrix.py run.*.jsonl > docs/images/matrix.svg
"""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

from rich.console import CONSOLE_SVG_FORMAT, Console

from conformance import report
from conformance.results import read

WITHOUT_WEB_FONTS = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)


def main(paths: list[str]) -> None:
    """Print the picture."""
    results = [result for path in paths for result in read(Path(path))[1]]
    console = Console(record=True, width=110, file=io.StringIO(), force_terminal=True)
    console.print(report.matrix(results))
    title = "python -m conformance run"
    print(console.export_svg(title=title, code_format=WITHOUT_WEB_FONTS, unique_id="matrix"))


main(sys.argv[1:])
