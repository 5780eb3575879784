"""Common parts of the study of Agrawal et al. 2008: the SSD, its workloads, and closed forms.

The paper leaves open what its workloads access, and contradicts itself about how often. The readings and localities in
this file were fixed before the first run, and are not tuned.
"""

from __future__ import annotations

import lzma
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from floatgate._files import draft
from floatgate.exceptions import TraceError
from floatgate.running import run
from floatgate.workload import Trace

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from floatgate.device import Device
    from floatgate.studies.study import Setting

#: Blocks of a plane, and share of them that is kept free (Section 4.3).
BLOCKS = 2048
MIN_FREE = 0.05
#: Blocks of a plane in quick runs.
QUICK_BLOCKS = 64
PACKAGES = 8
#: Pages of a block with data: the last one holds its summary.
DATA_PAGES = 63
#: Times in microseconds (Table 1): read, program and erase, and the transfer of a page with its spare bytes.
READ, PROGRAM, ERASE, TRANSFER = 25.0, 200.0, 1500.0, 105.6

#: Share of the requests of TPC-C and Exchange that access the first fifth of the addresses.
HOT = 80
#: Other localities, for Table 5. With the first, accesses are uniform.
UNIFORM = 20
LOCALITIES = (UNIFORM, 60, 80, 90, 95, 99)

#: Readings of TPC-C: requests per second of each SSD, and their number.
TPCC_RATES = {"6.8 million events in 30 minutes": 630, "300 IOPS per SSD": 300}
TPCC_SECONDS = 1800
#: Readings of Exchange: requests per second of each SSD, and their number.
EXCHANGE_EVENTS = 6_500
EXCHANGE_RATES = {"900 IOPS per gang of 16": 450, "65,000 events in 15 minutes": 7}

#: Geometric sizes of Exchange with a mean of 14.7 KiB.
_EXCHANGE_SIZES = "4k/27:8k/20:12k/14:16k/11:20k/8:24k/6:28k/4:32k/3:40k/3:48k/2:64k/2"
#: Sizes of IOzone and Postmark, with the moments of the traces of DiskSim's SSD extension.
_IOZONE_SIZES = "256k/88:2m/5:1m/3:8k/4"
_POSTMARK_READS = "64k/71:32k/15:512k/9:4k/5"
_POSTMARK_WRITES = "1m/60:4m/5:4k/20:64k/15"
#: Numbers of requests, and addresses as a share of the device: 1.04 and 5.85 of 27.2 GiB.
_IOZONE = (100_000, 3.8)
#: Passes of IOzone that write the capacity 7.25 times, as Tables 7 and 8 do.
_IOZONE_PASSES = 5.75
_POSTMARK = (62_257, 21.5)

#: Names of the real traces.
_FILES = {"IOzone": "*iozone*.trace*", "Postmark": "*postmark*.trace*"}

NAMES = ("TPC-C", "Exchange", "IOzone", "Postmark")


def blocks(setting: Setting) -> int:
    """Return the number of blocks of a plane."""
    return int((QUICK_BLOCKS if setting.quick else BLOCKS) * setting.footprint)


def scale(setting: Setting) -> float:
    """Return the size of the device relative to the paper's."""
    return blocks(setting) / BLOCKS


def free(number: int, share: float = MIN_FREE) -> dict[str, Any]:
    """Return thresholds of garbage collection as a share of the blocks of a plane."""
    least = max(1, int(number * share))
    return {"gc.soft_threshold": least, "gc.hard_threshold": least}


def device(setting: Setting, number: int | None = None) -> dict[str, Any]:
    """Return a point with the baseline device, with a number of blocks per plane."""
    number = blocks(setting) if number is None else number
    return {"device": "agrawal2008", "geometry.blocks": number, "precondition": "fill", **free(number)}


def tpcc(
    setting: Setting,
    rate: int = 630,
    hot: int = HOT,
    *,
    scattered: bool = False,
    size: int | None = None,
    events: int | None = None,
) -> str:
    """Return TPC-C: two reads for each write, in units of 8 KiB (Section 4.2), with Poisson arrivals.

    `hot` percent of the requests access the first fifth of the addresses, or, if `scattered`, a fifth of the addresses
    that is spread over all. `size` is the number of bytes that they access, on a full-size SSD: by default, all.
    `events` is the number of requests: by default, that of half an hour on a full-size SSD.
    """
    events = round(TPCC_SECONDS * rate * scale(setting)) if events is None else events
    where = f"zoned:{hot}/20:{100 - hot}/80" if not scattered else "pareto:0.2"
    part = "" if size is None else f" size={int(size * scale(setting)) // 8192 * 8192} io_size=100000%"
    return f"rw=randrw bs=8k norandommap=1 random_distribution={where} {_rates(rate, 2 / 3)} number_ios={events}{part}"


def exchange(setting: Setting, rate: int = 450, *, events: int = EXCHANGE_EVENTS) -> str:
    """Return Exchange: three reads for two writes (Section 4.2), of variable size, with Poisson arrivals."""
    number = events // 10 if setting.quick else events
    return (
        f"rw=randrw bssplit={_EXCHANGE_SIZES} norandommap=1 blockalign=4k "
        f"random_distribution=zoned:{HOT}/20:{100 - HOT}/80 {_rates(rate, 0.6)} number_ios={number}"
    )


def _rates(total: int, reads: float) -> str:
    """Return rates of reads and writes, which arrive independently."""
    share = round(total * reads)
    return f"rate_iops={share},{total - share} rate_process=poisson"


@dataclass(frozen=True)
class Load:
    """A workload, and its origin."""

    workload: Trace | str
    origin: str
    #: Length relative to that for a full-size SSD. Traces are not cut for a smaller one.
    length: float = 1.0


def load(name: str, setting: Setting) -> Load:
    """Return a workload of the paper, in the standard reading. IOzone and Postmark are real traces if available."""
    found = _found(name, setting.traces) if setting.traces is not None and name in _FILES else None
    if found is not None:
        limit = 2_000 if setting.quick else None
        return Load(Trace(found, fit="wrap", name=name, limit=limit), f"the trace {found.name}")
    if name == "TPC-C":
        return Load(tpcc(setting), "generated with the numbers of Section 4.2", scale(setting))
    if name == "Exchange":
        return Load(exchange(setting), "generated with the numbers of Section 4.2")
    made = "generated with the moments of DiskSim's trace"
    if name == "IOzone":
        number, share = _IOZONE
        return Load(
            f"rw=write bssplit={_IOZONE_SIZES} size={share}% io_size=100000% rate_iops=107 rate_process=poisson "
            f"number_ios={round(number * scale(setting))}",
            made,
            scale(setting),
        )
    number, share = _POSTMARK
    return Load(
        f"rw=randrw percentage_random=54 bssplit={_POSTMARK_READS},{_POSTMARK_WRITES} norandommap=1 "
        f"blockalign=4k size={share}% io_size=100000% {_rates(127, 0.832)} "
        f"number_ios={round(number * scale(setting))}",
        made,
        scale(setting),
    )


def repeated_iozone(setting: Setting) -> Trace | str:
    """Return IOzone as often as Tables 7 and 8 repeat it: the trace fewer times on a smaller SSD."""
    found = _found("IOzone", setting.traces) if setting.traces is not None else None
    if found is None:
        number = round(_IOZONE[0] * scale(setting))
        words = str(load("IOzone", setting).workload)
        return words.replace(f"number_ios={number}", f"number_ios={round(number * _IOZONE_PASSES)}")
    passes = _IOZONE_PASSES * (1.0 if setting.quick else scale(setting))
    place = setting.directory_of("workloads") / f"iozone-{passes:g}.trace"
    if not place.is_file():
        with lzma.open(found, "rt") if found.suffix == ".xz" else found.open() as file:
            lines = [line.split(maxsplit=1) for line in file]
        length = float(lines[-1][0])
        with draft(place) as partial, partial.open("w", encoding="ascii") as out:
            for index in range(round(len(lines) * passes)):
                start, rest = lines[index % len(lines)]
                out.write(f"{float(start) + index // len(lines) * length:.3f} {rest}")
    return Trace(place, fit="wrap", name="IOzone", limit=2_000 if setting.quick else None)


def _found(name: str, traces: Path) -> Path | None:
    if not traces.is_dir():
        raise TraceError(f"directory {traces} does not exist; --traces needs the directory of the traces")
    return next(iter(sorted(traces.glob(_FILES[name]))), None)


def baseline(setting: Setting, **options: Any) -> Device:  # noqa: ANN401 (parameters of a device)
    """Return the baseline device with other options."""
    point = device(setting)
    name = point.pop("device")
    return setting.changed(name, {k: v for k, v in point.items() if k != "precondition"} | options)


def queues(setting: Setting, name: str) -> dict[str, float]:
    """Return the mean number of operations that wait for a package under a workload, and the maximum."""
    each = baseline(setting, gang={"width": 1, "mode": "asynchronous"})
    gangs = run(each, load(name, setting).workload, attribution=False, series=False, warn=False).summary.gangs
    lengths = [gang.queue_length or 0.0 for gang in gangs]
    return {"queue": sum(lengths) / len(lengths), "longest queue": max(gang.longest_queue for gang in gangs)}


def busy_share(row: Mapping[str, Any]) -> float:
    """Return the share of time for which a package works. It does one operation at a time, in one of two dies."""
    return float(2 * (1 - row["utilization.dies.idle.mean"]))


def time_of_collection(row: Mapping[str, Any]) -> float:
    """Return the mean time for which a package works on a victim, in milliseconds.

    The baseline does one operation at a time in a package, so the rest of its busy time is that of host operations.
    """
    busy = busy_share(row) * row["measured_s"] * PACKAGES * 1e6
    host = row["flash.reads_by_cause.host"] * (READ + TRANSFER)
    host += row["flash.programs_by_cause.host"] * (TRANSFER + PROGRAM)
    host += row["flash.programs_by_cause.summary"] * (528 * 0.025 + PROGRAM)
    victims = row["gc.victims"]
    return float(busy - host) / victims / 1000 if victims else math.nan


def effective_spare(number: int, used: float, min_free: int) -> float:
    """Return the spare factor of the closed blocks of a plane: the share of their pages that is not valid.

    Parameters
    ----------
    number
        Number of blocks of the plane.
    used
        Valid pages as a share of all pages of the plane.
    min_free
        Number of blocks that are free while the victim is chosen. One more block is open.
    """
    return 1 - used * number * (DATA_PAGES + 1) / (number - min_free - 1) / DATA_PAGES


def fifo_efficiency(spare: float) -> float:
    """Return the efficiency of uniform writes for large blocks, greedy or FIFO (Desnoyers 2014).

    A block loses its pages at the rate of writes per valid page. If it has a share v valid when it becomes the victim,
    v = exp(-(1 - v) / (1 - spare)).
    """
    valid = 0.5
    for _ in range(10_000):
        valid = math.exp(-(1 - valid) / (1 - spare))
    return 1 - valid
