"""Searches for the best devices by several objectives, with Optuna."""

from __future__ import annotations

import contextlib
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from floatgate import _files, sweepfile
from floatgate._distributing import available, engine, late_interrupts
from floatgate._metrics import full_name
from floatgate.exceptions import OptionError, OutputError, SimulationError
from floatgate.plotting import front as draw_front
from floatgate.plotting import name_points, named_value, save
from floatgate.ranges import Choices, Range, Ranges, dimensions, is_number
from floatgate.seeds import Seeds, seeds_of
from floatgate.sweeping import columns_of, sweep

if TYPE_CHECKING:
    import os

    import pyarrow as pa
    from matplotlib.axes import Axes

    from floatgate.device import Device
    from floatgate.workload import Workload, WorkloadLike

#: Ranges and choices of a space, by path.
_Dimensions = Mapping[str, Range | Choices]

_DIRECTIONS = ("minimize", "maximize")

#: Key under which a study stores the error of a failed trial.
_ERROR = "error of trial {}"

#: Name of the file of a search, in the directory of its runs.
_JOURNAL = "optuna.journal"


class Search:
    """Result of :func:`optimize`."""

    def __init__(
        self,
        study: Any,  # noqa: ANN401 (Optuna's)
        space: _Dimensions,
        objectives: Mapping[str, str],
    ) -> None:
        self._study = study
        self._space = space
        self._objectives = dict(objectives)

    @property
    def study(self) -> Any:  # noqa: ANN401 (Optuna's class)
        """Optuna's study, for access to all its features."""
        return self._study

    @property
    def objectives(self) -> dict[str, str]:
        """Objectives: ``"minimize"`` or ``"maximize"`` by column."""
        return dict(self._objectives)

    def table(self) -> pa.Table:
        """Return all points that were tried.

        Returns
        -------
        pyarrow.Table
            Columns: ``trial``; the paths of the space; the objectives, which are means over the seeds; ``front``, true
            if no other point is at least as good in all objectives and better in one; ``error``, or null. An objective
            that is also in the space has one column.
        """
        return self._table(self._finished())

    def front(self) -> pa.Table:
        """Return the points of the Pareto front, sorted by the first objective, in the columns of :meth:`table`."""
        best = {trial.number for trial in self._study.best_trials}
        sign = 1 if next(iter(self._objectives.values())) == "minimize" else -1
        found = [trial for trial in self._finished() if trial.number in best]
        return self._table(sorted(found, key=lambda trial: (sign * trial.values[0], trial.number)))

    def plot(self, x: str | None = None, y: str | None = None, *, ax: Axes | None = None) -> Axes:
        """Draw all points by two objectives, and the Pareto front.

        Parameters
        ----------
        x, y
            Objectives. Default: the first two. With one objective, x is the trial.
        ax
            Axes to draw on. Default: a new figure.

        Returns
        -------
        matplotlib.axes.Axes
        """
        names = list(self._objectives)
        x, y = (None if name is None else full_name(name, names) for name in (x, y))
        for name in (x, y):
            if name is not None and name not in names:
                raise OptionError(f"{name} is not an objective of this search: {', '.join(names)}")
        x, y = (x or names[0], y or names[1]) if len(names) > 1 else ("trial", names[0])
        # A column of the space may have texts with units. The values of objectives are numbers.
        rows = [row | values for row, values in zip(self.table().to_pylist(), self._values(), strict=True)]
        ax = draw_front(rows, x, y, stairs=self._stairs(x), ax=ax)
        others = [path for path in self._space if path not in (x, y)]
        best = {(row[x], row[y]): row for row in rows if row["front"]}
        named = [(*place, ", ".join(named_value(path, row[path]) for path in others)) for place, row in best.items()]
        name_points(ax, named if others and len(self._objectives) == 2 else [])
        return ax

    def _stairs(self, x: str) -> Literal["pre", "post"] | None:
        """Return the step style of the front between points, or None if there are not two objectives."""
        if len(self._objectives) != 2:
            return None
        # Between two points, the worse values of both are reached. Therefore the line turns on the worse side.
        return "post" if self._objectives[x] == "minimize" else "pre"

    def _finished(self) -> list[Any]:
        return [trial for trial in self._study.get_trials(deepcopy=False) if trial.state.is_finished()]

    def _values(self) -> list[dict[str, float | None]]:
        """Return the values of the objectives for each finished trial."""
        return [
            dict(zip(self._objectives, trial.values or [None] * len(self._objectives), strict=True))
            for trial in self._finished()
        ]

    def _table(self, trials: Iterable[Any]) -> pa.Table:
        import pyarrow as pa  # noqa: PLC0415 (half a second, and not always needed)

        best = {trial.number for trial in self._study.best_trials}
        errors = self._study.user_attrs
        rows = []
        for trial in trials:
            values = trial.values or [None] * len(self._objectives)
            point = {path: self._space[path].shown(value) for path, value in trial.params.items()}
            row = {"trial": trial.number, **dict(zip(self._objectives, values, strict=True)), **point}
            rows.append({**row, "front": trial.number in best, "error": errors.get(_ERROR.format(trial.number))})
        kinds = {"trial": pa.int64(), "front": pa.bool_(), "error": pa.string()}
        kinds |= {name: pa.float64() for name in self._objectives if name not in self._space}
        names = dict.fromkeys(["trial", *self._space, *self._objectives, "front", "error"])
        return pa.table({name: pa.array([row.get(name) for row in rows], kinds.get(name)) for name in names})

    def __repr__(self) -> str:
        tried = len(self._study.get_trials(deepcopy=False))
        return f"<floatgate.Search of {tried} trials for {', '.join(self._objectives)}>"


def optimize(
    space: Ranges,
    *,
    objectives: Mapping[str, str] | Sequence[str],
    trials: int,
    workload: WorkloadLike | Sequence[WorkloadLike],
    device: Device | str | os.PathLike[str],
    seeds: Seeds = (1,),
    precondition: str | Workload = "fill",
    prewrite: str = "none",
    attribution: bool = True,
    scale: str | None = None,
    sampler: str = "tpe",
    seed: int = 1,
    batch: int = 8,
    store: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    progress: bool | Callable[[int, int, float | None], object] | None = None,
) -> Search:
    """Search a space for the best devices, by one or several objectives.

    Parameters
    ----------
    space
        By path: a :class:`Range`, or values to choose from, as in :func:`sweep`.
    objectives
        ``"minimize"`` or ``"maximize"`` by column of :func:`sweep`. A list minimizes. With several seeds, the mean
        counts. An objective may be a path of the space, if its values are numbers or a :class:`Range`.
    trials
        Total number of points, including points in the store.
    workload, device, seeds, precondition, prewrite, attribution, scale, n_jobs, progress
        As in :func:`sweep`.
    sampler
        Sampler of Optuna: ``"tpe"``, ``"nsga2"`` or ``"random"``.
    seed
        Seed of the sampler. The same seed tries the same points, even after an interruption, on any number of
        processors.
    batch
        Points that are chosen together and run in parallel, before the next ones are chosen from their results. A
        multiple of the number of processors is best. With larger batches, each choice knows fewer results.
    store
        A directory for the runs, as in :func:`sweep`, and for the search itself. A later call continues the search up
        to `trials`. A directory can hold only one search.

    Returns
    -------
    Search
        All points, the Pareto front, and a figure. A point that fails is a failed trial.

    Raises
    ------
    OptionError
        An objective is not a column, an option has an invalid value, or the store has another search.
    SimulationError
        All points have failed. The message has the first reason.
    OutputError
        The store cannot be written to.

    Examples
    --------
    >>> search = fg.optimize(
    ...     {"capacity.spare": fg.Range(0.1, 0.4), "gc.victim": ["greedy", "fifo"]},
    ...     objectives={"capacity.spare": "minimize", "write.iops": "maximize"},   # spare flash costs money
    ...     device="tiny", workload="rw=randwrite iodepth=16 number_ios=500", precondition="steady",
    ...     trials=4, batch=2, n_jobs=1)
    >>> search.table().num_rows
    4
    """
    choices = dimensions(space)
    objectives = {full_name(name, choices): way for name, way in _objectives(objectives).items()}
    for name, value in (("trials", trials), ("batch", batch)):
        if value < 1:
            raise OptionError(f"invalid {name} `{value}`: expected 1 or more")
    if not space:
        raise OptionError("the space is empty: give at least one path")
    _check_objectives(objectives, columns_of(space))
    for name in objectives:
        if name in choices and not choices[name].has_numbers:
            raise OptionError(f"the objective {name} is in the space, where not all its values are numbers")
    run = {
        "workload": workload, "device": device, "seeds": seeds_of(seeds), "precondition": precondition,
        "prewrite": prewrite, "attribution": attribution, "scale": scale, "store": store,
        "n_jobs": available(n_jobs, trials),
    }  # fmt: skip
    said = {"space": {path: where.described() for path, where in choices.items()}, "objectives": objectives,
            "sampler": sampler, "seed": seed, "batch": batch}  # fmt: skip
    with _quiet_optuna():
        study = _study(store, said, sampler)
        try:
            _search(study, choices, objectives, run=run, said=said, trials=trials, progress=progress)
        except OSError as error:
            raise OutputError(f"cannot write the search: {error}") from error
    _check_success(study, store)
    return Search(study, choices, objectives)


def _check_success(study: Any, store: str | os.PathLike[str] | None) -> None:  # noqa: ANN401 (Optuna's)
    """Raise an error with the first reason if all trials have failed."""
    trials = study.get_trials(deepcopy=False)
    if any(trial.state.name == "COMPLETE" for trial in trials):
        return
    reasons = (study.user_attrs.get(_ERROR.format(trial.number)) for trial in trials)
    first = next((reason for reason in reasons if reason is not None), "it was interrupted")
    kept = "" if store is None else f"; the trials are kept in {store}, and more trials continue the search"
    raise SimulationError(f"all {len(trials)} trials of the search failed{kept}. The first failed with: {first}")


def _objectives(objectives: Mapping[str, str] | Sequence[str]) -> dict[str, str]:
    if isinstance(objectives, str):
        objectives = [objectives]
    if not isinstance(objectives, Mapping):
        objectives = dict.fromkeys(objectives, "minimize")
    for name, direction in objectives.items():
        if direction not in _DIRECTIONS:
            raise OptionError(f"{name}: an objective must be {' or '.join(_DIRECTIONS)}, not {direction!r}")
    if not objectives:
        raise OptionError("no objectives: give at least one column of a sweep")
    return dict(objectives)


def _check_objectives(
    objectives: Iterable[str], columns: Sequence[str], store: str | os.PathLike[str] | None = None
) -> None:
    kept = "" if store is None else f"; the results are kept in {store}"
    for name in objectives:
        if not _files.has_column(name, columns):
            raise OptionError(f"the objective {name} is not a column{_files.near(name, columns)}{kept}")


@contextlib.contextmanager
def _quiet_optuna() -> Iterator[None]:
    """Limit Optuna's log to warnings, because we show the progress ourselves."""
    try:
        import optuna  # noqa: PLC0415 (an extra)
    except ImportError as error:
        raise ImportError("searches need Optuna: pip install 'floatgate[optuna]'") from error
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)


def _study(store: str | os.PathLike[str] | None, said: dict[str, Any], sampler: str) -> Any:  # noqa: ANN401
    import optuna  # noqa: PLC0415 (an extra)
    from optuna.storages.journal import JournalFileBackend, JournalFileSymlinkLock  # noqa: PLC0415

    _sampler(sampler, 0)
    storage = None
    if store is not None:
        try:
            Path(store).mkdir(parents=True, exist_ok=True)
            path = str(Path(store, _JOURNAL))
            backend = JournalFileBackend(path, lock_obj=_Uninterrupted(JournalFileSymlinkLock(path)))
            storage = optuna.storages.JournalStorage(backend)
        except OSError as error:
            raise OutputError(f"cannot write to {store}: {error}") from error
    # Convert the specification to the representation in the journal.
    said = json.loads(json.dumps(said, default=str))
    name = "floatgate"
    directions = list(said["objectives"].values())
    if storage is not None and name in optuna.get_all_study_names(storage):
        study = optuna.load_study(study_name=name, storage=storage)
        known = study.user_attrs.get("said", {})
        if known == said:
            return study
        if any(trial.state.is_finished() for trial in study.get_trials(deepcopy=False)):
            differing = ", ".join(key for key in said if known.get(key) != said[key])
            raise OptionError(
                f"{store} has another search (different {differing}); give each search a store of its own"
            )
        # The search has no finished trials, for example because no run had a value for an objective.
        optuna.delete_study(study_name=name, storage=storage)
    study = optuna.create_study(storage=storage, study_name=name, directions=directions)
    study.set_user_attr("said", said)
    return study


class _Uninterrupted:
    """A lock of a journal: Ctrl-C waits for its release, because Optuna's locks may leave their file behind."""

    def __init__(self, lock: Any) -> None:  # noqa: ANN401 (Optuna's)
        self._lock = lock
        self._held = contextlib.ExitStack()

    def acquire(self) -> bool:
        with contextlib.ExitStack() as stack:
            stack.enter_context(late_interrupts())
            self._lock.acquire()
            stack.callback(self._lock.release)
            self._held = stack.pop_all()
        return True

    def release(self) -> None:
        self._held.close()


def _sampler(name: str, seed: int) -> Any:  # noqa: ANN401 (Optuna's)
    from optuna import samplers  # noqa: PLC0415 (an extra)

    known = {"tpe": samplers.TPESampler, "nsga2": samplers.NSGAIISampler, "random": samplers.RandomSampler}
    if name not in known:
        raise OptionError(f"unknown sampler `{name}`: expected {', '.join(known)}")
    return known[name](seed=seed)


def _search(
    study: Any,  # noqa: ANN401 (Optuna's)
    choices: _Dimensions,
    objectives: Mapping[str, str],
    *,
    run: dict[str, Any],
    said: dict[str, Any],
    trials: int,
    progress: bool | Callable[[int, int, float | None], object] | None,
) -> None:
    """Choose batches of points and run them, until `trials` points are done."""
    done = sum(trial.state.is_finished() for trial in study.get_trials(deepcopy=False))
    told = _told(progress)
    begun = time.monotonic()
    before = done
    while done < trials:
        # Batches end at the same trials with and without an interruption, so that the same points are chosen.
        batch = min(said["batch"] - done % said["batch"], trials - done)
        points = {trial.number: trial.params for trial in _unfinished(study, choices)}
        # An incompletely chosen point would not have the values that it has without an interruption.
        with late_interrupts():
            while len(points) < batch:
                # Each point has its own sampler. Therefore a choice depends only on known results, not on the time.
                seed = said["seed"] * 1_000_003 + len(study.get_trials(deepcopy=False))
                study.sampler = _sampler(said["sampler"], seed)
                trial = study.ask()
                points[trial.number] = {path: where.suggest(trial, path) for path, where in choices.items()}
        _run_batch(study, points, choices, objectives, run)
        done += len(points)
        told(done, trials, (time.monotonic() - begun) / (done - before) * (trials - done))


def _unfinished(study: Any, choices: _Dimensions) -> list[Any]:  # noqa: ANN401 (Optuna's)
    """Return points that were chosen before an interruption. Mark incompletely chosen points as failed."""
    from optuna.trial import TrialState  # noqa: PLC0415 (an extra)

    whole = []
    for trial in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
        if set(trial.params) == set(choices):
            whole.append(trial)
        else:
            study.tell(trial.number, state=TrialState.FAIL)
    return whole


def _run_batch(
    study: Any,  # noqa: ANN401 (Optuna's)
    points: Mapping[int, Mapping[str, Any]],
    choices: _Dimensions,
    objectives: Mapping[str, str],
    run: dict[str, Any],
) -> None:
    """Run points with all seeds, and report the results to the study."""
    from optuna.trial import TrialState  # noqa: PLC0415 (an extra)

    devices = [{path: choices[path].of_parameter(one) for path, one in point.items()} for point in points.values()]
    table = sweep(devices, **run, progress=False)
    rows = table.to_pylist()
    succeeded = [row for row in rows if row["error"] is None]
    if succeeded:
        _check_objectives(objectives, table.column_names, run["store"])
    for index, (number, point) in enumerate(points.items()):
        of = rows[index * len(run["seeds"]) : (index + 1) * len(run["seeds"])]
        # The values of the space are the same for all seeds, and may be texts with units.
        values: dict[str, list[Any]] = {
            name: [choices[name].number(point[name])] if name in choices else [row.get(name) for row in of]
            for name in objectives
        }
        missing = [name for name, found in values.items() if not all(map(is_number, found))]
        error = next((row["error"] for row in of if row["error"] is not None), None)
        if error is None and missing:
            error = f"no number for {', '.join(missing)}"
        if error is None:
            study.tell(number, [statistics.fmean(found) for found in values.values()])
        else:
            study.set_user_attr(_ERROR.format(number), error)
            study.tell(number, state=TrialState.FAIL)


def _told(progress: bool | Callable[[int, int, float | None], object] | None) -> Callable[..., object]:
    if callable(progress):
        return progress
    if progress or (progress is None and sys.stderr.isatty()):
        return lambda done, total, eta_s: _files.progress_line("optimize", done, total, eta_s=eta_s)
    return lambda *_: None


_KEYS = {**sweepfile.RUN_KEYS, "space": dict, "objectives": dict, "trials": int, "batch": int, "sampler": str,
         "seed": int}  # fmt: skip

_HELP = """\
FILE specifies the search:

  device = "tiny"
  workload = "rw=randwrite bs=4k iodepth=4 number_ios=5k"
  precondition = "steady"
  trials = 64                      # batch = 8, sampler = "tpe", seed = 1, seeds = [1]

  [space]                          # ranges, and lists of values
  capacity.spare = { from = 0.1, to = 0.4 }
  nand.advanced.suspend.latency = { from = "5us", to = "1ms", log = true }     # step = "1us"
  gc.victim = ["greedy", "fifo"]

  [objectives]                     # spare flash costs money
  capacity.spare = "minimize"
  write.iops = "maximize"

After Ctrl-C, the same command continues. See docs/sweeps.md.
"""


def command(arguments: list[str]) -> int:
    """Run ``floatgate optimize``, and return the exit status."""
    made = sweepfile.parser("optimize", "Search for the best devices by several objectives.", _HELP)
    made.add_argument("--trials", type=int, metavar="N", help="total number of points, overriding the file")
    made.add_argument("--plot", metavar="FIGURE", help="draw the points and the Pareto front, as .svg, .png or .pdf")
    chosen = made.parse_args(arguments)
    said = _files.read_toml(chosen.file, _KEYS)
    for key in ("space", "objectives", "device", "workload"):
        if key not in said:
            raise OptionError(f"{chosen.file}: missing key `{key}`")
    trials = chosen.trials or said.get("trials")
    if trials is None:
        raise OptionError(f"{chosen.file}: missing key `trials`, the number of points to try")
    options = sweepfile.options_of(chosen.file, said | sweepfile.scale_of(chosen)) | {
        key: said[key] for key in ("batch", "sampler", "seed") if key in said
    }
    output = chosen.out or said.get("output")
    if output:
        _files.check_output(output, sweepfile.inputs_of(chosen.file, said))
    store = sweepfile.place_of("optimize", chosen, said)
    space = sweepfile.ranges_of(f"{chosen.file}, [space]", said["space"])
    objectives = {full_name(name, space): way for name, way in _files.flat(said["objectives"]).items()}
    columns = said.get("columns", list(dict.fromkeys(["trial", *space, *objectives])))
    columns = [full_name(str(name), space) for name in columns]
    _files.check_columns(columns, ["trial", *space, *objectives, "front", "error"])
    try:
        with engine(chosen.scheduler):
            search = optimize(
                space, objectives=objectives, trials=trials, store=store, n_jobs=chosen.jobs,
                progress=False if chosen.quiet else None, **options,
            )  # fmt: skip
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"finished runs are kept in {store}; the same command continues") from None
    if output:
        _files.write_table(search.table(), output)
    if chosen.plot:
        save(search.plot(), chosen.plot)
    sys.stdout.write(_files.text_table(_files.select(search.front(), columns)))
    return 0
