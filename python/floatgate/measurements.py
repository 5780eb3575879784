"""Measurements of a drive: points with a load, a statistic and a value, from tables, fio's JSON and latency logs."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from floatgate import _files
from floatgate._metrics import declared
from floatgate.exceptions import OptionError, SimulationError
from floatgate.optimizing import metric_of

if TYPE_CHECKING:
    import os

#: Statistics of latencies, by their names in tables.
LATENCIES = {"mean": "mean", "min": "min", "max": "max", "p50": "p50", "p90": "p90", "p95": "p95", "p99": "p99",
             "p99.9": "p99_9", "p99.99": "p99_99"}  # fmt: skip

_OPERATIONS = ("read", "write", "trim", "all")

#: Relative uncertainty of statistics for which a table has none, from repeated measurements of SSDs (docs/fit.md).
_UNCERTAINTY = {"p95": 0.03, "p99": 0.05, "p99.9": 0.15, "p99.99": 0.3, "max": 0.5}
_LEAST_UNCERTAINTY = 0.02

#: Limit for files of measurements in bytes.
_LARGEST = 64 << 20

_COLUMNS = ("load", "precondition", "stream", "operation", "statistic", "value", "uncertainty", "curve", "x", "use",
            "source")  # fmt: skip


@dataclass(frozen=True)
class Point:
    """A measured value."""

    load: str
    """Workload in fio syntax, or the path of a job file."""
    operation: str
    """``"read"``, ``"write"``, ``"trim"`` or ``"all"``, or empty for a statistic of the drive."""
    statistic: str
    """``"iops"``, ``"mib_per_s"``, ``"mean"``, ``"p99.9"`` and other latencies in us, or a metric of the drive."""
    value: float = math.nan
    """The measured value, or not a number if it was not measured yet."""
    uncertainty: float = math.nan
    """Standard deviation, relative to the value. Default: 2%, and more for the tails of latencies."""
    precondition: str = "fill"
    """State before the load."""
    stream: str = ""
    """Name of the job, or empty for all jobs."""
    curve: str = ""
    """Name of the curve that the point belongs to."""
    x: float | None = None
    """Position on the curve, such as the queue depth."""
    use: Literal["fit", "check"] = "fit"
    """``"check"`` if the value is only compared with the result."""
    source: str = ""
    """Source of the value."""

    def __post_init__(self) -> None:
        """Check the point."""
        if math.isnan(self.uncertainty):
            object.__setattr__(self, "uncertainty", _UNCERTAINTY.get(self.statistic, _LEAST_UNCERTAINTY))
        if self.value <= 0 or math.isinf(self.value):
            raise OptionError(f"invalid value {self.value} of {self.label}: expected a number above 0")
        if not 0 < self.uncertainty < 10:
            raise OptionError(f"invalid uncertainty {self.uncertainty} of {self.label}: expected a share, such as 0.02")
        if self.use not in ("fit", "check"):
            raise OptionError(f"invalid use `{self.use}` of {self.label}: expected fit or check")
        if self.operation and self.operation not in _OPERATIONS:
            raise OptionError(f"invalid operation `{self.operation}`: expected {', '.join(_OPERATIONS)}, or none")
        if not _files.has_column(self._of_device, declared()):
            known = [*LATENCIES, "iops", "mib_per_s", "write_amplification"]
            raise OptionError(f"unknown statistic `{self.statistic}`{_files.near(self.statistic, known)}")

    @property
    def _of_device(self) -> str:
        """Path of the metric for the requests of all streams."""
        name = self.statistic
        name = f"latency_us.{LATENCIES[name]}" if name in LATENCIES else name
        return f"requests.{self.operation}.{name}" if self.operation else name

    @property
    def metric(self) -> str:
        """Path of the metric in a summary, as in the objectives of :func:`optimize`."""
        return f"streams.{self.stream}.{self._of_device}" if self.stream else self._of_device

    @property
    def run(self) -> tuple[str, str]:
        """Load and precondition: points of equal runs are simulated together."""
        return self.load, self.precondition

    @property
    def label(self) -> str:
        """Curve, position, operation and statistic."""
        place = "" if self.x is None else f" {self.x:g}"
        words = f"{self.curve or self.load}{place}", self.stream, self.operation, self.statistic
        return " ".join(word for word in words if word)


def runs_of(points: Iterable[Point]) -> list[dict[str, Any]]:
    """Return the runs of points for a sweep: each load with each of its preconditions once."""
    return [{"workload": load, "precondition": state} for load, state in dict.fromkeys(point.run for point in points)]


def logarithms(points: Iterable[Point], summaries: Sequence[Mapping[str, Any]]) -> list[list[float]]:
    """Return the logarithms of the values of points, for each seed, in the summaries of :func:`runs_of`.

    Raises
    ------
    SimulationError
        A run has no value for a point.
    """
    points = list(points)
    runs = list(dict.fromkeys(point.run for point in points))
    seeds = len(summaries) // len(runs)
    by_run = {run: summaries[place * seeds : (place + 1) * seeds] for place, run in enumerate(runs)}
    found = []
    for point in points:
        values = [metric_of(summary, point.metric) for summary in by_run[point.run]]
        if not all(values):
            raise SimulationError(f"the simulation has no value of {point.label}")
        found.append([math.log(value) for value in values])
    return found


@dataclass(frozen=True)
class Known:
    """A parameter of the device that is known, such as the capacity."""

    path: str
    value: Any
    source: str = ""


@dataclass(frozen=True)
class Measurements:
    """Points, and parameters that are known."""

    points: tuple[Point, ...]
    known: tuple[Known, ...] = ()

    def __add__(self, other: Measurements) -> Measurements:
        return Measurements(self.points + other.points, self.known + other.known)

    def with_hold_out(self, every: int) -> Measurements:
        """Return the measurements with every nth point of each curve and statistic used only to check the result.

        The first and the last point of a curve are always fitted, because the points between depend on them.
        """
        if every < 2:
            raise OptionError(f"invalid hold-out `{every}`: expected 2 or more, such as 3 for every third point")
        curves: dict[tuple[str, str, str, str], list[int]] = {}
        for index, point in enumerate(self.points):
            curves.setdefault((point.curve, point.stream, point.operation, point.statistic), []).append(index)
        held = {of[place] for of in curves.values() for place in range(every - 1, len(of) - 1, every)}
        points = (
            dataclasses.replace(point, use="check") if index in held else point
            for index, point in enumerate(self.points)
        )
        return dataclasses.replace(self, points=tuple(points))

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the measurements as a table."""
        with _files.draft(Path(path)) as partial:
            partial.write_text(self.to_csv())

    def to_csv(self) -> str:
        """Return the measurements as the text of a table."""
        text = io.StringIO()
        rows = csv.DictWriter(text, _COLUMNS, restval="", lineterminator="\n")
        rows.writeheader()
        for known in self.known:
            rows.writerow({"statistic": known.path, "value": known.value, "source": known.source})
        for point in self.points:
            row = dataclasses.asdict(point)
            rows.writerow({name: row[name] for name in _COLUMNS if row[name] is not None and row[name] == row[name]})
        return text.getvalue()


def read(path: str | os.PathLike[str]) -> Measurements:
    """Read a table (.csv), fio's JSON (.json), or a directory with the results of a probe.

    Raises
    ------
    OptionError
        The file cannot be read, or is invalid.
    """
    place = Path(path)
    if place.is_dir():
        return _read_probe(place)
    readers = {".csv": _read_csv, ".json": _read_fio}
    if place.suffix not in readers:
        raise OptionError(
            f"{place}: expected a table of measurements (.csv), fio's JSON (.json), or a directory that "
            "floatgate fit probe has written"
        )
    return readers[place.suffix](place)


def _text(place: Path) -> str:
    try:
        return _files.read_limited(place, _LARGEST)
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(f"cannot read {place}: {error}") from error


def _read_csv(place: Path) -> Measurements:
    # A comment line starts with a hash sign. Line numbers of errors are those of the file.
    lines = [(number, line) for number, line in enumerate(_text(place).splitlines(), 1) if not line.startswith("#")]
    rows = csv.DictReader(line for _, line in lines if line.strip())
    numbers = [number for number, line in lines if line.strip()][1:]
    names = rows.fieldnames or []
    _files.check_columns(names, _COLUMNS)
    for name in ("load", "statistic", "value"):
        if name not in names:
            raise OptionError(f"{place}: missing column `{name}`; expected {', '.join(_COLUMNS)}")
    points: list[Point] = []
    known: list[Known] = []
    for number, row in zip(numbers, rows, strict=False):
        if None in row or None in row.values():
            raise OptionError(f"{place}, line {number}: expected {len(names)} columns; quote a value with a comma")
        values = {name: value.strip() for name, value in row.items() if value.strip()}
        try:
            for name in ("statistic", *(() if "load" in values else ("value",))):
                if name not in values:
                    raise OptionError(f"missing {name}")
            if values["statistic"] == "log":
                model = _point({**values, "operation": "all", "statistic": "iops", "value": "1"})
                points += of_log(place.parent / values.get("value", ""), model)
            elif "load" in values:
                points.append(_point(values))
            else:
                known.append(Known(values["statistic"], value_of(values["value"]), values.get("source", "")))
        except OptionError as error:
            raise OptionError(f"{place}, line {number}: {error}") from None
    return Measurements(tuple(points), tuple(known))


def _point(values: Mapping[str, str]) -> Point:
    numbers: dict[str, Any] = {name: _number(values[name]) for name in ("value", "uncertainty", "x") if name in values}
    texts: dict[str, Any] = {name: value for name, value in values.items() if name not in numbers}
    return Point(**{"operation": ""} | texts | numbers)


def _number(text: str) -> float:
    try:
        return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        raise OptionError(f"`{text}` is not a number") from None


def value_of(text: str) -> Any:  # noqa: ANN401 (a value of a device file)
    """Return the number or truth value that a text is, and otherwise the text: a quantity, or the name of a choice."""
    if text in ("true", "false"):
        return text == "true"
    if re.fullmatch(r"\d+", text):
        return int(text)
    return float(text) if re.fullmatch(r"\d*\.\d+|\d+\.", text) else text


#: Options of fio that determine a load. The others belong to the machine and to the file of results.
_LOAD_OPTIONS = (
    "rw", "bs", "iodepth", "numjobs", "size", "offset", "io_size", "rwmixread", "rate_iops", "rate_process",
    "norandommap", "random_distribution", "number_ios", "runtime", "time_based", "ramp_time", "thinktime",
    "thinktime_blocks",
)  # fmt: skip
_SWITCHES = ("norandommap", "time_based")

#: Longest time for which a load of a job file is simulated, in seconds.
_LONGEST_S = 2.0


def _read_fio(place: Path, name: str = "") -> Measurements:
    """Return the points of the groups of jobs in fio's JSON output."""
    said = _json(place)
    common = said.get("global options", {})
    groups: list[list[Mapping[str, Any]]] = []
    for job in said["jobs"]:
        if not groups or "stonewall" in job.get("job options", {}):
            groups.append([])
        groups[-1].append(job)
    points: list[Point] = []
    for group in groups:
        of_name = {job["jobname"]: common | job.get("job options", {}) for job in group}
        is_one = len(of_name) == 1
        load = " ; ".join(_load(options, "" if is_one else of) for of, options in of_name.items())
        plan = [Point(load, "all", "iops", curve=name or group[0]["jobname"], source=place.name)]
        points += _of_jobs(group, plan, is_one=is_one)
    return Measurements(tuple(points))


def _json(place: Path) -> dict[str, Any]:
    text = _text(place)
    try:
        # fio may print notes before the document.
        said = json.loads(text[text.index("{") :])
        if not said["jobs"]:
            raise ValueError("it has no jobs")
    except (ValueError, KeyError, TypeError) as error:
        raise OptionError(f"{place} is not the JSON output of fio (--output-format=json): {error}") from error
    return said  # type: ignore[no-any-return]


def _load(options: Mapping[str, str], name: str) -> str:
    """Return a job with the options of fio that determine the load."""
    words = [f"name={name}"] if name else []
    aliases = {"readwrite": "rw", "blocksize": "bs", "io_limit": "io_size", "timeout": "runtime"}
    options = {aliases.get(key, key): value for key, value in options.items()}
    if "rw" not in options:
        raise OptionError("a job of fio's JSON output has no rw: the loads of a job file need it in each job")
    for key in _LOAD_OPTIONS:
        if key not in options:
            continue
        value = options[key]
        if key in _SWITCHES:
            value = value or "1"
        if key == "runtime":
            value = f"{min(_seconds(value), _LONGEST_S):g}"
        words.append(f"{key}={value}")
    return " ".join(words)


def _seconds(text: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(us|ms|s|m|h)?", text.strip())
    if not found:
        raise OptionError(f"`{text}` is not a time of fio")
    return float(found[1]) * {"us": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600}[found[2] or "s"]


def _of_jobs(jobs: Sequence[Mapping[str, Any]], plan: Sequence[Point], *, is_one: bool) -> list[Point]:
    """Return the statistics of fio's jobs, with the loads of a plan: of each stream, or of the only job."""
    wanted = {(one.stream, one.operation, one.statistic) for one in plan if one.operation not in ("", "all")}
    model = plan[0]
    points: list[Point] = []
    names = dict.fromkeys(job["jobname"] for job in jobs)
    for name in names:
        clones = [job for job in jobs if job["jobname"] == name]
        for operation in ("read", "write", "trim"):
            of = [clone[operation] for clone in clones if clone.get(operation, {}).get("total_ios", 0) > 0]
            if not of:
                continue
            for statistic, value in _statistics(of).items():
                stream = "" if is_one else name
                if wanted and (stream, operation, statistic) not in wanted:
                    continue
                points.append(
                    dataclasses.replace(
                        model, operation=operation, statistic=statistic, value=value, stream=stream,
                        uncertainty=math.nan,
                    )
                )  # fmt: skip
    return [point for point in points if point.value > 0]


def _statistics(clones: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the statistics of one operation of a job. Latencies of several clones cannot be joined, except means."""
    found = {"iops": sum(one["iops"] for one in clones), "mib_per_s": sum(one["bw_bytes"] for one in clones) / 2**20}
    latencies = [one.get("clat_ns", {}) for one in clones]
    if all(one.get("N") for one in latencies):
        total = sum(one["N"] for one in latencies)
        found["mean"] = sum(one["mean"] * one["N"] for one in latencies) / total / 1e3
    if len(clones) == 1:
        percentiles = {float(key): value for key, value in latencies[0].get("percentile", {}).items()}
        for name, share in (("p50", 50.0), ("p99", 99.0), ("p99.9", 99.9)):
            if share in percentiles:
                found[name] = percentiles[share] / 1e3
    return found


def _read_probe(directory: Path) -> Measurements:
    """Return the results of the jobs in a directory, with the loads of its plan."""
    plan = _read_csv(directory / "plan.csv") if (directory / "plan.csv").is_file() else None
    if plan is None:
        raise OptionError(f"{directory} has no plan.csv: expected a directory that floatgate fit probe has written")
    groups: dict[str, list[Point]] = {}
    for point in plan.points:
        groups.setdefault(point.source, []).append(point)
    points: list[Point] = []
    for name, of in groups.items():
        result = directory / f"{name}.json"
        if not result.is_file():
            continue
        jobs = _json(result)["jobs"]
        points += _of_jobs(jobs, of, is_one=all(not point.stream for point in of))
        points += [
            dataclasses.replace(point, value=value)
            for point in of
            if point.statistic == "write_amplification" and (value := _amplification(directory, name, jobs)) is not None
        ]
    if not points:
        raise OptionError(f"{directory} has no results: run its script measure.sh on the drive")
    return Measurements(tuple(points), plan.known)


def _amplification(directory: Path, name: str, jobs: Iterable[Mapping[str, Any]]) -> float | None:
    """Return physical writes by the counters of the drive (OCP) per byte of the jobs, or None without counters."""
    counts = []
    for when in ("before", "after"):
        place = directory / f"{name}.ocp-{when}.json"
        try:
            said = json.loads(_text(place))
            written = next(value for key, value in said.items() if key.lower().startswith("physical media units writ"))
            counts.append(
                int(written["hi"]) << 64 | int(written["lo"]) if isinstance(written, Mapping) else int(written)
            )
        except (OptionError, ValueError, KeyError, StopIteration, AttributeError):
            return None
    host = sum(job["write"]["io_bytes"] for job in jobs)
    return (counts[1] - counts[0]) / host if host and counts[1] > counts[0] else None


def of_log(place: str | os.PathLike[str], plan: Point) -> list[Point]:
    """Return the latencies in a latency log of fio (``write_lat_log``), with the load of a point.

    The lines have the time in ms, the latency in ns, and the direction: 0 for reads, 1 for writes, 2 for trims.
    """
    import numpy as np  # noqa: PLC0415 (only for logs)

    try:
        rows = np.loadtxt(place, delimiter=",", usecols=(0, 1, 2), ndmin=2)
    except (OSError, ValueError) as error:
        raise OptionError(f"{place} is not a latency log of fio: {error}") from error
    points = []
    for direction, operation in enumerate(("read", "write", "trim")):
        latencies = rows[rows[:, 2] == direction, 1] / 1e3
        if len(latencies) == 0:
            continue
        found = {"mean": float(latencies.mean())}
        found |= {f"p{share:g}": float(np.percentile(latencies, share)) for share in (50, 99, 99.9)}
        points += [
            dataclasses.replace(plan, operation=operation, statistic=name, value=value, uncertainty=math.nan)
            for name, value in found.items()
        ]
    return points
