"""Workloads: synthetic jobs in fio syntax, fio job files, and traces."""

from __future__ import annotations

import itertools
import json
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

from floatgate import _floatgate, _html
from floatgate._files import refuse_overwrites
from floatgate._words import in_python
from floatgate.exceptions import FloatgateWarning, OptionError, TraceError, WorkloadError
from floatgate.profile import Profile

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: Called periodically with the name of the phase and its progress from 0 to 1, or None if that is unknown.
Progress: TypeAlias = Callable[[str, "float | None"], object]


class Workload:
    """Requests of a host. ``str(workload)`` is the argument of ``floatgate run``."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<floatgate.{type(self).__name__} {self._text}>"

    def __eq__(self, other: object) -> bool:
        """Return True if the other workload has the same text."""
        return str(self) == str(other) if isinstance(other, Workload) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> tuple[object, ...]:
        return _restored, (type(self), self._text)


def _restored(kind: type[Workload], text: str) -> Workload:
    workload = kind.__new__(kind)
    Workload.__init__(workload, text)
    return workload


#: A workload: one of these classes, a job in fio syntax, or the path of a job file, model or trace.
WorkloadLike: TypeAlias = "Workload | str | os.PathLike[str]"


@runtime_checkable
class ArrowTable(Protocol):
    """A table, such as those of pyarrow, pandas and Polars."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the table as a stream of Arrow."""


#: Workloads of a run: one or several, or requests in memory. :meth:`Trace.from_table` describes the columns.
RunLike: TypeAlias = (
    "WorkloadLike | ArrowTable | Sequence[WorkloadLike | ArrowTable] | Iterable[tuple[float, str, int, int]]"
)


class Synthetic(Workload):
    """One or several jobs in fio syntax.

    Parameters
    ----------
    text
        Options such as ``"rw=randwrite bs=4k iodepth=32 number_ios=1m"``. A semicolon separates jobs.
    **words
        More options: ``Synthetic(rw="randread", bs="4k")``. ``True`` is 1, ``False`` is 0.

    Raises
    ------
    WorkloadError
        The text has no pattern (``rw=``), an unknown option, or an invalid value. Errors that depend on the device,
        such as a region beyond its end, are reported by the run.

    See Also
    --------
    ``docs/reference/synthetic.md`` : all options.
    """

    __slots__ = ()

    def __init__(self, text: str = "", **words: str | float) -> None:
        more = [f"{key}={int(word) if isinstance(word, bool) else word}" for key, word in words.items()]
        text = " ".join([text.strip(), *more]).strip()
        starts = ("rw=", "readwrite=", "read_iolog=")
        if not any(word.startswith(starts) for word in text.replace(";", " ").split()):
            raise WorkloadError(f"`{text}` is not a job: it needs a pattern, such as rw=randwrite")
        _floatgate.check_workload(text)
        super().__init__(text)


class JobFile(Workload):
    """A fio job file.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    WorkloadError
        The file does not exist, or has an unknown option or an invalid value.
    """

    __slots__ = ()

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if not Path(path).is_file():
            raise WorkloadError(f"job file {os.fspath(path)} does not exist")
        _floatgate.check_workload(os.fspath(path))
        super().__init__(os.fspath(path))


class Trace(Workload):
    """A recorded trace, plain or compressed.

    Parameters
    ----------
    path
        The file.
    format
        Format, such as ``"msr"``. Default: detected from the content. ``"delimited:columns=..."`` describes columns.
    action
        Event in blkparse and blktrace traces that represents a request: ``"D"``, ``"Q"``, ``"I"`` or ``"C"``.
    time_unit
        Unit of times, if it differs from the format's.
    time_scale
        Factor for all times: 0.5 submits the same requests twice as fast.
    max_gap
        Maximum gap between two requests, such as ``"1s"``. Longer gaps are shortened.
    replay
        ``"timed"`` (as recorded), ``"asap"``, or ``"depth=N"`` (N outstanding).
    fit
        Handling of addresses beyond the device: ``"refuse"``, ``"wrap"`` or ``"compact"``.
    devices
        Handling of a trace with several devices: ``"side-by-side"``, ``"merge"``, or ``"select=NAME,..."``.
    limit
        Maximum number of requests.
    sort_window
        Sort requests that are up to this many positions out of order.
    skip_bad_lines
        Maximum number of invalid lines to skip.
    offset, size
        Part of the device that the trace uses: bytes, or texts such as ``"10GiB"`` and ``"20%"``.
    start
        Start time, such as ``"5s"``.
    name
        Name of the stream.

    Raises
    ------
    TraceError
        The file does not exist, or an option has an invalid value. Errors in the file are reported by the run.

    See Also
    --------
    ``docs/reference/traces.md`` : formats and options.
    """

    __slots__ = ("_options", "_path")

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        format: str | None = None,  # noqa: A002 (the name of the command's option)
        action: Literal["D", "Q", "I", "C"] | None = None,
        time_unit: str | None = None,
        time_scale: float | None = None,
        max_gap: str | None = None,
        replay: str | None = None,
        fit: Literal["refuse", "wrap", "compact"] | None = None,
        devices: str | None = None,
        limit: int | None = None,
        sort_window: int | None = None,
        skip_bad_lines: int | None = None,
        offset: str | int | None = None,
        size: str | int | None = None,
        start: str | None = None,
        name: str | None = None,
    ) -> None:
        words = {
            "offset": offset,
            "size": size,
            "start": start,
            "name": name,
            "format": format,
            "action": action,
            "time_unit": time_unit,
            "time_scale": time_scale,
            "max_gap": max_gap,
            "replay": replay,
            "fit": fit,
            "devices": devices,
            "limit": limit,
            "sort_window": sort_window,
            "skip_bad_lines": skip_bad_lines,
        }
        given = {key: str(word) for key, word in words.items() if word is not None}
        path = os.fspath(path)
        if not Path(path).is_file():
            raise TraceError(f"trace {path} does not exist")
        # A path alone is passed unchanged, unless it looks like a job file or model.
        plain = not given and "=" not in path and not path.endswith((".fio", ".job", ".ini", ".json"))
        text = path if plain else " ".join(_word(*pair) for pair in {"trace": path, **given}.items())
        if not plain:
            _floatgate.check_workload(text)
        super().__init__(text)
        self._path, self._options = path, {key: word for key, word in words.items() if word is not None}

    def __reduce__(self) -> tuple[object, ...]:
        return _restored_trace, (str(self), self._path, self._options)

    @staticmethod
    def from_table(
        table: object,
        *,
        time_unit: str | None = None,
        replay: str | None = None,
        fit: Literal["refuse", "wrap"] | None = None,
        limit: int | None = None,
        name: str | None = None,
    ) -> TableTrace:
        """Return a trace in memory, from a table or an iterable of requests.

        Parameters
        ----------
        table
            A table with `__arrow_c_stream__`, such as those of pyarrow, pandas and Polars, with the columns
            ``operation`` (or ``op``: read, write, trim, flush or write_zeroes, or the first letter), ``offset`` in
            bytes or ``lba`` in sectors of 512 B, ``size`` in bytes or ``sectors``, and ``arrival`` (or ``time``).
            Without arrivals, all requests arrive at once. Other columns are not used. Or an iterable of tuples:
            arrival, operation, offset and size in bytes. Requests are sorted by arrival, which count from the first.
        time_unit
            Unit of arrivals that are numbers. Default: ``"s"`` for decimal numbers, ``"ns"`` for whole numbers. Columns
            of timestamps and durations have their own.
        replay
            ``"timed"`` (as recorded), ``"asap"``, or ``"depth=N"`` (N outstanding).
        fit
            Handling of addresses beyond the device: ``"refuse"`` or ``"wrap"``.
        limit
            Maximum number of requests.
        name
            Name of the stream. Default: ``"table"``.

        Returns
        -------
        TableTrace

        Raises
        ------
        TraceError
            A column is missing, or a row is invalid.

        Examples
        --------
        >>> rows = [(0, "write", 0, 4096), (250_000, "read", 0, 4096)]
        >>> fg.run("tiny", fg.Trace.from_table(rows), precondition="none").summary.requests.read.count
        1
        """
        return TableTrace(table, time_unit=time_unit, replay=replay, fit=fit, limit=limit, name=name)

    @property
    def path(self) -> Path:
        """Path of the file."""
        return Path(self._path)

    def _reading(self, *others: str) -> str:
        """Return the options for reading the file, and `others`, as JSON."""
        numbers = ("limit", "sort_window", "skip_bad_lines")
        kept = ("format", "action", "time_unit", "devices", *numbers, *others)
        given = {key: word for key, word in self._options.items() if key in kept}
        return json.dumps({key: word if key in numbers else str(word) for key, word in given.items()})

    def info(self, *, progress: Progress | None = None) -> Profile:
        """Analyze the trace, and warn of implausible values.

        Equivalent to ``floatgate trace info``. Options for the replay, such as `fit`, have no effect.

        Parameters
        ----------
        progress
            A function that is called with the progress.

        Returns
        -------
        Profile
            ``print(profile)`` prints operations, sizes, footprint, order and arrivals.

        Raises
        ------
        TraceError
            The trace cannot be read.

        Examples
        --------
        >>> fg.Trace("examples/sqlite-oltp.csv.xz").info().operations[0].operation
        'read'
        """
        profile, text = _floatgate.trace_info(self._path, self._reading(), progress=progress)
        return Profile(profile, in_python(text))

    def synth(
        self,
        out: str | os.PathLike[str] | None = None,
        *,
        requests: int | None = None,
        scale_rate: float | None = None,
        scale_footprint: float | None = None,
        seed: int = 1,
        progress: Progress | None = None,
    ) -> Fit:
        """Fit a synthetic workload to the trace.

        Equivalent to ``floatgate trace synth``. Options for the replay, such as `fit`, have no effect.

        Parameters
        ----------
        out
            File for the workload: a model (``.json``), or a fio job (``.fio``), which cannot express all properties of
            a model.
        requests
            Number of requests to generate. Default: as many as the trace has.
        scale_rate, scale_footprint
            Factors of the request rate and of the footprint.
        seed
            Seed of the requests that are generated for the comparison.
        progress
            A function that is called with the progress.

        Returns
        -------
        Fit
            ``print(fit)`` prints how well the workload fits. ``fit.workload`` runs it.

        Raises
        ------
        TraceError
            The trace cannot be read, or no workload can be fitted to it.
        OptionError
            An option has an invalid value.
        OutputError
            The file cannot be written.
        """
        if requests is not None and requests < 1:
            raise OptionError(f"requests={requests}: must be at least 1")
        options: _floatgate._FitOptions = {
            "out": None if out is None else os.fspath(out),
            "requests": requests,
            "scale_rate": scale_rate,
            "scale_footprint": scale_footprint,
            "seed": seed,
        }
        model, moments, text = _floatgate.trace_synth(self._path, self._reading(), options, progress=progress)
        text = in_python(text).replace("-o FILE.", "out=FILE.")
        return Fit(model, [Moment(**moment) for moment in json.loads(moments)], text, out)

    def convert(
        self,
        out: str | os.PathLike[str],
        to: str,
        *,
        progress: Progress | None = None,
        warn: bool = True,
    ) -> Trace:
        """Write the trace in another format.

        Equivalent to ``floatgate trace convert``. Times start at the first request. Options for running the trace, such
        as `fit` and `replay`, have no effect.

        Parameters
        ----------
        out
            File to write. It is compressed if its name ends in .gz, .xz, .zst or .bz2.
        to
            Format to write: ``"alibaba"``, ``"blkparse"``, ``"disksim"``, ``"fio"``, ``"flashsim"``, ``"mqsim"``,
            ``"msr"``, ``"spc"``, ``"ssdsim"``, ``"systor"`` or ``"tencent"``.
        progress
            A function that is called with the progress.
        warn
            Emit warnings.

        Returns
        -------
        Trace
            The new trace.

        Raises
        ------
        TraceError
            The trace cannot be read.
        OptionError
            The format is unknown, or cannot be written.
        OutputError
            The file cannot be written.

        Warns
        -----
        FloatgateWarning
            Counts what the format cannot represent: operations, times of finer resolution, and large addresses.
        """
        refuse_overwrites([self._path], out)
        options = self._reading("time_scale", "max_gap")
        _, warned = _floatgate.trace_convert(self._path, options, os.fspath(out), to, progress=progress)
        for text in warned if warn else ():
            warnings.warn(text, FloatgateWarning, stacklevel=2)
        return Trace(out, format=to)


def _restored_trace(text: str, path: str, options: dict[str, Any]) -> Trace:
    trace = Trace.__new__(Trace)
    Workload.__init__(trace, text)
    trace._path, trace._options = path, options
    return trace


def object_info(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Profile a trace of objects: their number, reuse, sizes and lifetimes (``docs/reference/objects.md``).

    Parameters
    ----------
    path
        A trace that ``objects=PATH`` accepts without ``format``.

    Returns
    -------
    dict
        The values that ``floatgate trace info PATH --json`` prints.

    Raises
    ------
    TraceError
        The file cannot be read.
    """
    found: dict[str, Any] = json.loads(_floatgate.object_info(os.fspath(path)))
    return found


class Moment(NamedTuple):
    """A property of a trace, and of the workload that was fitted to it."""

    name: str
    """Name, such as ``"read: size"``."""
    trace: float
    """Value of the trace."""
    fit: float
    """Value of the fitted workload."""
    deviation: float
    """Deviation of the fit: relative, or the difference of two shares."""
    is_share: bool
    """True for a share, from 0 to 1."""
    is_poor: bool
    """True if the deviation is large, so that results that depend on the moment will differ."""


class Fit:
    """A synthetic workload that was fitted to a trace, from :meth:`Trace.synth`. ``print(fit)`` prints how well."""

    def __init__(self, model: str, moments: list[Moment], text: str, out: str | os.PathLike[str] | None) -> None:
        self._model, self._moments, self._text, self._out = model, moments, text, out

    @property
    def moments(self) -> list[Moment]:
        """Comparison of the workload with the trace, moment by moment."""
        return self._moments

    @property
    def model(self) -> dict[str, Any]:
        """The workload, as in a model file: ``docs/reference/model.md``."""
        model: dict[str, Any] = json.loads(self._model)
        return model

    @property
    def workload(self) -> Workload:
        """The workload in the file `out`, for :func:`floatgate.run`.

        Raises
        ------
        OptionError
            It was not written to a file.
        """
        if self._out is None:
            raise OptionError("the workload is not in a file: give synth a name, such as out='model.json'")
        return Workload(os.fspath(self._out))

    def __str__(self) -> str:
        return self._text.rstrip("\n")

    def __repr__(self) -> str:
        poor = [moment.name for moment in self._moments if moment.is_poor]
        return f"<floatgate.Fit, {len(self._moments)} moments, poor: {', '.join(poor) or 'none'}>"

    def _repr_html_(self) -> str:
        return _html.text(str(self))


def _word(key: str, value: str) -> str:
    if '"' in value:
        raise TraceError(f"`{key}` must not contain a double quote: {value}")
    return f'{key}="{value}"' if not value or any(character.isspace() for character in value) else f"{key}={value}"


#: Number of the next table, which is part of its text.
_tables = itertools.count(1)


class TableTrace(Workload):
    """Requests in memory. :meth:`Trace.from_table` creates one.

    It runs in this process only: :func:`run` accepts it, alone or among other workloads.
    """

    __slots__ = ("_options", "_requests")

    def __init__(
        self,
        table: object,
        *,
        time_unit: str | None,
        replay: str | None,
        fit: str | None,
        limit: int | None,
        name: str | None,
    ) -> None:
        try:
            if hasattr(table, "__arrow_c_stream__"):
                self._requests = _floatgate.Requests.from_arrow(table, time_unit)
            else:
                self._requests = _floatgate.Requests.from_rows(table, time_unit)
        except (TypeError, ValueError) as error:
            raise TraceError(f"the table cannot be read: {error}") from error
        super().__init__(f"table:{next(_tables)}")
        self._options = {"name": name, "replay": replay, "fit": fit, "limit": limit}

    def __len__(self) -> int:
        """Return the number of requests."""
        return len(self._requests)

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("a table in memory stays in its process; write it to a file for other processes")

    def _for_run(self) -> dict[str, object]:
        return {"requests": self._requests, **self._options}


def in_memory(workload: RunLike) -> WorkloadLike | Sequence[WorkloadLike]:
    """Return a workload with its tables as :class:`TableTrace`."""
    if isinstance(workload, Workload | str | os.PathLike):
        return workload
    if isinstance(workload, ArrowTable):
        return Trace.from_table(workload)
    several = list(workload)
    if several and all(isinstance(one, tuple) for one in several):
        return Trace.from_table(several)
    for one in several:
        if not hasattr(one, "__iter__") and not isinstance(one, Workload | os.PathLike | ArrowTable):
            raise TypeError(f"expected a workload, a path or a table, not {one!r}")
    return [one if isinstance(one, Workload | str | os.PathLike) else Trace.from_table(one) for one in several]


def tables_of(workload: WorkloadLike | Sequence[WorkloadLike]) -> dict[str, dict[str, object]]:
    """Return the tables in memory among the workloads, by their texts."""
    several = [workload] if isinstance(workload, Workload | str | os.PathLike) else list(workload)
    return {str(one): one._for_run() for one in several if isinstance(one, TableTrace)}


def texts_of(workload: WorkloadLike | Sequence[WorkloadLike]) -> list[str]:
    """Return the arguments of ``floatgate run`` for one or several workloads."""
    several = [workload] if isinstance(workload, Workload | str | os.PathLike) else list(workload)
    for one in several:
        if not isinstance(one, Workload | str | os.PathLike):
            raise TypeError(f"a workload must be a Synthetic, a Trace, a JobFile, a text or a path, not {one!r}")
    if not several:
        raise WorkloadError("no workload: give at least one")
    return [os.fspath(one) if isinstance(one, os.PathLike) else str(one) for one in several]
