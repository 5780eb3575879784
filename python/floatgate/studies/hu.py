"""What the two studies of Hu et al. share: the SSD, its states, and experiments."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from floatgate.device import Device
from floatgate.running import run
from floatgate.studies import drawing

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
AGED, NEW = "stale=0.9", "none"

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

#: How the workloads and devices are read, for both pages.
ABOUT = [
    "Device: the built-in hu2011 (Table 2 of the paper: 4 channels, 4 chips, 2 dies, 2 planes, pages of 2 KiB, "
    "20/200/1500 us, 25 ns a byte), with 64 instead of 2048 blocks in a plane, so that cleaning begins within a run. "
    "Other channels where the figure says so.",
    "States: the papers give no figure for aged. Here nine tenths of the pages are stale at the start (stale=0.9); "
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

    def mean(self, metric: str, small: str, large: str, workloads: Iterable[str] | None = None) -> float:
        """Give the geometric mean of the ratios of two cases, large over small."""
        pairs = self.pairs(metric, small, large, workloads).values()
        return statistics.geometric_mean([max(1e-3, after) / max(1e-3, before) for before, after in pairs])

    def bars(self, metric: str, base: str, label: str, title: str = "", cases: Iterable[str] | None = None,
             log: bool = False) -> drawing.Bars:  # fmt: skip
        """Draw a figure of each case, over that of the base."""
        series = self.normalised(metric, base, cases)
        return drawing.Bars(label, self.workloads, series, reference=1.0, title=title, log=log)

    def table(self, *metrics: str) -> pa.Table:
        """Give the runs, with these figures."""
        import pyarrow as pa  # noqa: PLC0415 (half a second, and not always needed)

        return pa.Table.from_pylist([{key: row[key] for key in ("workload", "case", *metrics)} for row in self.rows])


def _over(value: float, base: float) -> float | None:
    return value / base if base else None


def grid(
    setting: Setting,
    names: Sequence[str],
    cases: Mapping[str, Mapping[str, Any]],
    *,
    state: str = AGED,
    layout: str = "allocation",
) -> Grid:
    """Run cases under workloads; a case says options of the device, and a ``layout`` or ``precondition`` of its own."""
    points = [
        {"device": "hu2011", "workload": setting.workload(name).trace, "precondition": state, "layout": layout, **case,
         "_workload": name, "_case": label}
        for name in names
        for label, case in cases.items()
    ]  # fmt: skip
    return Grid([
        {"workload": row["_workload"], "case": row["_case"]} | {key: row.get(path) for key, path in METRICS.items()}
        for row in setting.rows(points)
    ])  # fmt: skip


def curves(
    setting: Setting, name: str, cases: Mapping[str, Mapping[str, Any]]
) -> dict[str, tuple[list[float], list[float]]]:
    """Give the distribution of the response times of all requests by case: microseconds, and the share within them."""
    found = {}
    for label, options in cases.items():
        device = Device("hu2011").with_options(dict(options))
        workload = setting.workload(name).trace
        result = run(device, workload, precondition=AGED, layout="allocation", series=False, attribution=False,
                     warn=False)  # fmt: skip
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
        drawing.Lines("response time, us (logarithmic)", "share of requests within", found, log_x=True, title=title,
                      marked=False)
    )  # fmt: skip


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
    """Copy-back on one channel: not at all, wisely, blindly."""
    cases = {"basic": BASIC, "blind": COPY_BACK["blind"], "wise": COPY_BACK["wise"]}
    return grid(setting, names, {k: {**ONE_CHANNEL, **dynamic("s2"), **v} for k, v in cases.items()})


def multi_plane_write(setting: Setting, names: Sequence[str], allocation: Mapping[str, Any]) -> Grid:
    """Multi-plane writes on one channel: not at all, blindly, wisely."""
    cases = {"basic": BASIC, "blind": MULTI_PLANE_WRITE["blind"], "wise": MULTI_PLANE_WRITE["wise"]}
    return grid(setting, names, {k: {**ONE_CHANNEL, **allocation, **v} for k, v in cases.items()})


def multi_plane_read(setting: Setting, names: Sequence[str]) -> Grid:
    """Multi-plane reads on one channel of a non-aged SSD, with dynamic and static allocation."""
    cases = {
        f"{how}, {what}": {**ONE_CHANNEL, **allocation, **command}
        for how, allocation in (("dynamic", dynamic("s3")), ("static", static("s3")))
        for what, command in (("basic", BASIC), ("MPR", MULTI_PLANE_READ))
    }
    return grid(setting, names, cases, state=NEW)


def interleave(setting: Setting, names: Sequence[str], allocation: Mapping[str, Any]) -> Grid:
    """Interleave on one channel, or not."""
    cases = {"basic": BASIC, "interleave": INTERLEAVE}
    return grid(setting, names, {k: {**ONE_CHANNEL, **allocation, **v} for k, v in cases.items()})


def combined(setting: Setting, names: Sequence[str], allocation: Mapping[str, Any]) -> Grid:
    """All advanced commands in the two recommended ways, on one channel."""
    cases = {"basic": BASIC, "MPW blind": COMBINED["blind"], "all wise": COMBINED["wise"]}
    return grid(setting, names, {k: {**ONE_CHANNEL, **allocation, **v} for k, v in cases.items()})


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


def dynamic_orders(setting: Setting, names: Sequence[str]) -> tuple[Grid, Grid]:
    """Priority orders of dynamic allocation, on eight channels and on one, all advanced commands in use."""
    eight = {k: {**EIGHT_CHANNELS, **dynamic(v), **COMBINED["blind"]} for k, v in DYNAMIC_EIGHT.items()}
    one = {k: {**ONE_CHANNEL, **dynamic(v), **COMBINED["blind"]} for k, v in DYNAMIC_ONE.items()}
    return grid(setting, names, eight), grid(setting, names, one)


def static_orders(setting: Setting, names: Sequence[str]) -> Grid:
    """Static orders on eight channels, all advanced commands in use, on a non-aged SSD."""
    cases = {k: {**EIGHT_CHANNELS, **static(v), **COMBINED["blind"]} for k, v in STATIC_EIGHT.items()}
    return grid(setting, names, cases, state=NEW)
