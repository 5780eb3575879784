"""Comparison of results."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from html import escape
from typing import TYPE_CHECKING, Any, TypeAlias

from floatgate import _floatgate, _html
from floatgate.exceptions import ResultError
from floatgate.plotting import ComparisonPlots
from floatgate.result import Result, _write_page

if TYPE_CHECKING:
    import os
    from pathlib import Path

    import pyarrow as pa

#: Results that are evaluated together: one, or several with different seeds.
Group: TypeAlias = "Result | Iterable[Result]"


class Comparison:
    """Comparison of results, from :func:`compare`.

    ``print(comparison)`` prints the table of ``floatgate compare``.
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
            Columns ``metric``, ``unit`` (empty without a unit, ``share`` for a share), ``group``, ``n`` (number of
            runs), ``mean``, ``deviation`` (divisor n - 1), ``half_width`` (half the 95% confidence interval of the mean
            over seeds, by Student's t), ``ratio`` to the first group, ``difference`` from it (``same``,
            ``noise_unknown``, ``within_noise``, ``significant``, by Welch's test), ``p``, ``p_corrected`` for the
            `tested` differences by Holm's method, and ``low`` and ``high``, the bounds of the confidence interval of
            the difference from the first group, corrected in the same way. Unknown values are null.
        """
        import pyarrow as pa  # noqa: PLC0415 (half a second, and not always needed)

        schema = pa.schema(
            [(name, pa.string()) for name in ("metric", "unit", "group")]
            + [("n", pa.int64())]
            + [(name, pa.float64()) for name in ("mean", "deviation", "half_width", "ratio")]
            + [("difference", pa.string())]
            + [(name, pa.float64()) for name in ("p", "p_corrected", "low", "high")]
        )
        rows = [
            {"metric": row["metric"], "unit": row["unit"], "group": label, **cell, **_bounds(cell)}
            for row in self._content["metrics"]
            for label, cell in zip(self.labels, row["values"], strict=True)
            if cell is not None
        ]
        return pa.Table.from_pylist(rows, schema=schema)

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
            rows.append([escape(metric["metric"]) + unit, *cells])
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


def compare(results: Iterable[Result] | Mapping[str, Group]) -> Comparison:
    """Compare results.

    Parameters
    ----------
    results
        Results. All are compared with the first. Results that differ only in their seed form a group, whose values have
        confidence intervals. Or labels, each with one result, or with several results of different seeds.

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
    names = _Names()
    if isinstance(results, Mapping):
        groups = [(label, True, [names.add(label, run) for run in _listed(group)]) for label, group in results.items()]
    else:
        groups = [(run.label, False, [names.add(run.label, run)]) for run in results]
    if len(names.runs) < 2:
        raise ResultError("nothing to compare; give two results, or several seeds of one")
    return Comparison(*_floatgate.compare(groups), names.runs)


def _listed(group: Group) -> list[Result]:
    runs = [group] if isinstance(group, Result) else list(group)
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
