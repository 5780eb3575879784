"""Runs of a workload on a device."""

from __future__ import annotations

import os
import threading
import warnings
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from floatgate import _floatgate, states
from floatgate.device import Device
from floatgate.exceptions import FloatgateWarning, OptionError
from floatgate.result import Result, load
from floatgate.seeds import Seeds, seeds_of
from floatgate.simulator import Simulator
from floatgate.summary import Summary
from floatgate.workload import Progress, RunLike, Workload, WorkloadLike, in_memory, tables_of, texts_of

if TYPE_CHECKING:
    from collections.abc import Sequence


@overload
def run(
    device: Device | Simulator | str | os.PathLike[str],
    workload: RunLike,
    *,
    precondition: str | Workload | Simulator | os.PathLike[str] | None = None,
    prewrite: Literal["none", "even", "allocation"] = "none",
    seed: int | None = None,
    seeds: None = None,
    n_jobs: int = 1,
    requests: bool = False,
    series: bool | str = True,
    attribution: bool | None = None,
    out: str | os.PathLike[str] | None = None,
    timeline: bool | str = False,
    progress: Progress | None = None,
    warn: bool = True,
) -> Result: ...


@overload
def run(
    device: Device | Simulator | str | os.PathLike[str],
    workload: RunLike,
    *,
    precondition: str | Workload | Simulator | os.PathLike[str] | None = None,
    prewrite: Literal["none", "even", "allocation"] = "none",
    seed: int | None = None,
    seeds: Seeds,
    n_jobs: int = 1,
    requests: bool = False,
    series: bool | str = True,
    attribution: bool | None = None,
    out: str | os.PathLike[str] | None = None,
    timeline: bool | str = False,
    progress: Progress | None = None,
    warn: bool = True,
) -> list[Result]: ...


def run(
    device: Device | Simulator | str | os.PathLike[str],
    workload: RunLike,
    *,
    precondition: str | Workload | Simulator | os.PathLike[str] | None = None,
    prewrite: Literal["none", "even", "allocation"] = "none",
    seed: int | None = None,
    seeds: Seeds | None = None,
    n_jobs: int = 1,
    requests: bool = False,
    series: bool | str = True,
    attribution: bool | None = None,
    out: str | os.PathLike[str] | None = None,
    timeline: bool | str = False,
    progress: Progress | None = None,
    warn: bool = True,
) -> Result | list[Result]:
    """Simulate a workload on a device, and return the results.

    Equivalent to ``floatgate run``: the same device, workload and seed give identical results, byte for byte. Other
    Python threads can run during the simulation, and Ctrl-C interrupts it.

    Parameters
    ----------
    device
        The device, its name, or the path of its file. Or a :class:`Simulator` that has received no requests, as a
        prepared device for many runs. The simulator does not change, and the results are the same as if the run
        prepared the device itself.
    workload
        One or several workloads. Several run concurrently, and each has its own results. A table with
        `__arrow_c_stream__` (pyarrow, pandas, Polars), or an iterable of tuples, is a trace in memory:
        :meth:`Trace.from_table` lists the columns.
    precondition
        State before the run. Default: ``"fill"``. ``"none"``, ``"fill"``, ``"aged=V"`` (this share of each block is
        invalid), ``"invalid=V"`` (empty, with this share of the pages written and invalid), ``"steady"`` (overwritten
        at random until write amplification is stable), or a workload, which is applied without simulated time. Or a
        prepared state: the path of a file written by :meth:`Simulator.save`, or a :class:`Simulator` that has received
        no requests. `device` may differ from the prepared device in parameters that do not affect the state.
    prewrite
        How data that the workload reads before writing it is placed in flash before the run.
    seed
        Random seed. Default: 1.
    seeds
        Run with several seeds, and return a list of results: their number, a range such as ``"5..9"``, or a list. With
        `out`, each result has a directory of its own in it: ``seed-1`` and so on.
    n_jobs
        Number of seeds that run in parallel, in threads: -1 for one per processor.
    requests
        Record every request: :meth:`Result.requests`. Takes about 200 bytes of memory per request, or none with `out`.
    series
        Record the run over time: :meth:`Result.series`. True for up to 1024 windows, or a length such as ``"10ms"``.
    attribution
        Record latency breakdowns. Default: True. Without them, a run is up to 20% faster.
    out
        A directory for the result and all recorded data, with the same files as ``floatgate run --out``.
    timeline
        With `out`: record a timeline of channels, planes and requests, for Perfetto. True, or a span such as
        ``"10ms..12ms"``.
    progress
        A function that is called with the progress, about 20 times per second. An exception in it ends the run.
    warn
        Emit the warnings of the result, which are also in ``result.warnings``.

    Returns
    -------
    Result
        With `seeds`: a list of results, in the order of the seeds.

    Raises
    ------
    ConfigError, WorkloadError, TraceError, PreconditionError, OptionError
        The run is invalid.
    SimulationError, OutputError
        The run failed.
    KeyboardInterrupt
        Ctrl-C, or another exception of a signal handler.

    Warns
    -----
    FloatgateWarning
        Emitted for each warning of the result.

    Examples
    --------
    >>> result = fg.run("tiny", fg.Synthetic("rw=randwrite bs=4k iodepth=8 number_ios=5k"), precondition="steady")
    >>> result.summary.requests.write.count
    5120
    """
    options: dict[str, Any] = {
        "precondition": precondition, "prewrite": prewrite, "requests": requests, "series": series,
        "attribution": attribution, "timeline": timeline,
    }  # fmt: skip
    workload = in_memory(workload)
    if seeds is None:
        if n_jobs != 1:
            raise OptionError(f"n_jobs={n_jobs}: a single run is simulated by one thread; set seeds=..., too")
        results = [_run(device, workload, seed=seed, out=out, progress=progress, **options)]
    else:
        if seed is not None:
            raise OptionError(f"seed={seed} and seeds={seeds!r}: set one of them")
        results = _run_seeds(device, workload, seeds_of(seeds), n_jobs, out=out, progress=progress, **options)
    for text in dict.fromkeys(text for result in results for text in result.warnings) if warn else ():
        warnings.warn(text, FloatgateWarning, stacklevel=2)
    return results[0] if seeds is None else results


def _run_seeds(
    device: Device | Simulator | str | os.PathLike[str],
    workload: WorkloadLike | Sequence[WorkloadLike],
    seeds: list[int],
    n_jobs: int,
    *,
    precondition: str | Workload | Simulator | os.PathLike[str] | None,
    out: str | os.PathLike[str] | None,
    progress: Progress | None,
    **options: Any,  # noqa: ANN401 (options of a run)
) -> list[Result]:
    """Run with each seed, up to `n_jobs` at the same time."""
    if n_jobs == 0 or n_jobs < -1:
        raise OptionError(f"invalid number of jobs `{n_jobs}`: expected 1 or more, or -1 for one per processor")
    if len(set(seeds)) < len(seeds):
        raise OptionError(f"seeds={seeds!r}: a seed occurs twice, whose runs would be equal")
    if isinstance(device, Simulator):
        raise OptionError(
            "the device is a simulator, which is prepared with one seed; set precondition=simulator.save(...), whose "
            "file runs with any seed"
        )
    device = device if isinstance(device, Device) else Device(device)
    is_prepared = isinstance(precondition, Simulator) or states.saved(precondition) is not None
    shared = (
        None
        if is_prepared or len(seeds) == 1
        else _floatgate.Shared(device._handle, "fill" if precondition is None else str(precondition))
    )
    stopped = threading.Event()

    def watched(part: str, share: float | None) -> object:
        # An exception in one thread ends the runs of the others.
        if stopped.is_set():
            raise _Stopped
        return progress(part, share) if progress is not None else None

    def one(seed: int) -> Result:
        place = None if out is None else Path(out, f"seed-{seed}")
        return _run(
            device,
            workload,
            seed=seed,
            out=place,
            progress=watched,
            precondition=precondition,
            shared=shared,
            **options,
        )

    if n_jobs == 1 or len(seeds) == 1:
        return [one(seed) for seed in seeds]
    with ThreadPoolExecutor((os.cpu_count() or 1) if n_jobs == -1 else n_jobs) as pool:
        waiting = [pool.submit(one, seed) for seed in seeds]
        try:
            wait(waiting, return_when=FIRST_EXCEPTION)
            failed = [run for run in waiting if run.done() and run.exception() is not None]
            return [run.result() for run in failed or waiting]
        finally:
            stopped.set()
            for run_of_seed in waiting:
                run_of_seed.cancel()


class _Stopped(Exception):  # noqa: N818 (not an error)
    """Ends a run because another has failed."""


def _run(
    device: Device | Simulator | str | os.PathLike[str],
    workload: WorkloadLike | Sequence[WorkloadLike],
    *,
    precondition: str | Workload | Simulator | os.PathLike[str] | None,
    prewrite: str,
    seed: int | None,
    requests: bool,
    series: bool | str,
    attribution: bool | None,
    out: str | os.PathLike[str] | None,
    timeline: bool | str,
    progress: Progress | None,
    shared: _floatgate.Shared | None = None,
) -> Result:
    """Run with one seed."""
    prepared = device if isinstance(device, Simulator) else None
    if isinstance(precondition, Simulator):
        prepared = _of_other(precondition, device, attribution)
        precondition = None
    if prepared is not None:
        device, precondition, seed, attribution = _state(prepared, precondition, seed, attribution)
    device = device if isinstance(device, Device) else Device(device)  # type: ignore[arg-type] # not a simulator
    saved = prepared._path if prepared is not None else states.saved(precondition)
    if out is None and timeline:
        raise OptionError("a timeline needs a directory; set out=...")
    summary, kept_requests, kept_series = _floatgate.run(
        device._handle,
        {
            "workloads": texts_of(workload),
            "precondition": None if precondition is None else str(precondition),
            "saved": saved,
            "prewrite": prewrite,
            "seed": seed_or_first(seed),
            "attribution": attribution is not False,
            "out": None if out is None else os.fspath(out),
            "requests": requests,
            "series": _extent(series),
            "timeline": _extent(timeline),
            "tables": tables_of(workload),
        },
        prepared=None if prepared is None else prepared._handle,
        shared=shared,
        progress=progress,
    )
    return Result(Summary(summary), kept_requests, kept_series) if out is None else load(out)


def _of_other(
    prepared: Simulator, device: Device | Simulator | str | os.PathLike[str], attribution: bool | None
) -> Simulator:
    """Return a simulator of a device in the state of another simulator."""
    if isinstance(device, Simulator):
        raise OptionError("the device is a simulator, which is already in a state; omit the precondition")
    _check_new(prepared)
    device = device if isinstance(device, Device) else Device(device)
    return prepared._in_same_state(device, prepared.attribution if attribution is None else attribution)


def _check_new(prepared: Simulator) -> None:
    if prepared.submitted > 0 or prepared.now > 0:
        raise OptionError("a run starts at time 0; use a simulator that has received no requests, or a fork of it")


def _state(
    prepared: Simulator,
    precondition: str | Workload | os.PathLike[str] | None,
    seed: int | None,
    attribution: bool | None,
) -> tuple[Device, str, int, bool]:
    """Return the parameters that determine the state of a simulator. Refuse options that would change them."""
    _check_new(prepared)
    has = {
        "precondition": prepared.precondition["requested"],
        "seed": prepared.seed,
        "attribution": prepared.attribution,
    }
    asked = {"precondition": precondition, "seed": seed, "attribution": attribution}
    for name, value in asked.items():
        if value is not None and str(value) != str(has[name]):
            raise OptionError(f"{name}={value}: the simulator was created with {name}={has[name]}; omit the option")
    return prepared.device, has["precondition"], prepared.seed, prepared.attribution


def seed_or_first(seed: int | None) -> int:
    """Check a seed, and return 1 if there is none."""
    if seed is None:
        return 1
    if not 0 <= seed < 1 << 64:
        raise OptionError(f"seed={seed}: must be a whole number from 0 to {(1 << 64) - 1}")
    return seed


def _extent(value: bool | str) -> str | None:
    """Return a length or span as a text: ``"auto"`` if it follows from the run, None for nothing."""
    if isinstance(value, str):
        return value
    return "auto" if value else None
