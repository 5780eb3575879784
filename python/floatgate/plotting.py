"""Figures of results and comparisons, with matplotlib (``pip install 'floatgate[plot]'``).

``fg.plot`` is short for this module.
"""

from __future__ import annotations

import textwrap
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from floatgate._files import near
from floatgate._metrics import full_name, title, titled
from floatgate.exceptions import FloatgateWarning, OptionError, OutputError, ResultError

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping, Sequence

    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa
    from matplotlib.axes import Axes

    from floatgate.comparison import Comparison
    from floatgate.result import Result
    from floatgate.tables import Table

__all__ = ["ComparisonPlots", "ResultPlots", "heat_map", "pareto_front", "save", "style"]

#: Settings of matplotlib for a column of a paper: 3.33 inches, and fonts of the size of captions.
_PAPER = {
    "font.size": 8, "axes.titlesize": 8, "axes.labelsize": 8, "xtick.labelsize": 7, "ytick.labelsize": 7,
    "legend.fontsize": 7, "axes.linewidth": 0.6, "lines.linewidth": 1.2, "lines.markersize": 4,
    "xtick.major.width": 0.6, "ytick.major.width": 0.6, "savefig.bbox": "tight", "savefig.pad_inches": 0.02,
    # Editors and publishers require texts as text, in TrueType fonts.
    "pdf.fonttype": 42, "ps.fonttype": 42, "svg.fonttype": "none",
}  # fmt: skip

#: Width of a column of a paper in inches.
_COLUMN = 3.33

#: Style of figures: ``default`` or ``paper``.
_style = "default"

#: Settings of matplotlib before the style.
_before: dict[str, Any] = {}

#: Parts of a latency with their labels, from the host to the flash.
_PARTS = {
    "host_queue_us": "host queue",
    "link_us": "link",
    "firmware_us": "firmware",
    "throttle_us": "throttle",
    "buffer_us": "buffer",
    "order_us": "order",
    "map_fetch_us": "map fetch",
    "fill_us": "fill",
    "die_us": "die",
    "channel_us": "channel",
    "gc_us": "garbage collection",
    "rmw_us": "read-modify-write",
    "bus_us": "bus",
    "cell_us": "cell",
    "ecc_us": "error correction",
    "rebuild_us": "rebuild",
}

#: Groups of requests with latency breakdowns, and their titles.
_LEVELS = {
    "mean": "all requests, on average",
    "p50": "requests near p50",
    "p99": "requests near p99",
    "p99_9": "requests near p99.9",
}

#: Colors of the parts: distinguishable with color vision deficiencies (after Okabe and Ito 2008), and grays.
_COLORS = (
    "#999999", "#cccccc", "#f0e442", "#332288", "#b3de69", "#666666", "#009e73", "#882255",
    "#e69f00", "#d55e00", "#cc79a7", "#8c6d31", "#56b4e9", "#0072b2",
    "#117733", "#aa4499",
)  # fmt: skip

#: Hatches of bands that overlap.
_HATCHES = ("//", "\\\\", "||", "--")


def style(name: Literal["default", "paper"]) -> None:
    """Set the size and the fonts of all further figures.

    Parameters
    ----------
    name
        ``"paper"``: figures are as wide as a column of a two-column paper (3.33 inches), without a title, in fonts of 7
        and 8 points. PDF and SVG files contain texts as text. ``"default"``: as before.

    Raises
    ------
    OptionError
        There is no such style.

    Examples
    --------
    >>> fg.plot.style("paper")
    >>> fg.plot.save(result.plot.cdf(), "latency.pdf")
    PosixPath('latency.pdf')
    >>> fg.plot.style("default")
    """
    global _style  # noqa: PLW0603 (like the settings of matplotlib)
    if name not in ("default", "paper"):
        raise OptionError(f"unknown style {name!r}: expected default or paper")
    settings = _pyplot().rcParams
    if name == "paper" and _style == "default":
        _before.update({key: settings[key] for key in _PAPER})
        settings.update(_PAPER)
    elif name == "default":
        settings.update(_before)
        _before.clear()
    _style = name


def save(ax: Axes, path: str | os.PathLike[str]) -> Path:
    """Write the figure of axes to a file: ``.pdf``, ``.svg`` or ``.png``.

    Parameters
    ----------
    ax
        Axes that a function of this package returned.
    path
        The file. The end of its name is the format.

    Returns
    -------
    pathlib.Path
        The file.

    Raises
    ------
    OutputError
        The file cannot be written, or its format is unknown.
    """
    place = Path(path)
    figure = ax.get_figure(root=True)
    try:
        # Files do not have the date, so that equal figures are equal files.
        dated = {".pdf": "CreationDate", ".svg": "Date"}.get(place.suffix.lower())
        metadata = {dated: None} if dated else None
        figure.savefig(place, metadata=metadata)  # type: ignore[union-attr] # axes have a figure
    except (OSError, ValueError) as error:
        raise OutputError(f"cannot write {place}: {error}") from error
    return place


def _pyplot() -> Any:  # noqa: ANN401 (a module)
    try:
        from matplotlib import pyplot as plt  # noqa: PLC0415 (an extra)
    except ImportError as error:
        raise ImportError("figures need matplotlib: pip install 'floatgate[plot]'") from error
    return plt


def _axes(ax: Axes | None, width: float = 6.4, height: float = 4.0) -> Axes:
    """Return the axes, or create a figure."""
    if ax is not None:
        return ax
    if _style == "paper":
        # Fonts are smaller, but not as much as figures.
        width, height = _COLUMN, max(1.6, 1.2 * height * _COLUMN / width)
    axes: Axes = _pyplot().subplots(figsize=(width, height), layout="constrained")[1]
    return axes


def _finish(ax: Axes, x: str, y: str, title: str) -> Axes:
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    # About ten characters per inch.
    width: float = ax.figure.get_figwidth()  # type: ignore[union-attr] # the axes have a figure
    # In a paper, the caption is the title.
    ax.set_title("" if _style == "paper" else textwrap.fill(title, int(10 * width)), fontsize="medium")
    ax.grid(visible=True, alpha=0.3)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _legend(ax: Axes) -> None:
    if len(ax.get_legend_handles_labels()[0]) > 1:
        ax.legend(frameon=False)


def _legend_above(ax: Axes) -> None:
    """Draw a legend of any length with two columns, and make space for it above the lines."""
    entries = len(ax.get_legend_handles_labels()[0])
    if not entries:
        return
    ax.margins(y=0.05 + 0.03 * (entries + 1))
    ax.legend(ncols=2, fontsize="small", loc="upper right", framealpha=0.85, edgecolor="none")


def _curve(result: Result, operation: str) -> dict[str, Any] | None:
    """Return a latency distribution: latencies ``us``, and how many of the ``requests`` took ``longer`` than each."""
    curves: list[dict[str, Any]] = result.summary.to_dict()["distributions"]["latency"]
    return next((curve for curve in curves if curve["operation"] == operation), None)


def _stairs(curve: dict[str, Any]) -> tuple[list[float], list[int]]:
    """Return the points of a line: latencies, and the number of requests that took longer.

    Between two points of the distribution, the number falls linearly, because the latencies between them are unknown.
    Requests with one latency are a step, as in ``report.html``. The first positive latency is a step too: on a
    logarithmic axis, 0 is infinitely far away, and a sloping line from there would be horizontal at its upper end.
    """
    count = before = curve["requests"]
    us = [curve["us"][0]]
    longer = [count]
    for time, left in zip(curve["us"], curve["longer"], strict=True):
        taken = before - left
        # The distribution has a point every 0.5% of the requests, and every tenth of the rest, apart from steps.
        if us[-1] == 0 < time or (taken >= 2 and (taken > count / 100 or taken > before / 5)):
            us.append(time)
            longer.append(before)
        us.append(time)
        longer.append(left)
        before = left
    return us, longer


def _check_curves(curves: Iterable[dict[str, Any] | None], what: str) -> None:
    """Raise an error if there is nothing to draw on a logarithmic axis of latencies."""
    there = [curve for curve in curves if curve is not None]
    if not there:
        raise ResultError(f"no {what} to draw")
    if all(curve["us"][-1] == 0 for curve in there):
        raise ResultError(f"no {what} to draw: all of them completed at once (latency 0)")


def _operations(result: Result) -> list[str]:
    """List the operations with latencies."""
    names = [curve["operation"] for curve in result.summary.to_dict()["distributions"]["latency"]]
    return [name for name in names if name != "all"] or names


def _draw_cdf(ax: Axes, result: Result, operation: str, label: str, tail: bool, **style: Any) -> None:  # noqa: ANN401
    curve = _curve(result, operation)
    if curve is None:
        return
    us, longer = _stairs(curve)
    total = curve["requests"]
    # A logarithmic axis has no 0. Just below the greatest latency, one request takes longer.
    shares = [max(number, 1) / total if tail else 1 - number / total for number in longer]
    # All of a line at latency 0 is left of the axis.
    ax.plot(us, shares, label=label if us[-1] > 0 else f"{label} (at once)", **style)


def _draw_breakdowns(ax: Axes, breakdowns: Mapping[str, Mapping[str, float]]) -> dict[str, Any]:
    """Draw a bar per operation, and return the handles of its parts for a legend, by label."""
    names = list(breakdowns)
    handles = {}
    left = [0.0] * len(names)
    for (key, words), color in zip(_PARTS.items(), _COLORS, strict=True):
        widths = [breakdowns[name].get(key, 0.0) for name in names]
        if any(widths):
            handles[words] = ax.barh(range(len(names)), widths, left=left, color=color)
            left = [start + width for start, width in zip(left, widths, strict=True)]
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_xlim(0, 1.02 * max(left) or 1)
    _finish(ax, "", "", "").tick_params(labelsize="x-small")
    return handles


def _finish_cdf(ax: Axes, tail: bool, title: str) -> Axes:
    ax.set_xscale("log")
    if tail:
        ax.set_yscale("log")
    else:
        ax.set_ylim(0, 1.01)
    _legend(ax)
    return _finish(ax, "latency, us", "share that took longer" if tail else "share that took no longer", title)


class ResultPlots:
    """Figures of a result: ``result.plot``. Each method draws on `ax` or on a new figure, and returns the axes."""

    def __init__(self, result: Result) -> None:
        self._result = result

    @property
    def _title(self) -> str:
        return f"{self._result.label}: {self._result.summary['workload']['name']}"

    def cdf(self, ax: Axes | None = None, *, operations: Iterable[str] | None = None, tail: bool = False) -> Axes:
        """Draw the distribution of latencies.

        The axis of latencies is logarithmic. Requests that completed at once, in 0 us, are at its left edge.

        Parameters
        ----------
        ax
            Axes to draw on. Default: a new figure.
        operations
            ``"read"``, ``"write"``, ``"all"`` and so on. Default: all operations that occurred.
        tail
            Draw the share that took longer, on logarithmic axes.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ResultError
            The result has no requests, or all of them completed at once.
        """
        names = list(operations) if operations is not None else _operations(self._result)
        _check_curves((_curve(self._result, name) for name in names), "requests")
        ax = _axes(ax)
        for name in names:
            _draw_cdf(ax, self._result, name, name, tail)
        return _finish_cdf(ax, tail, self._title)

    def latency(self, ax: Axes | None = None, *, operations: Iterable[str] | None = None) -> Axes:
        """Draw latencies over simulated time: the mean, and a hatched band up to the 99th percentile.

        Lines are moving averages over 1/32 of the run.

        Parameters
        ----------
        ax
            Axes to draw on. Default: a new figure.
        operations
            ``"read"``, ``"write"`` and so on. Default: all operations that occurred.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ResultError
            The run was not recorded over time.
        """
        over = _OverTime(self._result)
        ax = _axes(ax, width=8)
        names = list(operations) if operations is not None else _operations(self._result)
        for index, name in enumerate(name for name in names if f"{name}_p99_us" in over.names):
            color = f"C{index}"
            count = over[f"{name}_count"]
            mean, p99 = over[f"{name}_mean_us"], over[f"{name}_p99_us"]
            smooth, tail = over.smoothed(mean, count), over.smoothed(p99, count)
            ax.plot(over.x, smooth, color=color, linewidth=1.8, label=f"{name}, mean")
            ax.plot(over.x, tail, color=color, linewidth=1.2, linestyle="--", label=f"{name}, p99")
            # Hatches remain distinct where bands overlap, unlike colors.
            ax.fill_between(over.x, smooth, tail, facecolor="none", edgecolor=color, alpha=0.35, linewidth=0,
                            hatch=_HATCHES[index % len(_HATCHES)])  # fmt: skip
        # If all requests completed at once, a logarithmic axis has no values.
        if ax.dataLim.y1 > 0:
            ax.set_yscale("log")
        _legend_above(ax)
        return _finish(ax, f"simulated time, {over.unit}", "latency, us", self._title)

    def throughput(
        self,
        ax: Axes | None = None,
        *,
        operations: Iterable[str] | None = None,
        unit: Literal["iops", "mib_per_s"] = "iops",
    ) -> Axes:
        """Draw throughput over simulated time.

        Bold lines are moving averages over 1/32 of the run. Thin lines behind them are the values of each window.

        Parameters
        ----------
        ax
            Axes to draw on. Default: a new figure.
        operations
            ``"read"``, ``"write"`` and so on. Default: all operations that occurred.
        unit
            ``"iops"``, or ``"mib_per_s"``.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ResultError
            The run was not recorded over time.
        """
        over = _OverTime(self._result)
        ax = _axes(ax, width=8)
        names = list(operations) if operations is not None else _operations(self._result)
        column, scale = ("count", 1.0) if unit == "iops" else ("bytes", float(1 << 20))
        for index, name in enumerate(name for name in names if f"{name}_count" in over.names):
            rate = over[f"{name}_{column}"] / over.seconds / scale
            smooth = over.smoothed(rate, over.seconds)
            ax.plot(over.x, rate, color=f"C{index}", linewidth=0.8, alpha=0.4, zorder=1, label=f"{name}, windows")
            ax.plot(over.x, smooth, color=f"C{index}", linewidth=1.8, label=f"{name}, moving average")
        _legend_above(ax)
        ax.set_ylim(bottom=0)
        words = "IOPS" if unit == "iops" else "MiB/s"
        return _finish(ax, f"simulated time, {over.unit}", words, self._title)

    def write_amplification(self, ax: Axes | None = None) -> Axes:
        """Draw write amplification over simulated time: that of the run so far, and a moving average.

        The moving average covers 1/32 of the run, because the ratio of a single window says little: writes count before
        they are programmed.

        Parameters
        ----------
        ax
            Axes to draw on. Default: a new figure.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ResultError
            The run was not recorded over time, or has no writes.
        """
        import numpy as np  # noqa: PLC0415 (not needed to import the package)

        over = _OverTime(self._result)
        host, programmed = over["host_units"], over["units_programmed"]
        written = np.cumsum(host)
        if not len(written) or written[-1] == 0:
            raise ResultError("no writes to draw")
        ax = _axes(ax, width=8)
        near_by = over.sums(host)
        with np.errstate(divide="ignore", invalid="ignore"):
            so_far = np.where(written > 0, np.cumsum(programmed) / written, np.nan)
            # With less than half of the mean, the ratio says more about when writes arrived.
            moving = np.where(near_by >= written[-1] / 64, over.sums(programmed) / near_by, np.nan)
        ax.plot(over.x, moving, color="C0", linewidth=0.9, alpha=0.4, label="moving average")
        ax.plot(over.x, so_far, color="C0", linewidth=1.8, label="run so far")
        shown = np.concatenate([so_far, moving])
        shown = shown[np.isfinite(shown)]
        ax.set_ylim(0, 1.15 * float(np.quantile(shown, 0.99)))
        _legend(ax)
        return _finish(ax, f"simulated time, {over.unit}", "write amplification", self._title)

    def wear(self, ax: Axes | None = None) -> Axes:
        """Draw the number of blocks by their erases since the device was new.

        Parameters
        ----------
        ax
            Axes to draw on. Default: a new figure.

        Returns
        -------
        matplotlib.axes.Axes
        """
        wear = self._result.summary.wear
        classes, spread = wear.histogram, wear.blocks
        ax = _axes(ax)
        from matplotlib.ticker import MaxNLocator  # noqa: PLC0415 (an extra)

        left = [classes.from_ + classes.width * index for index in range(len(classes.blocks))]
        # A class of a single count is drawn around it, a wider one from its first count to its last.
        start = -0.5
        ax.bar([at + start for at in left], classes.blocks, width=classes.width, align="edge", color="#0072b2",
               edgecolor="white", linewidth=0.5 if len(left) < 40 else 0.2)  # fmt: skip
        ax.axvline(spread.mean, color="#d55e00", linewidth=1.2, label=f"mean {spread.mean:.4g} +- {spread.stddev:.3g}")
        endurance = self._result.summary.config.nand.endurance
        if endurance and left[-1] + classes.width > endurance / 2:
            ax.axvline(endurance, color="#333333", linewidth=1.2, linestyle="--", label=f"endurance {endurance:,}")
        ax.legend(frameon=False, fontsize="small")
        ax.set_ylim(bottom=0)
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_locator(MaxNLocator("auto", steps=(1, 2, 5, 10), integer=True, min_n_ticks=1))
        return _finish(ax, "erases of a block", "blocks", self._title)

    def attribution(self, ax: Axes | None = None, *, at: Sequence[str] = ("mean", "p50", "p99", "p99_9")) -> Axes:
        """Draw latency breakdowns: of all requests, and of requests at percentiles.

        Each has a panel with its own scale: ``ax.child_axes``.

        Parameters
        ----------
        ax
            Axes whose area the panels share. Default: a new figure.
        at
            A selection of ``"mean"``, ``"p50"``, ``"p99"`` and ``"p99_9"``.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        OptionError
            `at` is empty, or has another name.
        ResultError
            The result has no latency breakdowns, or no requests.
        """
        if not at or not set(at) <= set(_LEVELS):
            raise OptionError(f"invalid at={at!r}: expected one or more of {', '.join(_LEVELS)}")
        requests = self._result.summary.to_dict()["requests"]
        breakdowns = {
            name: of["attribution"] for name, of in requests.items() if of["attribution"] is not None and name != "all"
        }
        if not breakdowns:
            raise ResultError("no latency breakdowns; run with attribution=True")
        ax = _axes(ax, width=8, height=0.8 + len(at) * (0.7 + 0.25 * len(breakdowns)))
        _finish(ax, "", "", self._title).set_axis_off()
        # A panel takes 48% of its part of the height. The rest has its title above, and its axis below.
        share = 1 / len(at)
        handles: dict[str, Any] = {}
        for index, kind in enumerate(at):
            panel = ax.inset_axes((0, 1 - share * (index + 0.78), 1, 0.48 * share))
            handles |= _draw_breakdowns(panel, {name: of[kind] for name, of in breakdowns.items()})
            panel.set_title(_LEVELS[kind], loc="left", fontsize="small", pad=2)
        panel.set_xlabel("latency, us")
        shown = [words for words in _PARTS.values() if words in handles]
        ax.legend([handles[words] for words in shown], shown, frameon=False, fontsize="small", loc="center left",
                  bbox_to_anchor=(1, 0.5))  # fmt: skip
        return ax

    def utilization(self, ax: Axes | None = None) -> Axes:
        """Draw the busy time of every channel and die.

        Parameters
        ----------
        ax
            Axes to draw on. Default: a new figure.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ResultError
            The result has no utilization by channel and die: nothing was measured, or the device has too many dies.
        """
        each = self._result.summary.to_dict()["utilization"]["each"]
        _check_dies(each)
        ax = _axes(ax, width=8)
        channels, dies = len(each["channel_data"]), len(each["die_cell"])
        # The bar of a channel is as wide as the bars of its dies. A gap separates channels and dies.
        width = dies / channels
        where = [width * (index + 0.5) for index in range(channels)]
        behind = [dies * 1.05 + index + 0.5 for index in range(dies)]
        bars = (
            (where, width, "channel_data", None, "channel: data", "#0072b2"),
            (where, width, "channel_command", "channel_data", "channel: commands", "#56b4e9"),
            (behind, 1, "die_cell", None, "die: cells", "#d55e00"),
            (behind, 1, "die_register_held", "die_cell", "die: held", "#f0c27b"),
        )
        for places, wide, upper, lower, words, color in bars:
            ax.bar(places, each[upper], width=0.9 * wide, bottom=each[lower] if lower else 0, color=color, label=words)
        ax.set_xticks([dies / 2, dies * 1.55], [f"{channels} channels", f"{dies} dies"])
        ax.set_ylim(0, 1)
        ax.legend(frameon=False, fontsize="small", ncols=4, loc="upper center", bbox_to_anchor=(0.5, -0.1))
        return _finish(ax, "", "share of the measured time", self._title)

    def chips(self, ax: Axes | None = None, *, held: bool = False, text: bool | None = None) -> Axes:
        """Draw the utilization of every chip and channel as a heat map.

        A row is a channel. Its first cell is the share of the measured time in which the channel transferred data, and
        the others are the shares in which the cells of its chips were busy. If a chip has several dies, which work on
        their own, each die has a cell.

        Parameters
        ----------
        ax
            Axes to draw on. Default: a new figure.
        held
            Add the time in which a chip was held with idle cells, while its data moved or waited for the channel.
        text
            Write the shares into the cells. Default: if there are at most 160.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ResultError
            The result has no utilization by die: nothing was measured, or the device has too many dies.
        """
        import numpy as np  # noqa: PLC0415 (not needed to import the package)

        each = self._result.summary.to_dict()["utilization"]["each"]
        _check_dies(each)
        channels = len(each["channel_data"])
        shares = np.array(each["die_cell"]) + (np.array(each["die_register_held"]) if held else 0)
        grid = np.column_stack([np.array(each["channel_data"]), shares.reshape(channels, -1)])
        units = grid.shape[1] - 1
        ax = _axes(ax, width=2.4 + 0.5 * units, height=max(2.4, 1.4 + 0.32 * channels))
        image = ax.imshow(grid, cmap="cividis_r", vmin=0, vmax=1, aspect="auto")
        ax.figure.colorbar(image, ax=ax, format=_percent).set_label("share of the time")
        word, chips = _execution_units(self._result, units)
        ax.set_xticks(range(units + 1), ["channel", *chips])
        ax.set_yticks(range(channels), [str(channel) for channel in range(channels)])
        # A gap separates channels and chips.
        ax.axvline(0.5, color="white", linewidth=4)
        if text if text is not None else grid.size <= _LABELED:
            _write_shares(ax, grid)
        busy = "busy or held" if held else "cells busy"
        _finish(ax, f"{word} of the channel: {busy}", "channel", self._title)
        ax.grid(visible=False)
        ax.spines[:].set_visible(False)
        return ax


#: Greatest number of cells of a heat map that have their numbers in them, as in ``report.html``.
_LABELED = 160


def _check_dies(each: Mapping[str, Any]) -> None:
    if not each["die_cell"]:
        raise ResultError("no utilization by die: nothing was measured, or the device has more than 4096 dies")


def _percent(share: float, _position: object = None) -> str:
    return f"{share:.0%}"


def _execution_units(result: Result, units: int) -> tuple[str, list[str]]:
    """Return the word for the dies of a channel, and their names: of chips, if each has one die."""
    dies = int(result.summary.config.geometry.dies)
    if dies == 1:
        return "chip", [str(chip) for chip in range(units)]
    return "die", [f"{unit // dies}.{unit % dies}" for unit in range(units)]


def _write_shares(ax: Axes, grid: npt.NDArray[np.float64]) -> None:
    """Write shares in percent into the cells of a heat map."""
    import numpy as np  # noqa: PLC0415 (not needed to import the package)

    for (row, column), share in np.ndenumerate(grid):
        ax.text(column, row, f"{100 * share:.0f}", ha="center", va="center", fontsize="small",
                color="white" if share > 0.55 else "black")  # fmt: skip


class _OverTime:
    """The series of a result as arrays, with the x axis of figures."""

    def __init__(self, result: Result) -> None:
        import numpy as np  # noqa: PLC0415 (not needed to import the package)

        self._series = result.series()
        self.names = set(self._series.column_names)
        end = self["end_ps"]
        scale, self.unit = _time_scale(float(end[-1]) if len(end) else 0.0)
        self.x = end / scale
        self.seconds = np.maximum(end - self["start_ps"], 1.0) / 1e12

    def __getitem__(self, name: str) -> npt.NDArray[np.float64]:
        import numpy as np  # noqa: PLC0415 (not needed to import the package)

        column: npt.NDArray[np.float64] = self._series[name].to_numpy().astype(np.float64)
        return column

    def sums(self, values: npt.NDArray[np.float64], parts: int = 32) -> npt.NDArray[np.float64]:
        """Return moving sums over a part of the run, centered, and over fewer windows at both ends."""
        import numpy as np  # noqa: PLC0415 (not needed to import the package)

        half = len(values) // (2 * parts)
        total = np.concatenate([[0.0], np.cumsum(np.nan_to_num(values))])
        at = np.arange(len(values))
        sums: npt.NDArray[np.float64] = total[np.minimum(at + half + 1, len(values))] - total[np.maximum(at - half, 0)]
        return sums

    def smoothed(self, values: npt.NDArray[np.float64], weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return moving averages with weights. Windows without a value do not count."""
        import numpy as np  # noqa: PLC0415 (not needed to import the package)

        weights = np.where(np.isfinite(values), weights, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            smooth: npt.NDArray[np.float64] = self.sums(np.nan_to_num(values) * weights) / self.sums(weights)
        return smooth


def _time_scale(ps: float) -> tuple[float, str]:
    """Return the unit for times up to `ps` picoseconds."""
    for unit, scale in (("s", 1e12), ("ms", 1e9), ("us", 1e6)):
        if ps >= scale:
            return scale, unit
    return 1e3, "ns"


class ComparisonPlots:
    """Figures of a comparison: ``comparison.plot``."""

    def __init__(self, comparison: Comparison) -> None:
        self._comparison = comparison

    def cdf(self, ax: Axes | None = None, *, operation: str | None = None, tail: bool = False) -> Axes:
        """Draw latency distributions in one figure, with a color per group and a line per seed.

        The axis of latencies is logarithmic. Requests that completed at once, in 0 us, are at its left edge.

        Parameters
        ----------
        ax
            Axes to draw on. Default: a new figure.
        operation
            ``"read"``, ``"write"``, ``"all"`` and so on. Default: the first operation that occurred.
        tail
            Draw the share that took longer, on logarithmic axes.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ResultError
            No result has such requests, or all of them completed at once.
        """
        groups = list(self._comparison.groups.items())
        if operation is None:
            names = _operations(groups[0][1][0])
            operation = names[0] if names else "all"
        _check_curves((_curve(run, operation) for _, runs in groups for run in runs), f"{operation} requests")
        ax = _axes(ax)
        for index, (label, runs) in enumerate(groups):
            for number, run in enumerate(runs):
                style = {"color": f"C{index}", "alpha": 1.0 if len(runs) == 1 else 0.6}
                _draw_cdf(ax, run, operation, label if number == 0 else "_nolegend_", tail, **style)
        return _finish_cdf(ax, tail, operation)

    def metric(self, metric: str, ax: Axes | None = None) -> Axes:
        """Draw one metric of all groups, with 95% confidence intervals over seeds.

        Parameters
        ----------
        metric
            A path in a summary, such as ``"write_amplification"`` or ``"read.latency_us.p99"``: a name from
            ``comparison.table()["metric"]``, where ``requests.`` may be left out.
        ax
            Axes to draw on. Default: a new figure.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ResultError
            The metric does not exist.
        """
        found = self._comparison._metric(metric)
        shown = [
            (label, cell["mean"], cell["half_width"])
            for label, cell in zip(self._comparison.labels, found["values"], strict=True)
            if cell is not None
        ]
        ax = _axes(ax)
        labels, means, errors = (list(column) for column in zip(*shown, strict=True))
        ax.bar(labels, means, color=[f"C{index}" for index in range(len(labels))], width=0.6)
        for index, (mean, error) in enumerate(zip(means, errors, strict=True)):
            if error is not None:
                ax.errorbar(index, mean, error, color="black", capsize=4, linewidth=1.2)
        if max(map(len, labels)) * len(labels) > 50:
            ax.tick_params(axis="x", rotation=30)
            for text in ax.get_xticklabels():
                text.set_horizontalalignment("right")
        ax.set_ylim(bottom=0)
        finished = _finish(ax, "", titled(found["label"], found["unit"]), found["label"])
        finished.grid(visible=False, axis="x")
        return finished

    def differences(
        self, metrics: Iterable[str] | None = None, ax: Axes | None = None, *, most: int | None = None
    ) -> Axes:
        """Draw the differences from the first group, with corrected confidence intervals, as in the HTML page.

        A difference is relative to the mean of the first group. With several seeds, its interval is corrected for the
        number of tested differences (:attr:`Comparison.tested`): one that excludes 0 is significant, and its marker is
        filled.

        Parameters
        ----------
        metrics
            Paths in a summary, as for :meth:`metric`. Default: all that differ, apart from demerits.
        ax
            Axes to draw on. Default: a new figure.
        most
            Draw at most this many metrics: the ones that differ most.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ResultError
            A metric does not exist, or nothing differs.
        """
        rows = self._comparison._content["metrics"]
        if metrics is None:
            rows = [row for row in rows if not row["metric"].endswith(_DEMERITS)]
        else:
            rows = [self._comparison._metric(name) for name in metrics]
        drawn = [(row, points) for row in rows if (points := _relative(row))]
        if most is not None:
            by_distance = sorted(drawn, key=lambda pair: -max(abs(point["by"]) for point in pair[1]))[:most]
            drawn = [pair for pair in drawn if pair in by_distance]
        if not drawn:
            raise ResultError("no differences to draw")
        labels = self._comparison.labels
        ax = _axes(ax, height=1.2 + 0.22 * len(drawn) * (len(labels) - 1))
        for group, label in enumerate(labels[1:], 1):
            _draw_differences(ax, drawn, group, len(labels) - 1, label)
        names = [titled(row["label"], row["unit"] if row["unit"] != "share" else "") for row, _ in drawn]
        ax.set_yticks(range(len(drawn)), names)
        ax.set_ylim(len(drawn) - 0.5, -0.5)
        ax.axvline(0, color="#333333", linewidth=0.8, zorder=1)
        _limit(ax, [point for _, points in drawn for point in points])
        if len(labels) > 2:
            ax.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=3)
        title = "" if len(labels) > 2 else f"{labels[1]}, compared with {labels[0]}"
        return _finish(ax, f"difference from {labels[0]}", "", title)


#: Ends of the paths of demerits, which are distances already.
_DEMERITS = ("demerit_us", "demerit_share")


def _relative(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the differences of a metric from the first group, relative to its mean, where they can be drawn."""
    first = row["values"][0]
    if first is None or first["mean"] == 0:
        return []
    size = abs(first["mean"])
    return [
        {
            "group": group, "by": (cell["mean"] - first["mean"]) / size,
            "significant": cell["difference"] == "significant",
            "half": None if cell["interval"] is None else (cell["interval"][1] - cell["interval"][0]) / 2 / size,
        }
        for group, cell in enumerate(row["values"][1:], 1)
        if cell is not None and cell["difference"] not in (None, "same")
    ]  # fmt: skip


def _draw_differences(ax: Axes, drawn: list[Any], group: int, groups: int, label: str) -> None:
    """Draw the differences of a group, with a filled marker for significant ones."""
    color = f"C{group - 1}"
    offset = ((group - 1) - (groups - 1) / 2) * 0.6 / groups
    shown = [(place, point) for place, (_, points) in enumerate(drawn) for point in points if point["group"] == group]
    for index, (place, point) in enumerate(shown):
        ax.errorbar(
            point["by"], place + offset, xerr=point["half"], fmt="o", color=color, markersize=4.5, linewidth=1.2,
            capsize=2.5, markerfacecolor=color if point["significant"] else "white",
            label=label if index == 0 else "_nolegend_",
        )  # fmt: skip


def _limit(ax: Axes, points: list[dict[str, Any]]) -> None:
    """Set the axis of differences: all differences fit, and two thirds of the intervals."""
    from matplotlib.ticker import PercentFormatter  # noqa: PLC0415 (an extra)

    extents = sorted(abs(point["by"]) + (point["half"] or 0.0) for point in points)
    limit = 1.15 * max(extents[len(extents) * 2 // 3 if len(extents) > 2 else -1],
                       *(abs(point["by"]) for point in points), 1e-6)  # fmt: skip
    ax.set_xlim(-limit, limit)
    ax.xaxis.set_major_formatter(PercentFormatter(xmax=1))


def front(
    rows: list[dict[str, Any]], x: str, y: str, *, stairs: Literal["pre", "post"] | None, ax: Axes | None
) -> Axes:
    """Draw the points of a search, and its front in color. `stairs` is the step style of the line through the front."""
    ax = _axes(ax)
    for on_front, color, label in ((False, "#999999", "tried"), (True, "#0072b2", "front")):
        chosen = [row for row in rows if row["front"] is on_front and row["error"] is None]
        chosen.sort(key=lambda row: (row[x], row[y]))
        places = [row[x] for row in chosen], [row[y] for row in chosen]
        ax.plot(*places, "o", color=color, label=label, markersize=6 if on_front else 4)
        if on_front and stairs is not None:
            ax.step(*places, where=stairs, color=color, linewidth=1)
    _legend(ax)
    return _finish(ax, title(x), title(y), "Points tried, and the Pareto front")


def name_points(ax: Axes, named: list[tuple[float, float, str]]) -> None:
    """Write a name next to each point, at most as many as can be read."""
    step = -(-len(named) // _NAMES)
    for x, y, name in sorted(named)[::step] if named else []:
        ax.annotate(name, (x, y), xytext=(5, 5), textcoords="offset points", fontsize="small")


#: Greatest number of names in a figure.
_NAMES = 12


def heat_map(
    table: pa.Table | Table,
    x: str,
    y: str,
    value: str,
    ax: Axes | None = None,
    *,
    log: bool = False,
    text: bool | None = None,
) -> Axes:
    """Draw a value of a sweep by two of its parameters, as a heat map. Several seeds are averaged.

    Cells whose runs have no value are empty, and cells whose runs all failed are marked as such.

    Parameters
    ----------
    table
        The table of :func:`floatgate.sweep`.
    x, y
        Parameters: columns of the table.
    value
        Number to draw, such as ``"write_amplification"`` or ``"requests.read.latency_us.p99"``.
    ax
        Axes to draw on. Default: a new figure.
    log
        Use a logarithmic scale of colors.
    text
        Write the numbers into the cells. Default: if there are at most 100.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    OptionError
        A column does not exist.
    ResultError
        No run has this value, or all runs failed.

    Warns
    -----
    FloatgateWarning
        Some runs failed.

    Examples
    --------
    >>> table = fg.sweep(
    ...     {"capacity.spare": [0.1, 0.2, 0.3], "gc.victim": ["greedy", "fifo"]},
    ...     device="tiny", workload="rw=randwrite number_ios=2k", precondition="steady", n_jobs=1)
    >>> fg.plotting.heat_map(table, "capacity.spare", "gc.victim", "write_amplification")
    <Axes: ...>
    """
    import numpy as np  # noqa: PLC0415 (not needed to import the package)

    x, y, value = (full_name(name, table.column_names) for name in (x, y, value))
    rows = _chosen(table, x, y, value)
    if all(row[value] is None for row in rows):
        raise ResultError(f"no run has a value of {value}")
    _warn_of_failures(rows)
    across, down = (_steps([row[name] for row in rows]) for name in (x, y))
    cells: dict[tuple[int, int], list[float]] = {}
    failed: dict[tuple[int, int], bool] = {}
    for row in rows:
        place = down.index(row[y]), across.index(row[x])
        failed[place] = failed.get(place, True) and row["error"] is not None
        if row[value] is not None:
            cells.setdefault(place, []).append(float(row[value]))
    grid = np.full((len(down), len(across)), np.nan)
    for place, values in cells.items():
        grid[place] = sum(values) / len(values)
    ax = _axes(ax, width=2.2 + 0.7 * len(across), height=1.6 + 0.45 * len(down))
    image = ax.imshow(grid, cmap="viridis", norm="log" if log else "linear", aspect="auto", origin="lower")
    colorbar = ax.figure.colorbar(image, ax=ax)
    colorbar.set_label(title(value))
    ax.set_xticks(range(len(across)), [_called(step) for step in across])
    ax.set_yticks(range(len(down)), [_called(step) for step in down])
    if text if text is not None else grid.size <= 100:
        for (row_at, column_at), number in np.ndenumerate(grid):
            if np.isfinite(number):
                dark = float(np.asarray(image.norm(number))) < 0.6
                ax.text(column_at, row_at, _short(number), ha="center", va="center", fontsize="small",
                        color="white" if dark else "black")  # fmt: skip
    for row_at, column_at in (place for place, every in failed.items() if every):
        ax.text(column_at, row_at, "failed", ha="center", va="center", fontsize="small", color="#999999")
    ax.spines[:].set_visible(False)
    ax.set_xlabel(title(x))
    ax.set_ylabel(title(y))
    return ax


def _short(number: float) -> str:
    """Format a number with three digits, and without an exponent if it is large."""
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.3g}"


def pareto_front(
    table: pa.Table | Table,
    x: str,
    y: str,
    ax: Axes | None = None,
    *,
    maximize: Iterable[str] = (),
    label: str | None = None,
) -> Axes:
    """Draw the designs of a sweep by two values, and the Pareto front in color. Several seeds are averaged.

    Parameters
    ----------
    table
        The table of :func:`floatgate.sweep`, in which the parameters are the columns before ``seed``. Rows with equal
        parameters are one design, whose values are the means of the rows. Without such columns, each row is a design.
    x, y
        Numbers, such as ``"write_amplification"``. Smaller is better.
    ax
        Axes to draw on. Default: a new figure.
    maximize
        Those of `x` and `y` of which larger is better.
    label
        Column whose values are written next to the points of the front, such as a parameter. Default: the parameters
        that vary, apart from `x` and `y`. An empty text: no names.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    OptionError
        A column does not exist, or rows with equal parameters and seeds differ.
    ResultError
        No run has both values, or all runs failed.

    Warns
    -----
    FloatgateWarning
        Some runs failed. A design is drawn if one of its runs has both values.

    Examples
    --------
    >>> table = fg.sweep(
    ...     {"capacity.spare": [0.1, 0.2, 0.3]},
    ...     device="tiny", workload="rw=randwrite number_ios=2k", precondition="steady", n_jobs=1)
    >>> fg.plotting.pareto_front(table, "capacity.spare", "write_amplification")
    <Axes: ...>
    """
    x, y = (full_name(name, table.column_names) for name in (x, y))
    better = {full_name(name, table.column_names) for name in maximize}
    if unknown := better - {x, y}:
        raise OptionError(f"maximize={', '.join(sorted(unknown))}: expected {x} or {y}")
    design = _columns_of_a_design(table)
    shown_too = _varying(table, design, (x, y)) if label is None else [label] if label else []
    names = [x, y, *shown_too]
    every = _chosen(table, *names, *design, *(["seed"] if design else []))
    rows = [row for row in every if row[x] is not None and row[y] is not None]
    if not rows:
        raise ResultError(f"no run has values of {x} and {y}")
    _warn_of_failures(every)
    rows = _over_seeds(rows, names, design) if design else rows
    signs = {name: -1.0 if name in better else 1.0 for name in (x, y)}
    best = [row for row in rows if not any(_dominates(other, row, signs) for other in rows)]
    shown = [{**row, "front": row in best, "error": None} for row in rows]
    ax = front(shown, x, y, stairs="pre" if x in better else "post", ax=ax)
    places = {(row[x], row[y]): row for row in best}
    name_points(ax, [(*place, _named(row, shown_too, label)) for place, row in places.items() if shown_too])
    ax.set_title("" if _style == "paper" else "Designs, and the Pareto front", fontsize="medium")
    return ax


def _varying(table: pa.Table | Table, design: list[str], others: tuple[str, str]) -> list[str]:
    """Return the parameters that have several values in a table."""
    names = [name for name in design if name != "config_digest" and name not in others]
    return [name for name in names if len(set(map(str, table[name].to_pylist()))) > 1]


def _named(row: Mapping[str, Any], names: list[str], label: str | None) -> str:
    """Return the name of a design: the value of `label`, or the values of the parameters that vary."""
    return ", ".join(named_value(name, row[name], with_name=label is None) for name in names)


def named_value(name: str, value: object, *, with_name: bool = True) -> str:
    """Return a parameter with its value for a figure, by the last part of its path: ``victim fifo``."""
    return f"{name.rpartition('.')[2]} {_called(value)}" if with_name else _called(value)


def _columns_of_a_design(table: pa.Table | Table) -> list[str]:
    """Return the columns in which the rows of a design are equal: parameters, and the digest of the device."""
    names: list[str] = table.column_names
    if "seed" not in names:
        return []
    # The digest of the workload is not among them, because it differs with the seed.
    return [*names[: names.index("seed")], *(name for name in names if name == "config_digest")]


def _over_seeds(rows: list[dict[str, Any]], names: list[str], design: list[str]) -> list[dict[str, Any]]:
    """Return a row for each design, with the means of its rows."""
    designs: dict[str, dict[int, dict[str, Any]]] = {}
    for row in rows:
        seeds = designs.setdefault(repr([row[name] for name in design]), {})
        # Points that coincide after rounding are the same run.
        if any(seeds.setdefault(row["seed"], row)[name] != row[name] for name in names):
            raise OptionError("rows with equal parameters and seeds differ: parameters are the columns before `seed`")
    return [
        {name: _mean([row[name] for row in seeds.values()]) for name in names} | {"error": None}
        for seeds in designs.values()
    ]


def _mean(values: list[Any]) -> Any:  # noqa: ANN401 (a value of a table)
    """Return the mean of numbers that differ, or else the first value."""
    if all(value == values[0] for value in values) or not all(isinstance(value, int | float) for value in values):
        return values[0]
    return sum(values) / len(values)


def _dominates(one: Mapping[str, Any], other: Mapping[str, Any], signs: Mapping[str, float]) -> bool:
    """Return True if a design is at least as good as another in all values, and better in one."""
    differences = [sign * (one[name] - other[name]) for name, sign in signs.items()]
    return bool(max(differences) <= 0 and min(differences) < 0)


def _chosen(table: pa.Table | Table, *names: str) -> list[dict[str, Any]]:
    """Return the rows of a table with these columns and ``error``. Not all of the runs may have failed."""
    errors = table["error"].to_pylist() if "error" in table.column_names else [None] * table.num_rows
    if errors and None not in errors:
        # The table has no columns of values.
        raise ResultError(f"all {len(errors)} runs failed; the first error: {errors[0]}")
    for name in names:
        if name not in table.column_names:
            raise OptionError(f"the table has no column `{name}`{near(name, table.column_names)}")
    rows: list[dict[str, Any]] = table.select(list(dict.fromkeys(names))).to_pylist()
    return [{**row, "error": error} for row, error in zip(rows, errors, strict=True)]


def _warn_of_failures(rows: list[dict[str, Any]]) -> None:
    errors = [row["error"] for row in rows if row["error"] is not None]
    if errors:
        text = f"{len(errors)} of {len(rows)} runs failed and have no values; the first error: {errors[0]}"
        # The caller of the function that draws.
        warnings.warn(text, FloatgateWarning, stacklevel=3)


def _steps(values: Iterable[Any]) -> list[Any]:
    """Return the different values of a parameter: numbers in ascending order, others as they occur."""
    steps = list(dict.fromkeys(values))
    return sorted(steps) if all(isinstance(step, int | float) for step in steps) else steps


def _called(step: object) -> str:
    return f"{step:.6g}" if isinstance(step, float) else str(step)


def __dir__() -> list[str]:
    """List the public names, without other modules."""
    return __all__
