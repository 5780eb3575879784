"""Fleets: simulate one device per volume of a trace."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import statistics
import sys
from dataclasses import dataclass
from functools import partial
from operator import methodcaller
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from floatgate import _files, _volumes, states
from floatgate._distributing import available, each, engine
from floatgate._html import readable
from floatgate._values import size_in_bytes
from floatgate._words import in_python
from floatgate.device import Device
from floatgate.exceptions import FloatgateError, OptionError, TraceError
from floatgate.running import run
from floatgate.store import Store
from floatgate.sweeping import build, content
from floatgate.workload import Trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import pyarrow as pa

    from floatgate.workload import Workload

_DAY_S = 86400

#: Columns of a fleet, in order: the trace, the behavior of the device, and the resulting lifetime.
_COLUMNS = (
    "volume", "requests", "writes", "read_bytes", "written_bytes", "days",
    "write_amplification", "blocks_erased", "wear_mean", "wear_stddev", "wear_max",
    "read_p99_us", "write_p99_us",
    "erases_per_day", "drive_writes_per_day", "lifetime_days", "error", "error_kind",
)  # fmt: skip


@dataclass(frozen=True)
class _Task:
    """Run of a volume, with all data that another machine needs."""

    device: Device
    reading: dict[str, Any]
    precondition: str
    seed: int
    #: Trace of the volume, or None if it is extracted from a trace with many volumes.
    trace: str | None
    layout: str | None = None
    volume: int = 0
    #: Sorted copy of the trace with many volumes, and the digest of the volume's requests.
    requests: str = ""
    digest: str = ""
    attribution: bool = False
    state: str | None = None
    """File of the state that other volumes share."""

    def key(self) -> str:
        """Return a key of everything that determines the result."""
        content = _content(self.trace) if self.trace else [self.layout, self.volume, self.digest]
        said = ["fleet", self.device.digest, content, self.reading, self.precondition, self.seed, build()]
        return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:32]

    @property
    def chosen(self) -> Device:
        """The device."""
        return self.device

    def row(self) -> dict[str, Any]:
        """Run the task, and return the data to store: the summary, or the error."""
        try:
            if self.trace:
                return self._run(Trace(self.trace, **self.reading))
            with _files.scratch("floatgate-volume-") as directory:
                place = str(Path(directory, f"{self.volume}.csv"))
                _volumes.write_volume(self.requests, self.volume, str(self.layout), place)
                return self._run(Trace(place, format=self.layout, **self.reading))
        except FloatgateError as error:
            return {"summary": None, "error": error.said, "kind": type(error).__name__}

    def _run(self, trace: Trace) -> dict[str, Any]:
        options: dict[str, Any] = {"seed": self.seed, "attribution": self.attribution, "series": False, "warn": False}
        result = run(states.device_of(self), trace, precondition=self.precondition, **options)
        return {"summary": result.summary.to_json(), "error": None, "kind": None}


def _content(path: str) -> str:
    state = Path(path).stat()
    return content(path, state.st_mtime_ns, state.st_size)


#: Options of a trace that apply to all files.
_TRACE_OPTIONS = ("format", "action", "time_unit", "time_scale", "devices", "limit", "skip_bad_lines")

#: Traces: files, or objects with options of their own.
TraceLike: TypeAlias = "str | os.PathLike[str] | Trace"


def fleet(
    traces: TraceLike | Sequence[TraceLike],
    device: Device | str | os.PathLike[str],
    *,
    layout: str | None = None,
    volumes: Iterable[int] | None = None,
    fit: str = "compact",
    replay: str | None = None,
    max_gap: str | None = None,
    sort_window: int = 65536,
    format: str | None = None,  # noqa: A002 (the name of the command's option)
    action: str | None = None,
    time_unit: str | None = None,
    time_scale: float | None = None,
    devices: str | None = None,
    limit: int | None = None,
    skip_bad_lines: int | None = None,
    precondition: str | Workload = "fill",
    seed: int = 1,
    store: str | os.PathLike[str] | None = None,
    memory: int | str = "2GiB",
    n_jobs: int | None = None,
    progress: bool | Callable[[int, int, float | None], object] | None = None,
) -> pa.Table:
    """Simulate a separate device for each volume of a trace, and return their wear and lifetime.

    Parameters
    ----------
    traces
        Files or :class:`Trace` objects, each a volume. With `layout`, the files (or a directory of files) of one trace
        with many volumes: text, plain or compressed (.gz, .bz2, .xz, .zst), or Parquet.
    device
        The device, its name, or the path of its file. Every volume gets its own.
    layout
        ``"tencent"`` or ``"alibaba"``: columns are found by order in text, and by name in Parquet. Needs DuckDB
        (``pip install 'floatgate[fleet]'``).
    volumes
        Volumes to simulate. Default: all.
    fit, replay, max_gap, sort_window
        As in :class:`Trace`. By default, addresses are mapped densely, because volumes rarely have the size of a
        device.
    format, action, time_unit, time_scale, devices, limit, skip_bad_lines
        As in :class:`Trace`, for files without `layout`. The options of a :class:`Trace` override all of these.
    precondition, seed
        As in :func:`run`.
    store
        A directory for finished runs, as in :func:`sweep`. An interrupted fleet continues, and a finished one is not
        simulated again. Traces with many volumes are sorted in this directory, so all workers of a cluster must have
        access to it. Without it, a temporary directory of this machine is used.
    memory
        Memory for sorting a trace with many volumes, such as ``"8GiB"``. What does not fit is sorted on disk.
    n_jobs, progress
        As in :func:`sweep`.

    Returns
    -------
    pyarrow.Table
        A row per volume, in the order of volume numbers or files. ``volume``; ``requests``, ``writes``, ``read_bytes``,
        ``written_bytes`` and ``days`` (from the first to the last request) of the trace; ``write_amplification`` and
        ``blocks_erased`` by the trace; ``wear_mean``, ``wear_stddev`` and ``wear_max``, erases per block including
        preconditioning; ``read_p99_us`` and ``write_p99_us``; ``erases_per_day``; ``drive_writes_per_day``; and
        ``lifetime_days``: endurance x blocks / erases per day, the time until the flash reaches its endurance at this
        rate, if wear is even. Null if the trace has no duration, nothing was erased, or the endurance is unknown.
        ``error`` and ``error_kind``, as in :func:`sweep`.

    Raises
    ------
    OptionError
        The layout is unknown, or an option has an invalid value.
    TraceError
        A trace is missing, or cannot be read.
    OutputError
        The store cannot be written to.
    ConfigError
        The device does not exist.

    Examples
    --------
    >>> table = fg.fleet("volumes.csv", "tiny", layout="alibaba", n_jobs=1)
    >>> table.select(["volume", "requests"]).to_pylist()
    [{'volume': 3, 'requests': 400}, {'volume': 7, 'requests': 100}]
    """
    device = device if isinstance(device, Device) else Device(device)
    words = {"fit": fit, "replay": replay, "max_gap": max_gap, "sort_window": sort_window or None}
    own = dict(
        zip(_TRACE_OPTIONS, (format, action, time_unit, time_scale, devices, limit, skip_bad_lines), strict=True)
    )
    reading = {word: value for word, value in (words | own).items() if value is not None}
    common: dict[str, Any] = {"device": device, "precondition": str(precondition), "seed": seed}
    if layout is None:
        return _of_files(traces, reading, common, store=store, n_jobs=n_jobs, progress=progress)
    given = [word for word, value in own.items() if value is not None]
    if given:
        raise OptionError(f"{given[0]}= is for files that are volumes; omit it, or omit layout=")
    if layout not in _volumes.LAYOUTS:
        raise OptionError(f"unknown layout `{layout}`: expected {' or '.join(_volumes.LAYOUTS)}")
    if (bytes_to_sort := size_in_bytes(memory)) < 1 << 20:
        raise OptionError(f"memory={memory}: expected at least 1MiB")
    with _files.scratch("floatgate-fleet-") as scratch:
        spool = Path(scratch if store is None else store, "volumes").absolute()
        files = tuple(_volumes.files_of(_paths(traces)))
        trace = _volumes.Volumes(files, layout, spool, bytes_to_sort)
        known = _known(trace, None if volumes is None else set(volumes))
        tasks = [
            _Task(trace=None, reading=reading, layout=layout, volume=row["volume"], digest=row["digest"],
                  requests=str(trace._place("parquet")), **common)
            for row in known
        ]  # fmt: skip
        kept = _run_all(tasks, store, n_jobs, progress, trace.sorted)
        # The requests of stored runs are not needed again; the index identifies them.
        trace._place("parquet").unlink(missing_ok=True)
    ticks = _volumes.LAYOUTS[layout].ticks
    spans = [(row["last"] - row["first"]) / ticks for row in known]
    return _table([_row(*one) for one in zip(tasks, kept, known, spans, strict=True)])


def _of_files(
    traces: TraceLike | Sequence[TraceLike],
    reading: dict[str, Any],
    common: dict[str, Any],
    *,
    store: str | os.PathLike[str] | None,
    n_jobs: int | None,
    progress: bool | Callable[[int, int, float | None], object] | None,
) -> pa.Table:
    """Simulate files that are volumes."""
    if isinstance(traces, str | os.PathLike):
        raise OptionError("give a list of traces with one volume each, or the layout of a trace with many volumes")
    several = [traces] if isinstance(traces, Trace) else list(traces)
    tasks = [
        _Task(trace=path, reading=reading | (one._options if isinstance(one, Trace) else {}), **common)
        for one in several
        for path in _volumes.files_of(_paths(one))
    ]
    if not tasks:
        raise OptionError("no trace: give at least one")
    kept = _run_all(tasks, store, n_jobs, progress)
    altered = [bool(task.reading.keys() & {"replay", "max_gap", "time_scale"}) for task in tasks]
    rows = zip(tasks, kept, altered, strict=True)
    return _table([_row(task, row, None, _timed(row, changed)) for task, row, changed in rows])


def _paths(traces: TraceLike | Sequence[TraceLike]) -> list[str | os.PathLike[str]]:
    several = [traces] if isinstance(traces, str | os.PathLike | Trace) else list(traces)
    return [one.path if isinstance(one, Trace) else one for one in several]


def _known(trace: _volumes.Volumes, wanted: set[int] | None) -> list[dict[str, Any]]:
    """Return the statistics of the wanted volumes."""
    found = [row for row in trace.index() if wanted is None or row["volume"] in wanted]
    absent = sorted((wanted or set()) - {row["volume"] for row in found})
    if absent:
        raise TraceError(f"the trace has no volume {', '.join(map(str, absent[:10]))}")
    if not found:
        raise TraceError("the trace has no requests")
    return found


def _run_all(
    tasks: list[_Task],
    place: str | os.PathLike[str] | None,
    n_jobs: int | None,
    progress: bool | Callable[[int, int, float | None], object] | None,
    prepare: Callable[[], object] = lambda: None,
) -> list[dict[str, Any]]:
    """Run the tasks that are not in the store, after `prepare` was called if there are any."""
    shelf = None if place is None else Store(place)
    keys = [task.key() for task in tasks]
    kept = [shelf.get(key) if shelf else None for key in keys]
    waiting = [number for number, row in enumerate(kept) if row is None]
    if waiting:
        if shelf:
            shelf.check()
        prepare()
    told = _files.Progress("fleet", len(tasks), len(tasks) - len(waiting), progress)
    run_each = partial(each, methodcaller("row"), n_jobs=available(n_jobs, len(waiting)))
    with states.shared([tasks[number] for number in waiting], place, run_each) as ready:
        for number, row in run_each(ready):
            kept[waiting[number]] = row
            if shelf and row["kind"] not in ("InternalError", "OutputError"):
                shelf.put(keys[waiting[number]], row)
            told.step(failed=row["error"] is not None)
    return [row for row in kept if row is not None]


def _timed(row: dict[str, Any], altered: bool) -> float:
    """Return the duration in seconds of a trace that was replayed with its recorded times, otherwise 0."""
    return 0.0 if altered or row["summary"] is None else float(json.loads(row["summary"])["measured_s"])


def _row(task: _Task, kept: dict[str, Any], of: dict[str, Any] | None, seconds: float) -> dict[str, Any]:
    error = kept["error"] and in_python(kept["error"])
    row: dict[str, Any] = {"volume": task.trace or task.volume, "error": error, "error_kind": kept["kind"]}
    if of is not None:
        row |= {key: of[key] for key in ("requests", "writes", "read_bytes", "written_bytes")}
        row["days"] = seconds / _DAY_S
    if kept["summary"] is None:
        return row
    summary = json.loads(kept["summary"])
    requests = summary["requests"]
    if of is None:
        row |= {"requests": requests["all"]["count"], "writes": requests["write"]["count"],
                "read_bytes": requests["read"]["bytes"], "written_bytes": requests["write"]["bytes"],
                "days": seconds / _DAY_S if seconds else None}  # fmt: skip
    erased = summary["flash"]["blocks_erased"]
    wear = summary["wear"]["blocks"]
    row |= {
        "write_amplification": summary["write_amplification"],
        "blocks_erased": erased,
        **{f"wear_{key}": wear[key] for key in ("mean", "stddev", "max")},
        "read_p99_us": requests["read"]["latency_us"]["p99"],
        "write_p99_us": requests["write"]["latency_us"]["p99"],
    }
    if seconds:
        days = seconds / _DAY_S
        row |= {
            "erases_per_day": erased / days,
            "drive_writes_per_day": row["written_bytes"] / days / task.device.logical_bytes,
            "lifetime_days": _lifetime_days(summary["config"], erased / days),
        }
    return row


def _lifetime_days(config: dict[str, Any], erases_per_day: float) -> float | None:
    """Return endurance x blocks / erases per day."""
    geometry = config["geometry"]
    endurance = config["nand"]["endurance"]
    if not endurance or not erases_per_day:
        return None
    blocks = geometry["blocks"]
    for level in ("channels", "chips", "dies", "planes"):
        blocks *= geometry[level]
    return float(endurance * blocks / erases_per_day)


def _table(rows: list[dict[str, Any]]) -> pa.Table:
    import pyarrow as pa  # noqa: PLC0415 (half a second, and not always needed)

    texts = ("error", "error_kind")
    whole = ("requests", "writes", "read_bytes", "written_bytes", "blocks_erased", "wear_max")
    kinds = {name: pa.string() if name in texts else pa.int64() if name in whole else pa.float64() for name in _COLUMNS}
    kinds["volume"] = pa.int64() if isinstance(rows[0]["volume"], int) else pa.string()
    return pa.table({name: pa.array([row.get(name) for row in rows], kinds[name]) for name in _COLUMNS})


def fleet_summary(table: pa.Table) -> str:
    """Format a summary of a fleet: totals, write amplification, and the volumes that wear out first.

    Parameters
    ----------
    table
        The table of :func:`fleet`.
    """
    rows = table.to_pylist()
    done = [row for row in rows if row["error"] is None]
    total = {name: sum(row[name] or 0 for row in rows) for name in ("requests", "read_bytes", "written_bytes")}
    failed = f", {len(rows) - len(done)} failed" if len(done) < len(rows) else ""
    lines = [
        ("volumes", f"{len(rows):,}{failed}"),
        ("requests", f"{total['requests']:,}: {readable(total['read_bytes'])} read, "
                     f"{readable(total['written_bytes'])} written"),
    ]  # fmt: skip
    amplified = [row for row in done if row["write_amplification"] is not None]
    if written := sum(row["written_bytes"] for row in amplified):
        mean = sum(row["write_amplification"] * row["written_bytes"] for row in amplified) / written
        lines.append(("amplification", f"{mean:.3f} of all writes; {_spread(amplified, 'write_amplification', '.3f')}"))
    for name, label in (("write_p99_us", "write p99, us"), ("read_p99_us", "read p99, us"),
                        ("wear_max", "erases, most"), ("lifetime_days", "lifetime, days")):  # fmt: skip
        known = [row for row in done if row[name] is not None]
        if known:
            lines.append((label, _spread(known, name, ",.0f")))
    return "".join(f"{label:<15}{text}\n" for label, text in lines)


def _spread(rows: list[dict[str, Any]], name: str, form: str) -> str:
    """Format the minimum, the median and the maximum of a column, with the volumes at both ends."""
    rows = sorted(rows, key=lambda row: row[name])
    least, middle, greatest = rows[0], statistics.median(row[name] for row in rows), rows[-1]
    if len(rows) == 1:
        return f"{least[name]:{form}}"
    ends = [f"{row[name]:{form}} (volume {row['volume']})" for row in (least, greatest)]
    return f"by volume {ends[0]} to {ends[1]}, median {middle:{form}}"


def command(arguments: list[str]) -> int:
    """Run ``floatgate fleet``, and return the exit status."""
    made = argparse.ArgumentParser(
        prog="floatgate fleet",
        description="Simulate a device per volume of a trace: write amplification, wear and lifetime.",
        epilog="lifetime_days is endurance x blocks / erases per day of trace. After Ctrl-C, the same command "
        "continues, if it has --store. See docs/sweeps.md.",
    )
    made.add_argument("device", metavar="DEVICE", help="built-in device, or path of a device file")
    made.add_argument("traces", metavar="TRACE", nargs="+", help="traces with one volume each, or see --layout")
    made.add_argument("--layout", choices=sorted(_volumes.LAYOUTS), help="format of a trace with many volumes")
    made.add_argument("--set", metavar="PATH=VALUE", action="append", default=[], help="change a device parameter")
    made.add_argument("--volumes", metavar="N,N,...", help="volumes to simulate [default: all]")
    made.add_argument("--fit", choices=("refuse", "wrap", "compact"), default="compact", help="addresses [compact]")
    made.add_argument("--replay", metavar="R", help="timed, asap, or depth=N [timed]")
    made.add_argument("--max-gap", metavar="TIME", help="shorten longer gaps between requests to TIME")
    made.add_argument("--sort-window", metavar="N", type=int, default=65536, help="sort within N positions [65536]")
    made.add_argument("--format", metavar="F", help="trace format, or delimited:COLUMNS [detected]")
    made.add_argument("--action", choices=("D", "Q", "I", "C"), help="event of blktrace that is a request")
    made.add_argument("--time-unit", metavar="UNIT", help="unit of timestamps [that of the format]")
    made.add_argument("--time-scale", metavar="X", type=float, help="multiply timestamps by X")
    made.add_argument("--devices", metavar="D", help="side-by-side, merge or select=NAME,... [side-by-side]")
    made.add_argument("--limit", metavar="N", type=int, help="end each trace after N requests")
    made.add_argument("--skip-bad-lines", metavar="N", type=int, help="skip up to N invalid lines")
    made.add_argument("--precondition", metavar="P", default="fill", help="initial state of each device [fill]")
    made.add_argument("--seed", metavar="N", type=int, default=1, help="random seed [1]")
    made.add_argument("--store", metavar="DIR", help="keep finished runs in DIR; must be shared on a cluster")
    made.add_argument("--memory", metavar="SIZE", default="2GiB", help="memory for sorting, with --layout [2GiB]")
    made.add_argument("--out", metavar="TABLE", help="write the table, as .csv or .parquet")
    made.add_argument("--columns", metavar="A,B,...", help="columns to print")
    _files.add_engine(made)
    chosen = made.parse_args(arguments)
    if chosen.out:
        _files.check_output(chosen.out, chosen.traces)
    volumes = None
    if chosen.volumes:
        if not all(number.strip().isdigit() for number in chosen.volumes.split(",")):
            raise OptionError(f"invalid --volumes `{chosen.volumes}`: expected numbers separated by commas")
        volumes = [int(number) for number in chosen.volumes.split(",")]
    device = Device._of(chosen.device, None, tuple(chosen.set))
    try:
        with engine(chosen.scheduler):
            table = fleet(
                chosen.traces, device, layout=chosen.layout, volumes=volumes, fit=chosen.fit, replay=chosen.replay,
                max_gap=chosen.max_gap, precondition=chosen.precondition, seed=chosen.seed, store=chosen.store,
                sort_window=chosen.sort_window, memory=chosen.memory,
                **{name: getattr(chosen, name) for name in _TRACE_OPTIONS}, n_jobs=chosen.jobs,
                progress=False if chosen.quiet else None,
            )  # fmt: skip
    except KeyboardInterrupt:
        if not chosen.store:
            raise KeyboardInterrupt("no runs were kept; use --store to continue after an interruption") from None
        raise KeyboardInterrupt(
            f"{_files.runs_in(chosen.store)} volumes are kept in {chosen.store}; the same command continues"
        ) from None
    if chosen.out:
        _files.write_table(table, chosen.out)
    usual = ["volume", "requests", "days", "write_amplification", "blocks_erased", "wear_max", "lifetime_days"]
    failed = table.num_rows - table["error"].null_count
    columns = chosen.columns.split(",") if chosen.columns else usual + (["error"] if failed else [])
    rows = _files.text_table(_files.select(table, columns))
    sys.stdout.write(f"{fleet_summary(table)}\n{rows}")
    return 1 if failed == table.num_rows else 0
