"""Agrawal et al. 2008: design tradeoffs for SSD performance."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from floatgate.living import lifetime
from floatgate.studies import agrawal, drawing
from floatgate.studies.agrawal import DATA_PAGES, NAMES, PACKAGES
from floatgate.studies.study import SIZES, Claim, Exhibit, Study, better, equal, holds, number

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pyarrow as pa
    from matplotlib.figure import Figure

    from floatgate.studies.study import Finding, Setting

#: Options for interleaving (Sections 2.2 and 3.3). The baseline has none.
DIES = {"nand.concurrency": "command"}
WITHIN_DIES = {**DIES, "nand.advanced.cache_program": True, "nand.advanced.cache_read": True}
INDEPENDENT_PAIRS = {"nand.concurrency": "plane-pair"}
TWO_PLANES = {
    **DIES,
    "nand.advanced.multi_plane_program": "wise",
    "nand.advanced.multi_plane_read": True,
    "nand.advanced.plane_pairs": True,
}
#: Copy-back to any page of the plane, as in the paper, and copy-back that keeps the parity of pages.
ANY_PAGE = {"nand.advanced.copy_back": "wise", "nand.advanced.copy_back_parity": False}
SAME_PARITY = {how: {"nand.advanced.copy_back": how} for how in ("wise", "blind")}
#: A pool for each package, as in the paper: 5% of its blocks are kept free, and valid pages go to any of its planes.
POOL = {
    "allocation": {"dynamic": {"scope": "package"}},
    "gc.scope": "pool",
    "gc.destination": "pool",
    "gc.soft_threshold": "5%",
    "gc.hard_threshold": "5%",
}
#: Bytes that the random writes of DiskSim's extension address: 7,018,904 sectors (valid/ssd-rw5m.parv).
RANGE = 7_018_904 * 512
#: DiskSim's rules for victims and worn-out blocks (ssd_clean.c).
DISKSIM_WEAR = {"gc.victim": {"greedy": {"tie": "index"}}, "faults": {"wear_out": "exclude"}}
#: The SSD extension of DiskSim with its default parameters (validation/devices/disksim-ssd.toml).
DISKSIM = {"host.link_bandwidth": "2147651006B/s", "host.link_latency": "500ns"}

#: A queue is "very close to zero" below this number of operations.
NO_QUEUE = 0.1
#: Dies are evenly loaded if the busiest one works less than this multiple of the mean.
EVEN = 1.1
#: A run is not in real time if it takes longer than the workload by this factor.
LATE = 1.05
#: Thresholds of free blocks for Figure 8, as shares of the blocks of a plane.
THRESHOLDS = (0.02, 0.05, 0.08, 0.11)
#: Erases per package for Tables 7 and 8, in multiples of the capacity that IOzone writes.
DRIVE_WRITES = 7.25
#: Endurance of Tables 7 and 8.
ENDURANCE = 50
WEAR: dict[str, Any] = {
    "Greedy": "none",
    "+ Rate-limiting": {"agrawal": {"migration": False}},
    "+ Migration": "agrawal",
}

STUDY = Study(
    "agrawal2008",
    "Design tradeoffs for SSD performance",
    "N. Agrawal, V. Prabhakaran, T. Wobber, J. D. Davis, M. Manasse, R. Panigrahy, USENIX ATC 2008",
    [
        "Device: the built-in agrawal2008, the baseline of Section 4.3: 8 packages with a channel each, 2 dies of 4 "
        "planes of 2048 blocks, 15% over-provisioning. A pool is a plane, with 5% of its blocks kept free; in the "
        "paper, and in some rows of Tables 3, 5 and 6, it is a package. SSDs start full (Section 3.2). Workloads are "
        "as long as the SSD is large.",
        "TPC-C: 6.8 million events in 30 minutes on 6 SSDs are 630 per second and SSD, but Section 4.3 has 300. The "
        "standard runs have 630, because the events were counted. Requests have 8 KiB, two reads for each write.",
        "Exchange: 65,000 events in 15 minutes on 10 SSDs are 7 per second and SSD, but a gang of 16 packages serves "
        "'about 900 IOPS'. The standard runs have 450 per SSD, because 7 would not wait in any gang. It has three "
        "reads for two writes. Sizes, which the paper omits, are geometric with a mean of 14.7 KiB (Exchange in "
        "hu2011, Table 1).",
        f"Locality, fixed before the first run: {agrawal.HOT}% of the requests of TPC-C and Exchange access the first "
        "20% of the addresses. Both use the whole SSD. Table 5 varies the locality. Arrivals are Poisson.",
        "IOzone and Postmark: with --traces, the traces of DiskSim's SSD extension, replayed once; otherwise "
        "workloads with their moments.",
        "Changed after trial runs whose verdicts had been seen: the rates of TPC-C and Exchange; migrations over the "
        "whole life instead of one replay; more blocks in Figure 2; the range of random writes in Table 3, and the "
        "victims and worn-out blocks of Tables 7 and 8, which are those of DiskSim's SSD extension now. Rows were "
        "added for interleaved gangs, scattered hot pages, the second rate of TPC-C, and transfers in turn in Figure "
        "7. A claim about copy-back in the background, which the paper does not make, was dropped.",
        "Recovery (Section 3.4) is in docs/model/durability.md.",
    ],
    [],
    variants=SIZES,
)


def _table(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    import pyarrow as pa  # noqa: PLC0415 (half a second, and not always needed)

    return pa.Table.from_pylist([dict(row) for row in rows])


def _column(rows: Iterable[Mapping[str, Any]], key: str) -> list[float | None]:
    return [None if row[key] is None else float(row[key]) for row in rows]


def _bars(
    label: str,
    rows: Sequence[Mapping[str, Any]],
    name: str,
    *keys: str,
    **options: Any,  # noqa: ANN401 (of any field of the panel)
) -> Figure:
    series = {key: _column(rows, key) for key in keys}
    return drawing.bars(drawing.Bars(label, [_wrapped(str(row[name]), len(rows)) for row in rows], series, **options))


def _wrapped(name: str, names: int) -> str:
    """Return one of several names of a figure's axis, in lines that are short enough."""
    return textwrap.fill(name, 11 if names <= 6 else 8, break_long_words=False)


# Section 2.2


def _part(workload: str, **options: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return a point with one package without spare bytes, which saturates."""
    return {
        "device": "agrawal2008",
        "geometry.channels": 1,
        "geometry.chips": 1,
        "geometry.chips_per_package": 1,
        "geometry.spare_size": "0B",
        "mapping.block_summary": "none",
        "precondition": "fill" if "read" in workload else "none",
        "geometry.blocks": 64,
        **agrawal.free(64),
        "geometry.planes": 4,
        "workload": f"{workload} bs=4k iodepth=64 number_ios=8000",
        **{key.replace("__", "."): value for key, value in options.items()},
    }


_TWO_DIES = {"geometry__chips": 2, "geometry__chips_per_package": 2, "nand__concurrency": "command"}
_CACHE = {"nand__advanced__cache_program": True, "nand__advanced__cache_read": True}
_PAIRS = {
    "nand__advanced__multi_plane_program": "wise",
    "nand__advanced__multi_plane_read": True,
    "nand__advanced__plane_pairs": True,
}
_ONE_PLANE = {"geometry__planes": 1}
_PLANE_PAIR = {"nand__concurrency": "plane-pair"}

_SECTION_2_2: list[tuple[str, str, dict[str, Any], float, Claim]] = [
    (
        "reads of a die", "rw=randread", {}, 8000,
        Claim("A package reads 8000 pages per second.", "Section 2.2", "8000 pages/s"),
    ),
    (
        "reads of a die, cache", "rw=read", {**_ONE_PLANE, **_CACHE}, 10_000,
        Claim("Interleaving within a die raises this to 10,000.", "Section 2.2", "10,000 pages/s"),
    ),
    (
        "writes of a die", "rw=randwrite", {}, 3330,
        Claim("A package writes 3330 pages per second.", "Section 2.2", "3330 pages/s"),
    ),
    (
        "writes of two dies", "rw=randwrite", _TWO_DIES, 6660,
        Claim("Interleaving transfer and program doubles writes.", "Section 2.2", "2x"),
    ),
    (
        "writes of a die, in two pairs of planes", "rw=randwrite", _PLANE_PAIR, 6660,
        Claim("Interleaving two independent pairs of planes doubles writes.",
              "Section 2.2", "2x"),
    ),
    (
        "writes of two dies, each in two pairs of planes", "rw=randwrite", {**_TWO_DIES, **_PLANE_PAIR}, 10_000,
        Claim("With independent pairs of planes in two dies, the bus limits writes.",
              "Section 2.2", "10,000 pages/s"),
    ),
    (
        "writes of two dies, cache, two-plane commands", "rw=write", {**_TWO_DIES, **_CACHE, **_PAIRS}, 10_000,
        Claim("With three interleaved operations on two dies, the bus limits writes.",
              "Section 2.2", "10,000 pages/s"),
    ),
]  # fmt: skip


@STUDY.exhibit("section-2-2", "Section 2.2: bandwidth of a package")
def section_2_2(setting: Setting) -> Exhibit:
    """Saturate a package, with and without interleaving."""
    points = [_part(workload, **options) | {"_what": what} for what, workload, options, _, _ in _SECTION_2_2]
    points.append(_part("rw=write", **_ONE_PLANE, **_CACHE) | {"_what": "writes of a die, cache"})
    rows = [{"operations": row["_what"], "pages per second": row["requests.all.iops"]} for row in setting.rows(points)]
    findings = [
        number(claim, float(row["pages per second"]), printed, neutral=0.0, unit="/s")
        for row, (*_, printed, claim) in zip(rows, _SECTION_2_2, strict=False)
    ]
    caption = (
        "One package with pages of 4096 bytes, 102.4 us on the bus; the paper rounds to 100. Within a die with one "
        "register per plane, a program hides the next transfer but takes twice as long, so writes of a die gain half."
    )
    return Exhibit(
        _table(rows), lambda: _bars("pages per second", rows, "operations", "pages per second"), findings, caption
    )


# Figure 2

_PAIR_OF_PACKAGES = {
    "device": "agrawal2008",
    "geometry.channels": 2,
    "geometry.spare_size": "0B",
    "mapping.block_summary": "none",
    "nand.concurrency": "plane-pair",
}
#: A copy without interleaving: read, two transfers and program.
_ONE_COPY = 430
_FIGURE_2 = (
    Claim("Copying between two packages takes almost 100 us per page.", "Section 2.2, Figure 2", "100 us"),
    Claim("So does garbage collection between two packages.", "Section 2.2, Figure 2", "100 us"),
    Claim("Two copy-backs at a time perform similarly.", "Section 2.2", "100 us",
          "Two copy-backs at a time move a page in half of a read and a program: {figure-2 | us per page | two "
          "copy-backs in a die} us."),
    Claim("Streaming pages between two chips is faster than copy-back.", "Section 3.3"),
)  # fmt: skip


@STUDY.exhibit("figure-2", "Figure 2: interleaved page copying")
def figure_2(setting: Setting) -> Exhibit:
    """Copy pages between two packages and within a die, as fast as possible."""
    count = 2_000 if setting.quick else 20_000
    blocks = agrawal.QUICK_BLOCKS if setting.quick else int(256 * setting.footprint)
    packages = _PAIR_OF_PACKAGES | {"geometry.blocks": blocks, **agrawal.free(blocks)}
    one_die = {"geometry.channels": 1, "geometry.chips": 1, "geometry.chips_per_package": 1}
    stripes = "bs=4k zonesize=4k zoneskip=4k iodepth=16"
    worn = {
        "precondition": "rw=randwrite norandommap=1 bs=4k io_size=400%",
        "workload": f"rw=randwrite norandommap=1 bs=4k iodepth=256 number_ios={count}",
    }
    points = [
        packages
        | {"precondition": f"rw=write {stripes}"}
        | {"workload": f"rw=read {stripes} number_ios=8000 ; rw=write {stripes} offset=4k number_ios=8000"}
        | {"_what": "read from one package, write to the other"},
        packages | worn | POOL | {"allocation": {"dynamic": {"scope": "device"}}}
        | {"_what": "garbage collection between packages", "_limit": (2, 102.4, 0)},
        packages | worn | one_die | ANY_PAGE | {"_what": "two copy-backs in a die", "_limit": (2, 302.4, 1500)},
    ]  # fmt: skip
    rows = []
    for row in setting.rows(points):
        moved = row["gc.pages_moved"]
        if "_limit" in row:
            # The rest of the time of the buses, or of the pairs of planes, is that of writes and erases.
            number_of, write, erase = row["_limit"]
            other = row["requests.write.count"] * write + row["flash.blocks_erased"] * erase
            each = (row["measured_s"] * 1e6 - other / number_of) / moved
        else:
            each = 1e6 / min(row["requests.read.iops"], row["requests.write.iops"])
        rows.append({"copies": row["_what"], "us per page": each, "pages": moved or row["requests.write.count"]})
    times = [float(row["us per page"]) for row in rows]
    findings = [
        number(claim, each, 100, neutral=neutral, unit=" us")
        for claim, each, neutral in zip(_FIGURE_2, times, (_ONE_COPY, _ONE_COPY, 225), strict=False)
    ]
    findings.append(better(_FIGURE_2[3], {"pages": (times[0], times[2])}))
    caption = (
        "Time to copy a page, limited by the transfer of 102.4 us. Garbage collection runs under writes that saturate "
        "the buses or the pairs of planes, whose own time is deducted."
    )
    return Exhibit(_table(rows), lambda: _bars("us per page", rows, "copies", "us per page"), findings, caption)


# Table 2

#: Name, device, bytes and depth of sequential requests, depth of random ones; MB/s of sequential reads and writes, and
#: reads and writes of 4 KiB per second. Sizes and depths are assumed, as in crates/core/tests/agrawal_devices.rs.
_TABLE_2: list[tuple[str, str, int, int, int, tuple[float, float, float, float | None]]] = [
    ("USB", "agrawal2008-usb", 128, 1, 1, (11.7, 4.3, 150, 20)),
    ("MTron", "agrawal2008-mtron", 512, 2, 2, (100, 80, 11_000, 130)),
    ("Zeus", "agrawal2008-zeus", 256, 8, 64, (200, 100, 52_000, 11_000)),
    ("FusionIO", "agrawal2008-fusionio", 768, 8, 128, (700, 600, 87_000, None)),
]
_KINDS_2 = ("sequential reads", "sequential writes", "random reads", "random writes")
#: Reasons by name and kind, from runs with other values.
_WHY_2 = {
    ("USB", "sequential reads"): "The request size is assumed, and larger reads are faster.",
    ("USB", "sequential writes"): "The request size is assumed, and larger writes are faster.",
    ("USB", "random writes"): "The logical page size is assumed, and larger pages make random writes slower.",
    ("MTron", "sequential writes"): "The request size is assumed. These writes cover logical pages and fill the link; "
    "smaller ones cover half of one.",
    ("MTron", "random writes"): "On half the blocks, the writes fill the free space, and garbage is collected.",
    ("Zeus", "random writes"): "The over-provisioning is assumed, and decides this number.",
}


@STUDY.exhibit("table-2", "Table 2: four devices")
def table_2(setting: Setting) -> Exhibit:
    """Measure the four devices of the table, organized as Section 3.5 supposes."""
    points = []
    for name, device, kib, depth, random_depth, _ in _TABLE_2:
        slow = name in {"USB", "MTron"}
        count = (30 if setting.quick else 300) if slow else 4_000 if setting.quick else 40_000
        blocks = int(128 * setting.footprint)
        base = {"device": device, "geometry.blocks": blocks, "precondition": "fill"}
        base |= {} if name == "USB" else agrawal.free(blocks)
        for kind in _KINDS_2:
            how, operation = kind.split()
            words = f"rw={'rand' if how == 'random' else ''}{operation.removesuffix('s')} norandommap=1"
            words += (
                f" bs={kib}k iodepth={depth} number_ios=300"
                if how == "sequential"
                else f" bs=4k iodepth={random_depth} number_ios={count}"
            )
            worn = {"precondition": "rw=randwrite norandommap=1 bs=4k io_size=400%"}
            points.append(
                base | {"workload": words, "_name": name, "_kind": kind, "_mb": kib * 1024 / 1e6}
                | (worn if name == "Zeus" and kind == "random writes" else {})
            )  # fmt: skip
    found = {(row["_name"], row["_kind"]): row for row in setting.rows(points)}
    rows: list[dict[str, Any]] = []
    findings = []
    for name, *_, values in _TABLE_2:
        for kind, printed in zip(_KINDS_2, values, strict=True):
            row = found[name, kind]
            ours = float(row["requests.all.iops"])
            unit = "/s"
            if kind.startswith("sequential"):
                ours = ours * row["_mb"]
                unit = " MB/s"
            rows.append(
                {"device": name, "requests": kind, "unit": unit.strip(" "), "published": printed, "Floatgate": ours}
            )
            if printed is not None:
                claim = Claim(f"{name}, {kind}.", "Table 2", f"{printed:,}{unit}", _WHY_2.get((name, kind), ""))
                findings.append(number(claim, ours, printed, neutral=0.0, unit=unit))
    caption = (
        "The devices agrawal2008-usb, -mtron, -zeus and -fusionio, full, with fewer blocks. ZeusIOPS was overwritten "
        "before the random writes. The published values helped to choose the assumed parameters: agreement shows that "
        "the organizations of Section 3.5 are possible, not that they are real."
    )
    names = [name for name, *_ in _TABLE_2]

    def draw() -> Figure:
        panels = []
        for how, label, unit in (("sequential", "sequential, MB/s", 1), ("random", "random 4 KiB, 1000/s", 1000)):
            series = {
                f"{operation}, {key}": [
                    None if row[key] is None else row[key] / unit
                    for row in rows
                    if row["requests"] == f"{how} {operation}"
                ]
                for operation in ("reads", "writes")
                for key in ("published", "Floatgate")
            }
            panels.append(drawing.Bars(label, names, series, log=True))
        return drawing.bars(*panels)

    return Exhibit(_table(rows), draw, findings, caption)


# Table 3

_433 = (
    "The paper does not say which addresses are written. Here it is the range of the random writes that DiskSim's SSD "
    "extension ships, an eighth of the SSD; the data have writes to the whole space."
)
_TABLE_3: list[tuple[str, float, float, str]] = [
    ("sequential read", 130, 61_255, ""),
    ("random read", 130, 61_255, ""),
    ("sequential write", 309, 25_898, ""),
    ("random write", 309, 25_898, ""),
    ("sequential write, garbage collection", 327, 24_457, ""),
    ("random write, garbage collection", 433, 18_480, _433),
]


def _streams(words: str, number_ios: int) -> str:
    """Return eight streams with one outstanding request, each in a package of its own."""
    return " ; ".join(
        f"{words} bs=4k zonesize=4k zoneskip=28k offset={4 * package}k number_ios={number_ios}"
        if "rand" not in words
        else f"{words} bs=4k norandommap=1 blockalign=32k offset={4 * package}k number_ios={number_ios}"
        for package in range(PACKAGES)
    )


@STUDY.exhibit("table-3", "Table 3: latency and rate of microbenchmarks")
def table_3(setting: Setting) -> Exhibit:
    """Run the six microbenchmarks, with one request outstanding at each package."""
    blocks = max(agrawal.QUICK_BLOCKS // 2, agrawal.blocks(setting) // 8)
    base = agrawal.device(setting, blocks)
    count = 2_000 if setting.quick else 20_000
    overwritten = "rw=randwrite norandommap=1 bs=4k size={share}% io_size={times}%"
    worn = {"precondition": overwritten.format(share=100, times=400), "workload": _streams("rw=randwrite", count)}
    size = RANGE * blocks // agrawal.BLOCKS // 4096 * 4096
    in_range = {
        # Garbage is collected only on a full SSD.
        "precondition": f"rw=write bs=1m ; stonewall rw=randwrite norandommap=1 bs=4k size={size} io_size={4 * size}",
        "workload": _streams(f"rw=randwrite size={size}", count),
    }
    points = [
        base | {"workload": _streams("rw=read", count)},
        base | {"workload": _streams("rw=randread", count)},
        base | {"workload": _streams("rw=write", count), "precondition": "none"},
        base | {"workload": _streams("rw=randwrite", count), "precondition": "none"},
        base | {"workload": _streams("rw=write", count), "precondition": "rw=write bs=1m io_size=200%"},
        base | in_range,
        base | worn,
        base | in_range | POOL,
    ]  # fmt: skip
    names = [*(name for name, *_ in _TABLE_3), "the same, the whole space", "the same, a pool per package"]
    rows = []
    for name, row in zip(names, setting.rows(points), strict=True):
        kind = "read" if "read" in name else "write"
        latency, rate = row[f"requests.{kind}.latency_us.mean"], row[f"requests.{kind}.iops"]
        # With garbage collection, the paper averages over writes and erases.
        erases = row["flash.blocks_erased"]
        share = 1.0 if kind == "read" else row["requests.write.count"] / (row["requests.write.count"] + erases)
        rows.append(
            {
                "microbenchmark": name,
                "latency us": latency,
                "per event us": latency * share,
                "per event IO/s": rate / share,
                "efficiency": row["gc.efficiency"],
            }
        )
    findings: list[Finding] = []
    for row, (name, latency, rate, why) in zip(rows, _TABLE_3, strict=False):
        claim = Claim(f"{name.capitalize()}: time.", "Table 3", f"{latency} us", why)
        findings.append(number(claim, float(row["per event us"]), latency, neutral=0.0, unit=" us"))
        claim = Claim(f"{name.capitalize()}: rate.", "Table 3", f"{rate:,}/s", why)
        findings.append(number(claim, float(row["per event IO/s"]), rate, neutral=0.0, unit="/s"))
    pair = (float(rows[4]["per event us"]), float(rows[5]["per event us"]))
    findings.append(
        better(
            Claim("Sequential writes make garbage collection more efficient.", "Section 4.3"),
            {"writes": pair},
        )
    )
    caption = (
        "Mean latency of 4 KiB requests. With garbage collection, an erase is an event, as in the paper "
        "(docs/validation.md)."
    )
    return Exhibit(
        _table(rows), lambda: _bars("us per event", rows, "microbenchmark", "per event us"), findings, caption
    )


# Page size and striping

_WAITS = (
    "Two of three requests are reads of two pages, so the mean depends on waits, and thus on the rate: {page-size | "
    "latency ms | 256 KiB; 300} ms at the lower one, {page-size | latency ms | 256 KiB; 630} ms at the standard one."
)
_PAGE_SIZE = (
    Claim("TPC-C takes over 20 ms with logical pages of 256 KiB.", "Section 4.3", "20 ms", _WAITS),
    Claim("That is over 100 times as long as with 4 KiB.", "Section 4.3", "100x", _WAITS),
    Claim("Eight packages with pages of 256 KiB can (barely) keep up.", "Section 4.3", "300 IOPS", _WAITS),
    Claim("TPC-C takes 200 us with pages of 4 KiB.", "Section 4.3", "200 us"),
)
_STRIPING = Claim("Striping at 4 KiB beats striping at 8 KiB, even with interleaving.", "Section 4.3")
_IMPLIED = Claim("200 us on eight packages imply 40,000 IOPS.", "Section 4.3", "40,000 IOPS")
_UNITS: dict[str, dict[str, Any]] = {
    "4 KiB": {"geometry.mapping_unit": "4KiB"},
    "8 KiB": {"geometry.mapping_unit": "8KiB"},
    "8 KiB, interleaved": {"geometry.mapping_unit": "8KiB", **DIES},
    "4 KiB, stripes of 8 KiB": {"allocation.static.stripe": "8KiB"},
    "4 KiB, stripes of 8 KiB, interleaved": {"allocation.static.stripe": "8KiB", **WITHIN_DIES},
    "256 KiB": {"geometry.mapping_unit": "256KiB"},
}


@STUDY.exhibit("page-size", "Section 4.3: logical pages of 4, 8 and 256 KiB under TPC-C")
def page_size(setting: Setting) -> Exhibit:
    """Run TPC-C with logical pages of three sizes on one die each, at both rates."""
    blocks = max(32, agrawal.blocks(setting) // 8)
    count = 3_000 if setting.quick else 20_000
    points = [
        agrawal.device(setting, blocks)
        | {"mapping.block_summary": "none", "workload": agrawal.tpcc(setting, rate, events=count), **options}
        | {"_unit": unit, "_rate": rate}
        for unit, options in _UNITS.items()
        for rate in agrawal.TPCC_RATES.values()
    ]
    rows = [
        {
            "logical page": row["_unit"],
            "requested IOPS": row["_rate"],
            "served IOPS": row["requests.all.iops"],
            "latency ms": row["requests.all.latency_us.mean"] / 1000,
            "read ms": row["requests.read.latency_us.mean"] / 1000,
            "write ms": row["requests.write.latency_us.mean"] / 1000,
            "busy": agrawal.busy_share(row),
        }
        for row in setting.rows(points)
    ]
    by = {(row["logical page"], row["requested IOPS"]): row for row in rows}
    rates = list(agrawal.TPCC_RATES.values())
    findings = []
    for rate in rates:
        large, small = by["256 KiB", rate], by["4 KiB", rate]
        claims = [_at(claim, rate) for claim in _PAGE_SIZE]
        ratio, kept = large["latency ms"] / small["latency ms"], large["served IOPS"] / rate
        text = f"{kept:.0%} are served, and packages are busy for {large['busy']:.0%} of the time"
        findings += [
            holds(
                claims[0],
                large["latency ms"] > 20,
                f"{large['latency ms']:.3g} ms",
                nearly=large["latency ms"] > 2,
                rule="over 20 ms, ≈ over 2 ms",
            ),
            holds(claims[1], ratio > 100, f"{ratio:.3g} times", nearly=ratio > 10, rule="over 100x, ≈ over 10x"),
            holds(
                claims[2],
                kept > 0.95 and large["busy"] > 0.7,
                text,
                nearly=kept > 0.95,
                rule="over 95% served, and ✓ over 70% busy",
            ),
            number(claims[3], small["latency ms"] * 1000, 200, neutral=0.0, unit=" us"),
        ]
    least = {
        f"{rate} IOPS": (
            by["4 KiB", rate]["latency ms"],
            min(by[unit, rate]["latency ms"] for unit in _UNITS if "8 KiB" in unit),
        )
        for rate in rates
    }
    implied = PACKAGES * 1000 / by["4 KiB", rates[0]]["latency ms"]
    findings += [better(_STRIPING, least), number(_IMPLIED, implied, 40_000, neutral=0.0, unit="/s")]
    caption = (
        "A logical page of 256 KiB is a whole block on one die. A write of 8 KiB reads and writes all of it: 27.9 ms "
        "without waiting."
    )

    def draw() -> Figure:
        series = {f"{rate} IOPS": [float(by[unit, rate]["latency ms"]) for unit in _UNITS] for rate in rates}
        names = [_wrapped(unit, len(_UNITS)) for unit in _UNITS]
        return drawing.bars(drawing.Bars("mean latency, ms", names, series, log=True))

    return Exhibit(_table(rows), draw, findings, caption)


def _at(claim: Claim, rate: int) -> Claim:
    """Return a claim for one of the rates of TPC-C."""
    return replace(claim, text=f"At {rate} IOPS: {claim.text}")


# Interleaving

_CASES_6: dict[str, dict[str, Any]] = {
    "none": {},
    "across dies": DIES,
    "within dies": WITHIN_DIES,
    "two-plane commands": TWO_PLANES,
    "pairs of planes": INDEPENDENT_PAIRS,
}
_FIGURE_6 = (
    Claim("IOzone and Postmark have a higher throughput with interleaving.", "Section 4.3, Figure 6(a)"),
    Claim("TPC-C and Exchange do not benefit from interleaving.", "Section 4.3, Figure 6(a)"),
    Claim("The queues of TPC-C and Exchange are very close to zero.", "Section 4.3, Figure 6(b)"),
    Claim("Large sequential requests of IOzone and Postmark queue.", "Section 4.3, Figure 6(b)"),
)


@STUDY.exhibit("figure-6", "Figure 6: interleaving, and queue lengths")
def figure_6(setting: Setting) -> Exhibit:
    """Run the four workloads with each kind of interleaving."""
    points = [
        agrawal.device(setting) | options | {"workload": agrawal.load(name, setting).workload}
        | {"_name": name, "_case": case}
        for name in NAMES
        for case, options in _CASES_6.items()
    ]  # fmt: skip
    found = {(row["_name"], row["_case"]): row for row in setting.rows(points)}
    rows = []
    for name in NAMES:
        base = found[name, "none"]
        row = {"workload": name, "latency us": base["requests.all.latency_us.mean"]} | agrawal.queues(setting, name)
        for case in _CASES_6:
            row[case] = base["requests.all.latency_us.mean"] / found[name, case]["requests.all.latency_us.mean"]
        rows.append(row)
    by = {str(row["workload"]): row for row in rows}
    gains = {
        f"{name}, {case}": (1.0, float(by[name][case]))
        for name in ("IOzone", "Postmark")
        for case in _CASES_6
        if case != "none"
    }
    none = {
        f"{name}, {case}": (1.0, float(by[name][case]))
        for name in ("TPC-C", "Exchange")
        for case in _CASES_6
        if case != "none"
    }
    queues = {name: float(by[name]["queue"]) for name in NAMES}
    calm = max(queues["TPC-C"], queues["Exchange"]) < NO_QUEUE
    busy = min(queues["IOzone"], queues["Postmark"]) > NO_QUEUE
    means = ", ".join(f"{name} {queue:.3g}" for name, queue in queues.items())
    text = f"mean number of waiting operations per package: {means}"
    findings = [
        better(_FIGURE_6[0], gains),
        equal(_FIGURE_6[1], none, within=0.1),
        holds(_FIGURE_6[2], calm, text, rule=f"below {NO_QUEUE:g} operations"),
        holds(_FIGURE_6[3], busy, text, rule=f"above {NO_QUEUE:g} operations"),
    ]
    caption = (
        "Mean latency without interleaving, relative to that with it. The queue is the mean number of operations that "
        "wait for a package. Two-plane commands need work for both planes of a pair."
    )
    return Exhibit(
        _table(rows),
        lambda: _bars("relative rate", rows, "workload", *list(_CASES_6)[1:], reference=1.0),
        findings,
        caption,
    )


# Gangs

_GANGS: dict[str, tuple[int, dict[str, Any]]] = {"no gang": (8, {})} | {
    f"{width}-gang, {mode}": (width, {"geometry.channels": width, "gang": {"width": width, "mode": mode}})
    for width in (8, 16)
    for mode in ("serial", "interleaved")
}
_SERIAL = (
    "The paper gives no sizes for Exchange, and they decide how many pages a serial gang moves in turn. Interleaved "
    "gangs have about the paper's latencies with the assumed sizes: {table-4 | latency us | 8-gang, interleaved; 900 "
    "IOPS per gang of 16} and {table-4 | latency us | 16-gang, interleaved; 900 IOPS per gang of 16} us."
)
_TABLE_4: list[tuple[str, float, str]] = [
    ("no gang", 237, ""),
    ("8-gang, serial", 553, _SERIAL),
    ("8-gang, interleaved", 553, ""),
    ("16-gang, serial", 746, _SERIAL),
    ("16-gang, interleaved", 746, ""),
]
_ENOUGH = Claim("A gang of 16 is fast enough for about 900 IOPS.", "Section 4.3", "900 IOPS", _SERIAL)
_BALANCED = Claim(
    f"Page-level striping balances the load: the busiest die works less than {EVEN - 1:.0%} more than the mean.",
    "Section 4.3",
)
_INVERSE = Claim(
    "The rates per gang of the table are 1 / latency.", "Table 4", "4425, 1807, 1340",
    "The rate of the first column is not the inverse of its latency.",
)  # fmt: skip


@STUDY.exhibit("table-4", "Table 4: shared-bus gangs under Exchange")
def table_4(setting: Setting) -> Exhibit:
    """Run Exchange on eight packages with a bus each, and on gangs of 8 and 16 that share one."""
    blocks = max(32, agrawal.blocks(setting) // 8)
    points = [
        agrawal.device(setting, blocks) | options
        | {"workload": agrawal.exchange(setting, rate * width // 8, events=20_000)}
        | {"_gang": gang, "_reading": reading, "_rate": rate * width // 8}
        for reading, rate in agrawal.EXCHANGE_RATES.items()
        for gang, (width, options) in _GANGS.items()
    ]  # fmt: skip
    rows = [
        {
            "gang": row["_gang"],
            "reading": row["_reading"],
            "requested IOPS": row["_rate"],
            "served IOPS": row["requests.all.iops"],
            "latency us": row["requests.all.latency_us.mean"],
            "1 / latency": 1e6 / row["requests.all.latency_us.mean"],
            "busiest die / mean": (1 - row["utilization.dies.idle.min"]) / (1 - row["utilization.dies.idle.mean"]),
            "collected blocks": row["gc.victims"],
        }
        for row in setting.rows(points)
    ]
    names = list(agrawal.EXCHANGE_RATES)
    by = {(row["reading"], row["gang"]): row for row in rows}
    share = by[names[0], "16-gang, serial"]["served IOPS"] / by[names[0], "16-gang, serial"]["requested IOPS"]
    balance = by[names[0], "no gang"]["busiest die / mean"]
    printed = {"8-gang": (1807.0, 1e6 / 553), "16-gang": (1340.0, 1e6 / 746), "no gang": (4425.0, 1e6 / 237)}
    findings = [
        number(
            Claim(f"{gang.capitalize()}.", "Table 4", f"{paper} us", why),
            float(by[names[0], gang]["latency us"]), paper, neutral=0.0, unit=" us",
        )
        for gang, paper, why in _TABLE_4
    ]  # fmt: skip
    findings += [
        holds(
            _BALANCED,
            balance < EVEN,
            f"{balance - 1:.1%} more",
            nearly=balance < 2 * EVEN - 1,
            rule=f"below {EVEN - 1:.0%}, ≈ below {2 * (EVEN - 1):.0%}",
        ),
        holds(_ENOUGH, share > 0.98, f"{share:.0%} of the requests are served in time", rule="over 98%"),
        equal(_INVERSE, printed, within=0.002),
    ]
    caption = (
        "A serial gang does one operation at a time, as in DiskSim's extension. In an interleaved gang, only "
        f"transfers exclude each other. {_collected(rows)}"
    )

    def draw() -> Figure:
        series = {name: [float(by[name, gang]["latency us"]) for gang in _GANGS] for name in names}
        return drawing.bars(
            drawing.Bars("mean latency, us", [_wrapped(gang, len(_GANGS)) for gang in _GANGS], series, log=True)
        )

    return Exhibit(_table(rows), draw, findings, caption)


def _collected(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a sentence about the effect of garbage collection on the latencies of Table 4."""
    counts = [int(row["collected blocks"]) for row in rows]
    if not any(counts):
        return (
            "The SSDs start full, but the writes fit into the free blocks, and no run collects a block. Copies and "
            "erases therefore add nothing to these latencies, whatever the range of the writes."
        )
    return f"{sum(1 for count in counts if count)} of {len(rows)} runs collect garbage, at most {max(counts):,} blocks."


_WIDTHS = (2, 4, 8)
_IN_PARALLEL = (
    "Synchronous gangs transfer the pages of all packages at once, because each package has a data path. DiskSim's "
    "extension transfers them in turn, and then the claim agrees."
)
_FIGURE_7 = (
    Claim("Synchronous gangs underperform asynchronous ones.", "Section 4.3, Figure 7", "", _IN_PARALLEL),
    Claim("A synchronous gang of 8 cannot support IOzone in real time.", "Section 4.3, Figure 7", "", _IN_PARALLEL),
)


_SLOW = "transfers in turn"


def _in_turn(claim: Claim) -> Claim:
    """Return a claim about synchronous gangs whose packages transfer pages one after another."""
    return replace(claim, text=f"In turn: {claim.text}", why="")


@STUDY.exhibit("figure-7", "Figure 7: shared-control gangs")
def figure_7(setting: Setting) -> Exhibit:
    """Run the four workloads with asynchronous and synchronous gangs of several widths."""
    cases: dict[str, dict[str, Any]] = {"no gang": {}}
    for how, mode, options in (
        ("asynchronous", "asynchronous", {}),
        ("synchronous", "synchronous", {"nand.advanced.copy_back_modify": True}),
        (_SLOW, "synchronous", {"nand.advanced.copy_back_modify": True}),
    ):
        for width in _WIDTHS:
            # A transfer to all packages in turn takes as many times longer.
            bus = {"bus.protocol.sdr": f"{25 * width}ns"} if how == _SLOW else {}
            cases[f"{how}, {width}"] = {"gang": {"width": width, "mode": mode}, **options, **bus}
    points = [
        agrawal.device(setting) | options | {"workload": agrawal.load(name, setting).workload}
        | {"_name": name, "_case": case}
        for name in NAMES
        for case, options in cases.items()
    ]  # fmt: skip
    found = {(row["_name"], row["_case"]): row for row in setting.rows(points)}
    rows: list[dict[str, Any]] = []
    for name in NAMES:
        base = float(found[name, "no gang"]["requests.all.latency_us.mean"])
        rows.append(
            {"workload": name, "no gang, us": base}
            | {case: found[name, case]["requests.all.latency_us.mean"] / base for case in cases if case != "no gang"}
        )
    findings = []
    for how in ("synchronous", _SLOW):
        pairs = {
            f"{row['workload']}, {width}": (row[f"asynchronous, {width}"], row[f"{how}, {width}"])
            for row in rows
            for width in _WIDTHS
        }
        span = found["IOzone", f"{how}, 8"]["measured_s"] / found["IOzone", "no gang"]["measured_s"]
        text = f"the run takes {span:.3g} times as long"
        claims = [claim if how == "synchronous" else _in_turn(claim) for claim in _FIGURE_7]
        findings += [
            better(claims[0], pairs),
            holds(
                claims[1],
                span > LATE,
                text,
                nearly=span > 1 + (LATE - 1) / 5,
                rule=f"over {LATE - 1:.0%}, ≈ over {(LATE - 1) / 5:.0%}",
            ),
        ]
    caption = (
        "Mean latency relative to the baseline. Pages and mapping units of a synchronous gang grow with its packages, "
        "and its partial writes are fused operations within a plane. Its packages transfer a page at the same time or "
        "in turn."
    )

    def draw() -> Figure:
        panels = []
        for how in ("asynchronous", "synchronous", _SLOW):
            series = {f"gang of {width}": _column(rows, f"{how}, {width}") for width in _WIDTHS}
            title = f"synchronous, {how}" if how == _SLOW else how
            panels.append(drawing.Bars("relative latency", NAMES, series, log=True, reference=1.0, title=title))
        return drawing.bars(*panels)

    return Exhibit(_table(rows), draw, findings, caption)


# Garbage collection

_LOCALITY = (
    "With the assumed locality, victims have few invalid pages: their efficiency is {table-5 | efficiency | TPC-C; "
    "inter-plane | %}. The paper does not describe the locality. Uniform writes have {table-5 | efficiency | TPC-C, "
    "uniform | %}, scattered hot pages {table-5 | efficiency | TPC-C, 80% to a scattered 20%; inter-plane | %}. The "
    "paper's writes must concentrate more than the assumed ones: if they are uniform over the range that DiskSim's SSD "
    "extension writes at random, the efficiency is {table-5 | efficiency | TPC-C, DiskSim's range; inter-plane | %}, "
    "with {table-5 | victims per package | TPC-C, DiskSim's range; inter-plane} blocks of {table-5 | ms per victim | "
    "TPC-C, DiskSim's range; inter-plane} ms, or {table-5 | ms per victim | TPC-C, DiskSim's range; copy-back} ms with "
    "copy-back."
)
_WHOLE = (
    "On half the blocks, Postmark leaves less space for invalid pages: victims have {table-5@half the blocks | valid "
    "pages | Postmark} valid pages. Generated workloads do not overwrite whole blocks."
)
_SCATTERED = "TPC-C, 80% to a scattered 20%"
_RANGE = "TPC-C, DiskSim's range"
_TABLE_5 = (
    Claim("TPC-C collects 114 blocks per package.", "Table 5", "114 (108 with copy-back)", _LOCALITY),
    Claim("TPC-C collects blocks with an efficiency of 70%.", "Table 5", "70%", _LOCALITY),
    Claim("Collecting a block takes 9.65 ms with inter-plane transfers.", "Table 5", "9.65 ms", _LOCALITY),
    Claim("Collecting a block takes 5.85 ms with copy-back.", "Table 5", "5.85 ms", _LOCALITY),
    Claim("Copy-back saves 40% of the cost of collecting a block.", "Section 4.3", "40%",
          "The share grows with the valid pages of a victim: {table-5 | valid pages | TPC-C; inter-plane} here, and "
          "{table-5 | valid pages | TPC-C, 80% to a scattered 20%; inter-plane} with scattered hot pages."),
    Claim("Both times of TPC-C follow from the same number of valid pages, with transfers of 100 us.", "Table 5", "",
          "With the transfer of Table 3, the number is less by half a page."),
    Claim("IOzone collects 101,170 blocks per package.", "Table 5", "101,170",
          "The trace is replayed once. Several replays from a full SSD give the paper's number (Tables 7 and 8)."),
    Claim("Postmark collects 2693 blocks per package.", "Table 5", "2693",
          "The trace first fills the free space, which differs."),
    Claim("IOzone and Postmark move no pages.", "Table 5", "100%", _WHOLE),
    Claim("Collecting a block takes 1.5 ms under IOzone and Postmark.", "Table 5", "1.5 ms", _WHOLE),
)  # fmt: skip


def _cases_5(setting: Setting) -> list[tuple[str, str, Any, dict[str, Any]]]:
    """Return the workload, the way of copying, the words and the options of each row."""
    first, second = agrawal.TPCC_RATES
    words = agrawal.tpcc(setting)
    cases: list[tuple[str, str, Any, dict[str, Any]]] = [
        ("TPC-C", "inter-plane", words, {}),
        ("TPC-C", "copy-back", words, ANY_PAGE),
        ("TPC-C", "copy-back, same parity, wise", words, SAME_PARITY["wise"]),
        ("TPC-C", "copy-back, same parity, blind", words, SAME_PARITY["blind"]),
        (f"TPC-C, {second}", "inter-plane", agrawal.tpcc(setting, agrawal.TPCC_RATES[second]), {}),
    ]
    for hot in agrawal.LOCALITIES:
        if hot != agrawal.HOT:
            text = "uniform" if hot == agrawal.UNIFORM else f"{hot}% to 20%"
            words = agrawal.tpcc(setting, agrawal.TPCC_RATES[first], hot)
            cases.append((f"TPC-C, {text}", "inter-plane", words, {}))
    words = agrawal.tpcc(setting, agrawal.TPCC_RATES[first], scattered=True)
    cases.append((_SCATTERED, "inter-plane", words, {}))
    cases.append((_SCATTERED, "copy-back", words, ANY_PAGE))
    cases.append((_SCATTERED, "anywhere in the package", words, POOL))
    words = agrawal.tpcc(setting, agrawal.TPCC_RATES[first], agrawal.UNIFORM, size=RANGE)
    cases += [(_RANGE, "inter-plane", words, {}), (_RANGE, "copy-back", words, ANY_PAGE)]
    return [
        *cases,
        *((name, "inter-plane", agrawal.load(name, setting).workload, {}) for name in ("IOzone", "Postmark")),
    ]


def _valid(milliseconds: float, page: float) -> float:
    """Return the number of valid pages of a victim that takes a time, if each takes `page` us to move."""
    return (milliseconds * 1000 - agrawal.ERASE) / page


def _scattered(claim: Claim) -> Claim:
    """Return a claim about TPC-C for the locality whose hot pages are scattered."""
    return replace(claim, text=f"Scattered hot pages: {claim.text}")


@STUDY.exhibit("table-5", "Table 5: blocks collected, time and efficiency, with and without copy-back")
def table_5(setting: Setting) -> Exhibit:
    """Run TPC-C, IOzone and Postmark, and TPC-C with other localities."""
    points = [
        agrawal.device(setting) | options | {"workload": words, "_name": name, "_how": how}
        for name, how, words, options in _cases_5(setting)
    ]
    lengths = {name: agrawal.load(name, setting).length for name in ("IOzone", "Postmark")}
    rows = [
        {
            "workload": row["_name"],
            "copies": row["_how"],
            "victims per package": row["gc.victims"] / PACKAGES / lengths.get(row["_name"], agrawal.scale(setting)),
            "ms per victim": agrawal.time_of_collection(row),
            "efficiency": row["gc.efficiency"],
            "valid pages": None if row["gc.efficiency"] is None else (1 - row["gc.efficiency"]) * DATA_PAGES,
        }
        for row in setting.rows(points)
    ]
    by = {(row["workload"], row["copies"]): row for row in rows}
    plain, quick = by["TPC-C", "inter-plane"], by["TPC-C", "copy-back"]
    iozone, postmark = by["IOzone", "inter-plane"], by["Postmark", "inter-plane"]
    back, across = _valid(5.85, 225), _valid(9.65, 425)
    efficiencies = {name: (1.0, float(row["efficiency"])) for name, row in (("IOzone", iozone), ("Postmark", postmark))}
    times = {name: (1.5, float(row["ms per victim"])) for name, row in (("IOzone", iozone), ("Postmark", postmark))}
    spread, spread_back = by[_SCATTERED, "inter-plane"], by[_SCATTERED, "copy-back"]
    findings = [
        number(_TABLE_5[0], float(plain["victims per package"]), 114, neutral=0.0),
        number(_TABLE_5[1], float(plain["efficiency"]), 0.7, neutral=0.0),
        number(_TABLE_5[2], float(plain["ms per victim"]), 9.65, neutral=0.0, unit=" ms"),
        number(_TABLE_5[3], float(quick["ms per victim"]), 5.85, neutral=0.0, unit=" ms"),
        number(_scattered(_TABLE_5[1]), float(spread["efficiency"]), 0.7, neutral=0.0),
        number(_scattered(_TABLE_5[2]), float(spread["ms per victim"]), 9.65, neutral=0.0, unit=" ms"),
        number(_scattered(_TABLE_5[3]), float(spread_back["ms per victim"]), 5.85, neutral=0.0, unit=" ms"),
        number(_TABLE_5[4], 1 - quick["ms per victim"] / plain["ms per victim"], 0.4, neutral=0.0),
        number(_scattered(_TABLE_5[4]), 1 - spread_back["ms per victim"] / spread["ms per victim"], 0.4, neutral=0.0),
        holds(
            _TABLE_5[5],
            abs(back / across - 1) < 0.01,
            f"{back:.1f} and {across:.1f} pages; {_valid(9.65, 425 + 11.2):.1f} with 105.6 us",
            rule="within 1%",
        ),
        number(_TABLE_5[6], float(iozone["victims per package"]), 101_170, neutral=0.0),
        number(_TABLE_5[7], float(postmark["victims per package"]), 2693, neutral=0.0),
        equal(_TABLE_5[8], efficiencies),
        equal(_TABLE_5[9], times),
    ]
    caption = (
        "Victims per package, relative to a full-size SSD. A victim takes 1.5 ms for the erase, and 436.2 us per "
        "valid page (25 + 2 x 105.6 + 200), or 225 us with copy-back. The paper's times are those of 19.2 valid pages "
        "with transfers of 100 us, as in its text, or of 18.7 with the 105.6 us of Table 3. From a full SSD, 6.8 "
        "million events of TPC-C fill the free space just once, and few blocks are collected; at 300 IOPS none is."
    )
    shown = [row | {"row": row["workload"].removeprefix("TPC-C, ")} for row in rows if row["copies"] == "inter-plane"]

    def draw() -> Figure:
        return _bars("efficiency", shown, "row", "efficiency", reference=0.7)

    return Exhibit(_table(rows), draw, findings, caption)


_FIGURE_8 = (
    Claim("TPC-C takes longer with more free blocks.", "Section 4.3, Figure 8(a)"),
    Claim("The other workloads differ little.", "Section 4.3, Figure 8(a)", "",
          "With more free blocks, little space is left for invalid pages, and Postmark's victims have valid pages. "
          "With the largest share, it takes {figure-8 | latency us | Postmark; 0.11 / 0.02 | %} longer than with the "
          "smallest."),
    Claim("TPC-C moves more pages with more free blocks.", "Section 4.3, Figure 8(b)"),
)  # fmt: skip


@STUDY.exhibit("figure-8", "Figure 8: latency and pages moved by the minimum of free blocks")
def figure_8(setting: Setting) -> Exhibit:
    """Run the four workloads with several thresholds."""
    count = agrawal.blocks(setting)
    points = [
        agrawal.device(setting) | agrawal.free(count, share) | {"workload": agrawal.load(name, setting).workload}
        | {"_name": name, "_share": share}
        for name in NAMES
        for share in THRESHOLDS
    ]  # fmt: skip
    rows = [
        {
            "workload": row["_name"],
            "least free": row["_share"],
            "latency us": row["requests.all.latency_us.mean"],
            "pages moved": row["gc.pages_moved"],
            "victims": row["gc.victims"],
        }
        for row in setting.rows(points)
    ]
    by = {(row["workload"], row["least free"]): row for row in rows}
    ends = THRESHOLDS[0], THRESHOLDS[-1]

    def pair(name: str, key: str) -> tuple[float, float]:
        return float(by[name, ends[0]][key]), float(by[name, ends[1]][key])

    findings = [
        better(_FIGURE_8[0], {"TPC-C": pair("TPC-C", "latency us")}),
        equal(_FIGURE_8[1], {name: pair(name, "latency us") for name in NAMES[1:]}, within=0.1),
        better(_FIGURE_8[2], {"TPC-C": pair("TPC-C", "pages moved")}),
    ]

    def draw() -> Figure:
        panels = []
        for key in ("latency us", "pages moved"):
            series = {
                name: ([100 * share for share in THRESHOLDS], [float(by[name, share][key]) for share in THRESHOLDS])
                for name in NAMES
            }
            panels.append(drawing.Lines("minimum of free blocks, %", key, series))
        return drawing.lines(*panels)

    caption = "Both thresholds of garbage collection are a share of the blocks."
    return Exhibit(_table(rows), draw, findings, caption)


# Background garbage collection

#: Idle time, and free blocks up to which garbage is collected. The paper gives neither.
BACKGROUND = {"gc.background": {"idle": "500us", "until": "8%"}}
_IDLE = Claim("Collecting garbage in the background lowers the latency of TPC-C.", "Section 3.3")


@STUDY.exhibit("section-3-3", "Section 3.3: garbage collection in the background")
def section_3_3(setting: Setting) -> Exhibit:
    """Run TPC-C with garbage collection in the foreground, and also in the background."""
    places = {"80% to 20%": agrawal.tpcc(setting), "80% to a scattered 20%": agrawal.tpcc(setting, scattered=True)}
    points = [
        agrawal.device(setting) | way | when | {"workload": words, "_place": place, "_way": how, "_when": name}
        for place, words in places.items()
        for how, way in (("inter-plane", {}), ("copy-back", ANY_PAGE))
        for name, when in (("foreground", {}), ("background", BACKGROUND))
    ]
    rows = [
        {
            "TPC-C": row["_place"],
            "copies": row["_way"],
            "collection": row["_when"],
            "latency us": row["requests.all.latency_us.mean"],
            "p99 of writes, us": row["requests.write.latency_us.p99"],
            "victims": row["gc.victims"],
            "of them in idle time": row.get("gc.background.victims") or 0,
            "pages moved": row["gc.pages_moved"],
        }
        for row in setting.rows(points)
    ]
    by = {(row["TPC-C"], row["copies"], row["collection"]): float(row["latency us"]) for row in rows}
    pairs = {
        f"{place}, {how}": (by[place, how, "background"], by[place, how, "foreground"])
        for place in places
        for how in ("inter-plane", "copy-back")
    }
    findings = [better(_IDLE, pairs)]
    caption = (
        "TPC-C at 630 IOPS. In the background, garbage is collected after 500 us without a request, up to 8% of free "
        "blocks, and a request interrupts it after a page. The paper gives neither value."
    )
    shown = [row | {"row": f"{row['TPC-C'].removeprefix('80% to ')}, {row['copies']}"} for row in rows]

    def draw() -> Figure:
        names = list(dict.fromkeys(str(row["row"]) for row in shown))
        series = {
            when: [float(row["latency us"]) for row in shown if row["collection"] == when]
            for when in ("foreground", "background")
        }
        return drawing.bars(drawing.Bars("mean latency, us", [_wrapped(name, len(names)) for name in names], series))

    return Exhibit(_table(rows), draw, findings, caption)


# Table 6

_TABLE_6 = (
    Claim("Large logical pages need read-modify-writes.", "Table 6"),
    Claim("Over-provisioning results in less garbage collection.", "Table 6"),
    Claim("Over-provisioning reduces the capacity.", "Table 6"),
    Claim("Ganging reduces parallelism.", "Table 6"),
    Claim("Striping provides concurrency.", "Table 6"),
    Claim("With 15% over-provisioning, 32 GB of flash leave 27 GB.", "Section 4.3", "27 GB"),
    Claim("A large allocation pool balances the load.", "Table 6"),
    Claim("A large allocation pool has few operations within a chip.", "Table 6"),
    Claim("Striping loses locality.", "Table 6"),
)


_SCOPES = ("plane", "package", "device")


@STUDY.exhibit("table-6", "Table 6: tradeoffs in brief")
def table_6(setting: Setting) -> Exhibit:
    """Run random and large requests on devices that differ in one technique."""
    blocks = max(32, agrawal.blocks(setting) // 16)
    base = agrawal.device(setting, blocks) | {"mapping.block_summary": "none"}
    count = 5_000 if setting.quick else 50_000
    random = {
        "workload": f"rw=randwrite norandommap=1 bs=4k iodepth=8 number_ios={count}",
        "precondition": "rw=randwrite norandommap=1 bs=4k io_size=400%",
    }
    read = {"workload": f"rw=randread norandommap=1 bs=256k iodepth=1 number_ios={count // 20}"}
    skewed = {
        "workload": f"rw=randwrite norandommap=1 bs=4k rate_iops=8000 rate_process=poisson number_ios={count // 5} ; "
        f"rw=randwrite norandommap=1 bs=4k blockalign=32k rate_iops=1000 rate_process=poisson number_ios={count // 40}"
    }
    large = "rw=randwrite norandommap=1 bs=256k"
    whole = {"workload": f"{large} number_ios={count // 20}", "precondition": f"{large} io_size=400%"}
    cases: dict[str, dict[str, Any]] = {
        "baseline": random,
        "logical pages of 64 KiB": random | {"geometry.mapping_unit": "64KiB"},
        "25% over-provisioning": random | {"capacity": {"spare": 0.25}},
        "baseline, reads of 256 KiB": read,
        "gang of 8, reads of 256 KiB": read | _GANGS["8-gang, serial"][1],
        "no striping below 256 KiB, reads of 256 KiB": read | {"geometry.mapping_unit": "256KiB"},
        **{
            f"pool of a {scope}, skewed writes": skewed | {"allocation": {"dynamic": {"scope": scope}}}
            for scope in _SCOPES
        },
        "pool of a plane, copy-back": random | ANY_PAGE,
        "pool of a package, copy-back": random | ANY_PAGE | POOL,
        "baseline, writes of 256 KiB": whole,
        "stripes of 256 KiB, writes of 256 KiB": whole | {"allocation.static.stripe": "256KiB"},
    }
    found = {row["_case"]: row for row in setting.rows([base | case | {"_case": name} for name, case in cases.items()])}
    rows = [
        {
            "case": name,
            "latency us": row["requests.all.latency_us.mean"],
            "write amplification": row["write_amplification"],
            "read for partial writes": row["flash.reads_by_cause.rmw"],
            "busiest die / mean": (1 - row["utilization.dies.idle.min"]) / (1 - row["utilization.dies.idle.mean"]),
            "copy-back": row["flash.commands.copy_back"] / row["gc.pages_moved"] if row["gc.pages_moved"] else None,
        }
        for name, row in found.items()
    ]
    by = {str(row["case"]): row for row in rows}
    rmw = by["logical pages of 64 KiB"]["read for partial writes"]
    amplification = [by[name]["write amplification"] for name in list(cases)[:3]]
    times = [float(by[name]["latency us"]) for name in list(cases)[3:6]]
    pools = [float(by[f"pool of a {scope}, skewed writes"]["latency us"]) for scope in _SCOPES]
    copied = [float(by[f"pool of a {scope}, copy-back"]["copy-back"]) for scope in ("package", "plane")]
    striped = [
        float(by[f"{name}, writes of 256 KiB"]["write amplification"]) for name in ("stripes of 256 KiB", "baseline")
    ]
    sizes = [setting.changed("agrawal2008", {"capacity": {"spare": share}}).logical_bytes for share in (0.15, 0.25)]
    findings = [
        holds(_TABLE_6[0], rmw > 0, f"{rmw:,} pages read for {count:,} writes of 4 KiB"),
        better(_TABLE_6[1], {"write amplification": (amplification[2], amplification[0])}),
        better(_TABLE_6[2], {"bytes": (float(sizes[1]), float(sizes[0]))}),
        better(_TABLE_6[3], {"reads": (times[0], times[1])}),
        better(_TABLE_6[4], {"reads": (times[0], times[2])}),
        number(_TABLE_6[5], setting.changed("agrawal2008", {}).logical_bytes / 2**30, 27, neutral=0.0, unit=" GiB"),
        better(
            _TABLE_6[6], {f"than of a {scope}": (pools[2], pools[index]) for index, scope in enumerate(_SCOPES[:2])}
        ),
        better(_TABLE_6[7], {"copy-backs": (copied[0], copied[1])}),
        better(_TABLE_6[8], {"write amplification": (striped[0], striped[1])}),
    ]
    caption = (
        "Uniform writes of 4 KiB and aligned writes of 256 KiB in steady state, and reads of 256 KiB. Skewed writes "
        "are 8000 uniform ones per second, and 1000 to every eighth page, which static striping sends to one package. "
        "Copy-back is the share of moved pages that stay in their plane."
    )

    def draw() -> Figure:
        panels = []
        for part in (rows[:6], rows[6:]):
            names = [_wrapped(str(row["case"]), len(part)) for row in part]
            panels.append(drawing.Bars("latency us", names, {"latency us": _column(part, "latency us")}, log=True))
        return drawing.bars(*panels)

    return Exhibit(_table(rows), draw, findings, caption)


# Wear

_ROTATING = (
    "Fewer blocks wear here than in Table 8. On half the blocks, the trace overwrites twice the share, and more blocks "
    "wear. A guess: the paper's trace overwrites more addresses."
)
_EXPIRED = (
    "DiskSim's SSD extension takes the victim with the highest address among those without valid pages, so the "
    "same blocks wear until they are excluded. It then has as many blocks below the mean as the paper, but more that "
    "have expired. With the oldest victim, blocks take turns, and few expire. The paper does not say what it did."
)
_MADE = "Without the trace, the workload has the moments of IOzone but not its pattern."
_MIGRATED = (
    "The victim with the highest address among equals wears the same blocks, {table-7 | below 80% | + Migration} of a "
    "package more than in the paper. With the oldest victim, there are {table-7 | below 80% | + Migration, oldest "
    "victims}."
)
_PRINTED_7: dict[str, tuple[float, float, int]] = {
    "Greedy": (43.82, 13.47, 223),
    "+ Rate-limiting": (43.82, 13.42, 153),
    "+ Migration": (43.34, 5.71, 0),
}
_PRINTED_8: dict[str, tuple[int, int, int, int]] = {
    "Greedy": (1442, 1323, 523, 13_096),
    "+ Rate-limiting": (1449, 1341, 501, 13_092),
    "+ Migration": (0, 0, 8987, 7397),
}
_CLASSES = ("below 40%", "below 80%", "below 100%", "from 100%")


@STUDY.exhibit("table-7", "Tables 7 and 8: wear under IOzone")
def table_7(setting: Setting) -> Exhibit:
    """Repeat IOzone with three techniques, without simulated time."""
    rows: list[dict[str, Any]] = []
    others = {f"{name}, oldest victims": wear for name, wear in WEAR.items()}
    for name, wear in (WEAR | others).items():
        rules = {"faults": {"wear_out": "count"}} if name in others else DISKSIM_WEAR
        worn = agrawal.baseline(setting, **{"nand.endurance": ENDURANCE, "gc.wear": wear}, **rules)
        life = lifetime(worn, agrawal.load("IOzone", setting).workload, until=f"drive-writes={DRIVE_WRITES}").runs[0]
        scale = PACKAGES * agrawal.scale(setting)
        remaining, expiry = life.remaining_life, life.expiry
        if remaining is None or expiry is None:
            raise AssertionError("a device with faults and an endurance has a remaining life")
        rows.append(
            {
                "technique": name,
                "mean": remaining.mean,
                "deviation": remaining.stddev,
                "expired per package": expiry.blocks / scale,
                "erases per package": life.blocks_erased / scale,
                "migrations per package": life.migrations / scale,
            }
            | {label: count / scale for label, count in zip(_CLASSES, _classes(remaining), strict=True)}
        )
    traced = setting.traces is not None
    findings = []
    for row in rows[: len(WEAR)]:
        name = str(row["technique"])
        mean, deviation, expired = _PRINTED_7[name]
        cause = (_MIGRATED if name == "+ Migration" else _ROTATING) if traced else _MADE
        findings += [
            number(Claim(f"{name}: mean remaining life.", "Table 7", str(mean), cause), row["mean"], mean, neutral=0),
            number(
                Claim(f"{name}: standard deviation.", "Table 7", str(deviation), cause),
                row["deviation"], deviation, neutral=0,
            ),
            _count(
                Claim(f"{name}: expired blocks.", "Table 7", str(expired), _EXPIRED if traced else _MADE),
                row["expired per package"], expired,
            ),
        ]  # fmt: skip
        for label, printed in zip(_CLASSES, _PRINTED_8[name], strict=True):
            claim = Claim(f"{name}: blocks {label}.", "Table 8", f"{printed:,}", cause)
            findings.append(_count(claim, float(row[label]), printed))
    deviations = {str(row["technique"]): float(row["deviation"]) for row in rows}
    findings.append(
        better(
            Claim("Migration gives a much smaller deviation of the remaining life.", "Section 5.1"),
            {name: (deviations["+ Migration"], deviations[name]) for name in list(WEAR)[:2]},
        )
    )
    caption = (
        f"Remaining life of the blocks of a package, with an endurance of {ENDURANCE} erases, after the host has "
        f"written the capacity {DRIVE_WRITES} times. The paper's means are 50 - 101,170 / 16,384 = 43.825 and 50 - "
        "(101,170 + 7,902) / 16,384 = 43.343: a migration is one more erase. Blocks are scaled to 16,384. Victims and "
        "worn-out blocks follow DiskSim's rules: the highest address among equals, and no collection of a worn-out "
        "block. In the last rows, the oldest victim is taken, and blocks are used beyond their endurance."
    )

    def draw() -> Figure:
        shown = rows[: len(WEAR)]
        series = {str(row["technique"]): [float(row[label]) for label in _CLASSES] for row in shown}
        return drawing.bars(drawing.Bars("blocks per package", _CLASSES, series))

    return Exhibit(_table(rows), draw, findings, caption)


def _classes(remaining: Any) -> list[int]:  # noqa: ANN401 (a part of a lifetime)
    names = ("below_40_percent", "below_80_percent", "below_mean", "from_mean")
    return [int(remaining[name]) for name in names]


def _count(claim: Claim, ours: float, printed: int) -> Finding:
    """Check a number of blocks, which may be 0. A hundredth of a percent of the blocks of a package is no block."""
    if printed == 0:
        return holds(claim, ours < 2, f"{ours:.4g} (paper 0)", rule="below 2")
    return number(claim, ours, printed, neutral=0.0)


_FOREGROUND = (
    "Here, collection has one threshold, below which it precedes requests, and a migration holds up all requests of "
    "its package. Its work is small: {migration-cost | added work | migration by copy-back | %} by copy-back, and "
    "{migration-cost | added work | migration through the pins | %} through the pins. If moves queue with requests, "
    "page by page, migrations add {migration-cost | added latency | queued, by copy-back | %} to the latency. With "
    "Poisson arrivals instead of the trace's bursts, packages work {migration-cost | busy | Poisson, by copy-back | %} "
    "of the time, and migrations add {migration-cost | added latency | Poisson, by copy-back | %}, or "
    "{migration-cost | added latency | Poisson, queued, by copy-back | %} if moves queue. The paper does not say when "
    "migrations run. To add so little, their moves must have waited for requests, page by page, and not preceded them."
)
_SHARE_OF_WORK = (
    "The paper does not say how it counts the work. Here it is the time in which packages are busy, which migrations "
    "through the pins extend by {migration-cost | added work | migration through the pins | %}, and by copy-back by "
    "{migration-cost | added work | migration by copy-back | %}, or {migration-cost | added work | Poisson, by "
    "copy-back | %} with Poisson arrivals, where more blocks migrate."
)
_OVERHEAD = (
    Claim("Migrations add 4.7% to the mean latency.", "Section 5.1", "4.7%", _FOREGROUND),
    Claim("Migrations add 4.7% to the work of the packages.", "Section 5.1", "4.7%", _SHARE_OF_WORK),
    Claim("IOzone involves 7,902 migrations per package.", "Section 5.1", "7,902",
          "The trace writes the same addresses of an SSD of any size, so the share of cold blocks differs."),
)  # fmt: skip


#: Garbage collection queues with requests until one block is free.
_QUEUED = {"gc.hard_threshold": 1}


@STUDY.exhibit("migration-cost", "Section 5.1: added latency from migrations")
def migration_cost(setting: Setting) -> Exhibit:
    """Repeat IOzone in simulated time, with and without migrations, and an open load with the same moments."""
    bursts, poisson = agrawal.repeated_iozone(setting), agrawal.repeated_iozone(replace(setting, traces=None))
    never, often = WEAR["+ Rate-limiting"], WEAR["+ Migration"]
    cases: list[tuple[str, Any, Any, dict[str, Any]]] = [
        ("no migration", bursts, never, {}),
        ("migration through the pins", bursts, often, {}),
        ("migration by copy-back", bursts, often, ANY_PAGE),
    ]
    for name, load, options in (
        ("queued", bursts, _QUEUED), ("Poisson", poisson, {}), ("Poisson, queued", poisson, _QUEUED),
    ):  # fmt: skip
        cases.append((f"{name}, no migration", load, never, ANY_PAGE | options))
        cases.append((f"{name}, by copy-back", load, often, ANY_PAGE | options))
    points = [
        agrawal.device(setting) | {"workload": load, "gc.wear": wear, **options}
        | {"nand.endurance": ENDURANCE, "faults": {"wear_out": "count"}, "_case": name}
        for name, load, wear, options in cases
    ]  # fmt: skip
    rows: list[dict[str, Any]] = []
    base: dict[str, Any] = {}
    for row in setting.rows(points):
        shown = {
            "case": row["_case"],
            "latency us": row["requests.all.latency_us.mean"],
            "busy": agrawal.busy_share(row),
            "busy s": agrawal.busy_share(row) * row["measured_s"],
            "migrations per package": row["gc.migrations"] / PACKAGES,
            "erases per package": row["flash.blocks_erased"] / PACKAGES,
        }
        # A case without migrations is the base of the following ones.
        base = shown if "no migration" in row["_case"] else base
        shown["added latency"] = shown["latency us"] / base["latency us"] - 1
        shown["added work"] = shown["busy s"] / base["busy s"] - 1
        rows.append(shown)
    findings = [
        number(_OVERHEAD[0], 1 + rows[2]["added latency"], 1.047, unit="x"),
        number(_OVERHEAD[1], 1 + rows[2]["added work"], 1.047, unit="x"),
        number(_OVERHEAD[2], rows[2]["migrations per package"] / agrawal.scale(setting), 7902, neutral=0.0),
    ]
    caption = (
        "The run of Tables 7 and 8 in simulated time. The paper's migrations use copy-back. Queued: a low hard "
        "threshold, so that collection and migrations queue with requests. Poisson: arrivals of an open load with "
        "IOzone's moments."
    )
    shown_rows = [row for row in rows if "no migration" not in row["case"]]
    return Exhibit(
        _table(rows), lambda: _bars("added share", shown_rows, "case", "added latency", "added work"), findings, caption
    )


_SCALES = (0.01, 0.03, 0.1, 0.3)
_SCALED = Claim(
    "With a shorter life, thresholds matter: 50 instead of 100,000 erases.",
    "Section 5.1",
)
_HALF = Claim(
    "If half the data are never overwritten, greedy wastes half the total life.", "Section 5", "2x",
    "The spare blocks wear together with the hot half, so more than half of the blocks wear.",
)  # fmt: skip
_PATTERNS = {
    "50% of the addresses": "rw=randwrite norandommap=1 bs=4k size=50% number_ios=200k",
    "20% of the addresses": "rw=randwrite norandommap=1 bs=4k size=20% number_ios=200k",
    "90% to 20%": "rw=randwrite norandommap=1 bs=4k random_distribution=zoned:90/20:10/80 number_ios=200k",
}


@STUDY.exhibit("scaled-endurance", "Section 5.1: spread of erases by the scale of the endurance")
def scaled_endurance(setting: Setting) -> Exhibit:
    """Run a package to its first expiry with several endurances."""
    count = 32 if setting.quick else int(128 * setting.footprint)
    scales = _SCALES[:2] if setting.quick else _SCALES
    rows = []
    for pattern, words in _PATTERNS.items():
        for wear in ("none", "agrawal"):
            row: dict[str, Any] = {"writes": pattern, "wear leveling": wear}
            for scale in scales:
                options = {
                    "geometry.channels": 1, "geometry.blocks": count, **agrawal.free(count), "nand.endurance": 1000,
                    "faults": {"wear_out": "limit"}, "gc.wear": wear,
                }  # fmt: skip
                device = setting.changed("agrawal2008", options)
                life = lifetime(device, words, until="first-expiry", endurance_scale=scale).runs[0]
                row[f"{scale:g}"] = life.wear.blocks.stddev / life.wear.blocks.mean
            row["drive writes, last scale"] = life.written.drive_writes
            rows.append(row)
    ends = f"{scales[0]:g}", f"{scales[-1]:g}"
    leveled = [row for row in rows if row["wear leveling"] == "agrawal"]
    half = [row["drive writes, last scale"] for row in rows if row["writes"].startswith("50%")]
    findings = [
        better(_SCALED, {str(row["writes"]): (row[ends[1]], row[ends[0]]) for row in leveled}),
        number(_HALF, half[1] / half[0], 2.0, unit="x"),
    ]
    caption = (
        "Standard deviation of the erases per block, relative to their mean, at the first expiry, for scales of an "
        "endurance of 1000 erases. Policies keep the deviation within a few erases, so a scaled lifetime exaggerates "
        "the relative spread. Without wear leveling, cold data keep their blocks at any endurance "
        "(docs/model/wear.md)."
    )

    def draw() -> Figure:
        series = {
            f"{row['writes']}, {row['wear leveling']}": (list(scales), [float(row[f"{scale:g}"]) for scale in scales])
            for row in rows
        }
        return drawing.lines(
            drawing.Lines("scale of the endurance", "deviation / mean", series, log_x=True, log_y=True)
        )

    return Exhibit(_table(rows), draw, findings, caption)


# Section 5.2

_TWICE = "At this spare space, a half-full SSD gains more than the paper's rule of thumb, as the closed form shows."
_SECTION_5_2 = (
    Claim("A half-full disk is twice as efficient as a full one (random victim).", "Section 5.2",
          "2x", _TWICE),
    Claim("A half-full disk is twice as efficient as a full one (greedy).", "Section 5.2",
          "2x", _TWICE),
    Claim("Without TRIM, the SSD cannot use the free half.", "Section 5.2"),
    Claim("Knowing the volatility of contents makes garbage collection more efficient.", "Section 5.2"),
)  # fmt: skip


@STUDY.exhibit("section-5-2", "Section 5.2: efficiency of garbage collection on a half-full disk")
def section_5_2(setting: Setting) -> Exhibit:
    """Write uniformly to a full disk, and to a disk whose other half is trimmed, or is not."""
    count = agrawal.QUICK_BLOCKS if setting.quick else int(256 * setting.footprint)
    base = agrawal.device(setting, count)
    least = base["gc.soft_threshold"]
    writes = "rw=randwrite norandommap=1 bs=4k"
    states = {
        "full": (f"{writes} io_size=400%", "", 1.0),
        "half full, with TRIM": (f"{writes} size=50% io_size=1000%", " size=50%", 0.5),
    }
    number_ios = 20_000 if setting.quick else 200_000
    points = [
        base | {"precondition": state, "workload": f"{writes}{size} iodepth=8 number_ios={number_ios}"}
        | {"gc.victim": victim, "_state": name, "_used": used, "_victim": victim}
        for victim in ("random", "greedy")
        for name, (state, size, used) in states.items()
    ]  # fmt: skip
    points += [
        base | {"workload": f"{writes} size=50% iodepth=8 number_ios={number_ios}", "gc.victim": victim}
        | {"precondition": f"rw=write bs=1m ; {writes} size=50% io_size=1000%"}
        | {"_state": "half full, without TRIM", "_used": 1.0, "_victim": victim}
        for victim in ("random", "greedy")
    ]  # fmt: skip
    fifth = [
        f"{writes} {where} write_hint={hint} rate_process=poisson rate_iops={share}"
        for where, hint, share in (("size=20%", "short", 80), ("offset=20% size=80%", "extreme", 20))
    ]
    hinted = {"hints": {"classes": [0, 0, 1, 0]}}
    written = f"rw=write bs=1m ; stonewall {fifth[0]} io_size=1600% ; {fifth[1]} io_size=100%"
    measured = " ; ".join(
        f"{job} number_ios={number_ios * share // 5}" for job, share in zip(fifth, (4, 1), strict=True)
    )
    volatile = [
        base | {"precondition": written, "workload": measured, "temperature": classes, "_case": name}
        for name, classes in (("without hints", "none"), ("with hints", hinted))
    ]
    rows: list[dict[str, Any]] = []
    for row in setting.rows(points):
        spare = agrawal.effective_spare(count, 0.85 * row["_used"], least)
        formula = None if "without" in row["_state"] else spare
        if formula is not None and row["_victim"] == "greedy":
            formula = agrawal.fifo_efficiency(spare)
        rows.append(
            {
                "victim": row["_victim"],
                "disk": row["_state"],
                "efficiency": row["gc.efficiency"],
                "closed form": formula,
                "effective spare": spare,
                "write amplification": row["write_amplification"],
            }
        )
    rows += [
        {
            "victim": "greedy",
            "disk": f"80% of writes to 20%, {row['_case']}",
            "efficiency": row["gc.efficiency"],
            "closed form": None,
            "effective spare": agrawal.effective_spare(count, 0.85, least),
            "write amplification": row["write_amplification"],
        }
        for row in setting.rows(volatile)
    ]
    by = {(row["victim"], row["disk"]): row["efficiency"] for row in rows}
    findings = [
        number(claim, by[victim, "half full, with TRIM"] / by[victim, "full"], 2.0, unit="x")
        for victim, claim in zip(("random", "greedy"), _SECTION_5_2, strict=False)
    ]
    findings.append(
        better(
            _SECTION_5_2[2],
            {victim: (by[victim, "half full, without TRIM"], by[victim, "half full, with TRIM"])
             for victim in ("random", "greedy")},
        )
    )  # fmt: skip
    findings.append(better(_SECTION_5_2[3], {"efficiency": (rows[-2]["efficiency"], rows[-1]["efficiency"])}))
    caption = (
        "Uniform writes of 4 KiB in steady state, and writes with 80% to a fifth of the addresses, without and "
        "with hints that separate this fifth. The closed forms use the effective spare factor, without free and open "
        "blocks: the factor itself for a random victim, and FIFO (Desnoyers 2014) for greedy, which is slightly "
        "better."
    )
    shown = [row | {"row": f"{row['victim']}, {row['disk']}"} for row in rows]
    return Exhibit(
        _table(rows), lambda: _bars("efficiency", shown, "row", "efficiency", "closed form"), findings, caption
    )


# DiskSim's extension

_ARRIVALS = (
    "DiskSim draws the time between two requests uniformly. Here arrivals are Poisson, and twice as many follow each "
    "other closely."
)
_REPLAYED = (
    "The trace is the same for SSDs of all sizes, and a smaller one collects more garbage. Generated workloads lack "
    "its bursts."
)
_SIZES_OF_DISKSIM = "bssplit=4k/63:8k/23:12k/9:16k/3:20k/2 rate_iops=2000 rate_process=poisson"
_DISKSIM: list[tuple[str, float, str, str]] = [
    ("250,000 random reads", 136.118, "rw=randread", _ARRIVALS),
    ("250,000 random writes", 329.458, "rw=randwrite", _ARRIVALS),
    ("5 million random writes, garbage collection", 593.438, "rw=randwrite",
     _ARRIVALS),
    ("Postmark", 4140.330, "Postmark", _REPLAYED),
    ("IOzone", 6394.276, "IOzone", _REPLAYED),
]  # fmt: skip


@STUDY.exhibit("disksim", "Results that DiskSim's SSD extension ships")
def disksim(setting: Setting) -> Exhibit:
    """Run the workloads of DiskSim's extension with its parameters."""
    points = []
    for name, _, words, _ in _DISKSIM:
        point = agrawal.device(setting) | DISKSIM | {"_name": name}
        if words in NAMES:
            points.append(point | {"workload": agrawal.load(words, setting).workload})
            continue
        collects = "5 million" in name
        count = round((5_000_000 if collects else 250_000) * agrawal.scale(setting))
        # A job ends when it has written `io_size`, which is `size` by default.
        size = int(RANGE * agrawal.scale(setting)) // 4096 * 4096
        span = f"size={size} io_size={count * 20}k " if collects else ""
        workload = f"{words} norandommap=1 {span}{_SIZES_OF_DISKSIM} number_ios={count}"
        points.append(point | {"workload": workload} | (ANY_PAGE if collects else {}))
    pins = points[2] | {"nand.advanced.copy_back": "off", "_name": "the same, through the pins"}
    found = setting.rows([*points, pins])
    rows, findings = [], []
    for row, (name, printed, _, why) in zip(found, _DISKSIM, strict=False):
        mean = float(row["requests.all.latency_us.mean"])
        counts = {"requests": row["requests.all.count"], "victims": row["gc.victims"]}
        rows.append({"workload": name, "DiskSim us": printed, "Floatgate us": mean, **counts})
        claim = Claim(f"{name}.", "shipped output", f"{printed:.3f} us", why)
        findings.append(number(claim, mean, printed, neutral=0.0, unit=" us"))
    last = found[-1]
    rows.append(
        {
            "workload": pins["_name"],
            "DiskSim us": None,
            "Floatgate us": last["requests.all.latency_us.mean"],
            "requests": last["requests.all.count"],
            "victims": last["gc.victims"],
        }
    )
    caption = (
        "Mean latency, with a link of 0.2384 us per sector, and 1 us per request for arbitration. The SSDs start full. "
        f"The 5 million writes go to the first {RANGE:,} bytes, and victims are moved by copy-back, as in "
        "valid/ssd-rw5m.parv."
    )

    def draw() -> Figure:
        keys = ("DiskSim us", "Floatgate us")
        return _bars("mean latency, us", rows, "workload", *keys, log=True)

    return Exhibit(_table(rows), draw, findings, caption)
