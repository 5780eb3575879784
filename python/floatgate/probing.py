"""Plan of the measurements of a drive, as jobs of fio and as loads of the simulator."""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import shlex
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from floatgate import _files
from floatgate._words import in_python
from floatgate.exceptions import OptionError, OutputError, SimulationError
from floatgate.measurements import Measurements, Point, logarithms, runs_of
from floatgate.seeds import Seeds, seeds_of
from floatgate.sweeping import simulate

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Sequence

    from floatgate.device import Device

#: Shares of the drive that the footprint sweep overwrites.
_FOOTPRINTS = ("50%", "60%", "70%", "80%", "90%", "100%")

#: Uncertainty of simulated values, in addition to that of their seeds, relative to that of measured ones.
_EXACT = 0.25

#: Amount of the writes that measure the link, which fits into any buffer.
_BURST_KIB = 2048

#: Statistics of a latency.
_TIMES = ("mean", "p50", "p99", "p99.9")


@dataclass(frozen=True)
class Probe:
    """A measurement: a job of fio, and the same load for the simulator."""

    name: str
    measures: str
    """Parameter that the measurement shows."""
    curve: str
    x: float
    jobs: tuple[str, ...]
    """Options of each job, without its duration."""
    statistics: tuple[str, ...]
    """Operation and statistic, after the stream if there are several jobs."""
    seconds: float = 20
    """Duration on a drive. 0 if the jobs have an amount of data."""
    amount: str = ""
    """Duration or amount in the simulator."""
    state: str = "fill"
    """Precondition in the simulator."""
    share: str = "100%"
    """Share of the drive that is filled."""

    @property
    def load(self) -> str:
        """Load for the simulator."""
        return " ; ".join(f"{job} {self.amount}".strip() for job in self.jobs)

    @property
    def writes(self) -> bool:
        """True if a job writes or trims."""
        return any(not word.endswith("read") for job in self.jobs for word in job.split() if word.startswith("rw="))

    def points(self) -> Iterator[Point]:
        """Yield the points that the measurement gives, without values."""
        for said in self.statistics:
            words = said.split()
            statistic, operation, stream = [*words[::-1], "", ""][:3]
            yield Point(
                self.load, operation, statistic, precondition=self.state, stream=stream, curve=self.curve, x=self.x,
                source=self.name,
            )  # fmt: skip


def plan(
    *, random_write_iops: float, effort: float = 1, depths: Sequence[int] = (1, 2, 4, 8, 16, 32, 64, 128, 256)
) -> list[Probe]:
    """Return the measurements of a drive, in an order in which each state follows from the one before.

    Parameters
    ----------
    random_write_iops
        Random writes per second of the steady drive, such as those of its data sheet. The rates of the loads are shares
        of it.
    effort
        Factor of the amounts in the simulator.
    depths
        Queue depths of the random reads.
    """
    return [
        *_reads(depths, effort),
        *_writes(effort),
        *_footprints(effort),
        *_loads(random_write_iops, effort),
        *_trims(effort),
    ]


def _count(number: float, effort: float) -> str:
    return f"number_ios={max(100, round(number * effort))}"


def _reads(depths: Sequence[int], effort: float) -> Iterator[Probe]:
    for depth in depths:
        yield Probe(
            f"read-depth-{depth}", "page read time (depth 1), independent units (large depths)",
            "random reads by depth", depth, (f"rw=randread norandommap=1 bs=4k iodepth={depth}",),
            ("read iops", "read mean", "read p50", "read p99"), amount=_count(min(2000 + 1000 * depth, 60_000), effort),
        )  # fmt: skip
    for size in (16, 64, 128):
        yield Probe(
            f"read-size-{size}k", "link and channels", "random reads by size in KiB, depth 1", size,
            (f"rw=randread norandommap=1 bs={size}k iodepth=1",), ("read mean", "read p50"),
            amount=_count(2000, effort),
        )  # fmt: skip
    yield Probe(
        "read-sequential", "link, or channels", "sequential reads, 128 KiB, depth 32", 32,
        ("rw=read bs=128k iodepth=32",), ("read mib_per_s",), amount=_count(8000, effort),
    )  # fmt: skip


def _writes(effort: float) -> Iterator[Probe]:
    for size in (4, 16, 64, 128):
        yield Probe(
            f"write-size-{size}k", "link and buffer", "random writes by size in KiB, depth 1", size,
            (f"rw=randwrite norandommap=1 bs={size}k iodepth=1",), ("write mean", "write p50"), seconds=0,
            amount=f"number_ios={_BURST_KIB // size}",
        )  # fmt: skip
    for size in (4, 8, 16, 32, 64, 128, 256, 1024, 4096, 16384):
        yield Probe(
            f"burst-{size}m", "buffer, SLC cache", "bursts of writes from idle, MiB", size,
            (f"rw=write bs=128k iodepth=32 io_size={size}m",), ("write mib_per_s",), seconds=0,
        )  # fmt: skip
    yield Probe(
        "write-sequential", "program time", "sequential writes, 128 KiB, depth 32", 32,
        ("rw=write bs=128k iodepth=32",), ("write mib_per_s",), seconds=120,
        amount=f"{_count(20_000, effort)} ramp_time={0.05 * effort:g}",
    )  # fmt: skip


def _footprints(effort: float) -> Iterator[Probe]:
    for share in _FOOTPRINTS:
        yield Probe(
            f"footprint-{share.rstrip('%')}", "raw flash, parity, erase time",
            "random writes by footprint, %", float(share.rstrip("%")),
            (f"rw=randwrite norandommap=1 bs=4k iodepth=256 size={share} io_size=100t",),
            ("write iops", "write_amplification"), seconds=300, amount=_count(200_000, effort),
            state=f"rw=write bs=512k size={share} ; "
            f"stonewall rw=randwrite norandommap=1 bs=4k size={share} io_size=400%",
            share=share,
        )  # fmt: skip


def _loads(iops: float, effort: float) -> Iterator[Probe]:
    latency = min(5000, iops / 20)
    watched = tuple(f"latency {operation} {name}" for operation in ("read", "write") for name in _TIMES)
    # Enough requests of the rarest stream for its percentiles.
    window, long = (f"time_based runtime={number * effort:.4g}" for number in (4000 / latency, 50_000 / iops))
    for step in range(1, 11):
        rate = round(iops * step / 10 - latency)
        yield Probe(
            f"load-{step * 10}", "suspension, garbage collection, scheduling", "latency under load, writes/s",
            rate + latency,
            (f"name=latency rw=randrw norandommap=1 bs=4k rate_iops={latency:g},{latency:g} rate_process=poisson "
             "iodepth=64",
             f"name=load rw=randwrite norandommap=1 bs=4k rate_iops={rate} rate_process=poisson iodepth=384"),
            watched, seconds=130, amount=window, state="steady",
        )  # fmt: skip
    for share in (2, 5, 10):
        reads = round(iops * share / 100)
        yield Probe(
            f"saturated-{share:g}", "work lost by suspension, queues", "saturated writes by reads/s", reads,
            (f"name=latency rw=randread norandommap=1 bs=4k rate_iops={reads} rate_process=poisson iodepth=64",
             "name=load rw=randwrite norandommap=1 bs=4k iodepth=384"),
            ("load write iops", "load write p50", "load write p99", "latency read mean", "latency read p99"),
            seconds=60, amount=long, state="steady",
        )  # fmt: skip
    yield Probe(
        "mixed-70", "check of the fit", "70% reads, 30% writes, depth 64", 64,
        ("rw=randrw rwmixread=70 norandommap=1 bs=4k iodepth=64",), ("read iops", "write iops", "read p99"),
        seconds=60, amount=_count(60_000, effort), state="steady",
    )  # fmt: skip


def _trims(effort: float) -> Iterator[Probe]:
    yield Probe(
        "trim", "time of a trim", "trims of 64 KiB, depth 1", 1, ("rw=randtrim norandommap=1 bs=64k iodepth=1",),
        ("trim mean",), amount=_count(1000, effort),
    )  # fmt: skip


def points_of(probes: Iterable[Probe]) -> Measurements:
    """Return the points of a plan, without values."""
    return Measurements(tuple(point for probe in probes for point in probe.points()))


def measure(
    device: Device | str | os.PathLike[str],
    points: Sequence[Point],
    *,
    seeds: Seeds = (1,),
    **options: Any,  # noqa: ANN401
) -> list[Point]:
    """Simulate the loads of points on a device, and return the points with their values: geometric means of the seeds.

    With several seeds, the uncertainties are those of the means.

    Parameters
    ----------
    options
        Options of :func:`sweep`, such as `scale` and `n_jobs`.

    Raises
    ------
    SimulationError
        A run fails, or has no value for a point.
    """
    _, rows = simulate(runs_of(points), device=device, seeds=seeds_of(seeds), progress=False, **options)
    for row in rows:
        if row["error"] is not None:
            raise SimulationError(f"a run failed: {in_python(row['error'])}")
    found = []
    for point, logs in zip(points, logarithms(points, [json.loads(row["summary"]) for row in rows]), strict=True):
        uncertainty = point.uncertainty
        if len(logs) > 1:
            uncertainty = math.hypot(_EXACT * uncertainty, statistics.stdev(logs) / math.sqrt(len(logs)))
        found.append(dataclasses.replace(point, value=math.exp(statistics.fmean(logs)), uncertainty=uncertainty))
    return found


_JOB = """\
; {name}: {measures}
[global]
filename={device}
direct=1
ioengine=io_uring
randrepeat=0
percentile_list=50:90:95:99:99.9:99.99
"""

_SCRIPT = """\
#!/usr/bin/env bash
# Measures a drive with fio. Erases all data on it. Written by `floatgate fit probe`.
#
#   measure.sh --destroy-data
set -euo pipefail
cd "$(dirname "$0")"
device={device}

fail() {{
    echo "error: $1" >&2
    exit 2
}}
[ "${{1:-}}" = --destroy-data ] || fail "this erases all data on $device; to do it, add --destroy-data"
[ -b "$device" ] || fail "$device is not a block device"
[ -z "$(lsblk --noheadings --output MOUNTPOINTS "$device" | tr -d '[:space:]')" ] || fail "$device is mounted"
command -v fio > /dev/null || fail "fio is missing"

# Counters of the drive, if it has those of the Open Compute Project.
counters() {{
    nvme ocp smart-add-log "$device" --output-format=json > "$1" 2> /dev/null || rm -f "$1"
}}
fill() {{ # SHARE
    blkdiscard --force "$device"
    fio --name=fill --filename="$device" --direct=1 --ioengine=io_uring --rw=write --bs=512k --iodepth=8 --size="$1"
}}
overwrite() {{ # SHARE, TIMES
    fio --name=overwrite --filename="$device" --direct=1 --ioengine=io_uring --rw=randwrite --norandommap --bs=4k \\
        --iodepth=256 --size="$1" --loops="$2"
}}
run() {{ # NAME
    [ ! -e "$1.json" ] || return 0
    sleep {idle_s}
    counters "$1.ocp-before.json"
    fio "$1.fio" --output-format=json --output="$1.json.partial"
    counters "$1.ocp-after.json"
    mv "$1.json.partial" "$1.json"
}}

"""

#: Seconds without requests before each measurement, in which buffers and caches drain.
_IDLE_S = 30

#: Overwrites of the drive before measurements in the steady state.
_OVERWRITES = 3


def _script(device: str, probes: Sequence[Probe]) -> str:
    lines = [_SCRIPT.format(device=shlex.quote(device), idle_s=_IDLE_S)]
    state = None
    for probe in probes:
        if (probe.state, probe.share) != state:
            lines.append(f"fill {probe.share}\n")
            if probe.state == "steady":
                lines.append(f"overwrite 100% {_OVERWRITES}\n")
            elif probe.state != "fill":
                lines.append(f"overwrite {probe.share} 4\n")
            state = probe.state, probe.share
        lines.append(f"run {probe.name}\n")
    return "".join(lines)


def _job_file(device: str, probe: Probe) -> str:
    text = _JOB.format(name=probe.name, measures=probe.measures, device=device)
    for job in probe.jobs:
        amount = [] if probe.seconds else probe.amount.split()
        words = dict(word.split("=", 1) for word in [*job.split(), *amount])
        name = words.pop("name", probe.name)
        # The latencies of each request show bursts of garbage collection.
        logs = {"write_lat_log": f"{probe.name}-{name}", "log_offset": "0"} if name == "latency" else {}
        ends = {"time_based": "1", "runtime": f"{probe.seconds:g}"} if probe.seconds else {}
        if ends:
            words.pop("io_size", None)
        text += f"\n[{name}]\n" + "".join(f"{key}={value}\n" for key, value in {**words, **ends, **logs}.items())
    return text


def write(directory: str | os.PathLike[str], device: str, probes: Sequence[Probe]) -> None:
    """Write the job files, the plan, and the script that runs the jobs.

    Raises
    ------
    OutputError
        The files cannot be written.
    """
    place = Path(directory)
    try:
        place.mkdir(parents=True, exist_ok=True)
        for probe in probes:
            (place / f"{probe.name}.fio").write_text(_job_file(device, probe))
        points_of(probes).write(place / "plan.csv")
        script = place / "measure.sh"
        script.write_text(_script(device, probes))
        script.chmod(0o755)
    except OSError as error:
        raise OutputError(f"cannot write to {place}: {error}") from error


def described(probes: Sequence[Probe]) -> str:
    """Return a table with what each curve measures, what it destroys, and how long it takes."""
    import pyarrow as pa  # noqa: PLC0415 (half a second, and not always needed)

    curves: dict[str, list[Probe]] = {}
    for probe in probes:
        curves.setdefault(probe.curve, []).append(probe)
    rows = [
        {"curve": curve, "jobs": len(of), "measures": of[0].measures,
         "destroys": "all data" if any(probe.writes for probe in of) else "nothing",
         "minutes": round(sum(probe.seconds + _IDLE_S for probe in of) / 60, 1)}
        for curve, of in curves.items()
    ]  # fmt: skip
    return _files.text_table(pa.Table.from_pylist(rows))


def _share(text: str) -> float:
    return float(text.rstrip("%")) / 100


_HELP = """\
Writes job files for fio and the script DIR/measure.sh, and prints what each job measures, what it destroys and how long
it takes. Nothing is written to the device unless --destroy-data is given, which runs the script: it fills the drive
several times, and erases all data. `floatgate fit DIR` then reads the results. See docs/fit.md.
"""


def command(arguments: list[str]) -> int:
    """Run ``floatgate fit probe``, and return the exit status."""
    made = argparse.ArgumentParser(
        prog="floatgate fit probe", description="Write the jobs that measure a drive.", epilog=_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    made.add_argument("device", metavar="DEVICE", help="block device of the drive, such as /dev/nvme1n1")
    made.add_argument("--out", metavar="DIR", default="measured", help="directory of the jobs and results [measured]")
    made.add_argument(
        "--random-write-iops", type=float, default=100_000, metavar="N",
        help="random writes/s of the data sheet, of which the loads are shares [100000]",
    )  # fmt: skip
    made.add_argument("--destroy-data", action="store_true", help="run the jobs now, which erases all data on DEVICE")
    chosen = made.parse_args(arguments)
    if not chosen.random_write_iops >= 100:
        raise OptionError(f"invalid --random-write-iops {chosen.random_write_iops:g}: expected 100 or more")
    probes = plan(random_write_iops=chosen.random_write_iops)
    write(chosen.out, chosen.device, probes)
    sys.stdout.write(described(probes))
    lines = [line.split() for line in _script(chosen.device, probes).splitlines()]
    fills = [_share(words[1]) for words in lines if words[:1] == ["fill"]]
    overwrites = [_share(words[1]) * int(words[2]) for words in lines if words[:1] == ["overwrite"]]
    sys.stdout.write(
        f"The states before the jobs, also of reads, erase all data. They take {sum(fills):.2g} drive writes in "
        f"sequence, and {sum(overwrites):.2g} at random.\n"
    )
    script = Path(chosen.out, "measure.sh")
    if not chosen.destroy_data:
        sys.stdout.write(f"To measure, which erases all data on {chosen.device}: {script} --destroy-data\n")
        return 0
    sys.stdout.flush()
    return subprocess.run([script, "--destroy-data"], check=False).returncode
