"""Common parts of the study of Yoo et al. 2013: scenarios, SSDs and traces.

Table IV has the number of requests, the share of reads, the bytes and the share of sequential writes of each scenario.
It has no request sizes, footprints, localities or times. The values in this file were fixed before the first run.
"""

from __future__ import annotations

import csv
import lzma
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from floatgate._files import draft
from floatgate.exceptions import TraceError
from floatgate.workload import Trace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from floatgate.studies.study import Setting

#: Share of writes between 4 and 64 KiB (Section IV-D: 76% are outside), and their size in KiB.
MEDIUM_SHARE, MEDIUM = 0.24, 32
SMALL = 4
#: Sizes of large requests in KiB: the first one is used with which the mean of Table IV is possible.
LARGE = (128, 512, 1024)
#: Bytes written to each address on average, which gives the footprint.
REWRITES = 2.0
#: Share of random requests that access the first fifth of the footprint.
HOT = 80
#: A quick run has this share of the requests and of the footprint.
QUICK = 1 / 512

#: Pages are placed in the channels in turn, by which channel is idle, or by address.
IN_TURN = {"allocation": {"dynamic": {"order": "s2"}}}
IN_ORDER = {"allocation": {"static": {"order": "s2"}}}

#: Flash chips with log blocks of their own, and planes of SSD-D.
CHIPS = 4
PLANES = 8


@dataclass(frozen=True)
class Scenario:
    """A row of Table IV."""

    name: str
    title: str
    requests: int
    #: Shares in percent.
    reads: float
    sequential: float
    #: In 10^9 bytes.
    read_gb: float
    write_gb: float

    def mean_kib(self, kind: str) -> float:
        """Return the mean size of reads or writes in KiB."""
        share, size = (self.reads, self.read_gb) if kind == "read" else (100 - self.reads, self.write_gb)
        return size * 1e9 / (self.requests * share / 100) / 1024

    def sizes(self, kind: str) -> dict[int, int]:
        """Return the sizes of reads or writes in KiB, with their shares in percent."""
        medium = MEDIUM_SHARE if kind == "write" else 0.0
        mean = self.mean_kib(kind)
        rest = 1 - medium
        large = next((size for size in LARGE if medium * MEDIUM + rest * size >= mean), LARGE[-1])
        small = (medium * MEDIUM + rest * large - mean) / (large - SMALL)
        shares = {SMALL: round(100 * max(0.0, min(rest, small))), MEDIUM: round(100 * medium)}
        shares = {size: share for size, share in shares.items() if share}
        return shares | {large: 100 - sum(shares.values())}


#: Table IV, in the order of Figure 8.
TABLE_4 = {
    scenario.name: scenario
    for scenario in (
        Scenario("XEN", "compile Xen", 19_982, 79.0, 64.5, 0.23, 1.45),
        Scenario("WIN7", "install Windows 7", 286_472, 62.1, 45.9, 1.81, 10.65),
        Scenario("MS", "install MS Office", 50_008, 26.5, 53.2, 0.62, 4.55),
        Scenario("PS", "install Photoshop", 56_834, 23.2, 48.3, 1.49, 4.77),
        Scenario("UBT", "install Ubuntu 10.04", 24_010, 30.1, 64.0, 0.35, 6.16),
        Scenario("VD", "copy a video file", 13_381, 12.1, 86.2, 0.12, 2.52),
        Scenario("MP3", "copy 100 MP3 files", 8_267, 19.6, 96.8, 0.10, 1.55),
    )
}
INSTALLATIONS = ("XEN", "WIN7", "MS", "PS", "UBT")
COPIES = ("VD", "MP3")

#: Random writes of IOzone: 4 KiB over 512 MiB (Section IV-B), which a file of this size contains.
IOZONE_MIB = 512
IOZONE_WRITES = 60_000


@dataclass(frozen=True)
class Reading:
    """Choices that Table IV leaves open."""

    hot: int | None = HOT
    large: int | None = None
    depth: int = 1
    rewrites: float = REWRITES
    #: True if each address is written once, which no job can describe.
    once: bool = False
    #: MiB by which the places of runs that are written once differ from the order of writing. None: any place.
    window: int | None = None


STANDARD = Reading()


def scenario(setting: Setting, name: str, reading: Reading = STANDARD) -> str | Trace:
    """Return a scenario of Table IV: one request at a time, as an IDE disk has them."""
    row = TABLE_4[name]
    if setting.once and reading == replace(STANDARD, depth=reading.depth):
        reading = replace(reading, once=True, window=setting.window)
    if reading.once:
        return _once(setting, row, reading)
    scale = QUICK if setting.quick else 1.0
    mib = max(8, round(row.write_gb * 1e9 / 2**20 / reading.rewrites * setting.footprint * scale))
    sizes = {kind: row.sizes(kind) for kind in ("read", "write")}
    if reading.large is not None:
        sizes["write"] = {reading.large: 100}
    split = ",".join(":".join(f"{size}k/{share}" for size, share in sizes[kind].items()) for kind in sizes)
    number = round(row.requests * scale)
    if reading.large is not None:
        number = round(number * row.mean_kib("write") / reading.large)
    where = "" if reading.hot is None else f" random_distribution=zoned:{reading.hot}/20:{100 - reading.hot}/80"
    return (
        f"name={name} rw=randrw rwmixread={round(row.reads)} bssplit={split} "
        f"percentage_random={100 - row.sequential:.0f} blockalign=4k norandommap=1{where} size={mib}m "
        f"io_size=100000% iodepth={reading.depth} number_ios={max(20, number)}"
    )


def _once(setting: Setting, row: Scenario, reading: Reading) -> Trace:
    """Return a scenario that writes each address once. Runs of sequential writes have random places.

    With a window, their places are in the order of writing, except for runs within that distance.
    """
    within = "" if reading.window is None else f"-within-{reading.window}"
    place = setting.directory_of("workloads") / f"{row.name}-once{within}{'-quick' if setting.quick else ''}.ascii"
    if not place.is_file():
        requests = max(20, round(row.requests * (QUICK if setting.quick else 1.0)))
        with draft(place) as partial, partial.open("w", encoding="ascii") as file:
            file.writelines(_lines_once(row, requests, reading.window))
    return Trace(place, format="ssdsim", fit="wrap", replay=f"depth={reading.depth}", name=row.name)


def _lines_once(row: Scenario, requests: int, window: int | None) -> Iterator[str]:
    import numpy as np  # noqa: PLC0415 (not needed to list studies)

    drawn = np.random.default_rng([2013, *row.name.encode()])
    is_read = drawn.random(requests) < row.reads / 100
    writes = int((~is_read).sum())
    sizes = row.sizes("write")
    sectors = 2 * drawn.choice(list(sizes), writes, p=np.array(list(sizes.values())) / 100)
    # A run starts with a write that does not continue the previous one.
    run = np.cumsum(drawn.random(writes) >= row.sequential / 100)
    lengths = np.bincount(run, weights=sectors).astype(np.int64)
    if window is None:
        order = drawn.permutation(len(lengths))
    else:
        order = np.argsort(np.cumsum(lengths) - lengths + drawn.random(len(lengths)) * window * 2**20 / 512)
    starts = np.empty_like(lengths)
    starts[order] = np.cumsum(lengths[order]) - lengths[order]
    before = np.cumsum(sectors) - sectors
    first = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    lba = starts[run] + before - first[run]
    sizes = row.sizes("read")
    amounts = 2 * drawn.choice(list(sizes), requests, p=np.array(list(sizes.values())) / 100)
    done = 0
    for index in range(requests):
        if is_read[index]:
            # Data that was written before.
            at, amount = lba[int(drawn.integers(max(1, done)))] if writes else 0, amounts[index]
        else:
            at, amount = lba[done], sectors[done]
            done += 1
        yield f"{index} 0 {at} {amount} {int(is_read[index])}\n"


def iozone(setting: Setting, depth: int = 1) -> str:
    """Return random writes of 4 KiB."""
    scale = QUICK * 16 if setting.quick else 1.0
    return (
        f"name=random rw=randwrite bs=4k norandommap=1 size={max(8, round(IOZONE_MIB * scale))}m io_size=100000% "
        f"iodepth={depth} number_ios={round(IOZONE_WRITES * scale)}"
    )


def written(setting: Setting) -> str:
    """Return the state before random writes: the file of IOzone was written."""
    return f"rw=write bs=128k size={max(8, round(IOZONE_MIB * (QUICK * 16 if setting.quick else 1.0)))}m"


def fast(
    randoms: int = 16,
    in_order: int = 4,
    *,
    as_is: bool = False,
    striped_data: bool = False,
    in_turn: bool = False,
    sets: int = CHIPS,
    **options: Any,  # noqa: ANN401
) -> dict[str, Any]:
    """Return FAST with these numbers of log blocks per flash chip.

    As is, all blocks are striped over all planes. Revised, a logical block and its sequential log block are one block.
    With `striped_data`, only the sequential log block is, and logical blocks are striped. With `in_turn`, all random
    log blocks are filled in turn, instead of one in each plane. Free blocks come from the channels in turn, those with
    the fewest erases first (Section III-E).
    """
    wide = PLANES * sets // CHIPS
    return {
        "fast": {
            "logs": {"sequential": in_order * sets, "random": randoms * sets},
            "scope": "device",
            "stripe": _data(wide, as_is=as_is, striped_data=striped_data)
            | {"random": randoms * sets if in_turn else wide},
            "free_blocks": "by-channel",
            **options,
        }
    }


def last(
    randoms: int = 16,
    in_order: int = 4,
    *,
    as_is: bool = False,
    striped_data: bool = False,
    in_turn: bool = False,
    sets: int = CHIPS,
    **options: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401
    """Return LAST: half of the random log blocks are hot. Revised, hot log blocks are not striped either.

    With `in_turn`, all cold log blocks are filled in turn.
    """
    wide = PLANES * sets // CHIPS
    each = randoms // 2 * sets
    return {
        "last": {
            "logs": {"sequential": in_order * sets, "hot": each, "cold": each},
            "scope": "device",
            "stripe": _data(wide, as_is=as_is, striped_data=striped_data)
            | {"hot": wide if as_is else 1, "cold": each if in_turn else min(wide, each)},
            "free_blocks": "by-channel",
            **options,
        }
    }


def _data(wide: int, *, as_is: bool, striped_data: bool) -> dict[str, int]:
    """Return the stripes of data blocks and sequential log blocks."""
    return {"data": wide, "sequential": 1} if striped_data else {"data": wide if as_is else 1}


def device(scheme: Any = None, name: str = "vssim-d", **options: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return a point: an SSD of the paper with a mapping scheme; None is page mapping. It is empty at the start."""
    point: dict[str, Any] = {"device": name, "precondition": "none", **options}
    if scheme is not None:
        point["mapping.scheme"] = scheme
    return point


#: Recorded traces of examples/, which scripts/record_workloads.py and record_live.py record.
RECORDED = {
    "install": ("install packages", "install.csv*"),
    "tree": ("copy and delete a source tree", "tree.csv*"),
    "sqlite": ("SQLite on ext4", "sqlite-ext4.csv*"),
    "media": ("copy media files", "media.csv*"),
}
#: Scenarios that are used if there are no recorded traces.
_SUBSTITUTES = {"install": "UBT", "tree": "XEN", "sqlite": "PS", "media": "MP3"}


@dataclass(frozen=True)
class Load:
    """A recorded workload, or a generated one in its place."""

    name: str
    workload: Trace | str
    #: Sizes of its writes in bytes. Empty if it is generated.
    writes: tuple[int, ...]
    origin: str


def recorded(setting: Setting) -> list[Load]:
    """Return the recorded workloads of the directory of traces, with one request at a time."""
    found = {name: _found(setting.traces, pattern) for name, (_, pattern) in RECORDED.items()}
    loads = []
    for name, place in found.items():
        if place is not None:
            limit = 500 if setting.quick else None
            trace = Trace(place, replay="depth=1", fit="wrap", limit=limit, name=name)
            loads.append(Load(name, trace, tuple(_write_sizes(place)), f"{RECORDED[name][0]}: {place.name}"))
    if not loads:
        for name, other in _SUBSTITUTES.items():
            loads.append(Load(name, scenario(setting, other), (), f"generated: {TABLE_4[other].title}"))
    return loads


def _found(traces: Path | None, pattern: str) -> Path | None:
    if traces is None:
        return None
    if not traces.is_dir():
        raise TraceError(f"directory {traces} does not exist; --traces needs the directory of the traces")
    return next(iter(sorted(traces.glob(pattern))), None)


def _write_sizes(place: Path) -> Iterator[int]:
    """Yield the sizes of the writes of a recording of ``floatgate serve``, in bytes."""
    with lzma.open(place, "rt") if place.suffix == ".xz" else place.open() as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        yield from (int(row["sectors"]) * 512 for row in rows if row["operation"] == "write")


def log_share(row: Mapping[str, Any], kind: str) -> float:
    """Return the share of the units written by the host that went to a kind of log block."""
    total = sum(row.get(f"gc.log_blocks.writes.{each}.units") or 0 for each in ("sequential", "random", "hot", "cold"))
    return float((row.get(f"gc.log_blocks.writes.{kind}.units") or 0) / total) if total else 0.0
