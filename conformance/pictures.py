"""The report's figures: matplotlib drawings as inline SVG that takes on the colours of the page around it."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from html import escape

import matplotlib
import numpy as np
from matplotlib import colormaps, ticker
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

VISIBLE = "#0072B2"  # Okabe-Ito blue: at least 3 : 1 on a white and on a dark page
MUTED = "#808080"
DARK_NUMBER = "#010101"  # not #000000, which svg() turns into the colour of the page's text
STYLE = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.linewidth": 0.6,
    "hatch.linewidth": 0.7,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
}


def svg(figure: Figure, alt: str) -> str:
    """Give the figure as one `<svg>` element with its alternative text, the same bytes for the same figure."""
    with matplotlib.rc_context({"svg.hashsalt": alt}), io.StringIO() as text:
        figure.savefig(
            text, format="svg", transparent=True, bbox_inches="tight", pad_inches=0.02, metadata={"Date": None}
        )
        drawn = text.getvalue()
    drawn = drawn[drawn.index("<svg") :]
    drawn = re.sub(r"<metadata>.*?</metadata>", "", drawn, flags=re.DOTALL)
    drawn = _without_spare_ids(drawn).replace("#000000", "currentColor")
    # matplotlib leaves out the fill of black text, and the default of SVG is black on every page
    drawn = drawn.replace("<svg ", f'<svg role="img" aria-label="{escape(alt)}" fill="currentColor" ', 1)
    return re.sub(r"font: ([^;\"]*?)'[^;\"]*(?=[;\"])", r"font: \1system-ui, sans-serif", drawn)


def _without_spare_ids(drawn: str) -> str:
    """Drop the ids that nothing refers to: several figures stand in one page, where an id is unique."""
    used = set(re.findall(r'(?:url\(#|href="#)([^)"]+)', drawn))
    return re.sub(r' id="([^"]+)"', lambda found: found[0] if found[1] in used else "", drawn)


def _axes(width: float, height: float):
    figure = Figure(figsize=(width, height))
    return figure, figure.add_subplot()


def _positions(axes, T: int, S: int) -> None:
    """Label both axes with positions from 0, queries downwards as in a written matrix."""
    axes.spines[:].set_visible(False)
    axes.set(xlim=(0, S), ylim=(T, 0), aspect="equal", xlabel="key position", ylabel="query position")
    axes.set_xticks(np.arange(S) + 0.5, [str(key) for key in range(S)])
    axes.set_yticks(np.arange(T) + 0.5, [str(query) for query in range(T)])


def luminance(colour: Sequence[float]) -> float:
    """Give the relative luminance of an RGB colour with channels in 0..1 (WCAG 2.2)."""
    channels = np.asarray(colour[:3], dtype=float)
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def number_colour(colour: Sequence[float]) -> str:
    """Give black or white, whichever has the higher contrast on the colour: the two are equal at 0.179."""
    return DARK_NUMBER if luminance(colour) > 0.179 else "#ffffff"


def mask_picture(visible: np.ndarray, alt: str) -> str:
    """Draw a (T, S) mask by itself."""
    T, S = visible.shape
    with matplotlib.rc_context(STYLE):
        figure, axes = _axes(0.27 * S + 0.4, 0.27 * T + 0.4)
        draw_mask(axes, visible)
        return svg(figure, alt)


def draw_mask(axes, visible: np.ndarray) -> None:
    """Draw a (T, S) mask: visible pairs filled, hidden pairs hatched, so that no colour has to be told apart."""
    visible = np.asarray(visible, dtype=bool)
    hidden = np.ma.masked_where(visible, np.zeros(visible.shape))
    shown = np.ma.masked_where(~visible, np.zeros(visible.shape))
    axes.pcolor(hidden, facecolor="none", edgecolor=MUTED, hatch="////", linewidth=0.4)
    axes.pcolor(shown, cmap=ListedColormap([VISIBLE]), edgecolor="#ffffff", linewidth=0.8)
    _positions(axes, *visible.shape)


def weights_picture(weights: np.ndarray, alt: str) -> str:
    """Draw (T, S) attention weights by themselves, with a colour bar."""
    T, S = weights.shape
    with matplotlib.rc_context(STYLE):
        figure, axes = _axes(0.5 * S + 0.8, 0.5 * T + 0.6)
        mesh = draw_weights(axes, weights)
        bar = figure.colorbar(mesh, ax=axes, fraction=0.046, ticks=[0, 0.5, 1], label="weight")
        bar.outline.set_visible(False)
        return svg(figure, alt)


def draw_weights(axes, weights: np.ndarray):
    """Draw (T, S) attention weights on cividis from 0 to 1, each cell with its number up to 8 x 8; give the mesh."""
    weights, colours = np.asarray(weights, dtype=float), colormaps["cividis"]
    mesh = axes.pcolor(weights, cmap=colours, vmin=0, vmax=1, edgecolor=MUTED, linewidth=0.4)
    if max(weights.shape) <= 8:
        for (query, key), weight in np.ndenumerate(weights):
            colour = number_colour(colours(float(weight)))
            axes.text(key + 0.5, query + 0.5, f"{weight:.2f}", ha="center", va="center", color=colour)
    _positions(axes, *weights.shape)
    return mesh


def distribution_picture(ratios: dict[str, list[float]], alt: str) -> str:
    """Draw one histogram of error / budget for each backend, one below the other on a shared axis from 0 to 1.

    What lies beyond the budget, infinity too, is counted in a last bar of its own.
    """
    edges = np.append(np.linspace(0, 1, 41), 1.05)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(6.6, 0.75 * len(ratios) + 0.5))
        rows = figure.subplots(len(ratios), sharex=True, squeeze=False)[:, 0]
        for axes, (backend, values) in zip(rows, ratios.items(), strict=True):
            _histogram(axes, backend, np.nan_to_num(values, nan=np.inf), edges)
        rows[-1].set_xlabel("error / budget")
        rows[-1].set_xticks([0, 0.25, 0.5, 0.75, 1])
        return svg(figure, alt)


def _histogram(axes, backend: str, values: np.ndarray, edges: np.ndarray) -> None:
    counts, _ = np.histogram(np.clip(values, 0, edges[-1]), bins=edges)
    colours = [VISIBLE] * (len(counts) - 1) + ["#D55E00"]
    axes.bar(edges[:-1], counts, np.diff(edges) * 0.9, align="edge", color=colours)
    axes.axvline(1, color=MUTED, linewidth=0.8, linestyle=(0, (4, 3)))
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.set_yscale("symlog", linthresh=1)
    axes.set(ylim=(0, max(2, counts.max(initial=0) * 1.3)), xlim=(-0.01, 1.07))
    axes.yaxis.set_major_locator(ticker.NullLocator())
    axes.yaxis.set_minor_locator(ticker.NullLocator())
    axes.set_ylabel(backend, rotation=0, ha="right", va="center")
