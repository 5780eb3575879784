"""Drives that people own: latency under load and write amplification, measured and simulated."""

from __future__ import annotations

import hashlib
import json
from functools import partial
from typing import TYPE_CHECKING, Any

from floatgate.running import run
from floatgate.simulator import Simulator
from floatgate.store import Store
from floatgate.studies import drawing, fidelity
from floatgate.studies.markdown import text_of
from floatgate.studies.ssdiq import (
    CAPACITIES,
    DRIVES,
    FITTED_FOOTPRINTS,
    FOOTPRINTS,
    PARITY,
    STATISTICS,
    VISIBLE,
    Drive,
    Load,
)
from floatgate.studies.study import Exhibit, Study
from floatgate.sweeping import build

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from matplotlib.figure import Figure

    from floatgate.device import Device
    from floatgate.studies.study import Setting

SCALE, QUICK_SCALE = "1/32", "1/48"
#: Simulated seconds before and in the measured part of a run.
WARM_UP, MEASURED = 8, 3
QUICK_WARM_UP, QUICK_MEASURED = 1.5, 0.5
#: Requests in flight of each thread.
DEPTH = 64
#: Requests per second of the latency thread, of reads and of writes.
PROBES = 5_000
#: State before the loads: a sequential fill, then three drive writes in random order.
STATE = "rw=write bs=512k ; stonewall rw=randwrite norandommap=1 bs=4k io_size=300%"


def _threads() -> dict[int, str]:
    """Return the drives by the number of threads of their loads."""
    counts = sorted({drive.threads for drive in DRIVES})
    return {count: ", ".join(drive.title for drive in DRIVES if drive.threads == count) for count in counts}


STUDY = Study(
    "ssdiq2025",
    "Drives under load",
    "G. Haas et al., SSD-iq, PVLDB 2025: raw logs of the repository gabriel-haas/ssdiq-pub, commit 8a0a3f4",
    [
        "Not a reproduction of a paper's figures: four drives of data centers, as the authors measured them, compared "
        "with built-in devices that were fitted to a part of the rows. Devices have "
        f"{SCALE} of the blocks (`--scale`).",
        "Each row asks for a rate of requests of 4 KiB at random addresses. Threads offer writes, and one in a hundred "
        f"reads, with up to {DEPTH} requests each in flight. A latency thread adds {PROBES:,} reads and {PROBES:,} "
        "writes a second, and its latencies are reported. Below saturation, arrivals are a Poisson process. A "
        "saturated drive serves a closed loop. By Little's law, the saturated rows have "
        f"{' and '.join(f'{count} threads ({titles})' for count, titles in _threads().items())}.",
        "Before: a sequential fill, and three drive writes in random order. Each run warms up for "
        f"{WARM_UP} s of simulated time, and is measured for {MEASURED} s.",
        "Rows with * were used to fit the device by hand: medians and p99 of reads, medians of writes (of the 7450 MAX "
        "at 50,000 and 80,000 requests/s also mean and p99), and rates. All others are predictions. Errors are "
        "geometric means of the ratio between simulated and measured values.",
    ],
    [],
    variants=(),
)


def _jobs(threads: int, load: Load, warm_up: float, measured: float) -> str:
    common = f"norandommap=1 bs=4k iodepth={DEPTH} ramp_time={warm_up:g} runtime={measured:g} time_based"
    probes = f"rate_iops={PROBES},{PROBES} rate_process=poisson" if not load.waits else "rwmixread=50"
    each = (load.asked - PROBES) / threads
    rates = f"rate_iops={max(1, round(each / 100))},{round(0.99 * each)} rate_process=poisson"
    return (
        f"name=latency rw=randrw {probes} {common} ; "
        f"name=load rw=randrw numjobs={threads} {'rwmixread=1' if load.is_saturated else rates} {common}"
    )


def _stored(setting: Setting, device: Device, run_of: str, find: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return what `find` returns, from the store if this build made the run. `run_of` has its state and its jobs."""
    store = Store(setting.directory_of("ssdiq"))
    key = hashlib.sha256(f"{build()} {device.digest} {run_of}".encode()).hexdigest()[:32]
    row = store.get(key)
    if row is None:
        row = {"summary": json.dumps(find()), "error": None, "kind": None}
        store.put(key, row)
    found: dict[str, Any] = json.loads(row["summary"])
    return found


def _device(setting: Setting, name: str) -> Device:
    return setting.changed(name, {}).scaled(QUICK_SCALE if setting.quick else SCALE)


def _measure(setting: Setting, drive: Drive) -> dict[int, dict[str, Any]]:
    """Run the loads of a drive, by the rate that was asked for."""
    device = _device(setting, drive.device)
    times = (QUICK_WARM_UP, QUICK_MEASURED) if setting.quick else (WARM_UP, MEASURED)
    prepared: list[Simulator] = []

    def simulate(jobs: str) -> dict[str, Any]:
        if not prepared:
            prepared.append(Simulator(device, precondition=STATE, attribution=False))
        summary = run(prepared[0], jobs, series=False, attribution=False, warn=False).summary
        latency = next(stream for stream in summary["streams"] if stream["name"] == "latency")["requests"]
        return {
            "rate": summary["requests"]["write"]["iops"],
            "read": _latency(latency["read"]["latency_us"]),
            "write": _latency(latency["write"]["latency_us"]),
        }

    # Saturated rows have the same jobs, whatever rate they are asked for.
    chosen = (*drive.loads[1::4], drive.loads[-1]) if setting.quick else drive.loads
    loads = {load.asked: _jobs(drive.threads, load, *times) for load in chosen}
    return {
        asked: _stored(setting, device, f"{STATE} {jobs}", partial(simulate, jobs)) for asked, jobs in loads.items()
    }


def _latency(found: Mapping[str, float]) -> list[float]:
    return [float(found[name.replace(".", "_")]) for name in STATISTICS]


def _show(drive: Drive) -> None:
    @STUDY.exhibit(drive.device, f"{drive.title} under load")
    def loads(setting: Setting) -> Exhibit:
        import pyarrow as pa  # noqa: PLC0415 (half a second, and not always needed)

        found = _measure(setting, drive)
        rows = []
        measured = [load for load in drive.loads if load.asked in found]
        for load in measured:
            ours = found[load.asked]
            row = {
                "asked, 1/s": f"{load.asked}{'*' if load.asked in drive.fitted else ''}",
                "writes/s, measured": float(load.writes),
                "simulated": float(ours["rate"]),
            }
            for kind, values in (("read", load.read), ("write", load.write)):
                for name, value, our in zip(STATISTICS, values, ours[kind], strict=True):
                    row[f"{kind} {name}, us"] = f"{value} / {text_of(our)}"
            rows.append(row)

        def draw() -> Figure:
            asked = [load.asked / 1000 for load in measured]

            def panel(kind: str) -> drawing.Lines:
                series = {}
                for at in (1, 2):
                    there = [float(getattr(load, kind)[at]) for load in measured]
                    ours = [float(found[load.asked][kind][at]) for load in measured]
                    series[f"{STATISTICS[at]}, measured"] = (asked, there)
                    series[f"{STATISTICS[at]}, simulated"] = (asked, ours)
                return drawing.Lines("asked, 1000/s", f"{kind} latency, us", series, log_y=True)

            return drawing.lines(panel("read"), panel("write"))

        caption = "Latencies: measured / simulated. * The row was used for the fit."
        return Exhibit(pa.Table.from_pylist(rows), draw, [], caption)


for _drive in DRIVES:
    _show(_drive)


def _write_at_random(setting: Setting, device: Device, share: float) -> dict[str, Any]:
    """Return the amplification and the MiB/s of random writes to a share of the addresses, after a sequential fill."""
    part = f"size={100 * share:.1f}%"
    state = f"rw=write bs=512k {part} ; stonewall rw=randwrite norandommap=1 bs=4k {part} io_size=400%"
    count = 200_000 if setting.quick else 2_000_000
    job = f"rw=randwrite norandommap=1 bs=4k {part} io_size=100t iodepth=512 number_ios={count}"

    def simulate() -> dict[str, Any]:
        summary = run(device, job, precondition=state, series=False, attribution=False, warn=False).summary
        return {
            "write_amplification": summary["write_amplification"],
            "mib": summary["requests"]["write"]["iops"] / 256,
        }

    return _stored(setting, device, f"{state} {job}", simulate)


@STUDY.exhibit("footprint", "Micron 7450 MAX: amplification by the addresses in use")
def footprint(setting: Setting) -> Exhibit:
    """Write at random to a part of the addresses, after a sequential fill of that part."""
    import pyarrow as pa  # noqa: PLC0415

    device = _device(setting, DRIVES[0].device)
    rows = []
    used = list(FOOTPRINTS)[:: 5 if setting.quick else 1]
    for gib in used:
        ours = _write_at_random(setting, device, min(1.0, gib / VISIBLE))
        amplification, rate = FOOTPRINTS[gib]
        rows.append({
            "GiB in use": f"{gib}{'*' if gib in FITTED_FOOTPRINTS else ''}",
            "amplification, measured": amplification,
            "simulated": ours["write_amplification"],
            "simulated, with parity": ours["write_amplification"] * PARITY,
            "host MiB/s, measured": rate,
            "host MiB/s, simulated": ours["mib"],
        })  # fmt: skip

    def draw() -> Figure:
        series = {
            name: [float(row[column]) for row in rows]
            for name, column in (("measured", "amplification, measured"), ("simulated", "simulated, with parity"))
        }
        return drawing.bars(drawing.Bars("write amplification", [f"{gib} GiB" for gib in used], series, reference=1.0))

    caption = (
        f"The drive's counters include parity and metadata, {PARITY - 1:.1%} of a sequential fill, which the simulated "
        "drive does not write. The column *with parity* adds them."
    )
    return Exhibit(pa.Table.from_pylist(rows), draw, [], caption)


@STUDY.exhibit("capacity", "Micron 7450 with other visible capacities: predictions")
def capacity(setting: Setting) -> Exhibit:
    """Write at random to all addresses of drives with the same flash that show more or less of it to the host."""
    import pyarrow as pa  # noqa: PLC0415

    rows = []
    for title, visible in CAPACITIES.items():
        whole = setting.changed(DRIVES[0].device, {"capacity.logical": f"{visible}B"})
        ours = _write_at_random(setting, whole.scaled(QUICK_SCALE if setting.quick else SCALE), 1.0)
        rows.append({
            "drive": title,
            "visible, GB": visible / 1e9,
            "amplification": ours["write_amplification"],
            "with parity": ours["write_amplification"] * PARITY,
            "host MiB/s": ours["mib"],
            "writes/s": ours["mib"] * 256,
        })  # fmt: skip

    def draw() -> Figure:
        series = {"simulated, with parity": [float(row["with parity"]) for row in rows]}
        return drawing.bars(drawing.Bars("write amplification", list(CAPACITIES), series, reference=1.0))

    caption = (
        "Only `capacity.logical` differs. No other value of the device file depends on the capacity, so the file "
        "predicts these drives. Their measurements are not in the logs. The rates are those without reads."
    )
    return Exhibit(pa.Table.from_pylist(rows), draw, [], caption)


@STUDY.exhibit("errors", "Errors of predictions")
def errors(setting: Setting) -> Exhibit:
    """Compare all rows that were not used for the fit."""
    import pyarrow as pa  # noqa: PLC0415

    rows = []
    for drive in DRIVES:
        found = _measure(setting, drive)
        points = fidelity.points(drive, found)
        row: dict[str, Any] = {"drive": drive.title, "rows": len(points["writes/s"])}
        row |= {quantity: fidelity.error(each) for quantity, each in points.items()}
        rows.append(row)
    columns = [name for name in rows[0] if name not in ("drive", "rows")]

    def draw() -> Figure:
        series = {str(row["drive"]): [100 * (row[name] or 0.0) for name in columns] for row in rows}
        return drawing.bars(drawing.Bars("error, %", columns, series, log=True))

    shown = [
        {name: f"{value:.0%}" if isinstance(value, float) else value for name, value in row.items()} for row in rows
    ]
    caption = (
        "By which factor simulated and measured values differ, less 1, as the geometric mean over the rows that were "
        "not used for the fit. If the measured p99 jumps, rows count against the range of their neighbors. "
        "docs/fidelity.md has this rule, compares the errors with bars, and names mechanisms that the devices lack."
    )
    return Exhibit(pa.Table.from_pylist(shown), draw, [], caption)
