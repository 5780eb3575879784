"""Fits the parameters of a device to measurements of a drive."""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from floatgate import _files, measurements, probing, states
from floatgate._distributing import available, engine
from floatgate._values import overrides
from floatgate._words import in_python
from floatgate.device import Device
from floatgate.exceptions import ConfigError, FloatgateWarning, OptionError, OutputError, SimulationError
from floatgate.inferring import Inferred, infer, mean_of, value_at
from floatgate.measurements import Known, Measurements, Point, logarithms, runs_of
from floatgate.optimizing import Plan, search
from floatgate.ranges import Choices, Range, dimensions, number_of
from floatgate.seeds import Seeds, seeds_of
from floatgate.store import Store
from floatgate.sweeping import simulate

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    import numpy.typing as npt

    _Vector: TypeAlias = "npt.NDArray[np.float64]"

#: Half-width of a 95% interval, relative to the value, up to which a parameter counts as identified.
IDENTIFIED = 0.05

#: Bounds of parameters in the unit in which a device file has them, with their sources.
BOUNDS: dict[str, tuple[float, float, str, str]] = {
    "nand.read": (15, 250, "us", "35.8 us (NVMeVirt, 970 Pro) to 170 us (QLC, Park et al. 2021)"),
    "nand.program": (100, 7000, "us", "185 us (NVMeVirt, 970 Pro) to 5734 us (TLC, FEMU after SimpleSSD)"),
    "nand.erase": (1000, 20000, "us", "3 ms (FEMU, L95B) to 3.5 ms (Samsung V7, ISSCC 2021), and a margin"),
    "nand.advanced.suspend.latency": (1, 500, "us", "not published"),
    "nand.advanced.suspend.resume": (0.5, 2000, "us", "not published"),
    "nand.advanced.suspend.lost": (1, 2000, "us", "not published"),
    "bus.protocol.nv-ddr": (100, 4800, "MT/s", "ONFI 2.0 to 5.1, and Toggle DDR 6.0"),
    "host.link_bandwidth": (200, 16000, "MB/s", "SATA 3 Gb/s to PCI Express 5.0 x4"),
    "host.link_latency": (0.2, 30, "us", "assumed"),
    "buffer.capacity": (64, 4 << 20, "KiB", "assumed"),
    "slc_cache.blocks": (1, 4096, "", "assumed"),
    "gc.throttle.delay": (0.01, 1000, "us", "assumed"),
}

#: Blocks of a plane, relative to those that hold the capacity of the host.
_SPARE = (1.01, 2.0)

#: Relative change by which the influence of a parameter is measured.
_STEP = 0.05

#: Largest factor by which a parameter changes in one step of the refinement.
_LARGEST_STEP = math.log(2)

#: Steps with corrected influences, before these are simulated again.
_CHEAP_STEPS = 6

#: Dampings that each step tries, relative to the current one, and the limits of the current one.
_DAMPINGS = (1.0, 10.0, 100.0)
_LEAST_DAMPING, _MOST_DAMPING = 1e-3, 1e3

#: Gain of a step below which the refinement ends: a change of chi-squared within one standard deviation, and a share of
#: the distance that models with errors of their own do not lose.
_GAIN, _RELATIVE_GAIN = 0.3, 0.001

#: Number of standard deviations beyond which the weight of a point falls, so that a point that no device of the model
#: reaches does not determine the others.
_OUTLIER = 3.0

#: Number of seeds that show the noise of the simulation.
_NOISE_SEEDS = 4

#: Standard deviations of the noise beyond which a change of a point is an influence of a parameter.
_SIGNIFICANT = 3.0

#: Range of values around an inferred one that the search tries, as a factor.
_NEAR = 1.3

#: Standard deviation of the parity that a drive counts among its writes, as a share of them.
_PARITY = 0.03

_AMPLIFICATION = "write_amplification"


@dataclass(frozen=True)
class FittedParameter:
    """A parameter of a fitted device."""

    path: str
    value: Any
    """Value, as in a device file."""
    origin: Literal["measured", "fitted", "assumed"]
    """``"measured"`` if the value is known or follows directly from points. ``"assumed"`` if the points say little."""
    interval: tuple[Any, Any] | None
    """Interval with a probability of 95%, or None for a value that was not fitted."""
    identified: bool
    """True if the value is known, or its interval is within 5% of it."""
    note: str
    """Origin of the value, or of the value from which the search started."""


@dataclass(frozen=True)
class FittedPoint:
    """A measured point with its simulated value."""

    point: Point
    simulated: float

    @property
    def error(self) -> float:
        """Relative deviation of the simulated value from the measured one."""
        return self.simulated / self.point.value - 1


@dataclass(frozen=True)
class DeviceFit:
    """Result of :func:`fit`."""

    device: Device
    """The fitted device, not scaled."""
    base: str
    """Name of the device from which the fit started."""
    parameters: tuple[FittedParameter, ...]
    """Parameters that are known, inferred or fitted, in the order of the device file."""
    points: tuple[FittedPoint, ...]
    """All points, in the order of the measurements."""
    parity: FittedParameter | None
    """Share of writes that the drive adds as parity, or None without points of write amplification."""

    def error(self, use: Literal["fit", "check"], statistic: str | None = None) -> float | None:
        """Return the geometric mean of the ratio of simulated to measured values less 1, or None without such points.

        Each ratio is above 1: measured to simulated values count if they are larger.
        """
        logs = [
            abs(math.log1p(one.error))
            for one in self.points
            if one.point.use == use and statistic in (None, one.point.statistic)
        ]
        return math.expm1(sum(logs) / len(logs)) if logs else None

    @property
    def report(self) -> str:
        """Report in Markdown: errors, parameters, and measured and simulated values curve by curve."""
        return "\n".join(_report(self))

    def to_toml(self) -> str:
        """Return the device file, in which a comment has the origin of each value."""
        return _device_file(self)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the device file.

        Raises
        ------
        OutputError
            The file cannot be written.
        """
        _write(path, self.to_toml())

    def __repr__(self) -> str:
        return f"<floatgate.DeviceFit of {len(self.parameters)} parameters to {len(self.points)} points>"


def _write(path: str | os.PathLike[str], text: str) -> None:
    try:
        with _files.draft(Path(path)) as partial:
            partial.write_text(text)
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error}") from error


#: Measurements: one or several files, or the points.
MeasurementsLike: TypeAlias = "Measurements | str | os.PathLike[str] | Sequence[str | os.PathLike[str]]"


@dataclass(frozen=True)
class _Variable:
    """A parameter that is fitted, on a logarithmic scale."""

    path: str
    unit: str
    least: float
    greatest: float
    start: float
    note: str
    shape: tuple[float, ...] | None = None
    """Ratios of the values of a list to their mean, or None for a single value."""

    @cached_property
    def of_unit(self) -> float:
        """Base units of a unit."""
        return number_of(f"1{self.unit}") if self.unit else 1.0

    def value(self, log: float) -> Any:  # noqa: ANN401 (a value of a device file)
        """Return the value for a device file."""
        value = math.exp(log)
        if self.shape is not None:
            return [self._text(value * ratio) for ratio in self.shape]
        return self._text(value)

    def _text(self, value: float) -> Any:  # noqa: ANN401 (a value of a device file)
        if not self.unit:
            return round(value)
        if self.unit.endswith("B"):
            return f"{max(1, round(value / self.of_unit))}{self.unit}"
        # Five digits are finer than any measurement.
        return f"{Decimal(f'{value / self.of_unit:.5g}'):f}{self.unit}"

    def mean(self, log: float) -> Any:  # noqa: ANN401 (a value of a device file)
        """Return the value, or the mean of a list."""
        return self._text(math.exp(log))

    def clipped(self, log: float) -> float:
        """Return the nearest value within the bounds."""
        return min(max(log, math.log(self.least)), math.log(self.greatest))

    @property
    def prior(self) -> float:
        """Standard deviation before the fit: the bounds are two of them away from their middle."""
        return math.log(self.greatest / self.least) / 4

    @property
    def range(self) -> Range:
        """Range of the search: around an inferred value, otherwise all values within the bounds."""
        near = (max(self.least, self.start / _NEAR), min(self.greatest, self.start * _NEAR))
        ends = near if self.note else (self.least, self.greatest)
        return Range(self._text(ends[0]), self._text(ends[1]), log=True)


def fit(
    measured: MeasurementsLike,
    *,
    base: Device | str | os.PathLike[str],
    known: Mapping[str, Any] | None = None,
    parameters: Iterable[str] | Mapping[str, Range | Iterable[Any] | None] | None = None,
    scale: str | None = None,
    trials: int = 0,
    steps: int = 8,
    hold_out: int | None = None,
    seeds: Seeds = (1,),
    seed: int = 1,
    store: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    progress: bool | Callable[[int, int, float | None], object] | None = None,
) -> DeviceFit:
    """Fit the parameters of a device to measurements of a drive.

    Values that follow directly from points are inferred first: page read time, link, independent units, program time,
    blocks and buffer. Then `trials` devices are searched with Optuna, and the best is refined by at most `steps` steps
    of the Levenberg-Marquardt method, which also give an interval for each parameter. All points of a load are
    simulated together, and loads that start from the same state share it.

    Parameters
    ----------
    measured
        A table, fio's JSON, or the directory of a probe; several of them; or :class:`Measurements`.
    base
        The device to start from. Parameters that are not fitted keep its values.
    known
        Parameters with known values by path, such as ``{"capacity.logical": "800166076416B"}``. The table may have
        known parameters as well.
    parameters
        Paths of the parameters to fit, optionally with a :class:`Range` of each, or with values to choose from, which
        need `trials`. Default: all parameters in :data:`fitting.BOUNDS` that the base has, and its number of blocks.
    scale
        Share of the blocks that is simulated, such as ``"1/64"``: see :meth:`Device.scaled`. The result is not scaled.
    trials
        Number of points of the search, which finds a start for parameters that cannot be inferred. Needs Optuna.
    steps
        Maximum number of steps of the refinement. With 0, values have no intervals.
    hold_out
        Use every nth point of each curve only to check the result. Default: the points that the table says.
    seeds
        Seeds of each run. Logarithms of metrics are averaged.
    seed
        Seed of the search.
    store, n_jobs
        As in :func:`sweep`. A later call with the same store does not repeat runs.
    progress
        As in :func:`sweep`: called with the numbers of completed and of all steps.

    Returns
    -------
    DeviceFit

    Raises
    ------
    OptionError
        The measurements or options are invalid.
    SimulationError
        No device that was tried can be simulated.

    Examples
    --------
    >>> load = "rw=randread norandommap=1 bs=4k iodepth=1 number_ios=500"
    >>> measured = fg.Measurements((fg.Point(load, "read", "mean", 51.48),))
    >>> found = fg.fit(measured, base="tiny", parameters=["nand.read"], steps=0, n_jobs=1)
    >>> found.device.config["nand"]["read"]
    '31us'
    """
    table = _table_of(measured)
    if hold_out is not None:
        table = table.with_hold_out(hold_out)
    problem = _Problem.of(
        table, base, dict(known or {}), parameters,
        run={"scale": scale, "store": store, "n_jobs": available(n_jobs, 2), "seeds": seeds_of(seeds)},
    )  # fmt: skip
    for name, value in (("trials", trials), ("steps", steps)):
        if value < 0:
            raise OptionError(f"invalid {name} `{value}`: expected 0 or more")
    if problem.choices and not trials:
        raise OptionError(f"a choice of {', '.join(problem.choices)} needs a search; set trials=...")
    told = _files.Progress("fit", (trials > 0) + steps + 1, 0, progress)
    if store is not None:
        Store(store)
    with states.kept(store):
        if trials:
            problem = _searched(problem, trials=trials, seed=seed)
            told.step(failed=False)
        state = _refined(problem, steps, told)
        return _result(problem, state)


def _table_of(measured: MeasurementsLike) -> Measurements:
    if isinstance(measured, Measurements):
        return measured
    files = [measured] if isinstance(measured, str | os.PathLike) else list(measured)
    if not files:
        raise OptionError("no measurements: give at least one file")
    table = measurements.read(files[0])
    for file in files[1:]:
        table += measurements.read(file)
    return table


@dataclass(frozen=True)
class _Problem:
    """Points, and the parameters that are fitted to them."""

    table: Measurements
    device: Device
    base: str
    fixed: dict[str, FittedParameter]
    """Parameters that are known or inferred, and not varied."""
    variables: tuple[_Variable, ...]
    choices: dict[str, Choices]
    run: dict[str, Any]

    @staticmethod
    def of(
        table: Measurements,
        base: Device | str | os.PathLike[str],
        known: dict[str, Any],
        parameters: Iterable[str] | Mapping[str, Range | Iterable[Any] | None] | None,
        *,
        run: dict[str, Any],
    ) -> _Problem:
        """Infer parameters, and choose those to vary."""
        lacking = next((point for point in table.points if math.isnan(point.value)), None)
        if lacking is not None:
            raise OptionError(f"{lacking.label} has no value")
        if not any(point.use == "fit" for point in table.points):
            raise OptionError("the measurements have no points to fit")
        device = base if isinstance(base, Device) else Device(base)
        if device.array is not None:
            raise OptionError(f"{device.name} is an array: fit its members")
        facts = [*table.known, *(Known(path, value, "given") for path, value in known.items())]
        device = device.with_options({fact.path: fact.value for fact in facts})
        fixed = {
            fact.path: FittedParameter(fact.path, fact.value, "measured", None, True, fact.source) for fact in facts
        }
        inferred = {path: one for path, one in infer(table.points, device).items() if path not in fixed}
        wanted = _wanted(parameters)
        structure = {path: one for path, one in inferred.items() if path in ("geometry.planes", "geometry.page_size")}
        if any(path in fixed or path in (wanted or {}) for path in ("geometry.planes", "geometry.page_size")):
            structure = {}
        for path, one in structure.items():
            value = round(one.value) if path == "geometry.planes" else f"{round(one.value)}B"
            fixed[path] = FittedParameter(path, value, "measured", None, True, one.how)
        device = device.with_options({path: fixed[path].value for path in structure})
        ranges = {path: where for path, where in (wanted or _all(device)).items() if path not in fixed}
        choices = {path: where for path, where in ranges.items() if isinstance(where, Choices)}
        variables = [
            _variable(path, where, device, inferred.get(path))
            for path, where in ranges.items()
            if not isinstance(where, Choices)
        ]
        return _Problem(table, device, device.name, fixed, tuple(variables), choices, run)

    @cached_property
    def start(self) -> _Vector:
        """Logarithms of the values from which the fit starts."""
        import numpy as np  # noqa: PLC0415 (slow, and not always needed)

        return np.array([one.clipped(math.log(one.start)) for one in self.variables])

    def options(self, logs: _Vector) -> dict[str, Any]:
        """Return the device parameters."""
        return {one.path: one.value(log) for one, log in zip(self.variables, logs, strict=True)}

    def simulated_device(self, logs: _Vector) -> Device:
        """Return the device to simulate, which may be scaled."""
        device = self.device.with_options(self.options(logs)) if self.variables else self.device
        if self.run["scale"] is None:
            return device
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FloatgateWarning)  # those of each device
            return device.scaled(self.run["scale"])

    @cached_property
    def fitted(self) -> tuple[Point, ...]:
        """Points that are not held out."""
        return tuple(point for point in self.table.points if point.use == "fit")

    def values(
        self, vectors: Sequence[_Vector], points: Sequence[Point], *, seeds: Sequence[int] | None = None
    ) -> list[_Vector | None]:
        """Simulate devices, and return the logarithms of the values of points, or None for a device that fails."""
        import numpy as np  # noqa: PLC0415

        runs = runs_of(points)
        run = self.run if seeds is None else self.run | {"seeds": seeds}
        tried: list[Device | ConfigError] = []
        for vector in vectors:
            try:
                tried.append(self.simulated_device(vector))
            except ConfigError as error:  # noqa: PERF203 (each device may fail by itself)
                tried.append(error)
        valid = [device for device in tried if isinstance(device, Device)]
        if not valid:
            raise SimulationError(f"no device that was tried can be simulated: {tried[0]}")
        # A run loads its device several times. Without options and scale, that is only a copy.
        _, every = simulate([{"device": device} | one for device in valid for one in runs],
                            progress=False, attribution=False, **run | {"scale": None})  # fmt: skip
        rows = iter(every)
        found: list[_Vector | None] = []
        for device in tried:
            of = [next(rows) for _ in range(len(runs) * len(run["seeds"]))] if isinstance(device, Device) else []
            failed = not of or any(row["error"] is not None for row in of)
            found.append(
                None if failed else np.mean(logarithms(points, [json.loads(row["summary"]) for row in of]), axis=1)
            )
        if all(one is None for one in found):
            first = next(row["error"] for row in every if row["error"] is not None)
            raise SimulationError(f"no device that was tried can be simulated: {in_python(first)}")
        return found

    @cached_property
    def measured(self) -> _Vector:
        """Logarithms of the values of the fitted points."""
        import numpy as np  # noqa: PLC0415

        return np.array([math.log(point.value) for point in self.fitted])

    @cached_property
    def sigma(self) -> _Vector:
        """Standard deviations of the logarithms of the fitted points."""
        import numpy as np  # noqa: PLC0415

        return np.array([math.log1p(point.uncertainty) for point in self.fitted])

    @cached_property
    def counts_parity(self) -> _Vector:
        """1 for points that count parity, and otherwise 0."""
        import numpy as np  # noqa: PLC0415

        return np.array([float(point.statistic == _AMPLIFICATION) for point in self.fitted])

    @cached_property
    def prior(self) -> _Vector:
        """Standard deviations of the variables and of the parity before the fit."""
        import numpy as np  # noqa: PLC0415

        return np.array([*(one.prior for one in self.variables), _PARITY])


def _wanted(
    parameters: Iterable[str] | Mapping[str, Range | Iterable[Any] | None] | None,
) -> dict[str, Range | Choices | None] | None:
    """Return the ranges and choices of the parameters to fit, or None for the range of the literature."""
    if parameters is None:
        return None
    if isinstance(parameters, str):
        parameters = [parameters]
    if not isinstance(parameters, Mapping):
        parameters = dict.fromkeys(parameters)
    ranges = dimensions({path: where for path, where in parameters.items() if where is not None})
    return {path: ranges.get(path) for path in parameters}


def _all(device: Device) -> dict[str, Range | Choices | None]:
    """Return the parameters that the device has, with the ranges of the literature."""
    paths = [path for path in BOUNDS if value_at(device.config, path) is not None]
    has_size = "logical" in device.config["capacity"]
    return dict.fromkeys([*paths, *(["geometry.blocks"] if has_size else ["capacity.spare"])])


def _variable(path: str, where: Range | None, device: Device, inferred: Inferred | None) -> _Variable:
    """Return the variable of a parameter."""
    value = value_at(device.config, path)
    if value is None:
        raise OptionError(f"the base {device.name} has no value of {path}; set one, or base the fit on another device")
    now = mean_of(value)
    if where is not None:
        least, greatest = number_of(where.least), number_of(where.greatest)
        unit = where._unit or ""  # a Range checks it
    elif path == "geometry.blocks":
        needed = device.config["geometry"]["blocks"] * device.logical_bytes / device.physical_bytes
        least, greatest, unit = needed * _SPARE[0], needed * _SPARE[1], ""
    elif path in BOUNDS:
        least, greatest, unit, _ = BOUNDS[path]
        size = number_of(f"1{unit}") if unit else 1
        least, greatest = least * size, greatest * size
    else:
        raise OptionError(f"{path} has no bounds{_files.near(path, BOUNDS)}; give a range, such as fg.Range(1, 8)")
    if not now > 0 or not least > 0:
        raise OptionError(f"{path} cannot be fitted on a logarithmic scale: its values must be above 0")
    shape = tuple(number_of(one) / now for one in value) if isinstance(value, list) else None
    start = now if inferred is None else inferred.value
    if not math.isfinite(start) or start <= 0:
        start = now
    return _Variable(path, unit, least, greatest, start, "" if inferred is None else inferred.how, shape)


@dataclass
class _State:
    """A device that was tried, with the influence of the parameters."""

    logs: _Vector
    parity: float
    simulated: _Vector
    noise: _Vector
    """Variances of the logarithms of the points between seeds."""
    jacobian: _Vector | None = None
    """Changes of the logarithms of the points with those of the variables and of the parity."""


def _cost(problem: _Problem, logs: _Vector, parity: float, simulated: _Vector | None, noise: _Vector | float) -> float:
    """Return the distance: a sum over the points, which grows linearly for outliers, and over the prior."""
    import numpy as np  # noqa: PLC0415

    if simulated is None:
        return math.inf
    distance = simulated + parity * problem.counts_parity - problem.measured
    far = distance / np.sqrt(problem.sigma**2 + noise) / _OUTLIER
    moved = np.append(logs - problem.start, parity) / problem.prior
    return float(2 * _OUTLIER**2 * np.sum(np.sqrt(1 + far**2) - 1) + np.sum(moved**2))


def _searched(problem: _Problem, *, trials: int, seed: int) -> _Problem:
    """Search for a start, and return the problem with it."""
    import numpy as np  # noqa: PLC0415

    cases = {str(place): run for place, run in enumerate(runs_of(problem.fitted))}
    by_path = {one.path: one for one in problem.variables}

    def options_of(point: dict[str, Any]) -> dict[str, Any]:
        return {
            path: by_path[path].value(math.log(number_of(value))) if path in by_path else value
            for path, value in point.items()
        }

    def distance(_: str, summaries: Mapping[str, list[dict[str, Any]]]) -> float:
        found = np.mean(logarithms(problem.fitted, [one for case in cases for one in summaries[case]]), axis=1)
        return _cost(problem, problem.start, 0.0, found, 0.0)

    plan = Plan(
        {**{one.path: one.range for one in problem.variables}, **problem.choices},
        {"distance": "minimize"},
        cases,
        {"device": problem.device, "attribution": False, **problem.run},
        options_of,
        distance,
    )
    found = search(plan, trials=trials, batch=8, sampler="tpe", seed=seed, progress=False)
    best = found.front().to_pylist()[0]
    chosen = {path: where.of_parameter(best[path]) for path, where in problem.choices.items()}
    fixed = problem.fixed | {
        path: FittedParameter(path, value, "fitted", None, False, f"the best of {trials} devices")
        for path, value in chosen.items()
    }
    started = dataclasses.replace(
        problem,
        device=problem.device.with_options(chosen),
        fixed=fixed,
        choices={},
        variables=tuple(dataclasses.replace(one, start=number_of(best[one.path])) for one in problem.variables),
    )
    if chosen:
        return started
    # The inferred start may be better than all points of the search.
    own, other = problem.values([problem.start, started.start], problem.fitted)
    better = _cost(started, started.start, 0.0, other, 0.0) < _cost(problem, problem.start, 0.0, own, 0.0)
    return started if better else problem


def _refined(problem: _Problem, steps: int, told: _files.Progress) -> _State:
    """Refine the parameters by the Levenberg-Marquardt method."""
    import numpy as np  # noqa: PLC0415

    (simulated,) = problem.values([problem.start], problem.fitted)
    assert simulated is not None  # otherwise an error was raised
    noise = _noise(problem, problem.start, simulated) if steps else np.zeros_like(simulated)
    state = _State(problem.start.copy(), 0.0, simulated, noise)
    damping, done = _LEAST_DAMPING, 0
    while done < steps and problem.variables and damping <= _MOST_DAMPING:
        state.jacobian = _jacobian(problem, state)
        done += 1
        told.step(failed=False)
        gained = False
        for _ in range(_CHEAP_STEPS):
            tries = [_step(problem, state, damping * factor) for factor in _DAMPINGS]
            values = problem.values([logs for logs, _ in tries], problem.fitted)
            costs = [_cost(problem, *one, of, noise) for one, of in zip(tries, values, strict=True)]
            best = min(range(len(costs)), key=costs.__getitem__)
            now = _cost(problem, state.logs, state.parity, state.simulated, noise)
            least = max(_GAIN, _RELATIVE_GAIN * now)
            enough = now - costs[best] >= least
            found = values[best]
            if found is not None and costs[best] < now:
                after = _State(*tries[best], found, noise)
                after.jacobian = _updated(state, after)
                state = after
            if enough:
                gained = True
                damping = max(_LEAST_DAMPING, damping * _DAMPINGS[best] / 3)
            else:
                damping *= _DAMPINGS[-1]
                # A whole step that changes little shows that this is the minimum.
                if gained or damping > _MOST_DAMPING or abs(now - costs[0]) < least:
                    break
        if not gained:
            break  # The influences are exact, and even small steps gain nothing.
        damping = min(damping, _MOST_DAMPING)
    told.step(steps - done + 1, failed=False)
    if steps and problem.variables:
        state.jacobian = _jacobian(problem, state)
        state.noise = _noise(problem, state.logs, state.simulated)
    return state


def _updated(before: _State, after: _State) -> _Vector:
    """Return the influences after a step, corrected by its result (Broyden 1965)."""
    import numpy as np  # noqa: PLC0415

    assert before.jacobian is not None
    step = np.append(after.logs - before.logs, after.parity - before.parity)
    # The influence of parity is exact.
    change = after.simulated - before.simulated - before.jacobian[:, :-1] @ step[:-1]
    updated: _Vector = before.jacobian.copy()
    length = float(step[:-1] @ step[:-1])
    if length > 0:
        updated[:, :-1] += np.outer(change, step[:-1]) / length
    return updated


def _noise(problem: _Problem, logs: _Vector, simulated: _Vector) -> _Vector:
    """Return the variances of the logarithms of the points between seeds."""
    import numpy as np  # noqa: PLC0415

    seeds = problem.run["seeds"]
    found = [simulated]
    for number in range(1, _NOISE_SEEDS):
        (again,) = problem.values([logs], problem.fitted, seeds=[one + number * 1_000_003 for one in seeds])
        assert again is not None  # otherwise an error was raised
        found.append(again)
    variances: _Vector = np.var(np.array(found), axis=0, ddof=1)
    return variances


def _jacobian(problem: _Problem, state: _State) -> _Vector:
    """Return the change of the logarithm of each point with those of the variables and of the parity."""
    import numpy as np  # noqa: PLC0415

    steps = [
        _STEP if logs + _STEP <= math.log(one.greatest) else -_STEP
        for one, logs in zip(problem.variables, state.logs, strict=True)
    ]
    vectors = [state.logs + step * unit for step, unit in zip(steps, np.eye(len(steps)), strict=True)]
    found = problem.values(vectors, problem.fitted)
    columns = [
        np.zeros_like(state.simulated) if one is None else (one - state.simulated) / step
        for one, step in zip(found, steps, strict=True)
    ]
    return np.column_stack([*columns, problem.counts_parity])


def _weighted(problem: _Problem, state: _State) -> tuple[_Vector, _Vector]:
    """Return the influences and the distances of the points, in standard deviations, with less weight for outliers."""
    import numpy as np  # noqa: PLC0415

    assert state.jacobian is not None
    sigma = np.sqrt(problem.sigma**2 + state.noise)
    distance = (state.simulated + state.parity * problem.counts_parity - problem.measured) / sigma
    weight = (1 + (distance / _OUTLIER) ** 2) ** -0.25
    return state.jacobian / sigma[:, np.newaxis] * weight[:, np.newaxis], distance * weight


def _step(problem: _Problem, state: _State, damping: float) -> tuple[_Vector, float]:
    """Return the parameters and the parity after a step."""
    import numpy as np  # noqa: PLC0415

    influence, distance = _weighted(problem, state)
    moved = np.append(state.logs - problem.start, state.parity)
    matrix = influence.T @ influence + np.diag(problem.prior**-2.0)
    gradient = influence.T @ distance + moved / problem.prior**2
    step = -np.linalg.solve(matrix + damping * np.diag(np.diag(matrix)), gradient)
    step = np.clip(step, -_LARGEST_STEP, _LARGEST_STEP)
    logs = [one.clipped(float(log)) for one, log in zip(problem.variables, state.logs + step[:-1], strict=True)]
    # Parity is never negative.
    return np.array(logs), max(0.0, state.parity + float(step[-1]))


def _deviations(problem: _Problem, state: _State) -> _Vector:
    """Return the standard deviations of the logarithms of the variables, and of the parity."""
    import numpy as np  # noqa: PLC0415

    if state.jacobian is None:
        return problem.prior
    # A change that may be noise of both runs is not an influence.
    is_real = np.abs(state.jacobian) > _SIGNIFICANT * np.sqrt(2 * state.noise)[:, np.newaxis] / _STEP
    influence, distance = _weighted(problem, dataclasses.replace(state, jacobian=state.jacobian * is_real))
    # Points that the model misses by more than their uncertainty make all intervals wider.
    spare = max(1, len(distance) - len(problem.variables))
    excess = max(1.0, float(np.sum(distance**2)) / spare)
    matrix = influence.T @ influence / excess + np.diag(problem.prior**-2.0)
    deviations: _Vector = np.sqrt(np.diag(np.linalg.inv(matrix)))
    return deviations


def _result(problem: _Problem, state: _State) -> DeviceFit:
    """Build the result, with all points."""
    deviations = _deviations(problem, state)
    found = dict(problem.fixed)
    for one, log, deviation in zip(problem.variables, state.logs, deviations, strict=False):
        found[one.path] = _parameter(one, float(log), float(deviation), is_fitted=state.jacobian is not None)
    options = problem.options(state.logs)
    device = problem.device.with_options(options)
    (values,) = problem.values([state.logs], problem.table.points)
    assert values is not None  # otherwise an error was raised
    points = tuple(
        FittedPoint(point, math.exp(value + state.parity * (point.statistic == _AMPLIFICATION)))
        for point, value in zip(problem.table.points, values, strict=True)
    )
    order = {path: place for place, (path, _, _) in enumerate(device.figures)}
    listed = tuple(sorted(found.values(), key=lambda one: order.get(one.path, len(order))))
    return DeviceFit(device, problem.base, listed, points, _parity(problem, state, float(deviations[-1])))


def _parameter(one: _Variable, log: float, deviation: float, *, is_fitted: bool) -> FittedParameter:
    value = one.value(log)
    if not is_fitted:
        return FittedParameter(one.path, value, "measured" if one.note else "assumed", None, False, one.note)
    half = 1.96 * deviation
    interval = one.mean(one.clipped(log - half)), one.mean(one.clipped(log + half))
    origin: Literal["fitted", "assumed"] = "fitted" if deviation < one.prior / 2 else "assumed"
    return FittedParameter(one.path, value, origin, interval, math.expm1(half) <= IDENTIFIED, one.note)


def _parity(problem: _Problem, state: _State, deviation: float) -> FittedParameter | None:
    if not problem.counts_parity.any() or state.jacobian is None:
        return None
    low, high = (math.expm1(state.parity + sign * 1.96 * deviation) for sign in (-1, 1))
    value = f"{math.expm1(state.parity):.2%}"
    return FittedParameter(
        "parity", value, "fitted", (f"{low:.2%}", f"{high:.2%}"), high - low <= 2 * IDENTIFIED, "write amplification"
    )  # fmt: skip


def _origin(one: FittedParameter) -> str:
    """Return the comment of a value in a device file."""
    if one.interval is None:
        return f"{one.origin}: {one.note}" if one.note else one.origin
    low, high = one.interval
    within = f"{low} to {high}"
    if one.origin == "assumed":
        return f"assumed: the measurements do not identify it ({within})"
    return f"fitted: 95% interval {within}" + ("" if one.identified else ", not identified within 5%")


def _device_file(result: DeviceFit) -> str:
    """Return the file of the device, with the origin of each value in a comment and in its sources."""
    by_path = {one.path: one for one in result.parameters}
    lines: list[str] = []
    table = ""
    for line in result.device.to_toml().splitlines():
        if line == "[sources]":
            break
        if line.startswith("["):
            table = line.strip("[]") + "."
            lines.append(line)
            continue
        path = table + line.partition(" = ")[0]
        if not line or path in ("name", "version", "description"):
            lines.append(line)
            continue
        found = next((one for known, one in by_path.items() if known == path or known.startswith(f"{path}.")), None)
        lines.append(f"{line}  # {_origin(found) if found else 'assumed'}")
    sources = {path: source for path, _, source in result.device.figures if source is not None}
    sources |= {path: _origin(one) for path, one in by_path.items()}
    of_base = f"assumed: from {result.base}; "
    for path, source in sources.items():
        if path not in by_path and not source.startswith("assumed"):
            sources[path] = of_base + source
    lines += ["[sources]", *(f"{_key(path)} = {_text(source)}" for path, source in sources.items())]
    return "\n".join(lines) + "\n"


def _key(path: str) -> str:
    return f'"{path}"'


def _text(text: str) -> str:
    (assignment,) = overrides({"text": " ".join(text.split()) + " "})
    return assignment.partition("=")[2].replace(' "', '"')


def _report(result: DeviceFit) -> list[str]:
    lines = [f"# Fit of {result.device.name}", ""]
    lines += _markdown(
        ["points", "fitted", "error", "checked", "error of checked"],
        [
            [name or "all", *(_of_use(result, use, name) for use in ("fit", "check"))]
            for name in [None, *dict.fromkeys(one.point.statistic for one in result.points)]
        ],
    )
    lines += [
        "", "Errors are geometric means of the ratio of simulated and measured values. Checked points were not fitted.",
        "", "## Parameters", "",
    ]  # fmt: skip
    every = [*result.parameters, *([] if result.parity is None else [result.parity])]
    lines += _markdown(
        ["parameter", "value", "origin", "95% interval", "identified", "inferred from"],
        [
            [f"`{one.path}`", _shown(one.value), one.origin,
             "" if one.interval is None else f"{one.interval[0]} to {one.interval[1]}",
             "yes" if one.identified else "no", one.note]
            for one in every
        ],
    )  # fmt: skip
    unknown = [one for one in every if not one.identified]
    if unknown:
        lines += ["", f"Not identified within {IDENTIFIED:.0%}: {', '.join(f'`{one.path}`' for one in unknown)}."]
    lines += ["", "## Curves"]
    curves: dict[tuple[str, str, str, str], list[FittedPoint]] = {}
    for one in result.points:
        point = one.point
        curves.setdefault((point.curve or point.load, point.stream, point.operation, point.statistic), []).append(one)
    for (curve, *words), of in curves.items():
        lines += ["", f"### {curve}: {' '.join(word for word in words if word)}", ""]
        lines += _markdown(
            ["at", "measured", "simulated", "error", "use"],
            [
                ["" if one.point.x is None else f"{one.point.x:g}", f"{one.point.value:.4g}", f"{one.simulated:.4g}",
                 f"{one.error:+.1%}", one.point.use]
                for one in of
            ],
        )  # fmt: skip
        sources = dict.fromkeys(one.point.source for one in of if one.point.source)
        if sources:
            lines += ["", f"Source: {'; '.join(sources)}"]
    return [*lines, ""]


def _of_use(result: DeviceFit, use: Literal["fit", "check"], name: str | None) -> str:
    number = sum(one.point.use == use and name in (None, one.point.statistic) for one in result.points)
    error = result.error(use, name)
    return f"{number} | {'-' if error is None else f'{error:.1%}'}"


def _shown(value: Any) -> str:  # noqa: ANN401 (a value of a device file)
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [
        f"| {' | '.join(header)} |", f"|{'---|' * len(header)}", *(f"| {' | '.join(map(str, row))} |" for row in rows)
    ]  # fmt: skip


_HELP = """\
MEASUREMENTS is a table (.csv), fio's JSON output (.json), or the directory of results of `floatgate fit probe`. Several
files are joined. Prints a report: errors, parameters, and measured and simulated values.

`floatgate fit probe DEVICE` writes jobs of fio that measure a drive. See docs/fit.md.
"""


def _settings(option: str, given: Sequence[str]) -> dict[str, Any]:
    """Return values by path."""
    for one in given:
        if "=" not in one:
            raise OptionError(f"invalid {option} `{one}`: expected PATH=VALUE, such as host.software=4us")
    pairs = (one.partition("=") for one in given)
    return {path: measurements.value_of(value) for path, _, value in pairs}


def _bounds(given: Sequence[str]) -> dict[str, Range | list[Any] | None]:
    """Return the range of each parameter, its values to choose from, or None for the usual bounds."""
    found: dict[str, Range | list[Any] | None] = {}
    for one in given:
        path, _, values = one.partition("=")
        low, dots, high = values.partition("..")
        if dots:
            found[path] = Range(measurements.value_of(low), measurements.value_of(high), log=True)
        else:
            found[path] = [measurements.value_of(value) for value in values.split(",")] if values else None
    return found


def command(arguments: list[str]) -> int:
    """Run ``floatgate fit``, and return the exit status."""
    if arguments[:1] == ["probe"]:
        return probing.command(arguments[1:])
    made = argparse.ArgumentParser(
        prog="floatgate fit", description="Fit the parameters of a device to measurements of a drive.", epilog=_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    made.add_argument("measurements", metavar="MEASUREMENTS", nargs="+", help="measurements, or `probe`")
    made.add_argument("--base", metavar="DEVICE", required=True, help="device that has the values that are not fitted")
    made.add_argument("--out", metavar="FILE", help="write the fitted device to FILE (.toml)")
    made.add_argument("--report", metavar="FILE", help="write the report to FILE (.md) instead of printing it")
    made.add_argument(
        "--set", metavar="PATH=VALUE", action="append", default=[], help="known parameter, which is not fitted"
    )
    made.add_argument(
        "--parameter", metavar="PATH[=FROM..TO]", action="append",
        help="parameter to fit, and its bounds, or values to choose from, as A,B [all of docs/fit.md]",
    )  # fmt: skip
    made.add_argument("--scale", metavar="SCALE", help="share of the blocks that is simulated, such as 1/64")
    made.add_argument(
        "--trials", type=int, default=0, metavar="N", help="devices of a search before the refinement [0]"
    )
    made.add_argument("--steps", type=int, default=8, metavar="N", help="maximum number of steps of the refinement [8]")
    made.add_argument("--hold-out", type=int, metavar="N", help="fit without every Nth point of a curve")
    made.add_argument("--seeds", default="1", metavar="SEEDS", help="seeds of each run [1]")
    made.add_argument("--seed", type=int, default=1, metavar="N", help="seed of the search [1]")
    made.add_argument("--store", metavar="DIR", help="keep runs in DIR, so that a repeated command continues")
    _files.add_engine(made)
    chosen = made.parse_args(arguments)
    for output in (chosen.out, chosen.report):
        if output is not None:
            _files.refuse_overwrites([*chosen.measurements, chosen.base], output)
    with engine(chosen.scheduler):
        found = fit(
            chosen.measurements, base=chosen.base, known=_settings("--set", chosen.set),
            parameters=None if chosen.parameter is None else _bounds(chosen.parameter),
            scale=chosen.scale, trials=chosen.trials, steps=chosen.steps, hold_out=chosen.hold_out, seeds=chosen.seeds,
            seed=chosen.seed, store=chosen.store, n_jobs=chosen.jobs, progress=False if chosen.quiet else None,
        )  # fmt: skip
    if chosen.out is not None:
        found.write(chosen.out)
    if chosen.report is None:
        sys.stdout.write(found.report)
    else:
        _write(chosen.report, found.report)
    return 0
