"""Errors of simulated drives at points that were not used to fit them, and the page that compares them with bars.

The page also has the errors that other simulators publish.
"""

from __future__ import annotations

import csv
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from floatgate.studies.markdown import SIGNS, grid, text_of
from floatgate.studies.ssdiq import DRIVES, FITTED_FOOTPRINTS, FOOTPRINTS, MISSING, STATISTICS, Drive

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

#: A row whose measured p99 differs from that of a neighbor by more than this factor counts against a range.
JUMP = 2.0

#: Largest errors that count as agreement. That of the amplification is a difference, and the others are shares.
BARS = {
    "rates": 0.05,
    "read mean": 0.08,
    "read p50": 0.07,
    "read p99": 0.20,
    "write mean": 0.15,
    "write p99": 0.30,
    "amplification": 0.05,
}

#: The rule of rows with a jump.
RULE = (
    f"If the measured p99 of a row differs from that of a neighbor by more than a factor of {JUMP:g}, small changes "
    "of the load change latencies a lot. The reads, or the writes, of such a row count against the range of the "
    "neighbors: their error is the distance from the range that the measured values of its neighbors span, and zero "
    "inside. If the measured value of the row itself is closer, its distance counts."
)


@dataclass(frozen=True)
class Point:
    """A value that was not used for the fit, measured and simulated."""

    #: The load or the footprint.
    where: str
    measured: float
    simulated: float
    #: Range of the measured values of the neighbors, if the row counts against it.
    neighbors: tuple[float, float] | None = None

    @property
    def plain(self) -> float:
        """Factor between the simulated and the measured value, at least 1."""
        return _apart(self.simulated, self.measured)

    @property
    def factor(self) -> float:
        """Factor that counts: between the simulated value and the closest one that counts as equal, at least 1."""
        if self.neighbors is None:
            return self.plain
        low, high = self.neighbors
        return min(self.plain, _apart(self.simulated, min(max(self.simulated, low), high)))


def _apart(one: float, other: float) -> float:
    return max(one / other, other / one)


def _jumps(drive: Drive, index: int, kind: str) -> bool:
    """Return True if the measured p99 of a row differs from that of a neighbor by more than :data:`JUMP`."""
    at = STATISTICS.index("p99")
    ours = getattr(drive.loads[index], kind)[at]
    return any(_apart(ours, getattr(load, kind)[at]) > JUMP for load in _neighbors(drive, index))


def _neighbors(drive: Drive, index: int) -> Sequence[Any]:
    return drive.loads[max(0, index - 1) : index] + drive.loads[index + 1 : index + 2]


def _latency(drive: Drive, index: int, kind: str, at: int, simulated: float) -> Point:
    load = drive.loads[index]
    there = [float(getattr(neighbor, kind)[at]) for neighbor in _neighbors(drive, index)]
    neighbors = (min(there), max(there)) if _jumps(drive, index, kind) else None
    return Point(f"{load.asked:,} requests/s", float(getattr(load, kind)[at]), simulated, neighbors)


def points(drive: Drive, found: Mapping[int, Mapping[str, Any]]) -> dict[str, list[Point]]:
    """Return the points of each quantity that were not used for the fit.

    Parameters
    ----------
    found
        Simulated values by the rate that was asked for: ``rate``, and the :data:`STATISTICS` of ``read`` and
        ``write``. May be a part of the drive's rows.
    """
    chosen = found.keys() - drive.fitted
    predicted = [(index, load) for index, load in enumerate(drive.loads) if load.asked in chosen]
    shown = {
        "writes/s": [
            Point(f"{load.asked:,} requests/s", load.writes, float(found[load.asked]["rate"])) for _, load in predicted
        ]
    }
    for kind in ("read", "write"):
        for at, name in enumerate(STATISTICS):
            shown[f"{kind} {name}"] = [
                _latency(drive, index, kind, at, float(found[load.asked][kind][at])) for index, load in predicted
            ]
    return shown


def error(points: Sequence[Point]) -> float | None:
    """Return by how much points differ: the geometric mean of their factors, minus 1. None without points."""
    return _mean([point.factor for point in points])


def _mean(factors: Sequence[float]) -> float | None:
    return statistics.geometric_mean(factors) - 1 if factors else None


def missing() -> list[str]:
    """Return the mechanisms that the devices lack, as sentences that start with the names of the drives."""
    titles = {drive.device: drive.title for drive in DRIVES}
    return [f"{_listed([titles[device] for device in each.devices])}: {each.about}" for each in MISSING]


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _read(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def _loads(directory: Path, drive: Drive) -> dict[int, dict[str, Any]]:
    """Return simulated values of a drive from the data of the study.

    Raises
    ------
    ValueError
        The data has another row or measured value than the study.
    """
    found = {}
    for row in _read(directory / f"{drive.device}.csv"):
        asked = int(row["asked, 1/s"].rstrip("*"))
        pairs = {kind: [row[f"{kind} {name}, us"].split(" / ") for name in STATISTICS] for kind in ("read", "write")}
        simulated = {kind: [float(value) for _, value in pairs[kind]] for kind in pairs}
        found[asked] = {"rate": float(row["simulated"]), **simulated}
        load = next((load for load in drive.loads if load.asked == asked), None)
        measured = [tuple(int(value) for value, _ in pairs[kind]) for kind in pairs]
        if load is None or measured != [load.read, load.write]:
            raise ValueError(f"{drive.device}, {asked}: the data is not that of the study; run `make fidelity`")
    return found


def _footprints(directory: Path) -> dict[str, list[Point]]:
    """Return the amplification and the rates of random writes by footprint, from the data of the study."""
    shown: dict[str, list[Point]] = {"amplification": [], "rates": []}
    for row in _read(directory / "footprint.csv"):
        gib = int(row["GiB in use"].rstrip("*"))
        if gib in FITTED_FOOTPRINTS:
            continue
        columns = {"amplification": "simulated, with parity", "rates": "host MiB/s, simulated"}
        for (quantity, column), measured in zip(columns.items(), FOOTPRINTS[gib], strict=True):
            shown[quantity].append(Point(f"{gib} GiB in use", measured, float(row[column])))
    return shown


@dataclass(frozen=True)
class Judged:
    """A quantity of a drive."""

    quantity: str
    points: list[Point]

    @property
    def error(self) -> float | None:
        """The error as its bar has it, or None if nothing was measured."""
        if self.quantity != "amplification":
            return error(self.points)
        return max((abs(point.simulated - point.measured) for point in self.points), default=None)

    @property
    def plain(self) -> float:
        """The error without the rule of rows with a jump."""
        return (self.error if self.quantity == "amplification" else _mean([each.plain for each in self.points])) or 0.0

    @property
    def is_beyond(self) -> bool:
        """True if the error is above its bar."""
        return self.error is not None and self.error > BARS[self.quantity]

    @property
    def cell(self) -> str:
        """The error in the table, with a mark if it is above its bar."""
        if self.error is None:
            return "-"
        return _shown(self.quantity, self.error) + f" {SIGNS['disagrees']}" * self.is_beyond

    @property
    def sentence(self) -> str:
        """The error with the point that contributes most to it."""
        is_difference = self.quantity == "amplification"
        worst = max(self.points, key=lambda each: abs(each.simulated - each.measured) if is_difference else each.factor)
        return (
            f"{self.quantity} {_shown(self.quantity, self.error or 0.0)}, most at {worst.where} "
            f"({text_of(worst.measured)} measured, {text_of(worst.simulated)} simulated)"
        )


def _shown(quantity: str, value: float) -> str:
    return f"{value:.3f}" if quantity == "amplification" else f"{value:.1%}"


def judged(directory: Path) -> dict[str, list[Judged]]:
    """Return the quantities of all drives by their titles.

    Parameters
    ----------
    directory
        The data of the study, or of a small run with a part of the rows.
    """
    found = {}
    for drive in DRIVES:
        shown = points(drive, _loads(directory, drive))
        shown["rates"] = shown["writes/s"]
        if drive is DRIVES[0]:
            by_footprint = _footprints(directory)
            shown["rates"] = shown["rates"] + by_footprint["rates"]
            shown["amplification"] = by_footprint["amplification"]
        found[drive.title] = [Judged(quantity, shown.get(quantity, [])) for quantity in BARS]
    return found


@dataclass(frozen=True)
class Published:
    """An error of a simulator as its source prints it."""

    simulator: str
    quantity: str
    error: str
    drive: str
    source: str


_NVMEVIRT = "[Kim et al., FAST 2023](https://www.usenix.org/conference/fast23/presentation/kim-sang-hoon), Section 4.3"
_SWARMIO = "[Kim, Yeo and Rhu, 2026](https://arxiv.org/abs/2604.06668), Section VI-A"
_AMBER = "[Gouk et al., MICRO 2018](https://arxiv.org/abs/1811.01544), Section V-B"
_FEMU = "[Li et al., FAST 2018](https://www.usenix.org/conference/fast18/presentation/li), Section 3.2"
_VSSIM = "[Yoo et al., MSST 2013](https://doi.org/10.1109/MSST.2013.6558443), Section IV-B"

#: Errors that other simulators publish.
PUBLISHED = (
    Published("NVMeVirt", "performance", "up to 12.2%", "Intel P4800X", _NVMEVIRT),
    Published("NVMeVirt", "performance", "up to 11.8%", "Samsung 970 Pro", _NVMEVIRT),
    Published("NVMeVirt", "performance", "up to 3.3%", "prototype of a ZNS SSD", _NVMEVIRT),
    Published("NVMeVirt", "performance", "up to 3.8%", "Samsung KVSSD", _NVMEVIRT),
    Published(
        "NVMeVirt", "random reads/s of fio, 4 KB, over I/O depths", "1.2% on average", "Solidigm D7-PS1010", _SWARMIO
    ),
    Published(
        "SwarmIO", "random reads/s of fio, 4 KB, over I/O depths", "7.7% on average", "Solidigm D7-PS1010", _SWARMIO
    ),
    Published(
        "SwarmIO", "random reads/s of a GPU, over numbers of threads", "7.4% on average", "Solidigm D7-PS1010", _SWARMIO
    ),
    Published(
        "SwarmIO", "latency of random reads of a GPU, over numbers of threads", "2.8% on average",
        "Solidigm D7-PS1010", _SWARMIO,
    ),
    Published(
        "Amber (SimpleSSD 2.0)", "bandwidth over I/O depths, sequential and random", "accuracy of 72% to 96%",
        "Intel 750, Samsung 850 PRO, prototypes of Samsung Z-SSD and 983 DCT", _AMBER,
    ),
    Published(
        "Amber (SimpleSSD 2.0)", "latency over I/O depths, sequential and random", "accuracy of 64% to 94%",
        "Intel 750, Samsung 850 PRO, prototypes of Samsung Z-SSD and 983 DCT", _AMBER,
    ),
    Published(
        "Amber (SimpleSSD 2.0)", "bandwidth over block sizes of 4 KB to 1 MB", "6%; random reads of the Intel 750 14%",
        "Intel 750, Samsung 850 PRO, prototypes of Samsung Z-SSD and 983 DCT", _AMBER,
    ),
    Published(
        "FEMU", "latency of random reads of 16 threads, over channels and planes", "0.8% to 11.6%",
        "OpenChannel-SSD", _FEMU,
    ),
    Published("FEMU", "latency of filebench", "0.5% to 38%", "OpenChannel-SSD", _FEMU),
    Published("VSSIM", "sequential reads and writes", "within 3%", "Intel X25-M", _VSSIM),
    Published("VSSIM", "mean latency of reads and of writes", "9% and 5.4%", "Intel X25-M", _VSSIM),
    Published(
        "VSSIM", "random reads/s and writes/s of IOzone, 4 KB", "4.4 instead of 4.1 thousand, and 0.7 instead of 0.9",
        "Intel X25-M", _VSSIM,
    ),
    Published(
        "VNSIM", "performance", "6.2% to 8.9%", "Samsung 950 Pro",
        "[Yoo and Won, Journal of KIISE 2018](https://doi.org/10.5626/JOK.2018.45.5.427), abstract",
    ),
    Published(
        "MQSim", "performance", "6% to 18%", "four SSDs",
        "[Tavakkol et al., FAST 2018](https://www.usenix.org/conference/fast18/presentation/tavakkol), abstract",
    ),
    Published(
        "SSDsim", "mean response time of four workloads", "2% to 2.9%", "prototype of the authors, with an FPGA",
        "Hu et al., ICS 2011, Section 3.1",
    ),
)  # fmt: skip

#: Simulators for which no published error was found.
NOT_FOUND = ("SimpleSSD 1", "FlashSim", "the SSD extension of DiskSim")


def page(directory: Path) -> str:
    """Return the page in Markdown, from the data of the study.

    Parameters
    ----------
    directory
        The directory with the files of the study, ``docs/studies/ssdiq2025``.

    Raises
    ------
    ValueError
        The data is not that of the study.
    """
    found = judged(directory)
    for drive in DRIVES:
        rows, expected = len(_loads(directory, drive)), len(drive.loads)
        if rows != expected:
            raise ValueError(f"{drive.device}: {rows} rows, expected {expected}; run `make fidelity`")
    return "\n\n".join(_blocks(found)) + "\n"


def _blocks(found: Mapping[str, Sequence[Judged]]) -> Iterator[str]:
    yield "<!-- Written by `make fidelity`: changes made here are lost. -->"
    yield "# Fidelity"
    yield (
        "How far built-in devices are from the drives that they model. [ssdiq2025](studies/ssdiq2025.md) describes the "
        "drives, the loads and the fit, and has each point. `make fidelity` repeats the runs, and writes both pages."
    )
    known = [each for quantities in found.values() for each in quantities if each.error is not None]
    within = sum(not each.is_beyond for each in known)
    yield (
        "The table has the errors at points that were not used for the fit. An error is the geometric mean over the "
        "points of the factor between simulated and measured values, less 1. That of the amplification is the largest "
        f"difference. The first row has the bars. {SIGNS['disagrees']} marks errors above their bar: {within} of "
        f"{len(known)} are within."
    )
    head = ["Drive", "Loads", *(f"{quantity[0].upper()}{quantity[1:]}" for quantity in BARS)]
    bars = ["Bar", "", *(f"{bar:g}" if quantity == "amplification" else f"{bar:.0%}" for quantity, bar in BARS.items())]
    errors = []
    for title, quantities in found.items():
        loads = next(len(each.points) for each in quantities if each.quantity == "read mean")
        errors.append([title, str(loads), *(each.cell for each in quantities)])
    yield grid(head, [bars, *errors])
    yield (
        f"*Rates* are writes/s. Those of the {DRIVES[0].title} are also MiB/s of random writes by footprint, as is its "
        "amplification. The study has no amplification of the other drives."
    )
    jumps = []
    for kind in ("read", "write"):
        rows = [point for each in known if each.quantity == f"{kind} p99" for point in each.points]
        jumps.append(f"the {kind}s of {sum(point.neighbors is not None for point in rows)} of {len(rows)} rows")
    plain = sum(each.plain <= BARS[each.quantity] for each in known)
    yield f"{RULE} The rule applies to {_listed(jumps)}. Without it, {plain} errors would be within their bars."
    yield "## Errors above their bars"
    beyond = {title: [each.sentence for each in quantities if each.is_beyond] for title, quantities in found.items()}
    lines = [f"- {title}: {'; '.join(sentences)}." for title, sentences in beyond.items() if sentences]
    yield "\n".join(lines) if lines else "None."
    yield "## Missing mechanisms"
    yield "What the drives do, and the devices cannot, as far as the measurements show it:"
    yield "\n".join(f"- {each}" for each in missing())
    yield "## Other simulators"
    yield (
        "Errors that simulators publish, as their sources print them. Their drives, loads and quantities are not those "
        f"of the table above. None was found for {_listed(NOT_FOUND)}."
    )
    head = ["Simulator", "Quantity", "Published error", "Real drive", "Source"]
    yield grid(head, [[each.simulator, each.quantity, each.error, each.drive, each.source] for each in PUBLISHED])
