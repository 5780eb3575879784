"""Four placements of a key-value cache on one drive: amplification and latency."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from floatgate.running import run
from floatgate.studies import drawing
from floatgate.studies.study import Exhibit, Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from floatgate.studies.study import Setting

#: A small drive like tlc-direct, with 6 GiB of flash in blocks of 1.5 MiB.
DEVICE = {"geometry.blocks": 64, "geometry.pages": 96}
SPARE = 0.12
#: Share of the drive that the cache uses.
CAPACITY = "90%"
#: Blocks of keys and values. A turn adds 15.2 of them on average.
BLOCK = "704KiB"
PROMPTS = 3000
QUICK_PROMPTS = 60
SEED = 1

PLACEMENTS = {
    "extents, trimmed": "placement=extent search=next trim=1",
    "extents, not trimmed": "placement=extent search=next trim=0",
    "log, not trimmed": "placement=log trim=0",
    "log, trimmed": "placement=log trim=1",
}

STUDY = Study(
    "kvcache",
    "Placements of a key-value cache",
    "Not a paper: four placements of the key-value cache of an inference server on one drive",
    [
        f"Device: tlc-direct with {DEVICE['geometry.blocks']} blocks of {DEVICE['geometry.pages']} pages in each plane "
        f"and {SPARE:.0%} of spare blocks, full before the run.",
        f"Workload: {PROMPTS} prompts of `objects=kv-cache` with blocks of {BLOCK}, whose defaults are moments of "
        "Mooncake's conversations ([objects.md](../reference/objects.md)). 32 requests are outstanding. The cache uses "
        f"{CAPACITY} of the drive, and evicts the objects, or the segments of 16 MiB, that were accessed longest ago. "
        "Blocks of conversations that have ended are removed.",
        "Extents are allocated one after the other (next fit). In `log`, a removed block leaves a gap in its segment.",
    ],
    [],
    variants=(),
)


def _workload(setting: Setting, words: str) -> str:
    prompts = QUICK_PROMPTS if setting.quick else PROMPTS
    return f"objects=kv-cache prompts={prompts} block={BLOCK} seed={SEED} capacity={CAPACITY} replay=depth=32 {words}"


def _row(setting: Setting, name: str) -> dict[str, Any]:
    result = run(
        setting.changed("tlc-direct", {**DEVICE, "capacity.spare": SPARE}), _workload(setting, PLACEMENTS[name]),
        series=False, attribution=False, warn=False,
    )  # fmt: skip
    summary = result.summary
    latency = {kind: summary["requests"][kind]["latency_us"] for kind in ("read", "write")}
    return {
        "placement": name,
        "write amplification": summary["write_amplification"],
        "read p50, us": latency["read"]["p50"],
        "read p99, us": latency["read"]["p99"],
        "write p99, us": latency["write"]["p99"],
        "hit ratio": summary["objects"][0]["hit_ratio"],
    }


@STUDY.exhibit("placements", "Amplification and latency by placement")
def placements(setting: Setting) -> Exhibit:
    """Run all placements on the drive."""
    import pyarrow as pa  # noqa: PLC0415 (half a second, and not always needed)

    rows = [_row(setting, name) for name in PLACEMENTS]

    def draw() -> Figure:
        names = [str(row["placement"]) for row in rows]
        panels = [
            drawing.Bars(label, names, {label: [float(row[label]) for row in rows]}, title=label)
            for label in ("write amplification", "read p99, us")
        ]
        return drawing.bars(*panels)

    by_name = {row["placement"]: row for row in rows}
    log, extents = by_name["log, trimmed"], by_name["extents, trimmed"]
    caption = (
        "Each placement serves the same accesses. A log evicts whole segments, with blocks that are still needed. If "
        f"both are trimmed, {log['hit ratio']:.0%} of the reads hit with a log and {extents['hit ratio']:.0%} with "
        f"extents, and the drive programs {log['write amplification']:.2f} and {extents['write amplification']:.2f} "
        "bytes for each byte written."
    )
    return Exhibit(pa.Table.from_pylist(rows), draw, [], caption)


@STUDY.exhibit("spare", "Amplification by spare blocks")
def spare(setting: Setting) -> Exhibit:
    """Run all placements with more and fewer spare blocks."""
    import pyarrow as pa  # noqa: PLC0415

    shares = (0.12, 0.16, 0.2, 0.28)
    points = [
        {
            "device": "tlc-direct",
            **DEVICE,
            "capacity.spare": share,
            "workload": _workload(setting, words),
            "_placement": name,
            "_spare": share,
        }
        for name, words in PLACEMENTS.items()
        for share in shares
    ]
    found = {(row["_placement"], row["_spare"]): row["write_amplification"] for row in setting.rows(points)}
    rows = [
        {"placement": name, **{f"{share:.0%} spare": found[name, share] for share in shares}} for name in PLACEMENTS
    ]

    def draw() -> Figure:
        series = {name: [float(found[name, share]) for share in shares] for name in PLACEMENTS}
        return drawing.bars(drawing.Bars("write amplification", [f"{share:.0%}" for share in shares], series))

    caption = "The cache uses the same share of the drive, which is smaller with more spare blocks."
    return Exhibit(pa.Table.from_pylist(rows), draw, [], caption)
