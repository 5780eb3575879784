"""Runs: a workload on a device."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, TypeAlias

from floatgate import _floatgate, states
from floatgate.device import Device
from floatgate.exceptions import FloatgateWarning, OptionError
from floatgate.result import Result, load
from floatgate.simulator import Simulator
from floatgate.summary import Summary
from floatgate.workload import Workload, WorkloadLike, texts_of

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Called now and then with the name of the part and its share, from 0 to 1, or None where that is not known.
Progress: TypeAlias = Callable[[str, "float | None"], object]


def run(
    device: Device | Simulator | str | os.PathLike[str],
    workload: WorkloadLike | Sequence[WorkloadLike],
    *,
    precondition: str | Workload | Simulator | os.PathLike[str] | None = None,
    prewrite: Literal["none", "even", "allocation"] = "none",
    seed: int | None = None,
    requests: bool = False,
    series: bool | str = True,
    attribution: bool | None = None,
    out: str | os.PathLike[str] | None = None,
    timeline: bool | str = False,
    progress: Progress | None = None,
    warn: bool = True,
) -> Result:
    """Run a workload on a device, and say how it was served.

    It is ``floatgate run``: the same device, workload and seed give the same numbers, byte for byte. Other threads of
    Python go on meanwhile, and Ctrl-C ends it.

    Parameters
    ----------
    device
        The device, its name, or the path of its file. Or a :class:`Simulator` that no request was sent to, which is a
        device in its state, made once for many runs: it stays as it is, and the numbers are those of a run that makes
        the state itself.
    workload
        A workload, or several, which run beside each other, each with results of its own.
    precondition
        The state before the run, ``"fill"`` where not given: ``"none"``, ``"fill"``, ``"aged=V"`` (this share of each
        block is superseded), ``"invalid=V"`` (empty, with this share of its pages written and stale), ``"steady"``
        (overwritten at random until write amplification stands still), or a workload, which is served without time.
        Or a state that was made before: the path of a file that :meth:`Simulator.save` wrote, or a :class:`Simulator`
        that no request was sent to. `device` may differ from the one that it was made with in what shapes no state.
    prewrite
        How what the workload reads and has not written by then is put in flash before the run.
    seed
        Seed of all random numbers; 1 where not given.
    requests
        Keep every request: :meth:`Result.requests`. It takes about 200 bytes of memory for each; with `out` none.
    series
        Keep the run over time: :meth:`Result.series`. True for 512 to 1024 windows, or their length, like ``"10ms"``.
    attribution
        Tell what the time of the requests went into, which is so where not given. Without, a run is up to a fifth
        faster.
    out
        A directory for the result, with the files that ``floatgate run --out`` writes; what is kept is kept there.
    timeline
        With `out`: what every channel, plane and request did when, for Perfetto; True, or a span like ``"10ms..12ms"``.
    progress
        A function that is told how far it is, about twenty times a second. An exception in it ends the run.
    warn
        Warn of what has to be known of the result, which ``result.warnings`` has in any case.

    Returns
    -------
    Result

    Raises
    ------
    ConfigError, WorkloadError, TraceError, PreconditionError, OptionError
        What was asked for cannot be.
    SimulationError, OutputError
        Something went wrong.
    KeyboardInterrupt
        Ctrl-C, or another exception of a signal handler.

    Warns
    -----
    FloatgateWarning
        For each warning of the result.

    Examples
    --------
    >>> result = fg.run("tiny", fg.Synthetic("rw=randwrite bs=4k iodepth=8 number_ios=5k"), precondition="steady")
    >>> result.summary.requests.write.count
    5120
    """
    prepared = device if isinstance(device, Simulator) else None
    if isinstance(precondition, Simulator):
        prepared, precondition = _of_other(precondition, device, attribution), None
    if prepared is not None:
        device, precondition, seed, attribution = _state(prepared, precondition, seed, attribution)
    device = device if isinstance(device, Device) else Device(device)  # type: ignore[arg-type] # it is no simulator
    saved = prepared._path if prepared is not None else states.saved(precondition)
    if out is None and timeline:
        raise OptionError("a timeline is written to a directory: give out=...")
    summary, kept_requests, kept_series = _floatgate.run(
        device._handle,
        {
            "workloads": texts_of(workload),
            "precondition": None if precondition is None else str(precondition),
            "saved": saved,
            "prewrite": prewrite,
            "seed": _seed(seed),
            "attribution": attribution is not False,
            "out": None if out is None else os.fspath(out),
            "requests": requests,
            "series": _extent(series),
            "timeline": _extent(timeline),
        },
        prepared=None if prepared is None else prepared._handle,
        progress=progress,
    )
    result = Result(Summary(summary), kept_requests, kept_series) if out is None else load(out)
    for text in result.warnings if warn else ():
        warnings.warn(text, FloatgateWarning, stacklevel=2)
    return result


def _of_other(
    prepared: Simulator, device: Device | Simulator | str | os.PathLike[str], attribution: bool | None
) -> Simulator:
    """Bring a device into the state of a simulator."""
    if isinstance(device, Simulator):
        raise OptionError("the device is a simulator, which is in a state already: leave the precondition out")
    _check_new(prepared)
    device = device if isinstance(device, Device) else Device(device)
    return prepared._in_same_state(device, prepared.attribution if attribution is None else attribution)


def _check_new(prepared: Simulator) -> None:
    if prepared.submitted > 0 or prepared.now > 0:
        raise OptionError("a run begins at time 0: give a simulator, or a fork of one, that no request was sent to")


def _state(
    prepared: Simulator,
    precondition: str | Workload | os.PathLike[str] | None,
    seed: int | None,
    attribution: bool | None,
) -> tuple[Device, str, int, bool]:
    """Take what decides a state from a simulator, and refuse what would have to change it."""
    _check_new(prepared)
    has = {"precondition": prepared.precondition["requested"], "seed": prepared.seed, "attribution": prepared.attribution}
    asked = {"precondition": precondition, "seed": seed, "attribution": attribution}
    for name, value in asked.items():
        if value is not None and str(value) != str(has[name]):
            raise OptionError(f"{name}={value}: the simulator was made with {name}={has[name]}; leave it out")
    return prepared.device, has["precondition"], prepared.seed, prepared.attribution


def _seed(seed: int | None) -> int:
    """Check a seed; 1 where none is given."""
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
