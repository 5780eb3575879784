"""Figures of results and comparisons, with matplotlib (``pip install 'floatgate[plot]'``)."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any, Literal

from floatgate._files import near
from floatgate.exceptions import OptionError, ResultError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa
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
        raise ImportError("figures need matplotlib: pip install 'floatgate[plot]'") from error
    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def _finish(ax: Axes, x: str, y: str, title: str) -> Axes:
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    # About ten characters per inch.
    width: float = ax.figure.get_figwidth()  # type: ignore[union-attr] # the axes have a figure
    ax.set_title(textwrap.fill(title, int(10 * width)), fontsize="medium")
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
    # No request is shorter than the first latency, so the curve begins there.
    us, share = (us[0], *us), [0.0, *share]
    values = [1 - at for at in share] if tail else share
    # No request exceeds the greatest latency, and a logarithmic axis has no 0. Leave out the last point.
    points = [(x, y) for x, y in zip(us, values, strict=True) if not tail or y > 0]
    ax.plot([x for x, _ in points], [y for _, y in points], label=label, **style)


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
        """Draw latencies over simulated time: the mean, and a band up to the 99th percentile.

        Lines are moving averages over 1/32 of the run. The values of each window are drawn faintly behind them.

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
            color, count = f"C{index}", over[f"{name}_count"]
            mean, p99 = over[f"{name}_mean_us"], over[f"{name}_p99_us"]
            smooth, tail = over.smoothed(mean, count), over.smoothed(p99, count)
            ax.plot(over.x, smooth, color=color, linewidth=1.6, label=f"{name}, mean")
            ax.plot(over.x, tail, color=color, linewidth=0.8, label=f"{name}, p99")
            ax.fill_between(over.x, smooth, tail, color=color, alpha=0.15, linewidth=0)
            ax.plot(over.x, p99, color=color, linewidth=0.4, alpha=0.15, zorder=1)
        ax.set_yscale("log")
        ax.legend(frameon=False, ncols=2, fontsize="small")
        return _finish(ax, f"simulated time, {over.unit}", "latency, us", self._title)

    def throughput(
        self,
        ax: Axes | None = None,
        *,
        operations: Iterable[str] | None = None,
        unit: Literal["iops", "mib_per_s"] = "iops",
    ) -> Axes:
        """Draw throughput over simulated time.

        Lines are moving averages over 1/32 of the run. The values of each window are drawn faintly behind them.

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
        greatest = 0.0
        for index, name in enumerate(name for name in names if f"{name}_count" in over.names):
            rate = over[f"{name}_{column}"] / over.seconds / scale
            smooth = over.smoothed(rate, over.seconds)
            ax.plot(over.x, rate, color=f"C{index}", linewidth=0.4, alpha=0.2, zorder=1)
            ax.plot(over.x, smooth, color=f"C{index}", linewidth=1.6, label=name)
            greatest = max(greatest, float(smooth.max(initial=0.0)))
        ax.set_ylim(0, 1.25 * greatest or 1)
        _legend(ax)
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
        return _finish(ax, "erases of a block", "blocks", self._title)

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


def heat_map(
    table: pa.Table, x: str, y: str, value: str, ax: Axes | None = None, *, log: bool = False, text: bool | None = None
) -> Axes:
    """Draw a value of a sweep by two of its parameters, as a heat map. Several seeds are averaged.

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
        No run has this value.

    Examples
    --------
    >>> table = fg.sweep(
    ...     {"capacity.spare": [0.1, 0.2, 0.3], "gc.victim": ["greedy", "fifo"]},
    ...     device="tiny", workload="rw=randwrite number_ios=2k", precondition="steady", n_jobs=1)
    >>> fg.plotting.heat_map(table, "capacity.spare", "gc.victim", "write_amplification")
    <Axes: ...>
    """
    import numpy as np  # noqa: PLC0415 (not needed to import the package)

    rows = [row for row in _chosen(table, x, y, value) if row[value] is not None]
    if not rows:
        raise ResultError(f"no run has a value of {value}")
    across, down = (_steps([row[name] for row in rows]) for name in (x, y))
    cells: dict[tuple[int, int], list[float]] = {}
    for row in rows:
        cells.setdefault((down.index(row[y]), across.index(row[x])), []).append(float(row[value]))
    grid = np.full((len(down), len(across)), np.nan)
    for place, values in cells.items():
        grid[place] = sum(values) / len(values)
    ax = _axes(ax, width=2.2 + 0.7 * len(across), height=1.6 + 0.45 * len(down))
    image = ax.imshow(grid, cmap="viridis", norm="log" if log else "linear", aspect="auto", origin="lower")
    colorbar = ax.figure.colorbar(image, ax=ax)
    colorbar.set_label(value)
    ax.set_xticks(range(len(across)), [_called(step) for step in across])
    ax.set_yticks(range(len(down)), [_called(step) for step in down])
    if text if text is not None else grid.size <= 100:
        for (row_at, column_at), number in np.ndenumerate(grid):
            if np.isfinite(number):
                dark = float(np.asarray(image.norm(number))) < 0.6
                ax.text(column_at, row_at, f"{number:.3g}", ha="center", va="center", fontsize="small",
                        color="white" if dark else "black")  # fmt: skip
    ax.spines[:].set_visible(False)
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    return ax


def pareto_front(
    table: pa.Table,
    x: str,
    y: str,
    ax: Axes | None = None,
    *,
    maximize: Iterable[str] = (),
    label: str | None = None,
) -> Axes:
    """Draw the runs of a sweep by two values, and the Pareto front in color.

    Parameters
    ----------
    table
        The table of :func:`floatgate.sweep`.
    x, y
        Numbers, such as ``"write_amplification"``. Smaller is better.
    ax
        Axes to draw on. Default: a new figure.
    maximize
        Those of `x` and `y` of which larger is better.
    label
        Column whose values are written next to the points of the front.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    OptionError
        A column does not exist.
    ResultError
        No run has both values.

    Examples
    --------
    >>> table = fg.sweep(
    ...     {"capacity.spare": [0.1, 0.2, 0.3]},
    ...     device="tiny", workload="rw=randwrite number_ios=2k", precondition="steady", n_jobs=1)
    >>> fg.plotting.pareto_front(table, "capacity.spare", "write_amplification")
    <Axes: ...>
    """
    better = set(maximize)
    if unknown := better - {x, y}:
        raise OptionError(f"maximize={', '.join(sorted(unknown))}: expected {x} or {y}")
    shown_too = [] if label is None else [label]
    rows = [row for row in _chosen(table, x, y, *shown_too) if row[x] is not None and row[y] is not None]
    if not rows:
        raise ResultError(f"no run has values of {x} and {y}")
    signs = {name: -1.0 if name in better else 1.0 for name in (x, y)}
    best = [row for row in rows if not any(_dominates(other, row, signs) for other in rows)]
    shown = [{**row, "front": row in best, "error": None} for row in rows]
    ax = front(shown, x, y, stairs="pre" if x in better else "post", ax=ax)
    for row in best:
        for name in shown_too:
            place = row[x], row[y]
            ax.annotate(_called(row[name]), place, xytext=(5, 5), textcoords="offset points", fontsize="small")
    ax.set_title("Runs, and the Pareto front", fontsize="medium")
    return ax


def _dominates(one: Mapping[str, Any], other: Mapping[str, Any], signs: Mapping[str, float]) -> bool:
    """Return True if a run is at least as good as another in all values, and better in one."""
    differences = [sign * (one[name] - other[name]) for name, sign in signs.items()]
    return bool(max(differences) <= 0 and min(differences) < 0)


def _chosen(table: pa.Table, *names: str) -> list[dict[str, Any]]:
    for name in names:
        if name not in table.column_names:
            raise OptionError(f"the table has no column `{name}`{near(name, table.column_names)}")
    rows: list[dict[str, Any]] = table.select(list(dict.fromkeys(names))).to_pylist()
    return rows


def _steps(values: Iterable[Any]) -> list[Any]:
    """Return the different values of a parameter: numbers in ascending order, others as they occur."""
    steps = list(dict.fromkeys(values))
    return sorted(steps) if all(isinstance(step, int | float) for step in steps) else steps


def _called(step: object) -> str:
    return f"{step:.6g}" if isinstance(step, float) else str(step)
