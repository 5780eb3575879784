"""What the studies run: every parameter of every generated workload stands here, and nowhere else.

The traces of the papers are not ours to give away. Where the user has them (``traces=``), they are replayed; else a
workload is made with the moments that the papers print. What the papers leave open (footprint, locality, burstiness,
how sizes and gaps are spread) was fixed before the first whole run, is the same for all figures, and is not tuned:
studies repeat each verdict at half and at twice the footprint, and with requests in batches.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from floatgate._files import draft
from floatgate.exceptions import TraceError
from floatgate.workload import Trace

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: Where the requests of a generated workload go: so many bytes from the beginning of the device.
FOOTPRINT = 48 << 20
#: Regions of so many bytes are ranked by how often they are used: the region of rank k gets a share ~ k ** -LOCALITY.
REGION = 64 << 10
#: The exponent of that law (Zipf's). Reads and writes have one ranking.
LOCALITY = 1.0
#: The share of the requests that start where the last one of their kind ended.
SEQUENTIAL = 0.2
#: Requests of a batch come so many microseconds after each other, where they come in batches.
BATCH_GAP_US = 20
#: Requests of a workload, and in a quick study.
REQUESTS = 100_000
QUICK_REQUESTS = 1_500
#: No request is larger.
LARGEST = 1 << 20
#: Of all random numbers.
SEED = 2011

#: Raised when the same parameters make other requests.
_GENERATION = 1

_SECTOR = 512
_PAGE = 4096


@dataclass(frozen=True)
class Moments:
    """What hu2011 prints of a trace: Table 1, and Section 4.1 for the share of the writes.

    The table has milliseconds for all intervals. Those of the four traces of Microsoft's are microseconds: the Develop
    trace is of servers that take hundreds of requests a second, and would have one in two seconds.
    """

    name: str
    title: str
    read_kib: float
    write_kib: float
    read_share: float
    interval_us: float
    #: The share of the writes that are of 4 KiB or a multiple, where it is printed; it is taken for reads too.
    multiples: float | None = None


#: hu2011, Table 1.
TABLE_1 = {
    moments.name: moments
    for moments in (
        Moments("Fin1", "Financial1", 2.25, 3.75, 0.232, 8190),
        Moments("Fin2", "Financial2", 2.3, 2.9, 0.823, 11080),
        Moments("Web", "Websearch", 15.15, 8.6, 0.999, 2990),
        Moments("Ex", "Exchange", 15.15, 14.5, 0.308, 1179, 0.743),
        Moments("MSN", "MSN", 9.6, 11.1, 0.672, 513, 0.786),
        Moments("Dev", "Develop", 18.45, 10.95, 0.886, 1985, 0.992),
        Moments("Rad", "Radius", 124.25, 12.45, 0.171, 9475, 0.334),
    )
}


@dataclass(frozen=True)
class Intense:
    """A synthetic workload of hu2011, Table 6: equal sizes and intervals, places uniform at multiples of 4 KiB.

    The table says "30us (75%)" and no more; docs/model/parallelism.md compares readings. Here all intervals are equal.
    """

    name: str
    write_share: float
    kib: float
    interval_us: float


#: hu2011, Table 6.
TABLE_6 = {
    intense.name: intense
    for intense in (
        Intense("Syn1", 1.0, 16, 30),
        Intense("Syn2", 0.25, 16, 30),
        Intense("Syn3", 1.0, 20, 200),
        Intense("Syn4", 0.25, 20, 200),
    )
}

#: How the files of the real traces are called, without regard to case, and how they are read.
FILES: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "Fin1": (("fin1*", "financial1*"), {}),
    "Fin2": (("fin2*", "financial2*"), {}),
    "Web": (("websearch*", "wsrch*"), {}),
    "Ex": (("exchange*",), {}),
    "MSN": (("msn*",), {}),
    # Cuts of this trace in SSDsim's columns have microseconds in the place of nanoseconds.
    "Dev": (("develop*", "dtrs*", "devtools*"), {"format": "ssdsim", "time_unit": "us"}),
    "Rad": (("radius*",), {}),
}


@dataclass(frozen=True)
class Made:
    """A workload, and what was made of it."""

    trace: Trace
    #: Where it comes from, in words.
    origin: str
    real: bool


def workload(
    name: str,
    directory: Path,
    *,
    requests: int,
    footprint: float = 1.0,
    batch: int = 1,
    seed: int = 0,
    traces: Path | None = None,
) -> Made:
    """Give a workload of the papers: the real trace if it is there, else a generated one.

    Parameters
    ----------
    name
        Its abbreviation in hu2011, Table 1 or 6.
    directory
        Where generated workloads are written, in the format of SSDsim's traces.
    requests
        Requests after which it ends.
    footprint
        What :data:`FOOTPRINT` is multiplied by.
    batch
        Requests that come together, :data:`BATCH_GAP_US` apart; 1 for each by itself. The mean interval is the same.
    seed
        Number of the random sequence; each gives other requests with the same moments.
    traces
        A directory with the real traces, called as :data:`FILES` has them.

    Raises
    ------
    TraceError
        The directory of the traces is none.
    """
    found = _found(name, traces) if traces is not None else None
    if found is not None:
        reading = {"format": None, **FILES[name][1]} if _is_ssdsim(found) else {}
        trace = Trace(found, fit="wrap", limit=requests, name=name, **reading)  # type: ignore[arg-type]
        return Made(trace, f"the trace {found.name}, its first {requests} requests at most", real=True)
    place = directory / f"{name}-{requests}-{footprint:g}-{batch}-{seed}-{_digest()}.ascii"
    if not place.is_file():
        directory.mkdir(parents=True, exist_ok=True)
        with draft(place) as partial:
            _write(partial, generate(name, requests, footprint, batch, seed))
    return Made(Trace(place, format="ssdsim", name=name), "generated", real=False)


def _is_ssdsim(path: Path) -> bool:
    return ".csv" not in path.name and ".spc" not in path.name


def _found(name: str, traces: Path) -> Path | None:
    if not traces.is_dir():
        raise TraceError(f"there is no directory {traces}: --traces takes the one that the traces are in")
    patterns = FILES.get(name, ((), {}))[0]
    files = sorted(file for file in traces.iterdir() if file.is_file())
    return next((file for pattern in patterns for file in files if Path(file.name.lower()).match(pattern)), None)


def _digest() -> str:
    """Name all parameters, so that a workload of other ones has another name."""
    said = (REGION, LOCALITY, SEQUENTIAL, FOOTPRINT, LARGEST, SEED, TABLE_1, TABLE_6, _GENERATION, BATCH_GAP_US)
    return hashlib.sha256(repr(said).encode()).hexdigest()[:8]


@dataclass(frozen=True)
class Requests:
    """Requests: arrivals in nanoseconds, places and sizes in sectors."""

    arrival: NDArray[np.int64]
    read: NDArray[np.bool_]
    lba: NDArray[np.int64]
    sectors: NDArray[np.int64]

    def moments(self) -> dict[str, float]:
        """Give what Table 1 has: sizes in KiB, the share of reads, the mean interval in microseconds."""
        kib = self.sectors / 2
        return {
            "read_kib": float(kib[self.read].mean()) if self.read.any() else 0.0,
            "write_kib": float(kib[~self.read].mean()) if (~self.read).any() else 0.0,
            "read_share": float(self.read.mean()),
            "interval_us": float(self.arrival[-1]) / max(1, len(self.arrival) - 1) / 1e3,
        }


def generate(name: str, requests: int, footprint: float = 1.0, batch: int = 1, seed: int = 0) -> Requests:
    """Make the requests of a workload: the same ones on every machine."""
    import numpy as np  # noqa: PLC0415 (not needed to list studies)

    random = np.random.default_rng([SEED + seed, *name.encode()])
    size = int(FOOTPRINT * footprint)
    if name in TABLE_6:
        return _intense(TABLE_6[name], requests, size, random)
    moments = TABLE_1[name]
    arrival = np.cumsum(random.exponential(moments.interval_us * 1e3, requests)).astype(np.int64)
    arrival = _batches(arrival - arrival[0], batch)
    read = random.random(requests) < moments.read_share
    mean = np.where(read, moments.read_kib, moments.write_kib)
    whole = random.random(requests) < (moments.multiples or 0.0)
    sectors = np.where(whole, _multiples(mean, random), _others(mean, random, moments.multiples is not None))
    sectors = np.minimum(sectors, LARGEST // _SECTOR)
    return Requests(arrival, read, _places(sectors, read, size, random), sectors)


def _batches(arrival: NDArray[np.int64], batch: int) -> NDArray[np.int64]:
    """Let requests come in batches, each when its first one would; the mean interval stays the same."""
    import numpy as np  # noqa: PLC0415

    index = np.arange(len(arrival))
    first = index // batch * batch
    return np.sort(arrival[first] + (index - first) * BATCH_GAP_US * 1000)


def _multiples(mean_kib: NDArray[np.float64], random: np.random.Generator) -> NDArray[np.int64]:
    """Draw sizes of whole 4 KiB, geometric, with the mean; 4 KiB where that is less."""
    import numpy as np  # noqa: PLC0415

    return 8 * random.geometric(1 / np.maximum(1.0, mean_kib / 4)).astype(np.int64)


def _others(mean_kib: NDArray[np.float64], random: np.random.Generator, apart: bool) -> NDArray[np.int64]:
    """Draw sizes of whole sectors, geometric, with the mean; with `apart` none is a multiple of 4 KiB."""
    import numpy as np  # noqa: PLC0415

    sectors = random.geometric(1 / np.maximum(1.0, mean_kib * 2)).astype(np.int64)
    step = np.where(random.random(len(sectors)) < 0.5, 1, -1)
    return np.where(apart & (sectors % 8 == 0), sectors + step, sectors)


def _places(
    sectors: NDArray[np.int64], read: NDArray[np.bool_], size: int, random: np.random.Generator
) -> NDArray[np.int64]:
    """Place requests: whole pages at whole pages, others at any sector."""
    import numpy as np  # noqa: PLC0415

    regions = size // REGION
    weights = np.arange(1, regions + 1) ** -LOCALITY
    ranks = np.searchsorted(np.cumsum(weights) / weights.sum(), random.random(len(sectors)))
    region = random.permutation(regions)[np.minimum(ranks, regions - 1)]
    within = random.integers(0, REGION // _SECTOR, len(sectors))
    aligned = sectors % 8 == 0
    start = region * (REGION // _SECTOR) + np.where(aligned, within // 8 * 8, within)
    goes_on = random.random(len(sectors)) < SEQUENTIAL
    end = size // _SECTOR
    last = {False: 0, True: 0}
    for index in np.flatnonzero(np.ones_like(read)):
        kind = bool(read[index])
        at = last[kind] if goes_on[index] else int(start[index])
        at = -(-at // 8) * 8 if aligned[index] else at
        length = int(sectors[index])
        if at + length > end:
            at = (end - length) // 8 * 8 if aligned[index] else end - length
        start[index] = at
        last[kind] = at + length
    return start.astype(np.int64)


def _intense(moments: Intense, requests: int, size: int, random: np.random.Generator) -> Requests:
    import numpy as np  # noqa: PLC0415

    arrival = (np.arange(requests) * moments.interval_us * 1e3).astype(np.int64)
    read = random.random(requests) >= moments.write_share
    sectors = np.full(requests, int(moments.kib * 2), dtype=np.int64)
    places = random.integers(0, (size - int(moments.kib * 1024)) // _PAGE + 1, requests) * 8
    return Requests(arrival, read, places.astype(np.int64), sectors)


def _write(place: Path, requests: Requests) -> None:
    """Write a trace as SSDsim has them: nanoseconds, device, sector, sectors, 1 for a read."""
    columns = (requests.arrival.tolist(), requests.lba.tolist(), requests.sectors.tolist(), requests.read.tolist())
    with place.open("w", encoding="ascii") as file:
        for arrival, lba, sectors, read in zip(*columns, strict=True):
            file.write(f"{arrival} 0 {lba} {sectors} {int(read)}\n")
