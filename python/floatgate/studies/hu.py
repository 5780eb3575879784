"""Common parts of the two studies of Hu et al.: the SSD, its states, and experiments."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from floatgate.device import Device
from floatgate.running import run
from floatgate.studies import drawing, workloads
from floatgate.studies.study import Claim, Exhibit, better, number

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pyarrow as pa
    from matplotlib.figure import Figure

    from floatgate.studies.study import Setting

#: The device is hu2011 with fewer blocks, so that garbage collection starts within a run, and on one channel reaches
#: all blocks: 512 MiB, 128 MiB and 1 GiB of flash.
FOUR_CHANNELS = {"geometry.channels": 4, "geometry.blocks": 64}
ONE_CHANNEL = {"geometry.channels": 1, "geometry.blocks": 64}
EIGHT_CHANNELS = {"geometry.channels": 8, "geometry.blocks": 64}

#: Aged: 90% of the pages are written and invalid, so that garbage collection starts soon. Non-aged: empty.
AGED = "invalid=0.9"
NEW = "none"

_STRICT = {"nand.advanced.strict": True}
#: Basic and advanced commands.
BASIC: dict[str, Any] = {}
COPY_BACK = {how: {"nand.advanced.copy_back": how} for how in ("wise", "blind")}
MULTI_PLANE_WRITE = {how: {"nand.advanced.multi_plane_program": how, **_STRICT} for how in ("wise", "blind")}
MULTI_PLANE_READ = {"nand.advanced.multi_plane_read": "wise", **_STRICT}
INTERLEAVE = {"nand.advanced.interleave": True}
#: The two recommended combinations: all commands wise, or multi-plane writes blind.
COMBINED = {
    how: {**COPY_BACK["wise"], **MULTI_PLANE_WRITE[how], **MULTI_PLANE_READ, **INTERLEAVE} for how in ("wise", "blind")
}

#: Values taken from a run.
METRICS = {
    "read us": "requests.read.latency_us.mean",
    "write us": "requests.write.latency_us.mean",
    "all us": "requests.all.latency_us.mean",
    "span s": "measured_s",
    "erases": "flash.blocks_erased",
    "deviation": "wear.planes.stddev",
    "moved": "flash.programs_by_cause.gc",
    "copy-backs": "flash.commands.copy_back",
    "wasted": "flash.programs_by_cause.waste_copyback",
    "left out": "flash.programs_by_cause.waste_alignment",
    "covered": "updates.covered",
    "uncovered": "updates.uncovered",
    "first": "updates.first",
}

#: Half the range of the mean response time over the seeds.
SPREAD = "all us, ± over seeds"

#: Assumptions about workloads and devices, for both pages.
ABOUT = [
    "Device: the built-in hu2011 (Table 2 of the paper: 4 channels, 4 chips, 2 dies, 2 planes, pages of 2 KiB, "
    "20/200/1500 us, 25 ns per byte), with 64 instead of 2048 blocks per plane, so that garbage collection starts "
    "within a run. The number of channels differs where a figure says so. Reads transfer only the requested sectors "
    "(bus.partial_transfer), as in SSDsim's code. Programs transfer whole pages.",
    "Scheduler: neither paper describes one. SSDsim's code, process(), serves reads before writes, including the reads "
    "for partial writes. These runs do the same (reads-before-writes). The verdicts are repeated with first come, "
    "first served.",
    "Burstiness: the papers only contain mean intervals. Arrivals in the standard runs are Poisson. The verdicts are "
    f"repeated with requests in batches of 8 and of 32, {workloads.BATCH_GAP_US} us apart, at the same rate.",
    "Concurrency: the dies of a chip work together only in one interleaved command (nand.concurrency = command), as in "
    "Section 2.2 and in SSDsim. The papers' 69.1% and their four-page write need independent dies (die). Figures with "
    "these numbers show both.",
    "SSDsim's response times of writes exclude tPROG: a write completes when its data have been transferred. Ours end "
    "when the page is programmed, 200 us later. That makes our ratios of writes smaller.",
    "SSDsim's dynamic allocation writes only the sectors of the request after reading the rest of the page "
    "(allocate_location() adds the sectors that were read to the size only for static allocation). The kept sectors "
    "are never transferred back. In Floatgate they are. This explains the whole difference for Fin1 and Fin2: without "
    "these transfers, our mean write takes 67.6 and 61.8 us beyond tPROG, compared with 68.7 and 65.8 in SSDsim, and "
    "90.1 and 85.4 with them.",
    "States: the papers do not quantify aged. Here 90% of the pages are invalid at the start (invalid=0.9). Non-aged "
    "is empty. Data that the workload reads before writing it are laid out first: where the allocation would have put "
    "them, or, for dynamic allocation in the comparison of allocations, evenly over all chips (hu2013, Section 4.2).",
    "Multi-plane commands need equal block and page addresses (nand.advanced.strict), as in the papers. Response "
    "times are means over all requests of a run, from arrival to completion.",
]


def static(order: str) -> dict[str, Any]:
    """Return options for static allocation in an order, s1 to s6."""
    return {"allocation": {"static": {"order": order}}}


def dynamic(order: str) -> dict[str, Any]:
    """Return options for dynamic allocation with a priority order."""
    return {"allocation": {"dynamic": {"order": order}}}


@dataclass(frozen=True)
class Grid:
    """Runs of several cases under several workloads."""

    rows: list[dict[str, Any]]
    #: The same runs for each seed; the rows are means over these. Empty if unknown.
    samples: list[Grid] = field(default_factory=list)

    @property
    def workloads(self) -> list[str]:
        """Workloads, in order."""
        return list(dict.fromkeys(row["workload"] for row in self.rows))

    @property
    def cases(self) -> list[str]:
        """Cases, in order."""
        return list(dict.fromkeys(row["case"] for row in self.rows))

    def of(self, metric: str, case: str, workload: str) -> float:
        """Return a metric of a run, or 0 if it is undefined."""
        row = next(row for row in self.rows if row["case"] == case and row["workload"] == workload)
        return float(row[metric] or 0.0)

    def pairs(
        self, metric: str, small: str, large: str, workloads: Iterable[str] | None = None
    ) -> dict[str, tuple[float, float]]:
        """Return a metric of two cases by workload. Workloads without the metric, such as no writes, are left out."""
        pairs = {
            name: (self.of(metric, small, name), self.of(metric, large, name)) for name in workloads or self.workloads
        }
        return {name: pair for name, pair in pairs.items() if any(pair)} or {"none": (1.0, 1.0)}

    def normalized(self, metric: str, base: str, cases: Iterable[str] | None = None) -> dict[str, list[float | None]]:
        """Return a metric of each case relative to the base case, by workload."""
        return {
            case: [_over(self.of(metric, case, name), self.of(metric, base, name)) for name in self.workloads]
            for case in cases or self.cases
        }

    def ranges(
        self, metric: str, base: str, cases: Iterable[str] | None = None
    ) -> dict[str, list[tuple[float, float] | None]]:
        """Return the range over the seeds of :meth:`normalized`, or nothing without several seeds."""
        if len(self.samples) < 2:
            return {}
        found = [sample.normalized(metric, base, cases) for sample in self.samples]
        return {
            case: [_range([each[case][at] for each in found]) for at in range(len(self.workloads))] for case in found[0]
        }

    def mean(self, metric: str, small: str, large: str, workloads: Iterable[str] | None = None) -> float:
        """Return the geometric mean of the ratios of two cases, large over small."""
        pairs = self.pairs(metric, small, large, workloads).values()
        return statistics.geometric_mean([max(1e-3, after) / max(1e-3, before) for before, after in pairs])

    def bars(
        self, metric: str, base: str, label: str, title: str = "", *, cases: Iterable[str] | None = None
    ) -> drawing.Bars:
        """Return bars of a metric of each case, relative to the base case."""
        series = self.normalized(metric, base, cases)
        ranges = self.ranges(metric, base, cases)
        return drawing.Bars(label, self.workloads, series, reference=1.0, title=title, ranges=ranges)

    def table(self, *metrics: str) -> pa.Table:
        """Return the runs with these metrics as a table."""
        import pyarrow as pa  # noqa: PLC0415 (half a second, and not always needed)

        spread = [SPREAD] if "all us" in metrics and all(row.get(SPREAD) is not None for row in self.rows) else []
        keys = ("workload", "case", *metrics, *spread)
        return pa.Table.from_pylist([{key: row[key] for key in keys} for row in self.rows])


def _range(values: Sequence[float | None]) -> tuple[float, float] | None:
    known = [value for value in values if value is not None]
    return (min(known), max(known)) if known else None


def _over(value: float, base: float) -> float | None:
    return value / base if base else None


def grid(
    setting: Setting,
    names: Sequence[str],
    cases: Mapping[str, Mapping[str, Any]],
    *,
    state: str = AGED,
    prewrite: str = "allocation",
) -> Grid:
    """Run cases under workloads. A case contains device options, and optionally a ``prewrite`` or ``precondition``."""
    points = [
        {
            "device": "hu2011",
            "scheduler": setting.scheduler,
            "workload": setting.workload(name, seed).trace,
            "precondition": state,
            "prewrite": prewrite,
            **case,
            "_workload": name,
            "_case": label,
            "_seed": seed,
        }
        for seed in setting.seeds
        for name in names
        for label, case in cases.items()
    ]
    rows = [
        {"workload": row["_workload"], "case": row["_case"], "seed": row["_seed"]}
        | {key: row.get(path) for key, path in METRICS.items()}
        for row in setting.rows(points)
    ]
    samples = [Grid([row for row in rows if row["seed"] == seed]) for seed in setting.seeds]
    return Grid([_mean(same) for same in zip(*(sample.rows for sample in samples), strict=True)], samples)


def _mean(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the means over rows that differ in their seeds, and half the range of the mean response time."""
    found = {"workload": rows[0]["workload"], "case": rows[0]["case"]}
    for key in METRICS:
        known = [float(row[key]) for row in rows if row[key] is not None]
        found[key] = statistics.mean(known) if known else None
    known = [float(row["all us"]) for row in rows if row["all us"] is not None]
    found[SPREAD] = (max(known) - min(known)) / 2 if len(known) > 1 else None
    return found


def curves(
    setting: Setting, name: str, cases: Mapping[str, Mapping[str, Any]]
) -> dict[str, tuple[list[float], list[float]]]:
    """Return the response time distribution of all requests by case: microseconds, and shares within them."""
    found = {}
    for label, options in cases.items():
        device = Device("hu2011").with_options({"scheduler": setting.scheduler, **options})
        workload = setting.workload(name).trace
        result = run(
            device, workload, precondition=AGED, prewrite="allocation", series=False, attribution=False, warn=False
        )
        curve = next(each for each in result.summary["distributions"]["latency"] if each["operation"] == "all")
        found[label] = ([float(us) for us in curve["us"]], [1 - n / curve["requests"] for n in curve["longer"]])
    return found


def quantile(curve: tuple[list[float], list[float]], share: float) -> float:
    """Return the response time that this share of the requests does not exceed."""
    us, shares = curve
    return next((at for at, within in zip(us, shares, strict=True) if within >= share), us[-1])


def cdf(found: Mapping[str, tuple[list[float], list[float]]], title: str) -> Figure:
    """Draw distributions of response times."""
    return drawing.lines(
        drawing.Lines(
            "response time, us (logarithmic)", "share of requests within", found, log_x=True, title=title, marked=False
        )
    )


def curve_table(found: Mapping[str, tuple[list[float], list[float]]]) -> pa.Table:
    """Return distributions as a table: response times at some shares of the requests, by case."""
    import pyarrow as pa  # noqa: PLC0415 (half a second, and not always needed)

    shares = (0.1, 0.25, 0.5, 0.75, 0.8, 0.85, 0.9, 0.95, 0.99, 0.999)
    rows = [
        {"share of requests": share, **{f"{name} us": quantile(curve, share) for name, curve in found.items()}}
        for share in shares
    ]
    return pa.Table.from_pylist(rows)


# Experiments of both papers. Cases with the same allocation differ only in the commands.


def copy_back(setting: Setting, names: Sequence[str]) -> Grid:
    """Run copy-back on one channel: off, wise, blind."""
    cases = {"basic": BASIC, "blind": COPY_BACK["blind"], "wise": COPY_BACK["wise"]}
    return grid(setting, names, {k: {**ONE_CHANNEL, **dynamic("s2"), **v} for k, v in cases.items()})


def multi_plane_write(setting: Setting, names: Sequence[str], allocation: Mapping[str, Any]) -> Grid:
    """Run multi-plane writes on one channel: off, blind, wise."""
    cases = {"basic": BASIC, "blind": MULTI_PLANE_WRITE["blind"], "wise": MULTI_PLANE_WRITE["wise"]}
    return grid(setting, names, {k: {**ONE_CHANNEL, **allocation, **v} for k, v in cases.items()})


def multi_plane_read(setting: Setting, names: Sequence[str]) -> Grid:
    """Run multi-plane reads on one channel of a non-aged SSD, with dynamic and static allocation."""
    cases = {
        f"{how}, {what}": {**ONE_CHANNEL, **allocation, **command}
        for how, allocation in (("dynamic", dynamic("s3")), ("static", static("s3")))
        for what, command in (("basic", BASIC), ("MPR", MULTI_PLANE_READ))
    }
    return grid(setting, names, cases, state=NEW)


def interleave(setting: Setting, names: Sequence[str], allocation: Mapping[str, Any]) -> Grid:
    """Run one channel with and without interleaving."""
    cases = {"basic": BASIC, "interleave": INTERLEAVE}
    return grid(setting, names, {k: {**ONE_CHANNEL, **allocation, **v} for k, v in cases.items()})


def combined(setting: Setting, names: Sequence[str], allocation: Mapping[str, Any]) -> Grid:
    """Run all advanced commands in the two recommended combinations, on one channel."""
    cases = {"basic": BASIC, "MPW blind": COMBINED["blind"], "all wise": COMBINED["wise"]}
    return grid(setting, names, {k: {**ONE_CHANNEL, **allocation, **v} for k, v in cases.items()})


#: Commands for which Sections 4.3.2 to 4.3.4 of hu2011 name the best static order.
COMMANDS: dict[str, dict[str, Any]] = {
    "multi-plane": {**MULTI_PLANE_WRITE["blind"], **MULTI_PLANE_READ},
    "interleave": INTERLEAVE,
    "all": COMBINED["blind"],
}
STATIC_ONE = ("s2", "s3", "s4", "s5", "s6")


def static_by_command(setting: Setting, names: Sequence[str]) -> Grid:
    """Run static orders with each advanced command, on one channel of an aged SSD."""
    cases = {
        f"{command}, {order.upper()}": {**ONE_CHANNEL, **static(order), **options}
        for command, options in COMMANDS.items()
        for order in STATIC_ONE
    }
    return grid(setting, names, cases)


def copy_back_static(setting: Setting, names: Sequence[str]) -> Grid:
    """Run copy-back with static allocation on one channel: off, wise, blind."""
    cases = {"basic": BASIC, "blind": COPY_BACK["blind"], "wise": COPY_BACK["wise"]}
    return grid(setting, names, {k: {**ONE_CHANNEL, **static("s2"), **v} for k, v in cases.items()})


def one_request(
    setting: Setting, operation: str, pages: int, options: Mapping[str, Any], *, dies: int, planes: int
) -> float:
    """Return the response time of a single request of `pages` pages on one chip, in microseconds."""
    chip = {"geometry.channels": 1, "geometry.chips": 1, "geometry.dies": dies, "geometry.planes": planes}
    device = Device("hu2011").with_options({"scheduler": setting.scheduler, "geometry.blocks": 64, **chip, **options})
    job = f"rw={operation} bs={2 * pages}k size={2 * pages}k number_ios=1"
    result = run(device, job, precondition="none", prewrite="allocation", series=False, attribution=False, warn=False)
    return float(result.summary["requests"]["all"]["latency_us"]["mean"])


def four_page_write(setting: Setting) -> list[dict[str, Any]]:
    """Write four pages to one chip with each command and both kinds of concurrency."""
    ways: dict[str, tuple[dict[str, Any], int, int, str]] = {
        "basic commands": (BASIC, 2, 2, "s6"),
        "two multi-plane writes of a die": (MULTI_PLANE_WRITE["wise"], 1, 2, "s5"),
        "two interleaved writes of two dies": (INTERLEAVE, 2, 1, "s4"),
        "one interleaved two-plane write": ({**MULTI_PLANE_WRITE["wise"], **INTERLEAVE}, 2, 2, "s6"),
    }
    return [
        {
            "way": way,
            **{
                f"{concurrency} us": one_request(
                    setting, "write", 4, {**static(order), **_for(concurrency, command)},
                    dies=dies, planes=planes,
                )
                for concurrency in CONCURRENCIES
            },
        }
        for way, (command, dies, planes, order) in ways.items()
    ]  # fmt: skip


def _for(concurrency: str, command: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a command. Independent dies need no option to be interleaved."""
    kept = {key: value for key, value in command.items() if key not in INTERLEAVE or concurrency == "command"}
    return {"nand.concurrency": concurrency, **kept}


def channel_share(setting: Setting, concurrency: str) -> float:
    """Return the share of time in which interleaved two-plane writes to one chip fill its channel with data."""
    device = Device("hu2011").with_options(
        {
            "scheduler": setting.scheduler, "bus.transfer_spare": True,
            "geometry.channels": 1, "geometry.chips": 1, "geometry.blocks": 512, **static("s6"),
            **_for(concurrency, {**MULTI_PLANE_WRITE["wise"], **INTERLEAVE}),
        }
    )  # fmt: skip
    result = run(
        device, "rw=write bs=8k iodepth=16 size=16m", precondition="none", series=False, attribution=False, warn=False
    )
    return float(result.summary["utilization"]["channels"]["data"]["mean"])


#: Concurrency of the dies of a chip: joint commands only, or independent dies.
CONCURRENCIES = ("command", "die")


def four_page_exhibit(setting: Setting, claims: Sequence[Claim], two_page: Claim | None = None) -> Exhibit:
    """Return the exhibit of the four-page write, which both papers contain."""
    import pyarrow as pa  # noqa: PLC0415 (half a second, and not always needed)

    rows = four_page_write(setting)
    _, multi_plane, interleaved, _ = rows
    findings = [
        better(claim, {concurrency: (interleaved[f"{concurrency} us"], multi_plane[f"{concurrency} us"])})
        for claim, concurrency in zip(claims, CONCURRENCIES, strict=True)
    ]
    if two_page is not None:
        basic, merged = (
            one_request(setting, "read", 2, {**static("s3"), **command}, dies=1, planes=2)
            for command in (BASIC, MULTI_PLANE_READ)
        )
        findings.append(number(two_page, basic / merged, 1.16, unit="x"))

    def draw() -> Figure:
        series = {f"nand.concurrency = {at}": [row[f"{at} us"] for row in rows] for at in CONCURRENCIES}
        names = ["basic", "2 multi-plane", "2 interleaved", "1 of both"]
        return drawing.bars(drawing.Bars("response time, us", names, series))

    caption = (
        "A single write of four pages of 2 KiB on one chip. Two multi-plane writes to one die take 2 (2 X + tPROG) = "
        "604.8 us. Two interleaved writes to two dies take equally long if the chip accepts its next command only when "
        "both dies have finished (command), and 2 (X + tPROG) + X = 553.6 us if each die continues independently (die)."
    )
    return Exhibit(pa.Table.from_pylist(rows), draw, findings, caption)


#: Dynamic orders to compare, by their levels. The papers swap the labels of the last two.
DYNAMIC_EIGHT = {"chip > die > plane > channel": "s1", "channel > chip > die > plane": "s2"}
DYNAMIC_ONE = {
    "channel > chip > die > plane": "s2",
    "channel > die > chip > plane": "s4",
    "channel > die > plane > chip": "s6",
    "channel > plane > die > chip": "s5",
}
STATIC_EIGHT = {
    "S1: chip > die > plane > channel": "s1",
    "S2: channel > chip > die > plane": "s2",
    "S3: channel > plane > chip > die": "s3",
    "S4: channel > die > chip > plane": "s4",
    "S5: channel > plane > die > chip": "s5",
    "S6: channel > die > plane > chip": "s6",
}


def dynamic_orders(
    setting: Setting, names: Sequence[str], channels: Mapping[str, Any], prewrite: str = "allocation"
) -> Grid:
    """Run priority orders of dynamic allocation on eight channels or one, with all advanced commands."""
    orders = DYNAMIC_EIGHT if channels == EIGHT_CHANNELS else DYNAMIC_ONE
    cases = {name: {**channels, **dynamic(order), **COMBINED["blind"]} for name, order in orders.items()}
    return grid(setting, names, cases, prewrite=prewrite)


def static_orders(setting: Setting, names: Sequence[str]) -> Grid:
    """Run static orders on eight channels with all advanced commands, on a non-aged SSD."""
    cases = {k: {**EIGHT_CHANNELS, **static(v), **COMBINED["blind"]} for k, v in STATIC_EIGHT.items()}
    return grid(setting, names, cases, state=NEW)


#: Reasons for unmet claims, found on the standard runs: by latency breakdowns, by changing one parameter, or by
#: calculation. Numbers are from the runs with the footprint of 48 MiB unless noted otherwise.
WHY = {
    "four pages": "If the chip accepts its next command only when both dies have finished, the second interleaved "
    "write waits for the slower die of the first: 2 (2 X + tPROG) = 604.8 us, the same as two multi-plane writes. In "
    "the paper's figure, each die of the second command starts when it is idle, as in the next line.",
    "69.1": "69.1% is 4 X / (2 X + tPROG): the data of one die are transferred while the other one programs, which "
    "needs independent dies. If both must finish before the next command, it is 4 X / (4 X + tPROG) = 51.4%. hu2011, "
    "Section 2.2, says that the dies of a chip work together only in one interleaved command, and SSDsim's code does "
    "the same.",
    "endurance": "Erases follow from the pages written and moved. Here both allocations write the same pages and "
    "spread hot regions over the planes, so that victims contain equally few valid pages. Erases differ by less than "
    "1%, under Fin2 by 4%. In the paper, endurance also means how evenly erases are spread, for which see Table 3.",
    "best order": "On one channel with Poisson arrivals, chips are mostly idle. Therefore an order that uses another "
    "chip first is faster with every command: under Fin1 with multi-plane commands, S2 takes 324 us, S3 366, S6 451. "
    "S2 sends the second page of a request to another chip, which takes 2 X + tPROG. An order that sends it to the "
    "same chip combines it with the first page only if the command allows that. Otherwise the second page waits for "
    "the whole chip. Multi-plane commands also need equal addresses. Interleaving does not: there, S4 and S2 are "
    "within 3%.",
    "one channel": "Under Fin1 and Fin2, most reads have one or two pages, and dynamic allocation has put neighboring "
    "pages anywhere. There the counts match the paper. Under the other workloads, reads have so many pages that each "
    "of the four channels has several of them with either allocation, so that scattered pages add little. Pages that "
    "are read before they are written are laid out evenly, as in the paper.",
    "page": "Two pages of 2 KiB are transferred on two of the four channels in parallel, 51 + 200 us; one page of 4 "
    "KiB takes 102 + 200 us. With static S2, the smallest page is fastest under every workload as long as the chips "
    "are mostly idle. SSDsim does not contradict this: with these traces, it also prefers 2 KiB to 4 and 8 KiB. SSDsim "
    "transfers only the sectors of a request, which makes its large pages cheaper (above all for small writes), but "
    "not the best. Larger pages are favored by a load that keeps chips busy, because they need fewer programs: with "
    "batches of 32, Ex is best with 4 KiB, and the factor under MSN reaches the paper's 1.8. This does not explain "
    "the paper's Fin1, whose writes replace parts of pages: 16 KiB take 410 us on the channel.",
    "allocation": "Dynamic allocation avoids busy chips, and with Poisson arrivals few chips are busy. It avoids "
    "these: on the aged SSD, the time that a write waits for garbage collection falls from 29 to 2 us under Ex, and "
    "from 18 to 1 us under MSN (latency breakdown), and writes are 11 and 9% faster there. Under Fin1, whose requests "
    "are small and far apart, a write waits for a die for only 1 us with static allocation, so that nothing can be "
    "gained. Dynamic allocation loses another 4 us to the channel, because the pages of a request go to any channel. "
    "Reads become 10% slower, as the paper says, and then decide the overall result. In batches of 8, the result "
    "matches the paper: a write of Fin1 waits for dies for 70 instead of 156 us, a write of Ex for 387 instead of "
    "504 us, and writes are faster under all workloads. The paper's traces have bursts, which the means in the table "
    "do not show. Dev stays slower overall: 89% of its requests are reads of several pages. Part of SSDsim's own "
    "advantage is that dynamic allocation does not transfer back the kept sectors of a partial write (see above).",
    "wear": "Static: our hot spots are regions of 64 KiB, which S2 stripes over 32 of the 64 planes. Therefore hot "
    "regions wear planes evenly (deviation below 3 under Dev, Ex and MSN), except for the small requests of Fin1 and "
    "Rad (13 and 8). Hot single pages, as in real traces, would show. Dynamic: our allocation cycles through the "
    "channels, and takes the least recently used plane if several are free, so that all planes receive nearly the "
    "same number of pages. The deviation is 0 to 0.4 with basic commands, less than in the paper. A factor with a "
    "divisor close to 0 means little; 0 counts as a factor of 1000.",
    "copy-back": "The cost of blind copy-back depends on how much each victim has to move, that is, on how full the "
    "SSD is, and on whether garbage collection delays the host. Every second copy wastes a page. If a share u of a "
    "victim's pages is valid, erases grow by a factor of (1 - u) / (1 - 1.5 u), which is unbounded as u approaches "
    "2/3. At our footprint, u is 0.17 under MSN: the formula gives 1.12, the run 1.15; 17.8 needs u = 0.65. With "
    "SSDsim's order, garbage collection runs when the host waits for nothing, so that response times do not show it. "
    "At twice the footprint, where u is at least 0.5, the collapse of the paper appears: response times grow 12 times "
    "under MSN, erases 9 times under Rad and 7 times under Dev.",
    "copy-back half": "Half is expected if few pages of a victim are valid. If most pages are valid, they are adjacent "
    "to each other, and the parity is met more often (docs/model/commands.md). At twice the footprint, victims are "
    "fuller.",
    "copy-back wise": "It saves two transfers for every second page moved (half of them meet the parity). With "
    "SSDsim's order, garbage collection runs when the host waits for nothing, so that the gain does not show. With "
    "first come, first served, MSN gains 4%. At twice the footprint, copy-back decides whether the channel keeps up: "
    "with basic commands, it does not under MSN and Ex, and writes queue for minutes. Pages that thousands of waiting "
    "writes will replace are still valid then, so that a victim has 44 valid pages instead of 33 (MSN), and basic "
    "commands erase more, not less.",
    "sooner": "The cause is twice the footprint. With basic commands, the channel does not keep up under MSN and Ex "
    "there, and writes queue for minutes. Pages that thousands of waiting writes will replace are still valid then. "
    "Victims are fuller, and basic commands erase more than commands that keep up (see Figure 14); with static "
    "allocation under Ex, less.",
    "multi-plane": "Two pages take 2 X + tPROG = 302 us as one two-plane write, and also as two writes to two idle "
    "chips, because the channel is the same. A two-plane write gains only if chips are scarce, and the four chips of "
    "our channel are mostly idle. Only its cost remains: 3 to 5% more pages are wasted and erased, and a chip is busy "
    "for both pages. Batches do not change that: then the channel is scarce, and both ways fill it equally. With "
    "static S3, which always sends the second page to the other plane, it is 1 to 6% faster.",
    "multi-plane pages": "Dynamic allocation alternates between the planes of a die. Their next pages stay close "
    "together, and aligning them rarely wastes a page. In the paper, the next pages are farther apart: about one page "
    "is wasted per page written. For copy-back see above: the waste follows from how much is moved.",
    "mpr": "A request that is exactly one two-plane read gains 1.16 times (as in Figure 19): 2 (tR + X) = 142.4 us "
    "becomes tR + 2 X = 122.4 us. The requests of Web have eight pages on a channel whose other chips read at the "
    "same time, so that only the first tR shows: at most 20 of 430 us, 1.05 times. Our gain is smaller, because not "
    "all requests start at an even page, and part of a page transfers fewer sectors than the formula assumes.",
    "late page": "The cause is batches, under Web and Dev. The chip accepts its next command when all dies of an "
    "interleaved command have finished. A read whose data wait for the transfer of another die occupies the chip. "
    "In batches of 8, reads of Web wait for the channel for 201 instead of 91 us, and less for dies (latency "
    "breakdown).",
    "four levels": "With one page after another, two levels use two chips of a channel and four levels use two dies of "
    "one chip: 2 X + tPROG in both cases, as long as chips are idle, which they mostly are with Poisson arrivals. "
    "Then the whole chip is busy until all its dies have finished (one ready/busy signal), and multi-plane writes "
    "waste pages: four levels cost more than they gain. In batches, chips are scarce, and static allocation gains "
    "from four levels under Ex, Fin1 and Rad, up to 1.15 times in batches of 32, but not under Dev, where reads "
    "dominate. The 20% under Ex are not reached: 6% in batches of 32.",
    "load": "The order of chip, die and plane matters if chips are scarce. At these intervals, one channel keeps its "
    "chips idle most of the time. In batches, the channel itself is scarce. All orders are within 1 to 3%, and "
    "details decide the sign. The difference in the paper arises because the chips of combined commands become free "
    "sooner; docs/model/parallelism.md has the orders under higher loads.",
    "even": "The reason is the location of the data that are read. Here the allocation determines it, so that with "
    "chip first, a read of eight pages uses one channel: 430 us instead of 71 us. hu2013, Section 4.2, instead lays "
    "the data out evenly over all chips for any allocation. The next line uses that interpretation.",
    "planes first": "The cause is Ex, whose larger requests put a second page on some of the channels. S2 sends it to "
    "another chip. The other orders send it to the same chip, where it waits unless it joins the command of the first "
    "page: writes wait for dies for 8 us with S2, 16 with S6, 26 and 28 with S3 and S5 (latency breakdown). Blind "
    "multi-plane writes also waste 90,000 pages for 511,000 written.",
    "order": "Under the real workloads, all orders except S1 are nearly equal, so that fractions of a percent decide "
    "the mean over workloads: S2 and S4 are the best, and S6 is within half a percent of them, and equal in batches "
    "of 32. See above for Syn1 to Syn4.",
}
