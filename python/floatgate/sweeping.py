"""Sweeps over devices, workloads and seeds."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from operator import methodcaller
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from floatgate import _files, _floatgate, policies, states
from floatgate._distributing import available, each
from floatgate._metrics import NO_METRICS, declared
from floatgate._words import in_python
from floatgate.device import Device
from floatgate.exceptions import ConfigError, FloatgateError, FloatgateWarning, OptionError, Problem, WorkloadError
from floatgate.ranges import Range, Ranges, dimensions
from floatgate.running import run
from floatgate.seeds import Seeds, seeds_of
from floatgate.store import Store
from floatgate.tables import Table
from floatgate.workload import Workload, WorkloadLike, texts_of

if TYPE_CHECKING:
    import pyarrow as pa

#: A point of a space: device parameters by path, or a device, workload or precondition.
Point: TypeAlias = "Mapping[str, Any]"

#: Keys of a point that are not device parameters.
_PLACES = ("device", "workload", "precondition")


@dataclass(frozen=True)
class Sobol:
    """Points that fill a space evenly, for any number of points (scrambled Sobol' sequence, 1967, by SciPy).

    Parameters
    ----------
    space
        By path: a :class:`Range`, or values to choose from.
    n
        Number of points, preferably a power of two.
    seed
        Seed of the scrambling. The same seed gives the same points.

    Examples
    --------
    >>> fg.Sobol({"capacity.spare": fg.Range(0.1, 0.4), "gc.victim": ["greedy", "fifo"]}, n=64)
    Sobol(space={...}, n=64, seed=0)
    """

    space: Ranges
    n: int
    seed: int = 0

    def points(self) -> list[dict[str, Any]]:
        """Return the points."""
        try:
            from scipy.stats import qmc  # noqa: PLC0415 (an extra)
        except ImportError as error:
            raise ImportError("Sobol' points need SciPy: pip install 'floatgate[sampling]'") from error
        within = dimensions(self.space)
        shares = qmc.Sobol(d=len(within), scramble=True, rng=self.seed).random(self.n)
        return [
            {path: where.at(float(share)) for (path, where), share in zip(within.items(), row, strict=True)}
            for row in shares
        ]


#: Keys of traces and jobs that name an input file.
_FILES = re.compile(r"\b(?:trace|read_iolog)=(?:\"([^\"]*)\"|(\S+))")

#: A grid as a dictionary of lists, single points, or a sampler.
Space: TypeAlias = "Mapping[str, Any] | Iterable[Point] | Sobol"


def _points(space: Space) -> list[dict[str, Any]]:
    if isinstance(space, Sobol):
        return space.points()
    if isinstance(space, Mapping):
        for path, values in space.items():
            if isinstance(values, Range):
                raise OptionError(
                    f"{path}: a grid needs a list of values for each path, not a range; set the values, or use "
                    "fg.Sobol or fg.optimize, which choose values from ranges"
                )
            if isinstance(values, str | Mapping) or not isinstance(values, Iterable):
                raise OptionError(f"{path}: a grid needs a list of values for each path, not {values!r}")
        return [dict(zip(space, values, strict=True)) for values in itertools.product(*space.values())]
    points = [dict(point) for point in space]
    if not points:
        raise OptionError("the space has no points")
    return points


@dataclass(frozen=True)
class _Task:
    """A run, with all data that another machine needs."""

    point: dict[str, Any]
    device: Device | str | os.PathLike[str]
    options: dict[str, Any]
    workload: list[str]
    precondition: str
    seed: int
    prewrite: str
    attribution: bool
    #: Base of relative paths, because workers may run in another directory.
    directory: str = field(default_factory=os.getcwd)
    state: str | None = None
    """File of the state that other runs share."""
    scale: str | None = None
    """Share of the blocks of the device, or None for all blocks."""

    def key(self) -> str:
        """Return a key of everything that determines the result: 32 hexadecimal digits, equal for equal runs.

        Raises
        ------
        ConfigError
            The device does not exist.
        """
        said = {
            "device": self.chosen.digest,
            "workload": [_with_content(text) for text in self.workload],
            "precondition": _with_content(self.precondition),
            "prewrite": self.prewrite,
            "attribution": self.attribution,
            "seed": self.seed,
            "version": [_floatgate.__version__, build()],
        }
        return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:32]

    @cached_property
    def chosen(self) -> Device:
        """The device of the point."""
        if isinstance(self.device, Device):
            device = self.device.with_options(self.options) if self.options else self.device
        else:
            device = Device(_placed(os.fspath(self.device), self.directory), self.options)
        if self.scale is None:
            return device
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FloatgateWarning)  # those of each point
            return device.scaled(self.scale)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the device. A worker that cannot read its file returns that as the error of the run."""
        return {name: value for name, value in self.__dict__.items() if name != "chosen"}

    def row(self) -> dict[str, Any]:
        """Run the task, and return the data to store: the summary, or the error."""
        try:
            result = run(
                states.device_of(self),
                [_placed(text, self.directory) for text in self.workload],
                precondition=_placed(self.precondition, self.directory),
                prewrite=cast("Literal['none', 'even', 'allocation']", self.prewrite),  # checked by the parser
                seed=self.seed,
                attribution=self.attribution,
                series=False,
                warn=False,
            )
        except FloatgateError as error:
            return _failed(error)
        return {"summary": result.summary.to_json(), "error": None, "kind": None}


def _placed(text: str, directory: str) -> str:
    """Replace the file names in a workload by absolute paths."""

    def absolute(name: str) -> str:
        place = Path(directory, name)
        return str(place) if place.is_file() and "=" not in str(place) else name

    if Path(directory) == Path.cwd() or Path(text).is_absolute():
        return text
    whole = absolute(text)
    if whole != text:
        return whole

    def named(found: re.Match[str]) -> str:
        name = found[1] or found[2]
        return found[0].replace(name, absolute(name))

    return _FILES.sub(named, text)


def _is_file(name: str) -> bool:
    """Return True if a file has this name. A workload may be longer than a file name can be."""
    try:
        return Path(name).is_file()
    except OSError:
        return False


def _with_content(text: str) -> list[str]:
    """Return the text of a workload, and the digests of the files that it names."""
    files = files_in(text)
    return [text, *(content(name, Path(name).stat().st_mtime_ns, Path(name).stat().st_size) for name in files)]


def files_in(text: str) -> list[str]:
    """Return the paths of the files that a device, workload or state names."""
    named = [quoted or plain for quoted, plain in _FILES.findall(text)]
    return [name for name in (text, *named) if _is_file(name)]


@lru_cache(maxsize=256)
def content(name: str, _changed: int, _size: int) -> str:
    """Return the digest of a file. Its modification time and size are part of the cache key."""
    with Path(name).open("rb") as file:
        digest = hashlib.sha256()
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


@lru_cache(maxsize=1)
def build() -> str:
    """Return the digest of the simulator's build, because other builds may give other results."""
    place = Path(_floatgate.__file__)
    return content(str(place), place.stat().st_mtime_ns, place.stat().st_size)


def sweep(
    space: Space,
    *,
    workload: WorkloadLike | Sequence[WorkloadLike] | None = None,
    device: Device | str | os.PathLike[str] | None = None,
    seeds: Seeds = (1,),
    precondition: str | Workload = "fill",
    prewrite: str = "none",
    attribution: bool = True,
    scale: str | None = None,
    store: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    progress: bool | Callable[[int, int, float | None], object] | None = None,
) -> Table:
    """Run every point of a space with every seed, in parallel.

    Parameters
    ----------
    space
        A dictionary of lists, of which every combination is a point; a list of points; or :class:`Sobol`. A point
        contains device parameters by path, as in :meth:`Device.with_options`. ``"device"``, ``"workload"`` and
        ``"precondition"`` select other devices, workloads and states.
    workload, device, precondition, prewrite, attribution
        As in :func:`run`, for all points that do not override them.
    scale
        Share of the blocks of each device, after the parameters of the point: see :meth:`Device.scaled`.
    seeds
        Seeds of each point: their number, a range such as ``"5..9"``, or a list.
    store
        A directory in which every run is stored when it ends. Runs that are already stored are not repeated, so an
        interrupted sweep continues. Runs are identified by the digest of their device, the text and the files of their
        workload, their state, their seed, and the version and build of the simulator.
    n_jobs
        Parallel runs: -1 for one per processor. Passed to joblib, which runs them on a cluster with
        ``parallel_config(backend="dask")`` or ``"ray"``, otherwise in processes on this machine. 1 does not need
        joblib, and is the default if joblib is not installed.
    progress
        True to write the progress to standard error, which is the default on a terminal. Or a function that is called
        with the number of finished runs, the number of all runs, and the remaining seconds or None.

    Returns
    -------
    Table
        A row per run, in the order of points and seeds. Columns: the keys of the points; ``seed``; ``error`` and
        ``error_kind``, or null; ``config_digest``, ``workload_digest``; and every number of the summary by its path,
        such as ``requests.write.latency_us.p99``, and ``gc.log_blocks.writes.KIND.units``. Missing values are null.
        ``print(table)`` shows the columns that vary and the key results, and ``table.wide()`` returns all columns.

    Raises
    ------
    OptionError
        The space is invalid, has a parameter that the device does not have, or a point has no device or workload.
    ConfigError, WorkloadError
        All runs have the same device or workload, and it is invalid.
    OutputError
        The store cannot be written to.

    Examples
    --------
    >>> table = fg.sweep(
    ...     {"gc.victim": ["greedy", "fifo"], "geometry.channels": [2, 4]},
    ...     device="tiny", workload="rw=randwrite number_ios=500", seeds=range(1, 3), n_jobs=1)
    >>> table.num_rows
    8
    """
    tasks, rows = simulate(
        _points(space), workload=workload, device=device, seeds=seeds_of(seeds), precondition=precondition,
        prewrite=prewrite, attribution=attribution, scale=scale, store=store, n_jobs=n_jobs, progress=progress,
    )  # fmt: skip
    return _table(tasks, rows)


def simulate(
    points: Iterable[dict[str, Any]],
    *,
    workload: WorkloadLike | Sequence[WorkloadLike] | None = None,
    device: Device | str | os.PathLike[str] | None = None,
    seeds: Sequence[int] = (1,),
    precondition: str | Workload = "fill",
    prewrite: str = "none",
    attribution: bool = True,
    scale: str | None = None,
    store: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    progress: bool | Callable[[int, int, float | None], object] | None = None,
) -> tuple[list[_Task], list[dict[str, Any]]]:
    """Run every point with every seed like :func:`sweep`, and return the runs with their summaries as JSON.

    Each run has a dictionary with ``summary``, ``error`` and ``kind``, of which the first or the others are None.
    """
    tasks = [
        _task(point, seed, workload=workload, device=device, precondition=precondition, prewrite=prewrite,
              attribution=attribution, scale=scale)
        for point in points
        for seed in seeds
    ]  # fmt: skip
    _check_device(tasks)
    _check_workload_and_precondition(tasks)
    found = [_key_or_failure(task) for task in tasks]
    shelf = None if store is None else Store(store)
    kept: list[dict[str, Any] | None] = [None] * len(tasks)
    # Equal runs, such as points that coincide after rounding to integers, are run once.
    waiting: dict[str, list[int]] = {}
    for index, (key, failure) in enumerate(found):
        kept[index] = shelf.get(key) if shelf and failure is None else failure
        if kept[index] is None:
            waiting.setdefault(key, []).append(index)
    known = sum(row is not None for row in kept)
    failed = sum(row is not None and row["error"] is not None for row in kept)
    told = _files.Progress("sweep", len(tasks), known, progress, failed=failed)
    if shelf and waiting:
        shelf.check()
    keys = list(waiting)
    to_run = [tasks[waiting[key][0]] for key in keys]
    n_jobs = available(n_jobs, len(to_run), calls=2)
    with states.shared(to_run, store, partial(_each, n_jobs=n_jobs)) as ready:
        for number, row in _each(ready, n_jobs):
            for index in waiting[keys[number]]:
                kept[index] = row
            if shelf and row["kind"] not in ("InternalError", "OutputError"):
                shelf.put(keys[number], row)
            told.step(len(waiting[keys[number]]), failed=row["error"] is not None)
    return tasks, [row for row in kept if row is not None]


def _key_or_failure(task: _Task) -> tuple[str, dict[str, Any] | None]:
    """Return the key of a run, or its failure. A mistyped parameter is an error of the whole sweep."""
    try:
        return task.key(), None
    except ConfigError as error:
        if _is_mistyped(error, task.options):
            raise OptionError(f"the space has a parameter that the device does not have: {_said(error)}") from error
        return "", _failed(error)
    except FloatgateError as error:
        return "", _failed(error)


def _is_mistyped(error: ConfigError, options: Mapping[str, Any]) -> bool:
    """Return True if the path of an option does not exist, and False if only its value is invalid."""
    # Problems of the members of an array have the paths of the members.
    paths = [path.removeprefix("member.") for path in options]
    return any(_is_unknown(problem, path) for problem in error.problems for path in paths)


def _is_unknown(problem: Problem, path: str) -> bool:
    """Return True if a problem is that the path of an option, or a path in its table, does not exist."""
    line = problem.message.partition("\n")[0]
    if not problem.path:  # in an array, outside of its members
        return "unknown field" in line or "this is an array, whose keys start with" in line
    # An unknown name after the path itself is a value.
    unknown = ("unknown key", f"`{problem.path.rpartition('.')[0]}`: unknown name")
    if any(f": {start}" in f": {line}" for start in unknown):
        return f"{path}.".startswith(f"{problem.path}.") or problem.path.startswith(f"{path}.")
    return path.startswith(f"{problem.path}.") and "is one value, not a table" in line


def _check_device(tasks: list[_Task]) -> None:
    """Raise an error if all runs have the same device, and it is invalid."""
    names = {None if isinstance(task.device, Device) else os.fspath(task.device) for task in tasks}
    if len(names) == 1 and (name := names.pop()) is not None:
        Device(name)


def _check_workload_and_precondition(tasks: list[_Task]) -> None:
    """Raise an error if all runs have the same workload or precondition, and it is invalid on any device."""
    preconditions = {task.precondition for task in tasks}
    if len(preconditions) == 1:
        _floatgate.check_precondition(preconditions.pop())
    workloads = {tuple(task.workload) for task in tasks}
    for text in workloads.pop() if len(workloads) == 1 else ():
        _floatgate.check_workload(text)
        if "=" not in text and not os.path.exists(text):  # noqa: PTH110 (a text may be too long for a name)
            raise WorkloadError(f"the workload `{text}` is not a file, nor a job, such as rw=randwrite")


def _failed(error: FloatgateError) -> dict[str, Any]:
    return {"summary": None, "error": _said(error), "kind": type(error).__name__}


def _said(error: FloatgateError) -> str:
    """Return the text of an error. The options in it are those of points, not arguments of ``--set``."""
    return re.sub(r"--set (?=\S*=)", "", error.said)


def _task(
    point: dict[str, Any],
    seed: int,
    *,
    workload: WorkloadLike | Sequence[WorkloadLike] | None,
    device: Device | str | os.PathLike[str] | None,
    **others: Any,  # noqa: ANN401 (options of a run)
) -> _Task:
    device = point.get("device", device)
    workload = point.get("workload", workload)
    for what, value in (("device", device), ("workload", workload)):
        if value is None:
            raise OptionError(f"no {what}: set {what}=..., or set it in each point")
    precondition = str(point.get("precondition", others.pop("precondition")))
    options = {path: value for path, value in point.items() if path not in _PLACES}
    # Policies are not registered in other processes.
    options = policies._bound(options)
    return _Task(point, device, options, texts_of(workload), precondition, seed, **others)  # type: ignore[arg-type]


def _each(tasks: list[_Task], n_jobs: int | None) -> Iterator[tuple[int, dict[str, Any]]]:
    """Run tasks, and yield their numbers and rows in order of completion."""
    return each(methodcaller("row"), tasks, n_jobs)


def metrics(node: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every single value of a summary with its path."""
    for key, value in node.items():
        if not path and key in NO_METRICS:
            continue
        if isinstance(value, Mapping):
            yield from metrics(value, f"{path}{key}.")
        elif not isinstance(value, list):
            yield path + key, value
        elif f"{path}{key}" == "gc.log_blocks.writes":
            for writes in value:
                yield f"{path}{key}.{writes['kind']}.units", writes["units"]


def columns_of(space: Space | Ranges) -> list[str]:
    """Return the columns that the table of a sweep can have. An asterisk is for names that depend on the device."""
    named = space.space if isinstance(space, Sobol) else space
    paths = dict.fromkeys(named if isinstance(named, Mapping) else (path for point in named for path in point))
    metrics = (f"summary.{path}" if path in paths else path for path in declared())
    return [*paths, "seed", "error", "error_kind", "config_digest", "workload_digest", *metrics]


def _table(tasks: list[_Task], kept: list[dict[str, Any]]) -> Table:
    import pyarrow as pa  # noqa: PLC0415 (half a second, and not always needed)

    rows: list[dict[str, Any]] = []
    for task, of in zip(tasks, kept, strict=True):
        row = {path: _shown(value) for path, value in task.point.items()}
        row |= {"seed": task.seed, "error": of["error"] and in_python(of["error"]), "error_kind": of["kind"]}
        if of["summary"] is not None:
            summary = json.loads(of["summary"])
            row |= {"config_digest": summary["config_digest"], "workload_digest": summary["workload"]["digest"]}
            # If a device parameter has the same path as a value of the summary, the parameter keeps the name.
            row |= {f"summary.{path}" if path in row else path: value for path, value in metrics(summary)}
        rows.append(row)
    names = dict.fromkeys(path for task in tasks for path in task.point) | dict.fromkeys(k for row in rows for k in row)
    return Table(pa.table({name: _column([row.get(name) for row in rows]) for name in names}))


def _shown(value: Any) -> Any:  # noqa: ANN401 (a value of the space)
    """Return a value that fits into a column. Compound values become texts."""
    if isinstance(value, type) and issubclass(value, policies.Policy):
        return value.name or value.__name__
    if isinstance(value, Mapping | list | tuple):
        return json.dumps(value, default=str)
    if isinstance(value, Device):
        return " ".join([value.name, *value.overrides])
    item = getattr(value, "item", None)
    value = item() if callable(item) else value
    return value if isinstance(value, str | int | float | None) else str(value)


def _column(values: list[Any]) -> pa.Array:
    import pyarrow as pa  # noqa: PLC0415

    kinds = {type(value) for value in values if value is not None}
    if kinds == {int, float}:
        values = [None if value is None else float(value) for value in values]
    elif len(kinds) > 1:
        values = [None if value is None else str(value) for value in values]
    return pa.array(values)
