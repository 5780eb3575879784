"""Figures of the studies, with matplotlib. Bars and lines are distinguishable without color."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Colors that remain distinct with color vision deficiencies (after Okabe and Ito 2008), each with its own pattern.
_COLORS = ("#0072b2", "#e69f00", "#d9d9d9", "#009e73", "#cc79a7", "#56b4e9")
_HATCHES = ("", "//", "--", "xx", "\\\\", "++")
_LINES = ("-", "--", ":", "-.", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)))
_MARKERS = ("o", "s", "^", "D", "v", "x")

#: Keeps text as text, and makes the output reproducible.
_STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "floatgate",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "hatch.linewidth": 0.5,
}


@dataclass(frozen=True)
class Bars:
    """A panel of grouped bars. Each series has a value per category, or None."""

    label: str
    categories: Sequence[str]
    series: Mapping[str, Sequence[float | None]]
    #: Value of a reference line.
    reference: float | None = None
    log: bool = False
    title: str = ""
    #: By series: minimum and maximum over the seeds for each category, or None.
    ranges: Mapping[str, Sequence[tuple[float, float] | None]] | None = None


def _style() -> AbstractContextManager[None]:
    try:
        from matplotlib import rc_context  # noqa: PLC0415 (an extra)
    except ImportError as error:
        raise ImportError("the figures of studies need matplotlib: pip install 'floatgate[plot]'") from error
    context: AbstractContextManager[None] = rc_context(_STYLE)
    return context


def _figure(panels: int, width: float, height: float) -> tuple[Figure, list[Axes]]:
    from matplotlib.figure import Figure  # noqa: PLC0415 (an extra)

    figure = Figure(figsize=(width, height * panels), layout="constrained")
    axes = figure.subplots(panels, squeeze=False)[:, 0]
    return figure, list(axes)


def bars(*panels: Bars) -> Figure:
    """Draw panels of bars one below another, with value labels."""
    width = max(6.0, *(1.2 + 0.24 * len(panel.categories) * (len(panel.series) + 1) for panel in panels))
    with _style():
        figure, axes = _figure(len(panels), min(width, 12.0), 2.7)
        for ax, panel in zip(axes, panels, strict=True):
            _draw_bars(ax, panel)
    return figure


def _draw_bars(ax: Axes, panel: Bars) -> None:
    count = len(panel.series)
    width = 0.84 / count
    highest = max((value or 0.0 for values in panel.series.values() for value in values), default=1.0) or 1.0
    for number, (name, values) in enumerate(panel.series.items()):
        places = [index + (number - (count - 1) / 2) * width for index in range(len(values))]
        drawn = ax.bar(
            places, [value or 0.0 for value in values], width * 0.94, label=name, linewidth=0.6, edgecolor="black",
            color=_COLORS[number % len(_COLORS)], hatch=_HATCHES[number % len(_HATCHES)],
        )  # fmt: skip
        for place, between in zip(places, (panel.ranges or {}).get(name, ()), strict=False):
            if between is not None:
                ax.plot([place, place], between, color="black", linewidth=0.9, marker="_", markersize=3)
        labels = ["-" if value is None else _short(value) for value in values]
        small = count * len(values) > 20
        ax.bar_label(drawn, labels, padding=1.5, fontsize=6 if small else 7, rotation=90 if small else 0)
    if panel.reference is not None:
        ax.axhline(panel.reference, color="black", linewidth=0.8, linestyle="--")
    ax.set_xticks(range(len(panel.categories)), panel.categories)
    ax.set_ylabel(panel.label)
    if panel.log:
        ax.set_yscale("log")
        ax.margins(y=0.25)
    else:
        ax.set_ylim(0, highest * (1.28 if count * len(panel.categories) > 20 else 1.15))
    _finish(ax, panel.title, count)


def _short(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}" if abs(value) >= 10 else f"{value:.2f}"


def _finish(ax: Axes, title: str, count: int) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(visible=True, axis="y", alpha=0.3)
    ax.set_axisbelow(True)
    if title:
        ax.set_title(title, fontsize="medium", loc="left")
    if count > 1:
        ax.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0))


@dataclass(frozen=True)
class Lines:
    """A panel of lines: points by series, with or without markers."""

    x: str
    y: str
    series: Mapping[str, tuple[Sequence[float], Sequence[float]]]
    reference: float | None = None
    log_x: bool = False
    log_y: bool = False
    title: str = ""
    marked: bool = True


def lines(*panels: Lines) -> Figure:
    """Draw panels of lines one below another."""
    with _style():
        figure, axes = _figure(len(panels), 7.2, 3.2)
        for ax, panel in zip(axes, panels, strict=True):
            _draw_lines(ax, panel)
    return figure


def _draw_lines(ax: Axes, panel: Lines) -> None:
    for number, (name, (x, y)) in enumerate(panel.series.items()):
        style: dict[str, Any] = {
            "color": ("black", *_COLORS[:2], "#009e73", "#cc79a7", "#666666")[number % 6],
            "linestyle": _LINES[number % len(_LINES)],
            "marker": _MARKERS[number % len(_MARKERS)] if panel.marked else None,
        }
        ax.plot(x, y, label=name, linewidth=1.4, markersize=4, **style)
    if panel.reference is not None:
        ax.axhline(panel.reference, color="black", linewidth=0.8, linestyle="--")
    if panel.log_x:
        ax.set_xscale("log")
        ax.xaxis.set_major_formatter("{x:g}")
    if panel.log_y:
        ax.set_yscale("log")
    ax.set_xlabel(panel.x)
    ax.set_ylabel(panel.y)
    ax.grid(visible=True, axis="x", alpha=0.3)
    _finish(ax, panel.title, len(panel.series))


def stacked(diagrams: Sequence[str]) -> str:
    """Return timing diagrams one below another as an SVG element. They have the same style."""
    sizes = [
        tuple(map(float, re.findall(r'(?:width|height)="([\d.]+)"', each[: each.index(">")]))) for each in diagrams
    ]
    width, height = max(size[0] for size in sizes), sum(size[1] for size in sizes)
    head = re.sub(r'(viewBox=)"[^"]*"', rf'\1"0 0 {width:g} {height:g}"', diagrams[0][: diagrams[0].index(">") + 1])
    head = re.sub(r' aria-labelledby="[^"]*"', "", head)
    head = re.sub(r'(?<= width=)"[^"]*"', f'"{width:g}"', head)
    head = re.sub(r'(?<= height=)"[^"]*"', f'"{height:g}"', head)
    parts, top = [], 0.0
    for diagram, size in zip(diagrams, sizes, strict=True):
        content = diagram[diagram.index(">") + 1 : diagram.rindex("</svg>")]
        parts.append(f'<g transform="translate(0 {top:g})">{content}</g>\n')
        top += size[1]
    return f"{head}\n{''.join(parts)}</svg>\n"


def svg(figure: Figure | str) -> str:
    """Return a figure as an SVG element for a page."""
    if isinstance(figure, str):
        return figure
    file = io.StringIO()
    with _style():
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    text = file.getvalue()
    return text[text.index("<svg") :].strip() + "\n"
