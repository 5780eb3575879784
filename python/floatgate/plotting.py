"""Figures of results and comparisons, with matplotlib (``pip install floatgate[plot]``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from floatgate.exceptions import ResultError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from matplotlib.axes import Axes

    from floatgate.comparison import Comparison
    from floatgate.result import Result

#: Parts of a latency with their labels, from the host to the flash.
_PARTS = {
    "host_queue_us": "host queue",
    "link_us": "link",
    "firmware_us": "firmware",
    "throttle_us": "throttle",
    "buffer_us": "buffer",
    "order_us": "order",
    "die_us": "die",
    "channel_us": "channel",
    "gc_us": "garbage collection",
    "rmw_us": "read-modify-write",
    "bus_us": "bus",
    "cell_us": "cell",
}

#: Colors of the parts: distinguishable with color vision deficiencies (after Okabe and Ito 2008), and grays.
_COLORS = (
    "#999999", "#cccccc", "#f0e442", "#332288", "#b3de69", "#666666",
    "#e69f00", "#d55e00", "#cc79a7", "#8c6d31", "#56b4e9", "#0072b2",
)  # fmt: skip


def _axes(ax: Axes | None, width: float = 6.4, height: float = 4.0) -> Axes:
    """Return the axes, or create a figure."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot as plt  # noqa: PLC0415 (an extra)
    except ImportError as error:
        raise ImportError("figures need matplotlib: pip install floatgate[plot]") from error
    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def _finish(ax: Axes, x: str, y: str, title: str) -> Axes:
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    ax.set_title(title, fontsize="medium")
    ax.grid(visible=True, alpha=0.3)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _legend(ax: Axes) -> None:
    if len(ax.get_legend_handles_labels()[0]) > 1:
        ax.legend(frameon=False)


def _curve(result: Result, operation: str) -> tuple[Sequence[float], list[float]] | None:
    """Return a latency distribution: latencies, and the share of requests that took no longer."""
    for curve in result.summary.to_dict()["distributions"]["latency"]:
        if curve["operation"] == operation:
            total = curve["requests"]
            return curve["us"], [1 - longer / total for longer in curve["longer"]]
    return None


def _operations(result: Result) -> list[str]:
    """List the operations with latencies."""
    names = [curve["operation"] for curve in result.summary.to_dict()["distributions"]["latency"]]
    return [name for name in names if name != "all"] or names


def _draw_cdf(ax: Axes, result: Result, operation: str, label: str, tail: bool, **style: Any) -> None:  # noqa: ANN401
    curve = _curve(result, operation)
    if curve is None:
        return
    us, share = curve
    values = [1 - at for at in share] if tail else share
    # No request exceeds the greatest latency, and a logarithmic axis has no 0. Leave out the last point.
    points = [(x, y) for x, y in zip(us, values, strict=True) if not tail or y > 0]
    ax.step([x for x, _ in points], [y for _, y in points], where="post", label=label, **style)


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
            The result has no requests.
        """
        names = list(operations) if operations is not None else _operations(self._result)
        if not any(_curve(self._result, name) for name in names):
            raise ResultError("no requests to draw")
        ax = _axes(ax)
        for name in names:
            _draw_cdf(ax, self._result, name, name, tail)
        return _finish_cdf(ax, tail, self._title)

    def latency(self, ax: Axes | None = None, *, operations: Iterable[str] | None = None) -> Axes:
        """Draw latencies over simulated time: the mean, the 99th percentile and the maximum of each window.

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
        series = self._result.series()
        end = series["end_ps"].to_numpy()
        ax = _axes(ax, width=8)
        names = list(operations) if operations is not None else _operations(self._result)
        scale, unit = _time_scale(float(end[-1]) if len(end) else 0.0)
        for index, name in enumerate(name for name in names if f"{name}_p99_us" in series.column_names):
            color = f"C{index}"
            curves = (("mean", "-", 1.4, 1.0), ("p99", "--", 1.0, 0.9), ("max", ":", 0.8, 0.7))
            for kind, line, width, alpha in curves:
                values = series[f"{name}_{kind}_us"].to_numpy()
                label = f"{name}, {kind}"
                ax.plot(end / scale, values, line, color=color, linewidth=width, alpha=alpha, label=label)
        ax.set_yscale("log")
        ax.legend(frameon=False, ncols=2, fontsize="small")
        return _finish(ax, f"simulated time, {unit}", "latency, us", self._title)

    def attribution(self, ax: Axes | None = None, *, at: Sequence[str] = ("mean", "p50", "p99", "p99_9")) -> Axes:
        """Draw latency breakdowns: of all requests, and of requests at percentiles.

        Parameters
        ----------
        ax
            Axes to draw on. Default: a new figure.
        at
            A selection of ``"mean"``, ``"p50"``, ``"p99"`` and ``"p99_9"``.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ResultError
            The result has no latency breakdowns, or no requests.
        """
        requests = self._result.summary.to_dict()["requests"]
        bars = [
            (f"{name} {kind.replace('_', '.')}", of["attribution"][kind])
            for name, of in requests.items()
            if of["attribution"] is not None and name != "all"
            for kind in at
        ]
        if not bars:
            raise ResultError("no latency breakdowns; run with attribution=True")
        ax = _axes(ax, width=8, height=1.2 + 0.32 * len(bars))
        left = [0.0] * len(bars)
        for (key, words), color in zip(_PARTS.items(), _COLORS, strict=True):
            widths = [parts.get(key, 0.0) for _, parts in bars]
            if any(widths):
                ax.barh([label for label, _ in bars], widths, left=left, label=words, color=color)
                left = [start + width for start, width in zip(left, widths, strict=True)]
        ax.invert_yaxis()
        ax.legend(frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))
        return _finish(ax, "latency, us", "", self._title)

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
        if not each["die_cell"]:
            raise ResultError("no utilization by die: nothing was measured, or the device has more than 4096 dies")
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
            No result has such requests.
        """
        groups = list(self._comparison.groups.items())
        if operation is None:
            names = _operations(groups[0][1][0])
            operation = names[0] if names else "all"
        if not any(_curve(run, operation) for _, runs in groups for run in runs):
            raise ResultError(f"no {operation} requests to draw")
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
            A name from ``comparison.table()["metric"]``, such as ``"write: p99 latency"``. If two have this name, the
            first.
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
        rows = self._comparison.to_dict()["metrics"]
        found = next((row for row in rows if row["metric"] == metric), None)
        if found is None:
            raise ResultError(f"unknown metric {metric!r}: expected one of {', '.join(row['metric'] for row in rows)}")
        shown = [
            (label, cell["mean"], cell["half_width"] or 0.0)
            for label, cell in zip(self._comparison.labels, found["values"], strict=True)
            if cell is not None
        ]
        ax = _axes(ax)
        labels, means, errors = (list(column) for column in zip(*shown, strict=True))
        ax.bar(labels, means, yerr=errors, capsize=4, color=[f"C{index}" for index in range(len(labels))], alpha=0.8)
        return _finish(ax, "", found["unit"], metric)


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
    return _finish(ax, x, y, "Points tried, and the Pareto front")
