"""Workloads of the studies. All parameters of generated workloads are in this file.

We may not distribute the traces of the papers. If the user has them (``traces=``), they are replayed. Otherwise,
workloads are generated with the moments that the papers contain. Parameters that the papers leave open (footprint,
locality, burstiness, distributions of sizes and gaps) were fixed before the first full run. They are the same for all
figures, and are not tuned. Studies repeat each verdict at half and twice the footprint, and with requests in batches.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from floatgate._files import draft
from floatgate.exceptions import TraceError
from floatgate.workload import Trace

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: Size of the area that generated workloads use, in bytes from the start of the device, and its maximum.
FOOTPRINT = 48 << 20
LARGEST_FOOTPRINT = 96 << 20
#: Workloads with another size: the multiple of 12 MiB with which blind copy-back invalidates about as many more pages
#: as Section 4.1.1 of hu2013 prints. For Ex, it is the size above. Figure "footprints" of hu2013 has the runs.
FOOTPRINTS = {"Dev": 84 << 20, "MSN": 84 << 20}
#: Size of a region in bytes. Regions are ranked by use: the region of rank k gets a share ~ k ** -LOCALITY.
REGION = 64 << 10
#: Exponent of this distribution (Zipf). Reads and writes have the same ranking.
LOCALITY = 1.0
#: Share of the requests that start where the previous one of their kind ended.
SEQUENTIAL = 0.2
#: Time between requests of a batch, in microseconds.
BATCH_GAP_US = 20
#: Number of requests of a workload, and in a quick study.
REQUESTS = 100_000
QUICK_REQUESTS = 1_500
#: How workloads are generated, for the pages. docs/studies/index.md has it, too.
ABOUT = (
    "Real traces are replayed if available. Otherwise, workloads are generated with the moments of hu2011, Table 1, "
    f"over {FOOTPRINT >> 20} MiB ("
    + ", ".join(f"{name} {size >> 20}" for name, size in FOOTPRINTS.items())
    + f"; twice the footprint at most {LARGEST_FOOTPRINT >> 20}). The footprints of Dev, MSN and Ex are fitted to the "
    "invalidated pages of hu2013, Section 4.1.1. "
    f"The region of {REGION >> 10} KiB of rank k gets a share ~ k^-{LOCALITY:g}. "
    f"{SEQUENTIAL:.0%} of the requests continue where the previous one ended. Intervals are exponential; in batches, "
    f"requests are {BATCH_GAP_US} us apart. Sizes are geometric: the share printed in the paper are multiples of 4 KiB "
    "at aligned addresses, and the others are sectors at any address. The table prints all intervals in ms, but those "
    "of the last four are us, because a cut of the Develop trace is 300 s long. All figures use the same workloads. "
    "They were changed twice, after runs whose verdicts had been seen: garbage collection found only invalid blocks, "
    "and later, footprints were fitted."
)
#: Maximum size of a request, in bytes.
LARGEST = 1 << 20
#: Seed of all random numbers.
SEED = 2011

#: Must be raised if the same parameters generate other requests.
_GENERATION = 1

#: Distributions of request sizes.
Sizes: TypeAlias = Literal["geometric", "bimodal"]
#: Difference of the two bimodal sizes in KiB.
_LARGER_KIB = 20

_SECTOR = 512
_PAGE = 4096


@dataclass(frozen=True)
class Moments:
    """Moments of a trace in hu2011: Table 1, and Section 4.1 for the share of multiples of 4 KiB.

    The table has milliseconds for all intervals. Those of Microsoft's four traces are microseconds: the servers of the
    Develop trace receive hundreds of requests per second, not one in two seconds.
    """

    name: str
    title: str
    read_kib: float
    write_kib: float
    read_share: float
    interval_us: float
    #: Share of the writes whose size is a multiple of 4 KiB, if the paper has it. It is used for reads, too.
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
    """A synthetic workload of hu2011, Table 6: equal sizes and intervals, addresses uniform at multiples of 4 KiB.

    The table only says "30us (75%)". docs/model/parallelism.md compares interpretations. Here all intervals are equal.
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

#: Names of the files of real traces, ignoring case, and options to read them.
FILES: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "Fin1": (("fin1*", "financial1*"), {}),
    "Fin2": (("fin2*", "financial2*"), {}),
    "Web": (("websearch*", "wsrch*"), {}),
    "Ex": (("exchange*",), {}),
    "MSN": (("msn*",), {}),
    # Cuts of this trace in SSDsim's columns have times in microseconds instead of nanoseconds.
    "Dev": (("develop*", "dtrs*", "devtools*"), {"format": "ssdsim", "time_unit": "us"}),
    "Rad": (("radius*",), {}),
}


@dataclass(frozen=True)
class Made:
    """A workload, and its origin."""

    trace: Trace
    #: Origin of the trace, for the page.
    origin: str
    real: bool


def workload(
    name: str,
    directory: Path,
    *,
    requests: int,
    footprint: float = 1.0,
    batch: int = 1,
    sizes: Sizes = "geometric",
    seed: int = 0,
    traces: Path | None = None,
) -> Made:
    """Return a workload of the papers: the real trace if available, otherwise a generated one.

    Parameters
    ----------
    name
        Abbreviation in hu2011, Table 1 or 6.
    directory
        Directory for generated workloads, in the format of SSDsim's traces.
    requests
        Maximum number of requests.
    footprint
        Factor for the size of the area, which is at most :data:`LARGEST_FOOTPRINT`.
    batch
        Requests per batch, :data:`BATCH_GAP_US` apart; 1 for single requests. The mean interval is the same.
    sizes
        Distribution of the sizes. That of writes is always geometric. Table 6 has a size for each workload.
    seed
        Number of the random sequence. Each gives other requests with the same moments.
    traces
        A directory with real traces, named as in :data:`FILES`.

    Raises
    ------
    TraceError
        The directory of the traces does not exist.
    """
    found = _found(name, traces) if traces is not None else None
    if found is not None:
        reading = {"format": None, **FILES[name][1]} if _is_ssdsim(found) else {}
        trace = Trace(found, fit="wrap", limit=requests, name=name, **reading)  # type: ignore[arg-type]
        return Made(trace, f"the trace {found.name}, at most the first {requests} requests", real=True)
    kind = "" if sizes == "geometric" else f"-{sizes}"
    place = directory / f"{name}-{requests}-{footprint:g}-{batch}{kind}-{seed}-{_digest()}.ascii"
    if not place.is_file():
        directory.mkdir(parents=True, exist_ok=True)
        with draft(place) as partial:
            _write(partial, generate(name, requests, footprint, batch, seed, sizes=sizes))
    return Made(Trace(place, format="ssdsim", name=name), "generated", real=False)


def _is_ssdsim(path: Path) -> bool:
    return ".csv" not in path.name and ".spc" not in path.name


def _found(name: str, traces: Path) -> Path | None:
    if not traces.is_dir():
        raise TraceError(f"directory {traces} does not exist; --traces needs the directory of the traces")
    patterns = FILES.get(name, ((), {}))[0]
    files = sorted(file for file in traces.iterdir() if file.is_file())
    return next((file for pattern in patterns for file in files if Path(file.name.lower()).match(pattern)), None)


def _digest() -> str:
    """Return a digest of all parameters, which is part of the name of a workload."""
    said = (
        REGION,
        LOCALITY,
        SEQUENTIAL,
        FOOTPRINT,
        FOOTPRINTS,
        LARGEST_FOOTPRINT,
        LARGEST,
        SEED,
        TABLE_1,
        TABLE_6,
        _GENERATION,
        BATCH_GAP_US,
    )
    return hashlib.sha256(repr(said).encode()).hexdigest()[:8]


@dataclass(frozen=True)
class Requests:
    """Requests: arrivals in nanoseconds, addresses and sizes in sectors."""

    arrival: NDArray[np.int64]
    read: NDArray[np.bool_]
    lba: NDArray[np.int64]
    sectors: NDArray[np.int64]

    def moments(self) -> dict[str, float]:
        """Return the values of Table 1: mean sizes in KiB, the share of reads, the mean interval in microseconds."""
        kib = self.sectors / 2
        return {
            "read_kib": float(kib[self.read].mean()) if self.read.any() else 0.0,
            "write_kib": float(kib[~self.read].mean()) if (~self.read).any() else 0.0,
            "read_share": float(self.read.mean()),
            "interval_us": float(self.arrival[-1]) / max(1, len(self.arrival) - 1) / 1e3,
        }


def area(name: str, footprint: float = 1.0) -> int:
    """Return the size of the area that a workload uses, in bytes."""
    return min(LARGEST_FOOTPRINT, int(FOOTPRINTS.get(name, FOOTPRINT) * footprint))


def generate(
    name: str, requests: int, footprint: float = 1.0, batch: int = 1, seed: int = 0, *, sizes: Sizes = "geometric"
) -> Requests:
    """Generate the requests of a workload. They are the same on every machine."""
    import numpy as np  # noqa: PLC0415 (not needed to list studies)

    random = np.random.default_rng([SEED + seed, *name.encode()])
    size = area(name, footprint)
    if name in TABLE_6:
        return _intense(TABLE_6[name], requests, size, random)
    moments = TABLE_1[name]
    arrival = np.cumsum(random.exponential(moments.interval_us * 1e3, requests)).astype(np.int64)
    arrival = _batches(arrival - arrival[0], batch)
    read = random.random(requests) < moments.read_share
    mean = np.where(read, moments.read_kib, moments.write_kib)
    whole = random.random(requests) < (moments.multiples or 0.0)
    sectors = np.where(whole, _multiples(mean, random), _others(mean, random, moments.multiples is not None))
    if sizes == "bimodal":
        sectors = np.where(read, _two_sizes(mean, random), sectors)
    sectors = np.minimum(sectors, LARGEST // _SECTOR)
    return Requests(arrival, read, _places(sectors, read, size, random), sectors)


def _batches(arrival: NDArray[np.int64], batch: int) -> NDArray[np.int64]:
    """Group arrivals into batches, each at the time of its first request. The mean interval stays the same."""
    import numpy as np  # noqa: PLC0415

    index = np.arange(len(arrival))
    first = index // batch * batch
    return np.sort(arrival[first] + (index - first) * BATCH_GAP_US * 1000)


def _multiples(mean_kib: NDArray[np.float64], random: np.random.Generator) -> NDArray[np.int64]:
    """Draw geometric sizes in multiples of 4 KiB with the given mean, at least 4 KiB."""
    import numpy as np  # noqa: PLC0415

    return 8 * random.geometric(1 / np.maximum(1.0, mean_kib / 4)).astype(np.int64)


def _others(mean_kib: NDArray[np.float64], random: np.random.Generator, apart: bool) -> NDArray[np.int64]:
    """Draw geometric sizes in sectors with the given mean. With `apart`, no size is a multiple of 4 KiB."""
    import numpy as np  # noqa: PLC0415

    sectors = random.geometric(1 / np.maximum(1.0, mean_kib * 2)).astype(np.int64)
    step = np.where(random.random(len(sectors)) < 0.5, 1, -1)
    return np.where(apart & (sectors % 8 == 0), sectors + step, sectors)


def _two_sizes(mean_kib: NDArray[np.float64], random: np.random.Generator) -> NDArray[np.int64]:
    """Draw one of two sizes with the given mean: the next lower multiple of 4 KiB, or 2 KiB, and 20 KiB more."""
    import numpy as np  # noqa: PLC0415

    small = np.maximum(2, mean_kib // 4 * 4)
    is_large = random.random(len(mean_kib)) < (mean_kib - small) / _LARGER_KIB
    return (2 * (small + np.where(is_large, _LARGER_KIB, 0))).astype(np.int64)


def _places(
    sectors: NDArray[np.int64], read: NDArray[np.bool_], size: int, random: np.random.Generator
) -> NDArray[np.int64]:
    """Draw the addresses of requests: multiples of 4 KiB are aligned to 4 KiB, others to sectors."""
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
    """Write a trace in SSDsim's format: nanoseconds, device, sector, sectors, 1 for a read."""
    columns = (requests.arrival.tolist(), requests.lba.tolist(), requests.sectors.tolist(), requests.read.tolist())
    with place.open("w", encoding="ascii") as file:
        for arrival, lba, sectors, read in zip(*columns, strict=True):
            file.write(f"{arrival} 0 {lba} {sectors} {int(read)}\n")
