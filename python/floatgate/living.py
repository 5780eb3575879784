"""Lifetimes: how much a host can write until a device is worn out."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, ClassVar

from floatgate import _floatgate
from floatgate._node import Document, Node
from floatgate.device import Device
from floatgate.lifetime_of_seed import Lifetime  # noqa: TC001 (found by its name at run time)
from floatgate.running import seed_or_first
from floatgate.seeds import Seeds, seeds_of
from floatgate.workload import Progress, Workload, WorkloadLike, texts_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence


class Statistic(Node):
    """Statistic over the seeds. A number that needs more seeds is NaN."""

    __slots__ = ()
    _numbers: ClassVar[Collection[str]] = {"mean", "deviation", "half_width"}

    n: int
    """Number of seeds."""

    mean: float
    """Mean."""

    deviation: float
    """Standard deviation, with the divisor n - 1."""

    half_width: float
    """Half the width of the 95 % confidence interval of the mean."""


class Lifetimes(Document):
    """Lifetimes with one or more seeds: the content of ``lifetime.json``.

    ``docs/reference/lifetime.md`` describes every key. ``runs`` has the result of each seed.

    Parameters
    ----------
    text
        The content of a ``lifetime.json``.
    """

    __slots__ = ()
    _kinds: ClassVar[Mapping[str, str]] = {
        "runs": "Lifetime",
        "written_bytes": "Statistic",
        "first_expiry_bytes": "Statistic",
    }

    schema: str
    """Version of the format."""

    version: str
    """Version of Floatgate."""

    arguments: list[str]
    """Arguments of the ``floatgate`` command that repeats the lifetimes."""

    runs: list[Lifetime]
    """Result of each seed."""

    written_bytes: Statistic
    """Bytes that the host wrote."""

    first_expiry_bytes: Statistic
    """Bytes that the host wrote before the first block expired, over the seeds in which one did."""

    def __repr__(self) -> str:
        first = self["runs"][0]
        return f"<floatgate.Lifetimes of {first['device']['name']} until {first['until']}, {len(self['runs'])} seeds>"


def lifetime(
    device: Device | str | os.PathLike[str],
    workload: WorkloadLike | Sequence[WorkloadLike],
    *,
    until: str = "worn-out",
    precondition: str | Workload | None = None,
    endurance_scale: float = 1.0,
    seed: int | None = None,
    seeds: Seeds | None = None,
    out: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Lifetimes:
    """Repeat a workload on a device without simulated time, until the device is worn out.

    Equivalent to ``floatgate run --until``. ``docs/model/wear.md`` describes wear leveling and the end of life.

    Parameters
    ----------
    device
        The device, its name, or the path of its file. For ``"worn-out"`` and ``"first-expiry"``, it needs a table
        ``faults`` and ``nand.endurance``.
    workload
        One or several workloads with writes. Several take turns.
    until
        Event that ends the lifetime: ``"worn-out"`` (the good blocks cannot hold all data of the host),
        ``"first-expiry"`` (a block has to be erased more often than it endures), ``"erases=N"`` (N blocks were erased),
        or ``"drive-writes=N"`` (the host has written the capacity N times).
    precondition
        State before the lifetime, as for :func:`run`. Default: ``"fill"``.
    endurance_scale
        Factor of ``nand.endurance``. A small one shortens the lifetime.
    seed
        Random seed. Default: 1.
    seeds
        Several seeds instead of `seed`: their number, a range such as ``"5..9"``, or a list.
    out
        A directory for ``lifetime.json``.
    progress
        A function that is called with the progress, as for :func:`run`.

    Returns
    -------
    Lifetimes
        ``runs``: the result of each seed. ``written_bytes``: data that the host wrote, in bytes, as the mean over the
        seeds with half the width of its 95 % confidence interval. ``first_expiry_bytes``: the same before the first
        block expired, over the seeds in which one did.

    Raises
    ------
    ConfigError, WorkloadError, TraceError, PreconditionError, OptionError
        The lifetime is invalid.
    SimulationError, OutputError
        The lifetime failed.

    Examples
    --------
    >>> device = fg.Device("tiny").with_options({"faults": {}, "nand.endurance": 20})
    >>> life = fg.lifetime(device, "rw=randwrite bs=4k number_ios=5k")
    >>> life.runs[0].written.drive_writes > 5
    True
    """
    device = device if isinstance(device, Device) else Device(device)
    text = _floatgate.lifetime(
        device._handle,
        {
            "workloads": texts_of(workload),
            "until": until,
            "precondition": None if precondition is None else str(precondition),
            "endurance_scale": endurance_scale,
            "seed": seed_or_first(seed),
            "seeds": None if seeds is None else ",".join(f"{seed}..{seed}" for seed in seeds_of(seeds)),
            "out": None if out is None else os.fspath(out),
        },
        progress=progress,
    )
    return Lifetimes(text)
