"""Fleets: one device for each volume of traces."""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import methodcaller
from pathlib import Path
from typing import TYPE_CHECKING, Any

from floatgate import _files, _volumes, states
from floatgate._distributing import each, engine
from floatgate._values import size_in_bytes
from floatgate.device import Device
from floatgate.exceptions import FloatgateError, OptionError, OutputError, TraceError
from floatgate.running import run
from floatgate.store import Store
from floatgate.sweeping import build, content
from floatgate.workload import Trace

if TYPE_CHECKING:
    import os

    import pyarrow as pa

    from floatgate.workload import Workload

_DAY_S = 86400

#: Columns of a fleet, in order: what the trace is, what the device did, and what that means for its life.
_COLUMNS = (
    "volume", "requests", "writes", "read_bytes", "written_bytes", "days",
    "write_amplification", "blocks_erased", "wear_mean", "wear_stddev", "wear_max",
    "read_p99_us", "write_p99_us",
    "erases_per_day", "drive_writes_per_day", "lifetime_days", "error", "error_kind",
)  # fmt: skip


@dataclass
class _Volume:
    """What the trace has of a volume."""

    requests: int = 0
    writes: int = 0
    read_bytes: int = 0
    written_bytes: int = 0
    first: int | None = None
    last: int | None = None
    keys: list[str] = field(default_factory=list)
    digest: Any = field(default_factory=hashlib.sha256)

    @property
    def span(self) -> int:
        """From the first request to the last, in the trace's own unit."""
        return (self.last or 0) - (self.first or 0)

    def add(self, row: dict[str, Any], key: str) -> None:
        for name in ("requests", "writes", "read_bytes", "written_bytes"):
            setattr(self, name, getattr(self, name) + row[name])
        self.first = row["first"] if self.first is None else min(self.first, row["first"])
        self.last = row["last"] if self.last is None else max(self.last, row["last"])
        if not self.keys or self.keys[-1] != key:
            self.keys.append(key)
        self.digest.update(row["digest"])


@dataclass(frozen=True)
class _Task:
    """A volume's run, with all that it needs on another machine."""

    device: Device
    reading: dict[str, Any]
    precondition: str
    seed: int
    #: The trace of the volume; or where it is taken from.
    trace: str | None
    layout: str | None = None
    volume: int = 0
    spool: str = ""
    keys: tuple[str, ...] = ()
    digest: str = ""
    attribution: bool = False
    states: str | None = None
    """The directory of states that are shared with other volumes."""

    def key(self) -> str:
        """Name what decides its result."""
        content = _content(self.trace) if self.trace else [self.layout, self.volume, self.digest]
        said = ["fleet", self.device.digest, content, self.reading, self.precondition, self.seed, build()]
        return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:32]

    def chosen(self) -> Device:
        """Give the device."""
        return self.device

    def row(self) -> dict[str, Any]:
        """Run it, and give what is kept of it: the summary, or what went wrong."""
        try:
            if self.trace:
                return self._run(Trace(self.trace, **self.reading))
            with tempfile.TemporaryDirectory(prefix="floatgate-volume-") as directory:
                place = str(Path(directory, f"{self.volume}.csv"))
                _volumes.write_volume(self.spool, self.keys, self.volume, str(self.layout), place)
                return self._run(Trace(place, format=self.layout, **self.reading))
        except FloatgateError as error:
            return {"summary": None, "error": str(error), "kind": type(error).__name__}

    def _run(self, trace: Trace) -> dict[str, Any]:
        options: dict[str, Any] = {"seed": self.seed, "attribution": self.attribution, "series": False, "warn": False}
        result = run(states.device_of(self, self.states), trace, precondition=self.precondition, **options)
        return {"summary": result.summary.to_json(), "error": None, "kind": None}


def _content(path: str) -> str:
    state = Path(path).stat()
    return content(path, state.st_mtime_ns, state.st_size)


def fleet(
    traces: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    device: Device | str | os.PathLike[str],
    *,
    layout: str | None = None,
    volumes: Iterable[int] | None = None,
    fit: str = "compact",
    replay: str | None = None,
    max_gap: str | None = None,
    sort_window: int = 65536,
    precondition: str | Workload = "fill",
    seed: int = 1,
    store: str | os.PathLike[str] | None = None,
    partition: int | str = _volumes.PARTITION_BYTES,
    block: int | str = _volumes.BLOCK_BYTES,
    n_jobs: int | None = None,
    progress: bool | Callable[[int, int, float | None], object] | None = None,
) -> pa.Table:
    """Give each volume of traces a device of its own, and say how these fare.

    Parameters
    ----------
    traces
        Files, each a volume. With `layout`, the files (or a directory of them) of one trace of many volumes: text,
        plain or packed (.gz, .bz2, .xz, .zst), or Parquet.
    device
        The device, its name, or the path of its file: every volume gets one.
    layout
        ``"tencent"`` or ``"alibaba"``: the columns of these traces, by order in text, and by name in Parquet.
    volumes
        Only these of a trace of many; all where not given.
    fit, replay, max_gap, sort_window
        As in :class:`Trace`. Addresses are laid densely where not told otherwise, for volumes are seldom of a device's
        size.
    precondition, seed
        As in :func:`run`.
    store
        A directory for what is done, as in :func:`sweep`: a fleet that was interrupted goes on, and a finished one
        costs nothing. Traces of many volumes are taken apart in it, so on a cluster all workers must reach it; without
        one, a temporary directory of this machine is used.
    partition, block
        Bytes of a plain text that one task takes apart, and of what it sorts at once: twenty times `block` is what it
        needs of memory, however long the trace.
    n_jobs, progress
        As in :func:`sweep`.

    Returns
    -------
    pyarrow.Table
        A row for each volume, in order of their numbers, or of the files. ``volume``; ``requests``, ``writes``,
        ``read_bytes``, ``written_bytes`` and ``days`` (from the first to the last request) of the trace;
        ``write_amplification``, ``blocks_erased`` by the trace; ``wear_mean``, ``wear_stddev`` and ``wear_max``, erases
        of a block with preconditioning; ``read_p99_us`` and ``write_p99_us``; ``erases_per_day``;
        ``drive_writes_per_day``; and ``lifetime_days``: endurance x blocks / erases per day, which is when the flash
        has had all the erases that it stands if wear is level, at this rate. Null where the trace has no duration,
        nothing was erased, or the endurance is not known. ``error`` and ``error_kind``, as in :func:`sweep`.

    Raises
    ------
    OptionError
        There is no such layout, or an option has no such value.
    TraceError
        A trace is missing, or cannot be read.
    OutputError
        The store cannot be written to.
    ConfigError
        There is no such device.

    Examples
    --------
    >>> table = fg.fleet("volumes.csv", "tiny", layout="alibaba", n_jobs=1)
    >>> table.select(["volume", "requests"]).to_pylist()
    [{'volume': 3, 'requests': 400}, {'volume': 7, 'requests': 100}]
    """
    device = device if isinstance(device, Device) else Device(device)
    words = {"fit": fit, "replay": replay, "max_gap": max_gap, "sort_window": sort_window or None}
    reading = {word: value for word, value in words.items() if value is not None}
    common: dict[str, Any] = {"device": device, "reading": reading, "precondition": str(precondition), "seed": seed}
    if layout is None:
        if isinstance(traces, str) or not isinstance(traces, Sequence):
            raise OptionError("give a list of traces, each of one volume; or say the layout of one of many volumes")
        tasks = [_Task(trace=path, **common) for path in _volumes.files_of(traces)]
        kept = _run_all(tasks, store, n_jobs, progress)
        return _table(
            [_row(task, row, None, _timed(row, replay or max_gap)) for task, row in zip(tasks, kept, strict=True)]
        )
    if layout not in _volumes.LAYOUTS:
        raise OptionError(f"{layout}: the layouts of many volumes are {' and '.join(_volumes.LAYOUTS)}")
    sizes = [size_in_bytes(value) for value in (partition, block)]
    if min(sizes) < 1:
        raise OptionError("partition and block have at least one byte")
    parts = _volumes.partitions(_volumes.files_of(traces), layout, *sizes)
    with tempfile.TemporaryDirectory(prefix="floatgate-fleet-") as scratch:
        spool = Path(scratch if store is None else store, "volumes").absolute()
        apart = partial(_apart, spool=spool, n_jobs=n_jobs, shows=progress is True or progress is None)
        apart(parts, suffix="index.arrow")
        known = _known(parts, spool, None if volumes is None else set(volumes))
        tasks = [
            _Task(trace=None, layout=layout, volume=volume, spool=str(spool), keys=tuple(of.keys),
                  digest=of.digest.hexdigest(), **common)
            for volume, of in known.items()
        ]  # fmt: skip

        def prepare(needed: set[str]) -> None:
            apart([part for part in parts if part.key() in needed], suffix="arrow")

        kept = _run_all(tasks, store, n_jobs, progress, prepare)
        # What is in the store costs nothing next time; the index says what it was of.
        for file in set(spool.glob("*.arrow")) - set(spool.glob("*.index.arrow")):
            file.unlink(missing_ok=True)
    ticks = _volumes.LAYOUTS[layout].ticks
    spans = [of.span / ticks for of in known.values()]
    return _table([_row(*one) for one in zip(tasks, kept, known.values(), spans, strict=True)])


def _apart(parts: list[_volumes.Partition], *, suffix: str, spool: Path, n_jobs: int | None, shows: bool) -> None:
    """Take partitions apart of which the spool has no such file."""
    try:
        spool.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot make the directory {spool}: {error}") from error
    missing = [part for part in parts if not Path(spool, f"{part.key()}.{suffix}").is_file()]
    for done, _ in enumerate(each(partial(_volumes.split, spool=str(spool)), missing, n_jobs), start=1):
        if shows and sys.stderr.isatty():
            _files.progress_line("fleet: partitions of the trace", done, len(missing))


def _known(parts: list[_volumes.Partition], spool: Path, wanted: set[int] | None) -> dict[int, _Volume]:
    """Say what the volumes have, by their numbers; one index is in memory at a time."""
    found: dict[int, _Volume] = {}
    for part in parts:
        key = part.key()
        for row in _volumes.index_of(str(spool), key).to_pylist():
            if wanted is None or row["volume"] in wanted:
                found.setdefault(row["volume"], _Volume()).add(row, key)
    absent = sorted((wanted or set()) - set(found))
    if absent:
        raise TraceError(f"the trace has no volume {', '.join(map(str, absent[:10]))}")
    if not found:
        raise TraceError("the trace has no request")
    return dict(sorted(found.items()))


def _run_all(
    tasks: list[_Task],
    place: str | os.PathLike[str] | None,
    n_jobs: int | None,
    progress: bool | Callable[[int, int, float | None], object] | None,
    prepare: Callable[[set[str]], None] = lambda _: None,
) -> list[dict[str, Any]]:
    """Run what is not in the store, after what these need has been prepared."""
    shelf = None if place is None else Store(place)
    keys = [task.key() for task in tasks]
    kept = [shelf.get(key) if shelf else None for key in keys]
    waiting = [number for number, row in enumerate(kept) if row is None]
    prepare({key for number in waiting for key in tasks[number].keys})
    told = _files.Progress("fleet", len(tasks), len(tasks) - len(waiting), progress)
    run_each = partial(each, methodcaller("row"), n_jobs=n_jobs)
    with states.shared([tasks[number] for number in waiting], place, run_each) as ready:
        for number, row in run_each(ready):
            kept[waiting[number]] = row
            if shelf and row["kind"] not in ("InternalError", "OutputError"):
                shelf.put(keys[waiting[number]], row)
            told.step(failed=row["error"] is not None)
    return [row for row in kept if row is not None]


def _timed(row: dict[str, Any], altered: str | None) -> float:
    """Give the seconds of a trace that was replayed as it was recorded."""
    return 0.0 if altered or row["summary"] is None else float(json.loads(row["summary"])["measured_s"])


def _row(task: _Task, kept: dict[str, Any], of: _Volume | None, seconds: float) -> dict[str, Any]:
    row: dict[str, Any] = {"volume": task.trace or task.volume, "error": kept["error"], "error_kind": kept["kind"]}
    if of is not None:
        row |= {key: getattr(of, key) for key in ("requests", "writes", "read_bytes", "written_bytes")}
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
    """Give endurance x blocks / erases per day."""
    geometry, endurance = config["geometry"], config["nand"]["endurance"]
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


def command(arguments: list[str]) -> int:
    """Run ``floatgate fleet``, and return the status to exit with."""
    made = argparse.ArgumentParser(
        prog="floatgate fleet",
        description="One device for each volume of traces: write amplification, wear and projected lifetime.",
        epilog="lifetime_days is endurance x blocks / erases per day of trace. Ctrl-C ends it; with --store, the same "
        "command goes on. See docs/sweeps.md.",
    )
    made.add_argument("device", metavar="DEVICE", help="a built-in device, or the path of a device file")
    made.add_argument("traces", metavar="TRACE", nargs="+", help="traces, each a volume; with --layout, one of many")
    made.add_argument("--layout", choices=sorted(_volumes.LAYOUTS), help="the columns of a trace of many volumes")
    made.add_argument("--set", metavar="PATH=VALUE", action="append", default=[], help="change a figure of the device")
    made.add_argument("--volumes", metavar="N,N,...", help="only these of a trace of many")
    made.add_argument("--fit", choices=("refuse", "wrap", "compact"), default="compact", help="addresses [compact]")
    made.add_argument("--replay", metavar="R", help="timed, asap, or depth=N [timed]")
    made.add_argument("--max-gap", metavar="TIME", help="what longer gaps are shortened to")
    made.add_argument("--precondition", metavar="P", default="fill", help="the state of each device [fill]")
    made.add_argument("--seed", metavar="N", type=int, default=1, help="seed of all random numbers [1]")
    made.add_argument("--store", metavar="DIR", help="where what is done is kept; on a cluster, for all to reach")
    made.add_argument("--out", metavar="TABLE", help="write the table, as .csv or .parquet")
    made.add_argument("--columns", metavar="A,B,...", help="columns to print")
    _files.add_engine(made)
    chosen = made.parse_args(arguments)
    if chosen.out:
        _files.check_output(chosen.out, chosen.traces)
    volumes = None
    if chosen.volumes:
        if not all(number.strip().isdigit() for number in chosen.volumes.split(",")):
            raise OptionError(f"--volumes {chosen.volumes}: volumes are numbers, separated by commas")
        volumes = [int(number) for number in chosen.volumes.split(",")]
    device = Device._of(chosen.device, None, tuple(chosen.set))
    try:
        with engine(chosen.scheduler):
            table = fleet(
                chosen.traces, device, layout=chosen.layout, volumes=volumes, fit=chosen.fit, replay=chosen.replay,
                max_gap=chosen.max_gap, precondition=chosen.precondition, seed=chosen.seed, store=chosen.store,
                n_jobs=chosen.jobs, progress=False if chosen.quiet else None,
            )  # fmt: skip
    except KeyboardInterrupt:
        if not chosen.store:
            raise KeyboardInterrupt("nothing is kept; with --store it would be, and the same command go on") from None
        raise KeyboardInterrupt(
            f"{_files.runs_in(chosen.store)} volumes are kept in {chosen.store}; the same command goes on"
        ) from None
    if chosen.out:
        _files.write_table(table, chosen.out)
    usual = ["volume", "requests", "days", "write_amplification", "blocks_erased", "wear_max", "lifetime_days"]
    failed = table.num_rows - table["error"].null_count
    columns = chosen.columns.split(",") if chosen.columns else usual + (["error"] if failed else [])
    sys.stdout.write(_files.text_table(_files.select(table, columns)))
    return 1 if failed == table.num_rows else 0
