"""Searches for the best devices by several objectives, with Optuna."""

from __future__ import annotations

import contextlib
import json
import statistics
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from floatgate import _files, sweepfile
from floatgate._distributing import available, engine, late_interrupts
from floatgate._metrics import declared, full_name
from floatgate._words import in_python
from floatgate.exceptions import OptionError, OutputError, SimulationError
from floatgate.plotting import front as draw_front
from floatgate.plotting import name_points, named_value, save
from floatgate.ranges import Choices, Range, Ranges, dimensions, is_number
from floatgate.seeds import Seeds, seeds_of
from floatgate.sweeping import columns_of, metrics, simulate

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

#: Columns of a sweep that are not in summaries, and not numbers of a result.
_COLUMNS = ("seed", "error", "error_kind", "config_digest", "workload_digest")

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
    workload: WorkloadLike | Sequence[WorkloadLike] | Mapping[str, Any],
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
        counts. An objective may be a path of the space, if its values are numbers or a :class:`Range`. Metrics of a
        stream start with ``streams.`` and its name: ``"streams.log.write.latency_us.p99"``. If `workload` is a
        dictionary, metrics start with the name of a run: ``"loaded.streams.log.write.latency_us.p99"``.
    trials
        Total number of points, including points in the store.
    workload
        As in :func:`sweep`. Or a dictionary with a run of each point by name: a workload, several that run
        concurrently, or a dictionary with ``"workload"`` and ``"precondition"``.
    device, seeds, precondition, prewrite, attribution, scale, n_jobs, progress
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
    cases = _cases(workload)
    objectives = {_objective(name, choices, cases): way for name, way in _objectives(objectives).items()}
    if not space:
        raise OptionError("the space is empty: give at least one path")
    columns = columns_of(space)
    for name in objectives:
        if name in choices and not choices[name].has_numbers:
            raise OptionError(f"the objective {name} is in the space, where not all its values are numbers")
        if name not in choices:
            case, metric = _split(name, cases)
            if _of_stream(metric) is None:
                _check_objective(name, metric, columns, case=case)
    run = {
        "device": device, "seeds": seeds_of(seeds), "precondition": precondition, "prewrite": prewrite,
        "attribution": attribution, "scale": scale, "store": store, "n_jobs": available(n_jobs, trials),
    }  # fmt: skip
    plan = Plan(choices, objectives, cases, run)
    return search(plan, trials=trials, batch=batch, sampler=sampler, seed=seed, progress=progress)


@dataclass(frozen=True)
class Plan:
    """Runs of each point of a search, and the objectives that are computed from them."""

    choices: _Dimensions
    objectives: Mapping[str, str]
    """``"minimize"`` or ``"maximize"`` by name."""
    cases: Mapping[str, dict[str, Any]]
    """Workload and precondition of each run, by its name. A single run has an empty name."""
    run: Mapping[str, Any]
    """Options of :func:`sweeping.simulate` that all runs have."""
    options_of: Callable[[dict[str, Any]], dict[str, Any]] = dict
    """Returns the device parameters of a point."""
    value_of: Callable[[str, Mapping[str, list[dict[str, Any]]]], float] | None = None
    """Returns the value of an objective from the summaries of the seeds by case. Default: the mean of a metric."""

    def points(self, chosen: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return the points of a sweep that do all runs of the points that Optuna has chosen."""
        devices = [{path: self.choices[path].of_parameter(one) for path, one in point.items()} for point in chosen]
        return [self.options_of(device) | case for device in devices for case in self.cases.values()]

    def value(self, name: str, point: Mapping[str, Any], summaries: Mapping[str, list[dict[str, Any]]]) -> float | None:
        """Return the value of an objective, or None if a run has no number for it."""
        if self.value_of is not None:
            return self.value_of(name, summaries)
        if name in self.choices:
            # The values of the space are the same for all seeds, and may be texts with units.
            return self.choices[name].number(point[name])
        case, metric = _split(name, self.cases)
        found = [metric_of(summary, metric) for summary in summaries[case]]
        numbers = [value for value in found if value is not None and is_number(value)]
        return statistics.fmean(numbers) if len(numbers) == len(found) else None


def search(
    plan: Plan,
    *,
    trials: int,
    batch: int,
    sampler: str,
    seed: int,
    progress: bool | Callable[[int, int, float | None], object] | None,
) -> Search:
    """Search a space like :func:`optimize`."""
    for name, value in (("trials", trials), ("batch", batch)):
        if value < 1:
            raise OptionError(f"invalid {name} `{value}`: expected 1 or more")
    store = plan.run["store"]
    said = {"space": {path: where.described() for path, where in plan.choices.items()},
            "objectives": plan.objectives, "sampler": sampler, "seed": seed, "batch": batch}  # fmt: skip
    with _quiet_optuna():
        study = _study(store, said, sampler)
        try:
            _search(study, plan, said=said, trials=trials, progress=progress)
        except OSError as error:
            raise OutputError(f"cannot write the search: {error}") from error
    _check_success(study, store)
    return Search(study, plan.choices, plan.objectives)


def _cases(workload: WorkloadLike | Sequence[WorkloadLike] | Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the workload, and the precondition if it has one, of each run by its name."""
    if not isinstance(workload, Mapping):
        return {"": {"workload": workload}}
    cases = {name: dict(case) if isinstance(case, Mapping) else {"workload": case} for name, case in workload.items()}
    if not cases:
        raise OptionError("no workload: give at least one")
    for name, case in cases.items():
        if "workload" not in case or not {"workload", "precondition"} >= set(case):
            raise OptionError(f"the run {name} must have a workload, and may have a precondition; it has {list(case)}")
        if not name or "." in name:
            raise OptionError(f"invalid name of a run `{name}`: expected one or more characters without a period")
    return cases


def _split(name: str, cases: Mapping[str, object]) -> tuple[str, str]:
    """Return the run and the metric of an objective."""
    if "" in cases:
        return "", name
    case, _, metric = name.partition(".")
    if case not in cases:
        raise OptionError(
            f"the objective {name} must start with the name of a run{_files.near(case, cases)}; expected "
            f"{', '.join(f'{known}.' for known in cases)}"
        )
    return case, metric


def _objective(name: str, choices: Collection[str], cases: Mapping[str, object]) -> str:
    """Return the full name of an objective."""
    if name in choices:
        return name
    case, metric = _split(name, cases)
    stream = _of_stream(metric)
    metric = full_name(metric, choices) if stream is None else f"streams.{stream[0]}.{stream[1]}"
    return f"{case}.{metric}" if case else metric


def _of_stream(name: str) -> tuple[str, str] | None:
    """Return the stream and the metric of a name such as ``streams.log.write.iops``, or None for other names."""
    if not name.startswith("streams."):
        return None
    words = name.split(".")[1:]
    for length in range(1, len(words)):
        metric = full_name(".".join(words[length:]))
        if metric.startswith("requests.") and metric in declared():
            return ".".join(words[:length]), metric
    return None


def metric_of(summary: Mapping[str, Any], name: str) -> Any:  # noqa: ANN401 (JSON)
    """Return a metric of a summary, also of one of its streams, or None if it has no such value."""
    stream = _of_stream(name)
    if stream is not None:
        found = [one for one in summary["streams"] if one["name"] == stream[0]]
        if not found:
            names = ", ".join(one["name"] for one in summary["streams"])
            raise OptionError(f"the objective {name} is of a stream that no workload has; the streams are {names}")
        summary, name = found[0], stream[1]
    return dict(metrics(summary)).get(name.removeprefix("summary."))


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


def _check_objective(
    name: str, metric: str, columns: Iterable[str], *, case: str, store: str | os.PathLike[str] | None = None
) -> None:
    kept = "" if store is None else f"; the results are kept in {store}"
    if not _files.has_column(metric, columns):
        of_case = f" of the run {case}" if case else ""
        raise OptionError(f"the objective {name} is not a column{of_case}{_files.near(metric, columns)}{kept}")


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
    plan: Plan,
    *,
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
        points = {trial.number: trial.params for trial in _unfinished(study, plan.choices)}
        # An incompletely chosen point would not have the values that it has without an interruption.
        with late_interrupts():
            while len(points) < batch:
                # Each point has its own sampler. Therefore a choice depends only on known results, not on the time.
                seed = said["seed"] * 1_000_003 + len(study.get_trials(deepcopy=False))
                study.sampler = _sampler(said["sampler"], seed)
                trial = study.ask()
                points[trial.number] = {path: where.suggest(trial, path) for path, where in plan.choices.items()}
        _run_batch(study, points, plan)
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


def _run_batch(study: Any, points: Mapping[int, Mapping[str, Any]], plan: Plan) -> None:  # noqa: ANN401 (Optuna's)
    """Run points with all seeds, and report the results to the study."""
    from optuna.trial import TrialState  # noqa: PLC0415 (an extra)

    _, kept = simulate(plan.points(points.values()), **plan.run, progress=False)
    rows = iter(kept)
    runs = {number: {case: [next(rows) for _ in plan.run["seeds"]] for case in plan.cases} for number in points}
    failed = {
        number: next((row["error"] for of in by_case.values() for row in of if row["error"] is not None), None)
        for number, by_case in runs.items()
    }
    summaries = {
        number: {case: [json.loads(row["summary"]) for row in of] for case, of in by_case.items()}
        for number, by_case in runs.items()
        if failed[number] is None
    }
    _check_results(list(summaries.values()), plan)
    for number, point in points.items():
        error, values = failed[number], {}
        if error is None:
            values = {name: plan.value(name, point, summaries[number]) for name in plan.objectives}
            missing = [name for name, value in values.items() if value is None]
            error = f"no number for {', '.join(missing)}" if missing else None
        if error is None:
            study.tell(number, list(values.values()))
        else:
            study.set_user_attr(_ERROR.format(number), in_python(error))
            study.tell(number, state=TrialState.FAIL)


def _check_results(summaries: Sequence[Mapping[str, list[dict[str, Any]]]], plan: Plan) -> None:
    """Raise an error if no run has an objective."""
    if not summaries or plan.value_of is not None:
        return
    for name in plan.objectives:
        if name in plan.choices:
            continue
        case, metric = _split(name, plan.cases)
        if _of_stream(metric) is None and metric not in _COLUMNS:
            columns = {path for of in summaries for summary in of[case] for path, _ in metrics(summary)}
            metric = metric.removeprefix("summary.")
            _check_objective(name, metric, sorted(columns), case=case, store=plan.run["store"])


def _told(progress: bool | Callable[[int, int, float | None], object] | None) -> Callable[..., object]:
    if callable(progress):
        return progress
    if progress or (progress is None and sys.stderr.isatty()):
        return lambda done, total, eta_s: _files.progress_line("optimize", done, total, eta_s=eta_s)
    return lambda *_: None


_KEYS = {**sweepfile.RUN_KEYS, "workload": (str, list, dict), "space": dict, "objectives": dict, "trials": int,
         "batch": int, "sampler": str, "seed": int}  # fmt: skip

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

Metrics of a stream start with `streams.` and its name. With several runs of each point, [workload.NAME] has the
workload and the precondition of each, and objectives start with its NAME.

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
    cases = _cases(options["workload"])
    objectives = {_objective(name, space, cases): way for name, way in _files.flat(said["objectives"]).items()}
    columns = said.get("columns", list(dict.fromkeys(["trial", *space, *objectives])))
    columns = [full_name(str(name), [*space, *objectives]) for name in columns]
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
