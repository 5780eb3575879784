"""What the two studies of Hu et al. share: the SSD, its states, and experiments."""

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

#: The SSD is hu2011's, with fewer blocks, so that cleaning begins within a run, and on one channel goes over the whole
#: of it: 512 MiB, 128 MiB and 1 GiB of flash.
FOUR_CHANNELS = {"geometry.channels": 4, "geometry.blocks": 64}
ONE_CHANNEL = {"geometry.channels": 1, "geometry.blocks": 64}
EIGHT_CHANNELS = {"geometry.channels": 8, "geometry.blocks": 64}

#: Aged: nine tenths of the pages are written and stale, so that cleaning begins soon. Non-aged: nothing is written.
AGED, NEW = "invalid=0.9", "none"

_STRICT = {"nand.advanced.strict": True}
#: Commands beyond the basic ones.
BASIC: dict[str, Any] = {}
COPY_BACK = {how: {"nand.advanced.copy_back": how} for how in ("wise", "blind")}
MULTI_PLANE_WRITE = {how: {"nand.advanced.multi_plane_program": how, **_STRICT} for how in ("wise", "blind")}
MULTI_PLANE_READ = {"nand.advanced.multi_plane_read": "wise", **_STRICT}
INTERLEAVE = {"nand.advanced.interleave": True}
#: The two recommended ways of using them: all wisely, or multi-plane writes blindly.
COMBINED = {
    how: {**COPY_BACK["wise"], **MULTI_PLANE_WRITE[how], **MULTI_PLANE_READ, **INTERLEAVE} for how in ("wise", "blind")
}

#: What is taken from a run.
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

#: Half the range over the seeds of the mean response time.
SPREAD = "all us, ± over seeds"

#: How the workloads and devices are read, for both pages.
ABOUT = [
    "Device: the built-in hu2011 (Table 2 of the paper: 4 channels, 4 chips, 2 dies, 2 planes, pages of 2 KiB, "
    "20/200/1500 us, 25 ns a byte), with 64 instead of 2048 blocks in a plane, so that cleaning begins within a run. "
    "Other channels where the figure says so. Reads move only the sectors that are needed (bus.partial_transfer), as "
    "in "
    "SSDsim's code; programs move whole pages.",
    "Scheduler: neither paper gives one. SSDsim's code, process(), serves reads before writes, reads for partial "
    "writes "
    "among them; so do these runs (reads-before-writes). The verdicts are repeated first come, first served.",
    "Burstiness: the papers print mean intervals alone. The standard runs are Poisson; the verdicts are repeated with "
    f"requests in batches of 8 and of 32, {workloads.BATCH_GAP_US} us apart, at the same rate.",
    "Concurrency: the dies of a chip work together only in one interleaved command (nand.concurrency = command), as in "
    "Section 2.2 and in SSDsim. The papers' 69.1 % and their four-page write need dies by themselves (die): both stand "
    "side by side at the figures that print them.",
    "SSDsim's response times of writes leave out tPROG: a write completes when its data have crossed the channel. Ours "
    "end "
    "when the page is programmed, 200 us later; that makes our ratios of writes smaller.",
    "SSDsim's dynamic allocation writes only the sectors of the request after it has read what a page keeps "
    "(allocate_location() adds what was read to the size for static allocation only), so that the kept sectors are "
    "never "
    "moved back. Here they are. It is the whole difference of Fin1 and Fin2: where we leave them out as well, the mean "
    "write is 67.6 and 61.8 us beyond tPROG, in SSDsim 68.7 and 65.8, as we have it 90.1 and 85.4.",
    "States: the papers give no figure for aged. Here nine tenths of the pages are stale at the start (invalid=0.9); "
    "non-aged is empty. What a workload reads before it has written it is laid out first: where the allocation would "
    "have put it, or, for dynamic allocation in the comparison of allocations, evenly over all chips (hu2013, "
    "Section 4.2).",
    "Multi-plane commands need equal block and page addresses (nand.advanced.strict), as the papers say. Response "
    "times are means over all requests of a run, from arrival to completion.",
]


def static(order: str) -> dict[str, Any]:
    """Choose static allocation in an order, s1 to s6."""
    return {"allocation": {"static": {"order": order}}}


def dynamic(order: str) -> dict[str, Any]:
    """Choose dynamic allocation with a priority order."""
    return {"allocation": {"dynamic": {"order": order}}}


@dataclass(frozen=True)
class Grid:
    """Runs of several cases under several workloads."""

    rows: list[dict[str, Any]]
    #: The same for each seed, of which the rows are means; empty where that is unknown.
    samples: list[Grid] = field(default_factory=list)

    @property
    def workloads(self) -> list[str]:
        """The workloads, in order."""
        return list(dict.fromkeys(row["workload"] for row in self.rows))

    @property
    def cases(self) -> list[str]:
        """The cases, in order."""
        return list(dict.fromkeys(row["case"] for row in self.rows))

    def of(self, metric: str, case: str, workload: str) -> float:
        """Give a figure of a run; a mean of nothing is 0."""
        row = next(row for row in self.rows if row["case"] == case and row["workload"] == workload)
        return float(row[metric] or 0.0)

    def pairs(
        self, metric: str, small: str, large: str, workloads: Iterable[str] | None = None
    ) -> dict[str, tuple[float, float]]:
        """Give a figure of two cases by workload; where there is none, such as a mean of no writes, it is left out."""
        pairs = {
            name: (self.of(metric, small, name), self.of(metric, large, name)) for name in workloads or self.workloads
        }
        return {name: pair for name, pair in pairs.items() if any(pair)} or {"none": (1.0, 1.0)}

    def normalised(self, metric: str, base: str, cases: Iterable[str] | None = None) -> dict[str, list[float | None]]:
        """Give a figure of each case over that of the base, by workload."""
        return {
            case: [_over(self.of(metric, case, name), self.of(metric, base, name)) for name in self.workloads]
            for case in cases or self.cases
        }

    def ranges(
        self, metric: str, base: str, cases: Iterable[str] | None = None
    ) -> dict[str, list[tuple[float, float] | None]]:
        """Return the range over the seeds of :meth:`normalised`; nothing where there are not several seeds."""
        if len(self.samples) < 2:
            return {}
        found = [sample.normalised(metric, base, cases) for sample in self.samples]
        return {
            case: [_range([each[case][at] for each in found]) for at in range(len(self.workloads))] for case in found[0]
        }

    def mean(self, metric: str, small: str, large: str, workloads: Iterable[str] | None = None) -> float:
        """Give the geometric mean of the ratios of two cases, large over small."""
        pairs = self.pairs(metric, small, large, workloads).values()
        return statistics.geometric_mean([max(1e-3, after) / max(1e-3, before) for before, after in pairs])

    def bars(
        self, metric: str, base: str, label: str, title: str = "", *, cases: Iterable[str] | None = None
    ) -> drawing.Bars:
        """Draw a figure of each case, over that of the base."""
        series = self.normalised(metric, base, cases)
        ranges = self.ranges(metric, base, cases)
        return drawing.Bars(label, self.workloads, series, reference=1.0, title=title, ranges=ranges)

    def table(self, *metrics: str) -> pa.Table:
        """Give the runs, with these figures."""
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
    """Run cases under workloads; a case says options of the device, and a ``prewrite`` or ``precondition`` of its own."""
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
    """Return the means of the figures of rows that differ in their seeds, and half the range of one of them."""
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
    """Give the distribution of the response times of all requests by case: microseconds, and the share within them."""
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
    """Give the response time that so large a share of the requests is within."""
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
    """Give distributions as a table: the response time of some shares of the requests, by case."""
    import pyarrow as pa  # noqa: PLC0415 (half a second, and not always needed)

    shares = (0.1, 0.25, 0.5, 0.75, 0.8, 0.85, 0.9, 0.95, 0.99, 0.999)
    rows = [
        {"share of requests": share, **{f"{name} us": quantile(curve, share) for name, curve in found.items()}}
        for share in shares
    ]
    return pa.Table.from_pylist(rows)


# The experiments that both papers have. Cases of one allocation differ by the commands alone.


def copy_back(setting: Setting, names: Sequence[str]) -> Grid:
    """Run copy-back on one channel: not at all, wisely, blindly."""
    cases = {"basic": BASIC, "blind": COPY_BACK["blind"], "wise": COPY_BACK["wise"]}
    return grid(setting, names, {k: {**ONE_CHANNEL, **dynamic("s2"), **v} for k, v in cases.items()})


def multi_plane_write(setting: Setting, names: Sequence[str], allocation: Mapping[str, Any]) -> Grid:
    """Run multi-plane writes on one channel: not at all, blindly, wisely."""
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
    """Run interleave on one channel, or not."""
    cases = {"basic": BASIC, "interleave": INTERLEAVE}
    return grid(setting, names, {k: {**ONE_CHANNEL, **allocation, **v} for k, v in cases.items()})


def combined(setting: Setting, names: Sequence[str], allocation: Mapping[str, Any]) -> Grid:
    """Run all advanced commands in the two recommended ways, on one channel."""
    cases = {"basic": BASIC, "MPW blind": COMBINED["blind"], "all wise": COMBINED["wise"]}
    return grid(setting, names, {k: {**ONE_CHANNEL, **allocation, **v} for k, v in cases.items()})


#: What Sections 4.3.2 to 4.3.4 of hu2011 name the best static order for.
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
    """Run copy-back with static allocation on one channel: not at all, wisely, blindly."""
    cases = {"basic": BASIC, "blind": COPY_BACK["blind"], "wise": COPY_BACK["wise"]}
    return grid(setting, names, {k: {**ONE_CHANNEL, **static("s2"), **v} for k, v in cases.items()})


def one_request(
    setting: Setting, operation: str, pages: int, options: Mapping[str, Any], *, dies: int, planes: int
) -> float:
    """Return how long a request of so many pages takes alone on one chip, in microseconds."""
    chip = {"geometry.channels": 1, "geometry.chips": 1, "geometry.dies": dies, "geometry.planes": planes}
    device = Device("hu2011").with_options({"scheduler": setting.scheduler, "geometry.blocks": 64, **chip, **options})
    job = f"rw={operation} bs={2 * pages}k size={2 * pages}k number_ios=1"
    result = run(device, job, precondition="none", prewrite="allocation", series=False, attribution=False, warn=False)
    return float(result.summary["requests"]["all"]["latency_us"]["mean"])


def four_page_write(setting: Setting) -> list[dict[str, Any]]:
    """Write four pages to one chip in each way and with both kinds of concurrency."""
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
    """Return the options of a command; dies that take commands by themselves need none to be interleaved."""
    kept = {key: value for key, value in command.items() if key not in INTERLEAVE or concurrency == "command"}
    return {"nand.concurrency": concurrency, **kept}


def channel_share(setting: Setting, concurrency: str) -> float:
    """Return the share of the time in which interleaved two-plane writes to one chip fill its channel with data."""
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


#: Whether the dies of a chip take commands by themselves.
CONCURRENCIES = ("command", "die")


def four_page_exhibit(setting: Setting, claims: Sequence[Claim], two_page: Claim | None = None) -> Exhibit:
    """Make the exhibit of the four-page write, which both papers have."""
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
        "A write of four pages of 2 KiB, alone on one chip. Two multi-plane writes of one die take 2 (2 X + tPROG) = "
        "604.8 "
        "us. Two interleaved writes of two dies take as long where the chip takes its next command when both dies are "
        "done "
        "(command), and 2 (X + tPROG) + X = 553.6 us where each die goes on by itself (die)."
    )
    return Exhibit(pa.Table.from_pylist(rows), draw, findings, caption)


#: The dynamic orders that are compared, by their levels: the papers swap the labels of the last two.
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
    """Run priority orders of dynamic allocation, on eight channels or one, all advanced commands in use."""
    orders = DYNAMIC_EIGHT if channels == EIGHT_CHANNELS else DYNAMIC_ONE
    cases = {name: {**channels, **dynamic(order), **COMBINED["blind"]} for name, order in orders.items()}
    return grid(setting, names, cases, prewrite=prewrite)


def static_orders(setting: Setting, names: Sequence[str]) -> Grid:
    """Run static orders on eight channels, all advanced commands in use, on a non-aged SSD."""
    cases = {k: {**EIGHT_CHANNELS, **static(v), **COMBINED["blind"]} for k, v in STATIC_EIGHT.items()}
    return grid(setting, names, cases, state=NEW)


#: Why claims are not met, found out on the standard runs: by the attribution of their latencies, by changing one thing,
#: or on paper. Numbers are those of the runs at the footprint of 48 MiB unless it is said.
WHY = {
    "four pages": "Where the chip takes its next command only when both dies are done, the second interleaved write "
    "waits "
    "for the slower die of the first: 2 (2 X + tPROG) = 604.8 us, as two multi-plane writes take. The paper's figure "
    "shows "
    "the dies of the second command starting each when it is free, as in the next line.",
    "69.1": "69.1 % is 4 X / (2 X + tPROG): the data of one die cross while the other one programs, which takes dies "
    "by "
    "themselves. Where both must be done before the next command, it is 4 X / (4 X + tPROG) = 51.4 %. hu2011, Section "
    "2.2, "
    "says that the dies of a chip work together only in one interleaved command, and SSDsim's code does the same.",
    "endurance": "Erases follow from what is written and moved. Here both allocations write the same pages, and hot "
    "regions "
    "are spread over the planes by either, so that victims hold equally few valid pages: erases differ by less "
    "than 1 %, under Fin2 by 4 %. What the paper calls endurance is also how evenly erases are spread, for which "
    "see Table 3.",
    "best order": "On one channel at Poisson arrivals chips are mostly idle, and an order that goes to another chip "
    "first is "
    "ahead with every command: under Fin1 with multi-plane commands S2 takes 324 us, S3 366, S6 451. S2 sends "
    "the second page of a request to a chip of its own, which takes 2 X + tPROG. An order that sends it to the "
    "same chip merges it with the first only if the command allows that, and has it wait for the whole chip "
    "otherwise; multi-plane commands need equal addresses, too. Interleave does not: there S4 and S2 are "
    "within 3 %.",
    "one channel": "Under Fin1 and Fin2 most reads are of one or two pages, whose neighbors dynamic allocation has put "
    "anywhere: there the counts are the paper's. Under the others reads have so many pages that several lie in "
    "each of four channels with either allocation; of these, scattered pages add little. Pages that are read "
    "before they are written are laid out evenly, as in the paper.",
    "page": "Two pages of 2 KiB go over two of the four channels at once, 51 + 200 us; one page of 4 KiB takes 102 + "
    "200 "
    "us. With static S2 the smallest page is ahead as long as the chips are mostly idle, under every workload. "
    "SSDsim does not contradict this: given these traces, it prefers 2 KiB over 4 and 8 KiB, too. That it moves "
    "only the sectors of a request makes its large pages cheaper (for small writes above all), and not the best. "
    "What favors larger pages is a load that keeps chips busy, where fewer programs count: with batches of 32, "
    "Ex is best with 4 KiB, and the factor under MSN comes to the paper's 1.8. The paper's Fin1 is not explained "
    "by this: its writes replace parts of pages, and 16 KiB take 410 us on the channel.",
    "allocation": "Dynamic allocation evades busy chips, and at Poisson arrivals few are busy. What it can evade it "
    "does: on "
    "the aged SSD the time that a write waits for cleaning falls from 29 to 2 us under Ex, and from 18 to 1 us "
    "under MSN (attribution), and writes are 11 and 9 % faster there. Under Fin1, whose requests are small and "
    "far apart, a write waits for a die for 1 us with static allocation, so that nothing can be won; dynamic "
    "allocation loses 4 us more for the channel, since the pages of one request go to any channel. Reads, which "
    "it makes 10 % slower as the paper says, then decide overall. In batches of 8 it is as the paper has it: a "
    "write of Fin1 waits for dies for 70 instead of 156 us, one of Ex for 387 instead of 504 us, and writes are "
    "faster under all workloads. The paper's traces come in bursts, of which the table's means say nothing. Dev "
    "stays slower overall: 89 % of its requests are reads of several pages. A part of SSDsim's own advantage is "
    "that dynamic allocation does not move back what a partial write keeps (see above).",
    "wear": "Static: a hot spot of ours is a region of 64 KiB, which S2 stripes over 32 of the 64 planes, so hot "
    "regions wear planes evenly (deviation below 3 under Dev, Ex and MSN); only the small requests of Fin1 and "
    "Rad do not (13 and 8). Hot single pages, which real traces have, would show. Dynamic: ours goes round the "
    "channels, and takes what was used least recently where several are free, so that all planes get nearly "
    "the same number of pages: the deviation is 0 to 0.4 with basic commands, less than the paper's. A factor "
    "with next to nothing as its divisor says little; 0 counts as a factor of 1000.",
    "copy-back": "How bad blind copy-back is depends on how much each victim has to move, that is on how full the SSD "
    "is, "
    "and on whether garbage collection is in the way at all. Every second copy wastes a page. If a victim has "
    "a share u of valid pages, erases grow to (1 - u) / (1 - 1.5 u) times, and without bound as u nears 2/3. "
    "At our footprint u is 0.17 under MSN: the formula gives 1.12, the run 1.15; 17.8 needs u = 0.65. And with "
    "SSDsim's order garbage collection runs when the host waits for nothing, so that response times do not "
    "show it. At twice the footprint, where u is 0.5 and more, the collapse of the paper is there: response "
    "times grow to 12 times under MSN, erases to 9 times under Rad and 7 times under Dev.",
    "copy-back half": "Half is what is expected where few pages of a victim are valid; where most are, neighbours "
    "follow each other and the parity is met more often (docs/model/commands.md). At twice the footprint victims are "
    "fuller.",
    "copy-back wise": "What it saves is two transfers for every second page that is moved (half of them meet the "
    "parity). With "
    "SSDsim's order garbage collection runs when the host waits for nothing, so that this does not show; first "
    "come, first served, MSN gains 4 %. At twice the footprint it decides whether the channel keeps up: with "
    "basic commands it does not under MSN and Ex, and writes queue for minutes. The pages that thousands of "
    "waiting writes will replace are still valid then, so that a victim has 44 valid pages instead of 33 "
    "(MSN), and basic commands erase more, not less.",
    "sooner": "It is twice the footprint. With basic commands the channel does not keep up under MSN and Ex there, and "
    "writes queue for minutes. The pages that thousands of waiting writes will replace are still valid then, "
    "so that victims are fuller, and basic commands erase more than what keeps up (see Figure 14); with static "
    "allocation, under Ex, less.",
    "multi-plane": "Two pages take 2 X + tPROG = 302 us as one two-plane write, and as two writes to two idle chips, "
    "too: the "
    "channel is the same. A two-plane write gains only where chips are short, and the four chips of our "
    "channel mostly are not. What is left is its price: 3 to 5 % more pages that are wasted and erased, and a "
    "chip that is busy for both pages. Batches do not change that: then the channel is short, which both ways "
    "fill alike. With static S3, which sends the second page to the other plane in any case, it is 1 to 6 % "
    "faster.",
    "multi-plane pages": "Dynamic allocation lets the planes of a die take turns, so their next pages stay close "
    "together, and "
    "aligning them wastes one now and then. The paper's next pages are farther apart: it wastes about one page "
    "for each that is written. For copy-back see above: it goes with how much is moved.",
    "mpr": "A request that is exactly one two-plane read gains 1.16 times (Figure 19 has it alone): 2 (tR + X) = "
    "142.4 us becomes tR + 2 X = 122.4 us. The requests of Web have eight pages on a channel whose other chips "
    "read meanwhile, so that only the first tR shows: at most 20 of 430 us, 1.05 times. Our gain is below "
    "that, as not all requests start at an even page, and a part of a page moves fewer sectors than the "
    "formula has.",
    "late page": "It is batches, under Web and Dev. The chip takes its next command when all dies of an interleaved "
    "one are "
    "done: a read whose data wait behind those of another die keeps the chip. Reads of Web wait for the "
    "channel for 201 instead of 91 us, and less for dies, in batches of 8 (attribution).",
    "four levels": "One page after the other, two levels go to two chips of a channel and four levels to two dies of "
    "one: 2 X + "
    "tPROG in both cases, as long as chips are idle, which they mostly are at Poisson arrivals. Then the chip is "
    "busy as a whole until all its dies are done (one ready/busy signal), and multi-plane writes waste pages: "
    "four levels cost more than they give. In batches chips are short, and static allocation gains from four "
    "levels under Ex, Fin1 and Rad, up to 1.15 times in batches of 32, but nowhere under Dev, whose reads "
    "decide. The 20 % under Ex are not reached: 6 % in batches of 32.",
    "load": "The order of chip, die and plane matters where chips are short. One channel at these intervals keeps its "
    "chips idle most of the time, and in batches the channel itself is short: all orders are within 1 to 3 %, "
    "and the sign is that of details. What makes the difference in the paper is that chips of merged commands "
    "are free for others sooner; docs/model/parallelism.md has the orders under loads that are higher.",
    "even": "It goes with where the data lie that are read. Here they lie where the allocation puts them, so that "
    "with chip first a read of eight pages has one channel: 430 us against 71 us. hu2013, Section 4.2, lays them "
    "evenly over all chips instead, whatever the allocation; the next line is for that reading.",
    "planes first": "It is Ex, whose larger requests put a second page on some of the channels. S2 sends it to another "
    "chip, "
    "the others to the same one, where it waits if it does not make it into one command with the first: writes "
    "wait 8 us for dies with S2, 16 with S6, 26 and 28 with S3 and S5 (attribution), which blind multi-plane "
    "writes also cost 90,000 pages for 511,000 written.",
    "order": "Under the real workloads all orders but S1 are nearly equal, so the mean over workloads is decided by "
    "fractions of a per cent: S2 and S4 are the best, and S6 is within half a per cent of them, and equal in "
    "batches of 32. See above for Syn1 to Syn4.",
}
