"""The directive {heatmap}: a figure of attention weights that JavaScript turns into a table with sliders."""

from __future__ import annotations

import json
import math
from typing import Any, ClassVar

import numpy as np
from docutils import nodes
from docutils.parsers.rst import directives
from matplotlib import colormaps
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from conformance.arithmetic import Plain
from conformance.oracle import evaluate
from conformance.pictures import weights_picture

from .cells import page
from .kernel import CellError

STOPS = 33
# What each choice of the mask is to the oracle; "width" is the number of keys on a side.
RULES = {
    "every": lambda width: None,
    "causal": lambda width: {"rule": "causal", "offset": 0},
    "window": lambda width: {"rule": "window", "left": width, "right": width, "offset": 0},
    "past": lambda width: {"rule": "window", "left": width, "right": 0, "offset": 0},
}
GOLDEN = (
    {"mask": "every", "width": 1, "scale": 0.5, "temperature": 1.0},
    {"mask": "causal", "width": 1, "scale": 0.5, "temperature": 0.1},
    {"mask": "window", "width": 1, "scale": 3.0, "temperature": 1.0},
    {"mask": "past", "width": 2, "scale": 1.0, "temperature": 5.0},
    {"mask": "window", "width": 0, "scale": 0.0, "temperature": 1.0},
)


class HeatMap(SphinxDirective):
    """Show the weights of the two named arrays of NumPy's namespace: queries (T, D) and keys (S, D)."""

    required_arguments = 2
    option_spec: ClassVar = {"alt": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        lesson = page(self.env)
        try:
            q, k = (np.asarray(lesson.spaces["numpy"][name], dtype=float) for name in self.arguments)
            alt = lesson.text(" ".join(self.options["alt"].split()))
        except (KeyError, CellError) as error:
            raise self.error(f"{{heatmap}} needs two arrays and an alternative text: {error}") from error
        start = {"mask": "every", "width": 1, "scale": round(q.shape[-1] ** -0.5, 2), "temperature": 1.0}
        figure = weights_picture(np.array(weights(q, k, start)), alt)
        data = json.dumps(
            {"q": q.tolist(), "k": k.tolist(), "start": start, "colours": colours(), "golden": golden(q, k)}
        )
        script = f'<script type="application/json">{data}</script>'
        return [
            nodes.raw("", f'<div class="heatmap">{script}<figure class="drawn">{figure}</figure></div>', format="html")
        ]


def colours() -> list[list[int]]:
    """Give cividis at evenly spaced stops, as RGB channels in 0..255."""
    return (colormaps["cividis"](np.linspace(0, 1, STOPS))[:, :3] * 255).round().astype(int).tolist()


def golden(q: np.ndarray, k: np.ndarray) -> list[dict[str, Any]]:
    """Give settings with the weights and the entropies that the oracle finds, for the test of the script."""
    found = [(setting, weights(q, k, setting)) for setting in GOLDEN]
    return [{"setting": setting, "weights": rows, "entropy": [entropy(row) for row in rows]} for setting, rows in found]


def weights(q: np.ndarray, k: np.ndarray, setting: dict[str, Any]) -> list[list[float]]:
    """Give the oracle's weights (T, S) for one setting of the sliders."""
    options = {"scale": setting["scale"] / setting["temperature"], "mask": RULES[setting["mask"]](setting["width"])}
    grid = evaluate("attention", {"q": q, "k": k, "v": k}, options, Plain("float64"))["weights"]
    return [[float(weight) for weight in grid.row((query,))] for query in range(len(q))]


def entropy(row: list[float]) -> float:
    """Give the entropy of one row of weights, in nats."""
    return -math.fsum(weight * math.log(weight) for weight in row if weight)


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx what this extension adds."""
    app.add_directive("heatmap", HeatMap)
    app.add_js_file("heatmap.js", defer="defer")
    return {"parallel_read_safe": False, "parallel_write_safe": True}
