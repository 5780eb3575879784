"""Common parts of the two studies of Hu et al.: the SSD, its states, and experiments."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

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

#: SSDsim's process() serves reads before writes.
SCHEDULER = {"scheduler": "reads-before-writes"}

#: Aged: 90% of the pages are written and invalid, so that garbage collection starts soon. Non-aged: empty.
AGED = "invalid=0.9"
NEW = "none"

_STRICT = {"nand.advanced.strict": True}
#: Basic and advanced commands.
BASIC: dict[str, Any] = {}
COPY_BACK = {how: {"nand.advanced.copy_back": how} for how in ("wise", "blind")}
MULTI_PLANE_WRITE = {how: {"nand.advanced.multi_plane_program": how, **_STRICT} for how in ("wise", "blind")}
MULTI_PLANE_READ = {"nand.advanced.multi_plane_read": True, **_STRICT}
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
    "Device: the built-in hu2011 (Table 2 of the paper) with 64 instead of 2048 blocks per plane, so that garbage "
    "collection starts within a run. The number of channels differs by figure. Reads transfer only the requested "
    "sectors (bus.partial_transfer), as in SSDsim's code. Programs transfer whole pages.",
    "Scheduler: the papers describe none. As in SSDsim's process(), reads take priority over writes "
    "(reads-before-writes), including the reads for partial writes. SSDsim collects garbage before both, has a queue "
    "and a write buffer, and the studies do not; the variants gc-first, queue-5 and buffer-128k show what they change.",
    "Arrivals: the papers have only mean intervals. Arrivals are Poisson, and in variants in batches of 8 and 32 "
    f"requests, {workloads.BATCH_GAP_US} us apart, at the same rate.",
    "Concurrency: the dies of a chip work together only in one interleaved command (nand.concurrency = command), as "
    "in Section 2.2 and in SSDsim. The 69.1% and the four-page write of the papers need independent dies (die). "
    "Figures with these values show both.",
    "SSDsim excludes tPROG, 200 us, from the response times of writes. Ours include it, which makes ratios of writes "
    "smaller.",
    "If a write replaces part of a page, SSDsim's dynamic allocation does not transfer the kept sectors back "
    "(allocate_location()). Floatgate does. docs/studies/index.md compares mean writes with those of SSDsim.",
    "States: the papers do not define aged. Here 90% of the pages are invalid at the start (invalid=0.9). Non-aged is "
    "empty. Data that the workload reads before it writes them are laid out by the allocation. In the comparison of "
    "allocations, dynamic allocation finds them evenly over all chips (hu2013, Section 4.2).",
    "Multi-plane commands need equal block and page addresses (nand.advanced.strict). Response times are means over "
    "all requests, from arrival to completion.",
]


def static(order: str) -> dict[str, Any]:
    """Return options for static allocation in an order, s1 to s6."""
    return {"allocation": {"static": {"order": order}}}


def dynamic(order: str) -> dict[str, Any]:
    """Return options for dynamic allocation with a priority order."""
    return {"allocation": {"dynamic": {"order": order}}}


#: Largest ratio on a linear axis.
_LINEAR = 20.0


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
        """Return bars of a metric of each case, relative to the base case. The axis is logarithmic for large ratios."""
        series = self.normalized(metric, base, cases)
        ranges = self.ranges(metric, base, cases)
        log = max(value or 0.0 for values in series.values() for value in values) > _LINEAR
        return drawing.Bars(label, self.workloads, series, reference=1.0, log=log, title=title, ranges=ranges)

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
            **SCHEDULER,
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
        device = setting.changed("hu2011", {**SCHEDULER, **options})
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
    return grid(setting, names, copy_back_cases(dynamic("s2")))


def copy_back_cases(allocation: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return cases of copy-back on one channel."""
    cases = {"basic": BASIC, "blind": COPY_BACK["blind"], "wise": COPY_BACK["wise"]}
    return {name: {**ONE_CHANNEL, **allocation, **command} for name, command in cases.items()}


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
    return grid(setting, names, copy_back_cases(static("s2")))


def one_request(
    setting: Setting, operation: str, pages: int, options: Mapping[str, Any], *, dies: int, planes: int
) -> float:
    """Return the response time of a single request of `pages` pages on one chip, in microseconds."""
    chip = {"geometry.channels": 1, "geometry.chips": 1, "geometry.dies": dies, "geometry.planes": planes}
    device = setting.changed("hu2011", {**SCHEDULER, "geometry.blocks": 64, **chip, **options})
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
    device = setting.changed(
        "hu2011",
        {
            **SCHEDULER, "bus.transfer_spare": True,
            "geometry.channels": 1, "geometry.chips": 1, "geometry.blocks": 512, **static("s6"),
            **_for(concurrency, {**MULTI_PLANE_WRITE["wise"], **INTERLEAVE}),
        },
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
        "One write of four pages of 2 KiB to one chip. Interleaved, it takes 2 (2 X + tPROG) = 604.8 us if the chip "
        "waits for both dies (command), like two multi-plane writes to one die, and 2 (X + tPROG) + X = 553.6 us with "
        "independent dies (die)."
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


#: Reasons for unmet claims. Their numbers are those of the page of hu2011.
WHY = {
    "four pages": "If the chip waits for both dies, the second interleaved write waits for the slower die, and takes "
    "as long as two multi-plane writes. In the paper's figure, each die starts when it is idle.",
    "endurance": "Both allocations write the same pages and spread hot regions over the planes, so victims have "
    "equally few valid pages. Static instead of dynamic allocation changes erases by {figure-12 | erases | aged, "
    "static S2 / aged, dynamic | range %}. No variant changes this, so it is open why the paper's differ.",
    "best order": "With Poisson arrivals, the chips of one channel are mostly idle, and an order that uses another "
    "chip first is faster: under Fin1 with multi-plane commands, S2 takes {static-orders | all us | Fin1; "
    "multi-plane, S2} us, S3 {static-orders | all us | Fin1; multi-plane, S3}, S6 {static-orders | all us | Fin1; "
    "multi-plane, S6}. An order that sends the second page of a request to the same chip gains only if the command "
    "combines both pages; otherwise the page waits for the chip. Multi-plane commands need equal addresses. "
    "Interleaving does not, and S4 instead of S2 changes the time by {static-orders | all us | interleave, S4 / "
    "interleave, S2 | range %}. With one chip per channel (chips=1) and multi-plane commands, S3 instead of S2 changes "
    "it by {static-orders@chips=1 | all us | multi-plane, S3 / multi-plane, S2 | range %}, and S6 is S2. No variant "
    "makes S3 or S6 the best under all workloads, which is open.",
    "page": "While chips are mostly idle, two pages on two channels are faster than one larger page, whose transfer "
    "takes twice as long: pages of 4KiB take {figure-10 | all us | 4KiB / 2KiB | range} times as long as those of "
    "2KiB. Larger pages need fewer programs, which matters if chips are busy. With one chip per channel (chips=1), it "
    "is {figure-10@chips=1 | all us | 4KiB / 2KiB | range}, and 4KiB is the best under the four workloads. Under MSN, "
    "pages of 16KiB take {figure-10 | all us | MSN; 16KiB / 2KiB} times as long as those of 2KiB, with SSDsim's write "
    "buffer (buffer-128k) {figure-10@buffer-128k | all us | MSN; 16KiB / 2KiB}, and in batches of 32 "
    "{figure-10@batches of 32 | all us | MSN; 16KiB / 2KiB}. No variant makes 16KiB the best under Fin1, whose "
    "requests are smaller, which is open.",
    "allocation": "Dynamic allocation avoids busy chips, and with Poisson arrivals few are busy. Writes scatter the "
    "data of reads, which take {figure-12 | read us | aged, dynamic / aged, static S2 | range %} longer and decide "
    "the overall result. Static instead of dynamic allocation changes the time of writes by {figure-12 | write us | "
    "aged, static S2 / aged, dynamic | range %}, and by {figure-12@batches of 8 | write us | aged, static S2 / aged, "
    "dynamic | range %} in batches of 8, where chips are busier.",
    "wear": "Static: S2 stripes a hot region over half of the planes, which evens out wear: the deviation is {table-3 "
    "| static: ours | | range}. The paper's complete traces write much more, and it is {table-3 | static: paper | | "
    "range}. Dynamic: allocation cycles through the channels and takes the least recently used free plane, so the "
    "deviation is {table-3 | dynamic: ours | | range}. A ratio to nearly zero means little; zero counts as a factor "
    "of a thousand.",
    "copy-back": "Copies that miss the parity waste a page, and erases grow without bound as the valid share of a "
    "victim approaches two thirds (hu2013, footprints). Collection with low priority hides this until the channel is "
    "overloaded: under Dev, blind copy-back changes the response time by {figure-14 | all us | Dev; blind / basic | "
    "%}, and by {figure-14@gc-first | all us | Dev; blind / basic | %} if collection precedes host requests and holds "
    "the channel, as in SSDsim (gc-first). It then also frees the channel of transfers: under Ex, the change is "
    "{figure-14@gc-first | all us | Ex; blind / basic | %}. Under MSN, blind copy-back overloads the channel, so its "
    "response time grows with the length of the run: {figure-14 | all us | MSN; blind / basic} times that of basic "
    "commands, {figure-14@half the footprint | all us | MSN; blind / basic} with half the footprint. With gc-first, "
    "basic commands overload it, too, and the factor is {figure-14@gc-first | all us | MSN; blind / basic}. The "
    "paper's erases and invalidated pages need different footprints, because both grow by the same factor: here "
    "{figure-14 | erases | MSN; blind / basic} under MSN.",
    "copy-back half": "Half is expected if victims have few valid pages. In fuller victims, valid pages are adjacent, "
    "and the parity is met more often (docs/model/commands.md).",
    "copy-back wise": "About half of the copies meet the parity, and save two transfers. This hardly shows if "
    "collection runs only while no request waits: basic instead of wise commands change the time by {figure-14 | all "
    "us | basic / wise | range %}. If collection precedes host requests, as in SSDsim (gc-first), they change it by "
    "{figure-14@gc-first | all us | basic / wise | range %}. In SSDsim, a collection with wise copy-back also "
    "advances no time, because an else is missing. At twice the footprint, basic commands overload the channel under "
    "Ex and MSN, and queued writes replace pages late, so victims are fuller.",
    "sooner": "At twice the footprint, basic commands overload the channel. Queued writes replace pages late, so "
    "victims are fuller, and erases change.",
    "multi-plane": "Two pages take as long in one two-plane write as in two writes to idle chips, and ours are mostly "
    "idle: basic instead of blind commands change the time by {figure-16 | all us | dynamic, basic / dynamic, blind | "
    "range %} with dynamic allocation, and by {figure-16 | all us | static, basic / static, blind | range %} with "
    "static S3, which sends the second page to the other plane. With one chip per channel (chips=1), where chips are "
    "scarce, it is {figure-16@chips=1 | all us | dynamic, basic / dynamic, blind | range %}. Blind writes change "
    "erases by {figure-16 | erases | dynamic, blind / dynamic, basic | range %}, whose time shows if collection "
    "precedes host requests: with gc-first, basic commands change the time by {figure-16@gc-first | all us | dynamic, "
    "basic / dynamic, blind | range %}. Together with all other commands, blind instead of wise multi-plane writes "
    "change it by {figure-18 | all us | dynamic, MPW blind / dynamic, all wise | range %}, with chips=1 by "
    "{figure-18@chips=1 | all us | dynamic, MPW blind / dynamic, all wise | range %}.",
    "mpr": "While a chip reads two planes, the other chips of the channel read, too, and hide the time that the "
    "command saves. With one chip per channel (chips=1), Web gains {table-4@chips=1 | dynamic: ours | Web} times, Dev "
    "{table-4@chips=1 | dynamic: ours | Dev} and Fin2 {table-4@chips=1 | dynamic: ours | Fin2}, as in the paper. With "
    "static allocation, Web gains {table-4@chips=1 | static: ours | Web}.",
    "late page": "In batches, the chip accepts its next command when all dies of an interleaved command have "
    "finished, so a read whose data wait for another die's transfer occupies the chip.",
    "load": "The order of chip, die and plane matters if chips are scarce. Here they are idle most of the time, and "
    "in batches the channel is scarce. On one channel, chip before die instead of die before chip changes the time by "
    "{figure-20 | all us | 1 channel: channel > chip > die > plane / 1 channel: channel > die > chip > plane | range "
    "%}, and plane before die instead of die before plane by {figure-20 | all us | 1 channel: channel > plane > die > "
    "chip / 1 channel: channel > die > plane > chip | range %}. docs/model/parallelism.md has higher loads.",
    "even": "Reads depend on where their data was laid out. Here the allocation laid it out: with chip first, a "
    "request is on one channel, and those of Web take {figure-20 | all us | Web; 8 channels: chip > die > plane > "
    "channel} instead of {figure-20 | all us | Web; 8 channels: channel > chip > die > plane} us. hu2013, Section 4.2, "
    "lays data out evenly over all chips, as in the next claim.",
    "even sizes": "The factor depends on the sizes of reads, and the paper prints only their mean. It is "
    "{figure-20 | all us | 8 channels, even: chip > die > plane > channel / 8 channels, even: channel > chip > die > "
    "plane | max}, and {figure-20@bimodal sizes | all us | 8 channels, even: chip > die > plane > channel / 8 "
    "channels, even: channel > chip > die > plane | max} with two sizes (bimodal sizes).",
    "planes first": "Requests of Ex put two pages on some channels. S2 sends the second page to another chip, other "
    "orders to the same chip, and it waits there unless the command combines both. Blind multi-plane writes also waste "
    "pages. Under Ex, S3 takes {figure-21 | all us | Ex; S3: channel > plane > chip > die / S2: channel > chip > die > "
    "plane | %} longer than S2, and S5 {figure-21 | all us | Ex; S5: channel > plane > die > chip / S2: channel > chip "
    "> die > plane | %}.",
    "order": "On average over the workloads, S2 instead of S6 changes the time by {figure-21 | all us | all; S2: "
    "channel > chip > die > plane / S6: channel > die > plane > chip | %}, and S4 by {figure-21 | all us | all; S4: "
    "channel > die > chip > plane / S6: channel > die > plane > chip | %}. With SSDsim's queue (queue-5), it is "
    "{figure-21@queue-5 | all us | all; S2: channel > chip > die > plane / S6: channel > die > plane > chip | %} and "
    "{figure-21@queue-5 | all us | all; S4: channel > die > chip > plane / S6: channel > die > plane > chip | %}: S6 "
    "is the first, but by less than the rule needs.",
    "synthetic": "The table has '30us (75%)' and does not say what the share refers to. Syn1 and Syn2 request more "
    "than the channels carry, so response times grow with the length of the run. With a deep queue, every "
    "channel-first order keeps the buses full. With SSDsim's queue (queue-5), S2 instead of S6 changes the time under "
    "Syn1 by {figure-21@queue-5 | all us | Syn1; S2: channel > chip > die > plane / S6: channel > die > plane > chip "
    "| %}, and S5 by {figure-21@queue-5 | all us | Syn1; S5: channel > plane > die > chip / S6: channel > die > plane "
    "> chip | %}, which is almost the paper's order. Under Syn3 and Syn4, S6 needs one chip and S2 two, which matters "
    "little while both are mostly idle. docs/model/parallelism.md has other interpretations.",
}
