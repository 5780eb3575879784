"""Results of runs: data, figures, reports and files."""

from __future__ import annotations

import contextlib
import re
import warnings
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from floatgate import _floatgate, _html
from floatgate._files import draft, read_limited, read_table, refuse_overwrites
from floatgate._node import Document, Free
from floatgate._words import in_python
from floatgate.columns import Requests, Series
from floatgate.exceptions import FloatgateWarning, OutputError, ResultError
from floatgate.plotting import ResultPlots
from floatgate.summary import Summary

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

    import pyarrow as pa

#: Text columns with few distinct values.
_TEXTS = ["stream", "operation", "status"]

_REQUESTS = "requests.parquet"
_SERIES = "series.parquet"
_SUMMARY = "summary.json"
_REPORT = "report.html"
_DIGESTS = "digests.json"

#: Limit for ``summary.json`` in bytes, as in the command.
_LARGEST = 256 << 20

#: Files of a result from which the others are generated.
_DATA = [_SUMMARY, _DIGESTS, _SERIES, _REQUESTS, "requests.csv", "timeline.pftrace.gz"]


class Explanation(Free, Document):
    """The latency of a request, from :meth:`Result.explain`: the content of ``floatgate explain --json``.

    ``print(explanation)`` prints its parts, its flash operations, and what it waited for. Keys are attributes:
    ``explanation.latency_us``.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<floatgate.Explanation of request {self['request']}: {_html.number(self['latency_us'])} us>"


class ResultColumns:
    """Tables of a result as typed columns: ``result.columns``."""

    __slots__ = ("_result",)

    def __init__(self, result: Result) -> None:
        self._result = result

    @property
    def requests(self) -> Requests:
        """Columns of every request: ``result.columns.requests.latency_ps``.

        Raises
        ------
        ResultError
            The requests were not recorded.
        """
        return Requests(self._result.requests())

    @property
    def series(self) -> Series:
        """Columns of the run over time: ``result.columns.series.write_p99_us``.

        Raises
        ------
        ResultError
            The run was not recorded over time.
        """
        return Series(self._result.series())


class Result:
    """The result of a run, from :func:`run` or :func:`load`.

    It is plain data: it can be copied, pickled, and stored by :meth:`save`.
    """

    def __init__(
        self,
        summary: Summary,
        requests: pa.Table | None = None,
        series: pa.Table | None = None,
        directory: Path | None = None,
    ) -> None:
        self._summary = summary
        self._requests = requests
        self._series = series
        self._directory = directory

    @property
    def summary(self) -> Summary:
        """All values of ``summary.json``, as attributes and as a dictionary."""
        return self._summary

    @property
    def directory(self) -> Path | None:
        """Directory of the result, or None if it is not stored."""
        return self._directory

    @property
    def complete(self) -> bool:
        """True if the workload ran to its end."""
        return bool(self._summary["complete"])

    @property
    def warnings(self) -> list[str]:
        """Warnings about the result, in the words of Python. ``summary.warnings`` has those of the command."""
        return [in_python(text) for text in self._summary["warnings"]]

    def requests(self) -> pa.Table:
        """Return every request, one row each, in order of completion.

        Returns
        -------
        pyarrow.Table
            Columns ``number``, ``stream``, ``operation``, ``status`` (dictionaries of texts), ``lba`` and ``sectors``
            (sectors of 512 bytes), ``arrival_ps``, ``start_ps``, ``finish_ps`` (points in time), ``waiting_ps``,
            ``service_ps``, ``latency_ps``, ``channels``, and the latency breakdown (``host_queue_ps`` and so on, null
            without attribution): ``docs/reference/requests.md``. The columns are the simulator's own, without a copy.
            Numbers are signed, so that differences of times do not wrap around. (They are unsigned if a time exceeds
            2^63 - 1 ps, which is 106 days.)

        Raises
        ------
        ResultError
            The requests were not recorded.
        """
        if self._requests is None:
            found = self._read(_REQUESTS, "requests", "requests=True")
            measured = self._summary["requests"]["all"]["count"]
            if found.num_rows < measured:
                raise ResultError(
                    f"{self._directory}/{_REQUESTS} has {found.num_rows} of the {measured} requests of the summary; "
                    "run the simulation again"
                )
            self._requests = found
        return signed(self._requests)

    def series(self) -> pa.Table:
        """Return the run over time, one row per window of simulated time.

        Returns
        -------
        pyarrow.Table
            Columns ``start_ps``, ``end_ps``, ``write_iops``, ``write_p99_us`` and so on:
            ``docs/reference/series.md``. Whole numbers are signed, as for :meth:`requests`.

        Raises
        ------
        ResultError
            The run was not recorded over time.
        """
        if self._series is None:
            self._series = self._read(_SERIES, "series", "series=True")
        return signed(self._series)

    def _unsigned_series(self) -> pa.Table | None:
        """Return the series as the simulator wrote it, or None if it was not recorded."""
        if self._series is None and self._has_series:
            self.series()
        return self._series

    def _read(self, name: str, what: str, option: str) -> pa.Table:
        if self._directory is None or not (self._directory / name).is_file():
            raise ResultError(f"the {what} of this run were not recorded; run with {option}")
        import pyarrow as pa  # noqa: PLC0415 (half a second, and not always needed)
        import pyarrow.parquet as pq  # noqa: PLC0415

        path = self._directory / name
        _floatgate.check_table(self._directory / _SUMMARY, self._summary.to_json(), path)
        try:
            texts = _TEXTS if name == _REQUESTS else None
            with pq.ParquetFile(path, read_dictionary=texts, page_checksum_verification=True) as file:
                return read_table(file)
        except (OSError, KeyError, pa.ArrowException) as error:
            raise ResultError(f"{path} is damaged: {error}; run the simulation again") from error

    @property
    def _has_series(self) -> bool:
        return self._series is not None or (self._directory is not None and (self._directory / _SERIES).is_file())

    @property
    def columns(self) -> ResultColumns:
        """Columns of the tables, as typed NumPy arrays: ``result.columns.requests.latency_ps``."""
        return ResultColumns(self)

    @property
    def plot(self) -> ResultPlots:
        """Matplotlib figures: ``result.plot.cdf()``."""
        return ResultPlots(self)

    def to_html(self) -> str:
        """Return the HTML page of the result, identical to the ``report.html`` of the command."""
        return _floatgate.report(self._summary.to_json(), self._unsigned_series())

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write the result as one HTML file, which needs no network.

        Parameters
        ----------
        path
            The file, or a directory for ``report.html``.

        Returns
        -------
        pathlib.Path
            The file.

        Raises
        ------
        OptionError
            The page would overwrite a file of the result.
        OutputError
            The page cannot be written.
        """
        return _write_page(path, _REPORT, self.to_html(), self._data)

    def explain(self, request: int | str) -> Explanation:
        """Explain the latency of a request: its parts, its flash operations, and what it waited for.

        Equivalent to ``floatgate explain``. Needs the files of a run with ``out``, ``requests=True`` and
        ``timeline=True``.

        Parameters
        ----------
        request
            Number of the request, or its rank by latency: ``"p99"``, ``"max"``, ``"slowest:3"``, or ``"write:p99"``
            among those of one operation.

        Returns
        -------
        Explanation

        Raises
        ------
        ResultError
            The result has no files, or no such request.
        OptionError
            `request` is neither a number nor a rank.

        Warns
        -----
        FloatgateWarning
            The timeline misses a part of the request.
        """
        json, text, note = _floatgate.explain(self._stored("explain"), str(request))
        if note is not None:
            warnings.warn(in_python(note), FloatgateWarning, stacklevel=2)
        return Explanation(json, in_python(text))

    def draw(
        self, span: str | None = None, *, out: str | os.PathLike[str] | None = None, title: str | None = None
    ) -> Path:
        """Draw a timing diagram of channels, dies and requests as SVG.

        Equivalent to ``floatgate draw``. Needs the files of a run with ``out`` and ``timeline=True``.

        Parameters
        ----------
        span
            Span of simulated time, such as ``"1.2ms..1.5ms"``. Either end can be omitted. Default: all of it.
        out
            File for the diagram. Default: ``timeline.svg`` in the directory of the result.
        title
            Title of the diagram. Default: the device and the span.

        Returns
        -------
        pathlib.Path
            The file.

        Raises
        ------
        ResultError
            The result has no files, or no timeline.
        OptionError
            The span is invalid.
        OutputError
            The file cannot be written.
        """
        place = None if out is None else Path(out)
        return Path(_floatgate.draw(self._stored("draw"), span, title, place))

    def _stored(self, what: str) -> Path:
        """Return the directory of the result, which `what` reads."""
        if self._directory is None:
            raise ResultError(f"{what} needs the files of a run; run with out=DIRECTORY, requests=True, timeline=True")
        return self._directory

    @property
    def _data(self) -> list[Path]:
        """Paths of the files in the directory from which others are generated."""
        return [] if self._directory is None else [self._directory / name for name in _DATA]

    def save(self, directory: str | os.PathLike[str]) -> Path:
        """Write all recorded data to a directory, as ``floatgate run --out`` does.

        `floatgate compare`, `explain` and `report` read the directory, and so does :func:`load`. Data of other runs are
        removed from it.

        Parameters
        ----------
        directory
            The directory. It is created if it does not exist.

        Returns
        -------
        pathlib.Path
            The directory.

        Raises
        ------
        OutputError
            The directory cannot be written.
        """
        import pyarrow.parquet as pq  # noqa: PLC0415 (half a second, and not always needed)

        place = Path(directory)
        written: list[str] = []
        try:
            place.mkdir(parents=True, exist_ok=True)
            for name, table in ((_REQUESTS, self._requests), (_SERIES, self._series)):
                if table is not None:
                    with draft(place / name) as partial:
                        pq.write_table(table, partial, compression="snappy", write_page_checksum=True)
                    written.append(name)
        except OSError as error:
            raise OutputError(f"cannot write {place}: {error}") from error
        self.report(place / _REPORT)
        summary = self._summary.to_json()
        _write(place / _SUMMARY, summary.encode())
        _write(place / _DIGESTS, _floatgate.seal(place, summary, written).encode())
        return place

    @property
    def label(self) -> str:
        """Label in comparisons and figures: the directory, or the device and its changes."""
        if self._directory is not None:
            return shown_path(self._directory)
        changes = self._summary["changes"]
        # Parameters of a replaced choice have no value. The source of a policy is a digest, too long for a label.
        figures = [
            figure
            for figure in (changes["figures"] if changes else [])
            if figure["value"] is not None and not figure["path"].endswith(".external.source")
        ]
        changed = [f"{figure['path'].removesuffix('.external.name')}={figure['value']}" for figure in figures]
        return " ".join([self._summary["device"]["name"], *changed])

    def __str__(self) -> str:
        """Return the text that ``floatgate run`` prints."""
        return str(self._summary)

    def __repr__(self) -> str:
        summary = self._summary
        parts = [
            f"{name} {_html.number(of['iops'])} IOPS, p99 {_html.number(of['latency_us']['p99'])} us"
            for name, of in _operations(summary)
        ]
        amplification = summary["write_amplification"]
        parts += [f"write amplification {amplification:.3f}"] if amplification is not None else []
        interrupted = "" if self.complete else " (interrupted)"
        return f"<floatgate.Result {self.label}, {summary['workload']['name']}{interrupted}: {'; '.join(parts)}>"

    def _repr_html_(self) -> str:
        summary = self._summary
        head = ["", "requests", "IOPS", "MiB/s", "mean, us", "p50, us", "p99, us", "p99.9, us", "greatest, us"]
        rows = [[name, f"{of['count']:,}", *map(_html.number, _figures(of))] for name, of in _operations(summary)]
        about = [
            ("workload", escape(summary["workload"]["name"])),
            ("state before", escape(summary["precondition"]["requested"])),
            ("simulated time", f"{_html.number(summary['measured_s'])} s, seed {summary['seed']}"),
            ("write amplification", _html.number(summary["write_amplification"])),
            ("limited by", escape(str(summary["bottleneck"]["limited_by"]))),
        ]
        about += [("warning", escape(text)) for text in self.warnings]
        return _html.card(escape(self.label), "", _html.table(head, rows), _html.pairs(about))


def signed(table: pa.Table) -> pa.Table:
    """Return a table with signed columns instead of unsigned ones, without a copy, if all numbers fit."""
    import pyarrow as pa  # noqa: PLC0415 (half a second, and not always needed)
    import pyarrow.compute as pc  # noqa: PLC0415

    unsigned = [name for name in table.column_names if table.schema.field(name).type == pa.uint64()]
    greatest = (pc.max(table[name]).as_py() for name in unsigned)
    if max((value for value in greatest if value is not None), default=0) >= 1 << 63:
        return table
    for name in unsigned:
        index = table.schema.get_field_index(name)
        column = pa.chunked_array([chunk.view(pa.int64()) for chunk in table[name].chunks], pa.int64())
        table = table.set_column(index, table.schema.field(name).with_type(pa.int64()), column)
    return table


def _operations(summary: Summary) -> list[tuple[str, dict[str, Any]]]:
    """List the operations that occurred, and ``all`` if there are several."""
    names = [name for name, of in summary["requests"].items() if of["count"] > 0]
    return [(name, summary["requests"][name]) for name in names if name != "all" or len(names) > 2]


def _figures(of: dict[str, Any]) -> list[float | None]:
    latency = of["latency_us"]
    return [of["iops"], of["mib_per_s"], *(latency[key] for key in ("mean", "p50", "p99", "p99_9", "max"))]


def _write_page(path: str | os.PathLike[str], name: str, page: str, inputs: Iterable[Path]) -> Path:
    """Write a page to a file, or to `name` in a directory. The file must not be one of `inputs`."""
    place = Path(path)
    place = place / name if place.is_dir() else place
    refuse_overwrites(inputs, place)
    _write(place, page.encode())
    return place


def _write(place: Path, content: bytes) -> None:
    """Write a file atomically."""
    try:
        with draft(place) as partial:
            partial.write_bytes(content)
    except OSError as error:
        raise OutputError(f"cannot write {place}: {error}") from error


def shown_path(path: str | os.PathLike[str]) -> str:
    """Return a path for titles: without its parents if it is absolute."""
    place = Path(path)
    with contextlib.suppress(ValueError):
        return str(place.relative_to(Path.cwd())) if place.is_absolute() else str(place)
    return place.name or str(place)


_SEED = re.compile(r"seed-(\d+)")


def _seeds_in(directory: Path) -> list[tuple[int, Path]]:
    """Return the results of several seeds in a directory: ``seed-1`` and so on."""
    try:
        found = [(int(match[1]), place) for place in directory.iterdir() if (match := _SEED.fullmatch(place.name))]
    except OSError:
        return []
    return sorted((seed, place) for seed, place in found if (place / _SUMMARY).is_file())


def is_of_seeds(directory: str | os.PathLike[str]) -> bool:
    """Return True if a directory has results of several seeds, and no result of its own."""
    place = Path(directory)
    return not (place / _SUMMARY).is_file() and bool(_seeds_in(place))


@overload
def load(directory: str | os.PathLike[str], *, seeds: Literal[False] = False) -> Result: ...


@overload
def load(directory: str | os.PathLike[str], *, seeds: Literal[True]) -> list[Result]: ...


def load(directory: str | os.PathLike[str], *, seeds: bool = False) -> Result | list[Result]:
    """Read a result written by ``floatgate run --out`` or :meth:`Result.save`.

    Parameters
    ----------
    directory
        The directory, or a ``summary.json``. Requests and series are read on first use.
    seeds
        Read the directory of a run with several seeds, which has a result for each of them: ``seed-1`` and so on.

    Returns
    -------
    Result
        With `seeds`: a list of results, by seed.

    Raises
    ------
    ResultError
        There is no result, it has another version, or it was changed or damaged (``digests.json``).
    """
    found = _seeds_in(Path(directory))
    if seeds:
        if not found:
            raise ResultError(f"{directory} has no results of seeds, such as seed-1/{_SUMMARY}")
        return [_load(place) for _, place in found]
    if found and is_of_seeds(directory):
        raise ResultError(
            f"{directory} has the results of {len(found)} seeds; load(..., seeds=True) returns a list of them, and "
            "compare() takes the directory"
        )
    return _load(directory)


def _load(directory: str | os.PathLike[str]) -> Result:
    place = Path(directory)
    place = place if place.is_dir() else place.parent
    path = place / _SUMMARY if Path(directory).is_dir() else Path(directory)
    try:
        text = read_limited(path, _LARGEST)
    except (OSError, UnicodeDecodeError) as error:
        raise ResultError(f"cannot read {path}: {error}") from error
    _floatgate.check_summary(str(path), text)
    _floatgate.check_result(path, text)
    return Result(Summary(text), directory=place)
