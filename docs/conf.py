"""The configuration of the documentation: python -m sphinx -n -W --keep-going -j1 docs docs/_build/html"""

from __future__ import annotations

import os
import sys
from pathlib import Path

DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS), str(DOCS.parent)]
os.environ.setdefault("JAX_PLATFORMS", "cpu")  # and not a word about devices that are not there

project = "attention-three-ways"
author = "the attention-three-ways authors"
project_copyright = author
html_title = "Attention three ways"

extensions = [
    "myst_parser",
    "sphinx_design",
    "sphinx.ext.mathjax",
    *(f"_ext.{name}" for name in ("cells", "exercises", "notebooks", "reference", "clauses", "heatmap", "console")),
]
exclude_patterns = ["_build", "_ext", "_static", "tests", "exercises"]

myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
mathjax_path = "katex/katex.min.js"
mathjax_options = {"defer": "defer"}

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["katex/katex.min.css", "site.css"]
html_js_files = [("maths.js", {"defer": "defer"})]
html_copy_source = False
html_show_sphinx = False
highlight_language = "none"
