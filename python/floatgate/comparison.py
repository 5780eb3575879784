"""Comparison of results."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from floatgate import _files, _floatgate, _html
from floatgate._metrics import full_name
from floatgate.exceptions import OptionError, ResultError
from floatgate.plotting import ComparisonPlots, save
from floatgate.result import Result, _write_page, is_of_seeds, load, shown_path

if TYPE_CHECKING:
    import pyarrow as pa

#: A result, or the path of its directory, which may have a result for each seed.
Source: TypeAlias = "Result | str | os.PathLike[str]"

#: Results that are evaluated together: one, or several with different seeds.
Group: TypeAlias = "Source | Iterable[Source]"


class Comparison:
    """Comparison of results, from :func:`compare`.

    ``print(comparison)`` prints the table of ``floatgate compare``: the ten metrics that differ most. :meth:`table` has
    all of them.
    """

    def __init__(self, content: str, text: str, page: str, runs: dict[str, Result]) -> None:
        self._content: dict[str, Any] = json.loads(content)
        self._json = content
        self._text = text
        self._page = page
        self._runs = runs

    @property
    def results(self) -> list[Result]:
        """Results that are compared."""
        return list(self._runs.values())

    @property
    def labels(self) -> list[str]:
        """Labels of the groups, in order."""
        return [group["label"] for group in self._content["groups"]]

    @property
    def groups(self) -> dict[str, list[Result]]:
        """Results by group, in the order of `labels`."""
        return {group["label"]: [self._runs[name] for name in group["files"]] for group in self._content["groups"]}

    @property
    def warnings(self) -> list[str]:
        """Warnings about the comparison, such as results of different workloads."""
        return list(self._content["warnings"])

    @property
    def tested(self) -> int:
        """Number of differences that were tested, for which each is corrected."""
        tested: int = self._content["tested"]
        return tested

    def to_json(self) -> str:
        """Return the JSON of ``floatgate compare --json``."""
        return self._json

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as dictionaries and lists."""
        copy: dict[str, Any] = json.loads(self._json)
        return copy

    def table(self) -> pa.Table:
        """Return the comparison as a table, one row per metric and group.

        Returns
        -------
        pyarrow.Table
            Columns ``metric`` (a path in a summary, such as ``requests.read.latency_us.p99``), ``label`` (in words),
            ``unit`` (empty without a unit, ``share`` for a share), ``group``, ``n`` (number of runs), ``mean``,
            ``deviation`` (divisor n - 1), ``half_width`` (half the 95% confidence interval of the mean over seeds, by
            Student's t), ``ratio`` to the first group, ``difference`` from it (``same``, ``noise_unknown``,
            ``within_noise``, ``significant``, by Welch's test), ``p``, ``p_corrected`` for the `tested` differences by
            Holm's method, and ``low`` and ``high``, the bounds of the confidence interval of the difference from the
            first group, corrected in the same way. Unknown values are null.
        """
        import pyarrow as pa  # noqa: PLC0415 (half a second, and not always needed)

        schema = pa.schema(
            [(name, pa.string()) for name in ("metric", "label", "unit", "group")]
            + [("n", pa.int64())]
            + [(name, pa.float64()) for name in ("mean", "deviation", "half_width", "ratio")]
            + [("difference", pa.string())]
            + [(name, pa.float64()) for name in ("p", "p_corrected", "low", "high")]
        )
        rows = [
            {key: row[key] for key in ("metric", "label", "unit")} | {"group": label, **cell, **_bounds(cell)}
            for row in self._content["metrics"]
            for label, cell in zip(self.labels, row["values"], strict=True)
            if cell is not None
        ]
        return pa.Table.from_pylist(rows, schema=schema)

    def _metric(self, name: str) -> dict[str, Any]:
        """Return the row of a metric."""
        rows: list[dict[str, Any]] = self._content["metrics"]
        names = [row["metric"] for row in rows]
        path = full_name(name, names)
        if path not in names:
            near = _files.near(path, names)
            raise ResultError(f"unknown metric {name!r}{near}; the comparison has {', '.join(names)}")
        return rows[names.index(path)]

    @property
    def plot(self) -> ComparisonPlots:
        """Matplotlib figures: ``comparison.plot.cdf()``."""
        return ComparisonPlots(self)

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write the comparison as one HTML file, with overlaid distributions.

        Parameters
        ----------
        path
            The file, or a directory for ``comparison.html``.

        Returns
        -------
        pathlib.Path
            The file.

        Raises
        ------
        OptionError
            The page would overwrite a file of a result.
        OutputError
            The page cannot be written.
        """
        inputs = [place for run in self.results for place in run._data]
        return _write_page(path, "comparison.html", self._page, inputs)

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<floatgate.Comparison of {', '.join(self.labels)}>"

    def _repr_html_(self) -> str:
        rows = []
        for metric in self._content["metrics"]:
            cells = [_cell(cell) for cell in metric["values"]]
            unit = f" <span style='opacity:.7'>{escape(metric['unit'])}</span>" if metric["unit"] else ""
            rows.append([escape(metric["label"]) + unit, *cells])
        notes = "".join(f"<p>warning: {escape(text)}</p>" for text in self.warnings)
        notes += "<p style='opacity:.7'>&plusmn;: 95% confidence interval of the mean over seeds. ~: within noise.</p>"
        return _html.card("Comparison", "", _html.table(["", *map(escape, self.labels)], rows), notes)


def _bounds(cell: dict[str, Any]) -> dict[str, float | None]:
    low, high = cell["interval"] or (None, None)
    return {"low": low, "high": high}


def _cell(cell: dict[str, Any] | None) -> str:
    """Format a value with its interval, and its ratio to the first group."""
    if cell is None:
        return "-"
    text = _html.number(cell["mean"])
    if cell["half_width"] is not None:
        text += f" &plusmn; {_html.number(cell['half_width'], 2)}"
    if cell["difference"] == "same":
        text += " ="
    elif cell["ratio"] is not None:
        noise = " ~" if cell["difference"] == "within_noise" else ""
        text += f" <span style='opacity:.7'>&times;{cell['ratio']:.3f}{noise}</span>"
    return text


def compare(results: Iterable[Group] | Mapping[str, Group]) -> Comparison:
    """Compare results.

    Parameters
    ----------
    results
        Results, or paths of their directories. All are compared with the first. Results that differ only in their seed
        form a group, whose values have confidence intervals, as do the results of a list, or of a directory with a
        result for each seed. Or labels, each with such a result, path or list.

    Returns
    -------
    Comparison

    Raises
    ------
    ResultError
        There is only one run, or a run occurs twice.

    Examples
    --------
    >>> devices = {victim: device.with_options({"gc.victim": victim}) for victim in ("greedy", "fifo")}
    >>> steady = {"precondition": "steady"}
    >>> runs = {name: [fg.run(devices[name], workload, seed=seed, **steady) for seed in (1, 2, 3)] for name in devices}
    >>> fg.compare(runs)
    <floatgate.Comparison of greedy, fifo>
    """
    if isinstance(results, str | Result | os.PathLike):
        results = [results]
    names = _Names()
    if isinstance(results, Mapping):
        groups = [(label, True, [names.add(label, run) for run in _listed(group)]) for label, group in results.items()]
    else:
        groups = [_group(group, names) for group in results]
    if len(names.runs) < 2:
        raise ResultError("nothing to compare; give two results, or several seeds of one")
    taken: dict[str, int] = {}
    # A list has the label of its first result, which another group may have as well.
    for index, (label, is_group, runs) in enumerate(groups):
        taken[label] = taken.get(label, 0) + 1
        if is_group and taken[label] > 1:
            groups[index] = (f"{label} ({taken[label]})", is_group, runs)
    return Comparison(*_floatgate.compare(groups), names.runs)


def _group(group: Group, names: _Names) -> tuple[str, bool, list[tuple[str, str]]]:
    """Return the label of an unlabeled group, whether its results belong together, and its runs."""
    if isinstance(group, Result):
        return group.label, False, [names.add(group.label, group)]
    runs = _listed(group)
    label = shown_path(group) if isinstance(group, str | os.PathLike) else _common_label(runs)
    return label, len(runs) > 1, [names.add(label, run) for run in runs]


def _common_label(runs: list[Result]) -> str:
    """Return the directory of the runs of several seeds, or the label of the first run."""
    places = {run.directory.parent for run in runs if run.directory is not None and is_of_seeds(run.directory.parent)}
    return shown_path(places.pop()) if len(places) == 1 and len(runs) > 1 else runs[0].label


def _listed(group: Group) -> list[Result]:
    runs: list[Result] = []
    for one in [group] if isinstance(group, str | Result | os.PathLike) else group:
        if isinstance(one, Result):
            runs.append(one)
        elif is_of_seeds(one):
            runs += load(one, seeds=True)
        else:
            runs.append(load(one))
    if not runs:
        raise ResultError("a group has no results; give each label at least one")
    return runs


class _Names:
    """Unique names of runs."""

    def __init__(self) -> None:
        self.runs: dict[str, Result] = {}

    def add(self, label: str, run: Result) -> tuple[str, str]:
        """Name a run, and return its name and its summary."""
        wanted = f"{label}, seed {run.summary['seed']}"
        name = wanted
        number = 1
        while name in self.runs:
            number += 1
            name = f"{wanted} ({number})"
        self.runs[name] = run
        return name, run.summary.to_json()


def command(arguments: list[str]) -> int:
    """Run ``floatgate compare`` with ``--plot``, and return the exit status.

    The table is that of the program. This function draws the figure.
    """
    made = argparse.ArgumentParser(prog="floatgate compare", add_help=False, allow_abbrev=False)
    made.add_argument("results", nargs="+")
    made.add_argument("--plot", required=True)
    made.add_argument("--metric", action="append", default=[])
    made.add_argument("--out")
    made.add_argument("--all", action="store_true")
    made.add_argument("--json", action="store_true")
    chosen = made.parse_intermixed_args(arguments)
    if Path(chosen.plot).suffix.lower() not in (".pdf", ".png", ".svg"):
        raise OptionError(f"--plot {chosen.plot}: the name of a figure must end in .svg, .pdf or .png")
    status = _floatgate.command(["floatgate", "compare", *_without_plot(arguments)])
    if status:
        return status
    groups = {label: [load(path) for path in paths] for label, paths in _floatgate.grouped_files(chosen.results)}
    comparison = compare(groups)
    if len(chosen.metric) == 1:
        ax = comparison.plot.metric(chosen.metric[0])
    else:
        ax = comparison.plot.differences(chosen.metric or None)
    sys.stderr.write(f"wrote {save(ax, chosen.plot)}\n")
    return 0


def _without_plot(arguments: list[str]) -> list[str]:
    """Return the arguments without ``--plot`` and its value."""
    kept = [argument for argument in arguments if not argument.startswith("--plot=")]
    if "--plot" in kept:
        del kept[kept.index("--plot") : kept.index("--plot") + 2]
    return kept
