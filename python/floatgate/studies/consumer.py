"""Consumer drives: rates of the built-in devices beside those of data sheets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from floatgate.studies import drawing
from floatgate.studies.study import Exhibit, Study

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.figure import Figure

    from floatgate.studies.study import Setting

SCALE, QUICK_SCALE = "1/16", "1/20"
#: Time of the host's software for each request, which measurements of drives include.
SOFTWARE = "5us"
#: Simulated milliseconds before the measured part, in which writes fill the write buffer.
BEFORE = 20
#: Simulated milliseconds of the measured part, by block size.
MEASURED, QUICK_MEASURED = {"128k": 60, "4k": 20}, {"128k": 5, "4k": 1}
#: Before sustained writes are measured, the SLC cache is full, and writes and folding have their steady rate.
RAMP, SUSTAINED = 1.2, 0.3
QUICK_RAMP, QUICK_SUSTAINED = 0.01, 0.01

#: Quantity: operation, block size, and depth.
QUANTITIES = {
    f"{'sequential' if size == '128k' else 'random'} {operation}, depth {depth}": (operation, size, depth)
    for size, depths in (("128k", (1, 32)), ("4k", (1, 32, 256)))
    for operation in ("read", "write")
    for depth in depths
}
SUSTAINED_WRITE = "sequential write, cache full"
#: States of the device. A quick run has the first one only.
STATES = ("empty", "steady")


@dataclass(frozen=True)
class Sheet:
    """What the maker of a drive states: MB/s of requests of 128 KiB, thousands of requests of 4 KiB per second."""

    drive: str
    source: str
    values: Mapping[str, float | str]


def _sheet(
    drive: str,
    source: str,
    sequential: tuple[int, int],
    random: tuple[int, int] | None = None,
    at_depth_1: tuple[int, int] | None = None,
    *,
    depth: int = 256,
    sustained: str = "",
) -> Sheet:
    values: dict[str, float | str] = {}
    for prefix, at, pair in (("sequential", 32, sequential), ("random", depth, random), ("random", 1, at_depth_1)):
        if pair is not None:
            values |= {f"{prefix} {name}, depth {at}": one for name, one in zip(("read", "write"), pair, strict=True)}
    return Sheet(drive, source, values | ({SUSTAINED_WRITE: sustained} if sustained else {}))


#: Sheets of drives of the class of each device. Makers state the most that a drive reaches, from its SLC cache.
SHEETS = {
    "tlc-nvme": [
        _sheet(
            "Samsung 980 PRO 1 TB",
            "[Legit Reviews]"
            "(https://legitreviews.com/samsung-ssd-980-pro-review-1tb-500gb-capacities-benchmarked_222142)",
            (7000, 5000), (1000, 1000),
        ),
        _sheet(
            "WD SN850X 1 TB", "[PC Spec Chart](https://pcspecchart.com/pc_parts/ssdnvme/107)",
            (7300, 6300), (800, 1100),
        ),
        _sheet(
            "SK hynix Platinum P41 1 TB",
            "[Tom's Hardware](https://www.tomshardware.com/reviews/sk-hynix-platinum-p41-ssd-review)",
            (7000, 6500), (1400, 1300),
        ),
        _sheet(
            "Samsung 980 1 TB (PCIe 3)",
            "[Guru3D](https://www.guru3d.com/articles-pages/samsung-980-1tb-nvme-ssd-review,2.html)",
            (3500, 3000), (500, 480), (17, 54), depth=32,
        ),
    ],
    "qlc-nvme": [
        _sheet(
            "Intel 670p 2 TB (PCIe 3)",
            "[Tom's Hardware, quoted]"
            "(https://csblackdevil.com/forums/topic/387212)",
            (3500, 2700), (310, 340), (20, 54),
        ),
        _sheet(
            "Crucial P310 2 TB", "[PGrid](https://www.pgrid.app/au/ssds/crucial-p310-2000gb)", (7100, 6000),
            sustained="often below 400",
        ),
        _sheet(
            "Crucial P1 1 TB (PCIe 3)",
            "[Tech Report](https://techreport.com/review/34266/crucial-p1-500-gb-qlc-nvme-ssd-reviewed)",
            (2000, 1700), (170, 240),
        ),
    ],
}  # fmt: skip

STUDY = Study(
    "consumer",
    "Consumer drives",
    "Data sheets of drives that are sold, as the linked pages quote them",
    [
        "Not a paper: the devices `tlc-nvme` and `qlc-nvme`, which stand for a class of drives, not for one product, "
        f"with {SCALE} of their blocks (`--scale`). Sequential requests have 128 KiB and their rates are MB/s; random "
        f"ones have 4 KiB, and their rates are thousands per second. The host's software takes {SOFTWARE} for a "
        f"request (`host.software`). The first {BEFORE} ms are not counted, in which writes fill the write buffer.",
        "Empty: nothing was written before, and reads find data in native blocks (`fill`). Steady: random writes "
        "have reached their steady state (`steady`), and the SLC cache is empty. Cache full: writes of 128 KiB at "
        f"depth 32 after {RAMP} s of them.",
        "Makers state the most that a drive reaches. Their random reads at depth 1 are those of data in the SLC cache, "
        "so drives read faster there than the devices do.",
    ],
    [],
    variants=(),
)


def _point(setting: Setting, device: str, state: str, quantity: str) -> dict[str, Any]:
    if quantity == SUSTAINED_WRITE:
        ramp, measured = (QUICK_RAMP, QUICK_SUSTAINED) if setting.quick else (RAMP, SUSTAINED)
        operation, size, depth, time = "write", "128k", 32, f"ramp_time={ramp} runtime={measured}"
    else:
        operation, size, depth = QUANTITIES[quantity]
        before, by_size = (0, QUICK_MEASURED) if setting.quick else (BEFORE, MEASURED)
        time = f"ramp_time={before}ms runtime={by_size[size]}ms"
    reads = operation == "read"
    pattern = operation if size == "128k" else f"rand{operation} norandommap=1"
    return {
        "device": device,
        "workload": f"rw={pattern} bs={size} iodepth={depth} {time} time_based",
        "precondition": "steady" if state == "steady" else "fill" if reads else "none",
        "host.software": SOFTWARE,
        "_state": state,
        "_quantity": quantity,
        "_metric": f"requests.{operation}.{'mib_per_s' if size == '128k' else 'iops'}",
    }


def _show(device: str) -> None:
    @STUDY.exhibit(device, f"{device} and drives of its class")
    def show(setting: Setting) -> Exhibit:
        import pyarrow as pa  # noqa: PLC0415 (half a second, and not always needed)

        quantities = [*list(QUANTITIES)[:: 4 if setting.quick else 1], SUSTAINED_WRITE]
        points = [
            _point(setting, device, state, quantity)
            for quantity in quantities
            for state in STATES[: 1 if setting.quick or quantity == SUSTAINED_WRITE else 2]
        ]
        found = {}
        for row in setting.rows(points, scale=QUICK_SCALE if setting.quick else SCALE):
            unit = 1.048576 if row["_metric"].endswith("mib_per_s") else 1e-3
            found[row["_quantity"], row["_state"]] = row[row["_metric"]] * unit
        sheets = SHEETS[device]
        rows = [
            {
                "quantity": quantity,
                "empty": found[quantity, "empty"],
                "steady": found.get((quantity, "steady")),
                **{sheet.drive: _text(sheet.values.get(quantity)) for sheet in sheets},
            }
            for quantity in quantities
        ]

        def draw() -> Figure:
            panels = []
            for label, start in (("MB/s", "sequential"), ("thousands per second", "random")):
                shown = [row for row in rows if row["quantity"].startswith(start) and row["quantity"] in QUANTITIES]
                panels.append(drawing.Bars(
                    label,
                    [row["quantity"].removeprefix(f"{start} ").replace(", depth", "") for row in shown],
                    {state: [row[state] for row in shown] for state in STATES},
                    title=f"{start} requests",
                ))  # fmt: skip
            return drawing.bars(*panels)

        return Exhibit(pa.Table.from_pylist(rows), draw, [], "Sources: " + ", ".join(
            f"{sheet.drive}: {sheet.source}" for sheet in sheets
        ) + ".")  # fmt: skip


def _text(value: float | str | None) -> str:
    return "-" if value is None else str(value)


for _device in SHEETS:
    _show(_device)
