"""Hu et al. 2013: advanced commands, allocation schemes and the order of parallelism levels."""

from __future__ import annotations

import itertools
import statistics
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from floatgate.designing import design
from floatgate.running import run
from floatgate.studies import drawing, hu, hu2011, workloads
from floatgate.studies.study import EQUAL, Claim, Exhibit, Study, better, equal, holds, number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.figure import Figure

    from floatgate.studies.study import Finding, Setting

#: Workloads of Section 4.2, without and with the read-only one.
SIX = ("Dev", "Fin2", "MSN", "Ex", "Fin1", "Rad")
READERS = ("Web", *SIX)

#: Sections 4.1.1 and 4.1.2: increase of invalidated pages relative to basic commands.
MORE_BY_COPY_BACK = {"Dev": 1.49, "MSN": 2.87, "Ex": 0.17}
MORE_BY_MULTI_PLANE = {"Dev": 0.72, "MSN": 1.04, "Ex": 0.58}

#: Reasons for unmet claims of this paper alone.
_WHY = {
    "69.1": "The paper's formula lets one die receive data while the other programs, which needs independent dies. If "
    "both dies must finish first, the program time is added to all four transfers. Section 2.2 of hu2011 and SSDsim's "
    "code allow only joint commands.",
    "one channel": "Under Fin1 and Fin2, most reads have one or two pages. Reads of the other workloads have several "
    "pages per channel with either allocation, so scattering adds little. This depends on the sizes, and the paper "
    "prints only their mean: with two sizes of reads (bimodal sizes), dynamic allocation stores "
    "{section-4-2-1@bimodal sizes | more, % | MSN}% more under MSN, instead of {section-4-2-1 | more, % | MSN}%. It "
    "also depends on how the data was written: dynamic allocation sends the pages of a write to different channels, "
    "and only pages of different writes share one by chance. If random writes of one page wrote the data before "
    "(scattered), instead of evenly over all chips (Section 4.2), it stores {section-4-2-1 | scattered: more, % | "
    "MSN}% more under MSN, and with two sizes {section-4-2-1@bimodal sizes | scattered: more, % | MSN}%.",
    "four levels": "While chips are idle, two levels use two chips of a channel, and four levels use two dies of one "
    "chip, which takes as long. The chip is then busy until all its dies have finished, and multi-plane writes waste "
    "pages. With static allocation, two instead of four levels change the time by {figure-15 | all us | static, 2 "
    "levels / static, 4 levels | range %}, in batches of 32 by {figure-15@batches of 32 | all us | static, 2 levels / "
    "static, 4 levels | range %}, and with one chip per channel (chips=1) by {figure-15@chips=1 | all us | static, 2 "
    "levels / static, 4 levels | range %}. Under Ex with dynamic allocation, it is {figure-15 | all us | Ex; dynamic, "
    "2 levels / dynamic, 4 levels | %}, {figure-15@batches of 32 | all us | Ex; dynamic, 2 levels / dynamic, 4 levels "
    "| %} and {figure-15@chips=1 | all us | Ex; dynamic, 2 levels / dynamic, 4 levels | %}.",
    "multi-plane pages": "Dynamic allocation alternates between the planes of a die, so their next pages stay close "
    "together, and aligning them rarely wastes a page. In the paper, about one page is wasted per page written. No "
    "variant comes close, so it is open how the paper's allocation moves the planes apart.",
}

STUDY = Study(
    "hu2013",
    "Exploring and exploiting the multilevel parallelism inside SSDs for improved performance and endurance",
    "Y. Hu, H. Jiang, D. Feng, L. Tian, H. Luo, C. Ren, IEEE Transactions on Computers 62(6), 2013",
    ["Device, scheduler, states and workloads are those of the study hu2011."],
    ["Web", *SIX],
    reasons=hu.WHY,
    reasons_page="hu2011",
)


# Section 4.1: advanced commands.

_COPY = {
    "worse": Claim(
        "Blind copy-back is slower under Dev, MSN and Ex.",
        "Section 4.1.1, Figure 8 (a)",
        why=hu.WHY["copy-back"],
    ),
    "7.7": Claim(
        "Under MSN, blind copy-back takes up to 7.7 times as long.",
        "Section 1",
        "7.7x",
        why=hu.WHY["copy-back"],
    ),
    "17.8": Claim(
        "Under MSN, blind copy-back causes up to 17.8 times as many erases.",
        "Section 1",
        "17.8x",
        why=hu.WHY["copy-back"],
    ),
    "wise": Claim("Wise copy-back is faster.", "Section 4.1.1, Figure 8 (a)", why=hu.WHY["copy-back wise"]),
    "wise erases": Claim(
        "Wise copy-back needs no more erases.", "Section 4.1.1, Figure 8 (a)", why=hu.WHY["copy-back wise"]
    ),
    "insight": Claim("Insight 1: blind copy-back costs erases.", "Section 4.1.1"),
}
_COPY_PAGES = {
    name: Claim(
        f"Under {name}, blind copy-back invalidates {more:.0%} more pages (the footprint is fitted to it).",
        "Section 4.1.1",
        f"+{more:.0%}",
        why=hu.WHY["copy-back"],
    )
    for name, more in MORE_BY_COPY_BACK.items()
}


@STUDY.exhibit("figure-8", "Figure 8 (a): copy-back")
def figure_8(setting: Setting) -> Exhibit:
    """Run blind and wise copy-back on one channel of an aged SSD, with dynamic allocation."""
    found = hu.copy_back(setting, hu2011.CLEANED)
    shown = hu2011.copy_back_exhibit(found, _COPY)
    shown.findings.extend(_pages(found, _COPY_PAGES, MORE_BY_COPY_BACK))
    static = hu.copy_back_static(setting, hu2011.CLEANED)
    three = ("Dev", "MSN", "Ex")
    shown.findings.extend(
        [
            better(_SAME_TREND["copy-back"], static.pairs("all us", "basic", "blind", three)),
            better(_SAME_TREND["copy-back wise"], static.pairs("all us", "wise", "basic")),
        ]
    )
    return replace(shown, data=hu2011.both(found, static, "all us", "erases", "moved", "copy-backs", "wasted"))


_SAME_TREND = {
    name: Claim(f"Static allocation: {text}", "Section 4.1", why=why)
    for name, text, why in (
        ("copy-back", "blind copy-back is slower under Dev, MSN and Ex.", hu.WHY["copy-back"]),
        ("copy-back wise", "wise copy-back is faster.", hu.WHY["copy-back wise"]),
        ("multi-plane", "blind multi-plane writes are faster (S3).", hu.WHY["multi-plane"]),
        ("multi-plane erases", "blind multi-plane writes erase more (S3).", ""),
        ("interleave", "interleaving is faster (S4).", hu.WHY["late page"]),
        ("all", "approach 1 is faster than basic commands (S6).", hu.WHY["multi-plane"]),
        ("all wise", "approach 2 is faster than basic commands (S6).", hu.WHY["late page"]),
    )
}


def _pages(found: hu.Grid, claims: Mapping[str, Claim], published: Mapping[str, float]) -> list[Finding]:
    """Compare the increase of invalidated pages by a blind command, relative to basic commands."""
    findings = []
    for name, claim in claims.items():
        basic, blind = (_invalidated(found, case, name) for case in ("basic", "blind"))
        findings.append(number(claim, blind / max(1.0, basic) - 1, published[name], neutral=0.0))
    return findings


def _invalidated(found: hu.Grid, case: str, name: str) -> float:
    return sum(found.of(key, case, name) for key in ("covered", "uncovered", "moved", "wasted", "left out"))


#: Sizes of the area in MiB, to which the footprints of three workloads are fitted.
_AREAS = (24, 36, 48, 60, 72, 84, 96)


@STUDY.exhibit("footprints", "Section 4.1.1: pages invalidated by blind copy-back, by footprint")
def footprints(setting: Setting) -> Exhibit:
    """Run blind copy-back with several footprints, of which the workloads have the one closest to the paper."""
    import pyarrow as pa  # noqa: PLC0415 (half a second, and not always needed)

    rows: list[dict[str, Any]] = []
    for name, published in MORE_BY_COPY_BACK.items():
        for mib in _AREAS:
            sized = replace(setting, footprint=(mib << 20) / workloads.area(name))
            found = hu.grid(sized, [name], hu.copy_back_cases(hu.dynamic("s2")))
            basic, blind = (_invalidated(found, case, name) for case in ("basic", "blind"))
            erases = found.of("erases", "basic", name)
            rows.append(
                {
                    "workload": name, "MiB": mib, "more invalidated pages: paper": published,
                    "more invalidated pages: ours": blind / max(1.0, basic) - 1,
                    "valid share of a victim": found.of("moved", "basic", name) / max(1.0, erases) / _BLOCK_PAGES,
                    "erases, blind / basic": found.of("erases", "blind", name) / max(1.0, erases),
                    "is used": "used" if mib << 20 == workloads.area(name) else "",
                }
            )  # fmt: skip

    def draw() -> Figure:
        series: dict[str, tuple[list[float], list[float]]] = {}
        for name in MORE_BY_COPY_BACK:
            shown = [row for row in rows if row["workload"] == name]
            for who in ("ours", "paper"):
                values = [max(0.1, 100 * row[f"more invalidated pages: {who}"]) for row in shown]
                series[f"{name}, {who}"] = ([row["MiB"] for row in shown], values)
        return drawing.lines(drawing.Lines("footprint, MiB", "more invalidated pages, %", series, log_y=True))

    caption = (
        "The papers print no footprints. Each workload has the size with which its invalidated pages are closest to "
        "the paper's number, so that claims about these numbers test only the size. One channel, aged."
    )
    return Exhibit(pa.Table.from_pylist(rows), draw, [], caption)


#: Pages of a block of hu2011.
_BLOCK_PAGES = 64


def _one_channel(cases: Mapping[str, Mapping[str, Any]], order: str) -> dict[str, dict[str, Any]]:
    return {name: {**hu.ONE_CHANNEL, **hu.dynamic(order), **command} for name, command in cases.items()}


_TAIL = Claim(
    "Under MSN, blind copy-back makes 10% of the requests much slower (here: 1.5 times).",
    "Section 4.1.1, Figure 8 (b)",
    "10 %",
    why=hu.WHY["copy-back"],
)
_TAIL_WISE = Claim("Under MSN, wise copy-back is slightly faster than basic commands.", "Section 4.1.1, Figure 8 (b)")


@STUDY.exhibit("figure-8b", "Figure 8 (b): distribution of response times with copy-back, MSN")
def figure_8b(setting: Setting) -> Exhibit:
    """Compare response time distributions under MSN."""
    cases = {"basic": hu.BASIC, "blind": hu.COPY_BACK["blind"], "wise": hu.COPY_BACK["wise"]}
    found = hu.curves(setting, "MSN", _one_channel(cases, "s2"))
    shares = [at / 500 for at in range(1, 500)]
    slower = sum(hu.quantile(found["blind"], at) > 1.5 * hu.quantile(found["basic"], at) for at in shares) / len(shares)
    mean = {name: statistics.mean(hu.quantile(curve, at) for at in shares) for name, curve in found.items()}
    findings = [
        number(_TAIL, 100 * slower, 10, neutral=0.0, unit=" %"),
        better(_TAIL_WISE, {"MSN": (mean["wise"], mean["basic"])}),
    ]
    return _curves(found, findings)


def _curves(found: Mapping[str, tuple[list[float], list[float]]], findings: list[Finding]) -> Exhibit:
    caption = "Share of requests within a response time. One channel, aged, dynamic allocation."
    return Exhibit(hu.curve_table(found), lambda: hu.cdf(found, ""), findings, caption)


_MPW = Claim(
    "Insight 2: blind multi-plane writes are faster.",
    "Section 4.1.2, Figure 10 (a)",
    why=hu.WHY["multi-plane"],
)
_MPW_ERASES = Claim("Insight 2: they cost erases.", "Section 4.1.2, Figure 10 (a)")
_MPW_WISE = Claim("Insight 2: wise multi-plane writes change little.", "Section 4.1.2, Figure 10 (a)")
_MPW_PAGES = {
    name: Claim(
        f"Under {name}, blind multi-plane writes waste {more:.0%} more pages.",
        "Section 4.1.2",
        f"+{more:.0%}",
        why=_WHY["multi-plane pages"],
    )
    for name, more in MORE_BY_MULTI_PLANE.items()
}


@STUDY.exhibit("figure-10", "Figure 10 (a): multi-plane writes")
def figure_10(setting: Setting) -> Exhibit:
    """Run blind and wise multi-plane writes on one channel of an aged SSD."""
    found = hu.multi_plane_write(setting, hu2011.CLEANED, hu.dynamic("s3"))
    findings = [
        better(_MPW, found.pairs("all us", "blind", "basic")),
        better(_MPW_ERASES, found.pairs("erases", "basic", "blind")),
        equal(_MPW_WISE, found.pairs("all us", "wise", "basic"), within=0.05),
        *_pages(found, _MPW_PAGES, MORE_BY_MULTI_PLANE),
    ]
    static = hu.multi_plane_write(setting, hu2011.CLEANED, hu.static("s3"))
    findings += [
        better(_SAME_TREND["multi-plane"], static.pairs("all us", "blind", "basic")),
        better(_SAME_TREND["multi-plane erases"], static.pairs("erases", "basic", "blind")),
    ]

    def draw() -> Figure:
        return drawing.bars(
            found.bars("all us", "basic", "response time / basic", cases=("blind", "wise")),
            found.bars("erases", "basic", "erases / basic", cases=("blind", "wise")),
        )

    caption = (
        "Response time and erases, relative to basic commands. One channel, aged, dynamic allocation in the order "
        "channel, plane, chip, die."
    )
    return Exhibit(found.table("all us", "erases", "moved", "left out"), draw, findings, caption)


_MPW_CURVE = Claim(
    "Under MSN, blind multi-plane writes are faster than wise ones and basic commands.",
    "Section 4.1.2, Figure 10 (b)",
    why=hu.WHY["multi-plane"],
)


@STUDY.exhibit("figure-10b", "Figure 10 (b): distribution of response times with multi-plane writes, MSN")
def figure_10b(setting: Setting) -> Exhibit:
    """Compare response time distributions under MSN."""
    cases = {"basic": hu.BASIC, "blind": hu.MULTI_PLANE_WRITE["blind"], "wise": hu.MULTI_PLANE_WRITE["wise"]}
    found = hu.curves(setting, "MSN", _one_channel(cases, "s3"))
    at = (0.5, 0.75, 0.9, 0.95)
    findings = [
        better(
            _MPW_CURVE,
            {
                f"{other}, p{100 * share:.0f}": (hu.quantile(found["blind"], share), hu.quantile(found[other], share))
                for other in ("basic", "wise")
                for share in at
            },
        )
    ]
    return _curves(found, findings)


_MPR_MAX = Claim("Multi-plane reads gain at most 15%.", "Section 4.1.2, Figure 11", "1.15x", why=hu.WHY["mpr"])
_MPR_WHERE = Claim(
    "Insight 3: Web, Dev and MSN gain; Ex, Fin1 and Fin2 hardly.",
    "Section 4.1.2, Figure 11",
    why=hu.WHY["mpr"],
)


@STUDY.exhibit("figure-11", "Figure 11: multi-plane reads")
def figure_11(setting: Setting) -> Exhibit:
    """Compare response times with multi-plane reads, dynamic and static, on one channel."""
    found = hu.multi_plane_read(setting, hu2011.SIX)
    gain = {
        how: {name: found.mean("all us", f"{how}, MPR", f"{how}, basic", [name]) for name in hu2011.SIX}
        for how in ("dynamic", "static")
    }
    most = {name: max(gain["dynamic"][name], gain["static"][name]) for name in hu2011.SIX}
    large, small = [most[name] for name in ("Web", "Dev", "MSN")], [most[name] for name in ("Fin2", "Ex", "Fin1")]
    findings = [
        number(_MPR_MAX, max(most.values()), 1.15, unit="x"),
        holds(
            _MPR_WHERE,
            min(large) > max(small) and max(small) < 1.03,
            ", ".join(f"{name} {value:.2f}" for name, value in most.items()),
            nearly=statistics.mean(large) > statistics.mean(small) * (1 + EQUAL),
            rule=hu2011.MPR_RULE,
        ),
    ]

    def draw() -> Figure:
        series = {how: [1 / value for value in gain[how].values()] for how in gain}
        return drawing.bars(drawing.Bars("response time, MPR / basic", hu2011.SIX, series, reference=1.0))

    caption = "Multi-plane reads relative to basic commands. One channel, non-aged, order S3."
    return Exhibit(found.table("read us", "all us"), draw, findings, caption)


_INTERLEAVE = Claim("Insight 4: interleaving is faster.", "Section 4.1.3, Figure 12", why=hu.WHY["late page"])
_INTERLEAVE_ERASES = Claim("Insight 4: erases stay the same.", "Section 4.1.3")


@STUDY.exhibit("figure-12", "Figure 12: interleave")
def figure_12(setting: Setting) -> Exhibit:
    """Run interleaved commands with dynamic allocation on one channel of an aged SSD."""
    found = hu.interleave(setting, SIX, hu.dynamic("s4"))
    cleaned = [name for name in SIX if found.of("erases", "basic", name) >= 100]
    findings = [
        better(_INTERLEAVE, found.pairs("all us", "interleave", "basic")),
        equal(_INTERLEAVE_ERASES, found.pairs("erases", "basic", "interleave", cleaned)),
        better(
            _SAME_TREND["interleave"],
            hu.interleave(setting, SIX, hu.static("s4")).pairs("all us", "interleave", "basic"),
        ),
    ]

    def draw() -> Figure:
        series = {
            label: found.normalized(metric, "basic")["interleave"]
            for label, metric in (("response time", "all us"), ("erases", "erases"))
        }
        return drawing.bars(drawing.Bars("interleave / basic", SIX, series, reference=1.0))

    caption = "Response time and erases, relative to basic commands. One channel, aged."
    return Exhibit(found.table("all us", "erases"), draw, findings, caption)


_COMBINED = (
    Claim(
        "Approach 1, blind multi-plane writes with all other commands wise, is the fastest.",
        "Section 4.1.4, Figure 13 (a)",
        why=hu.WHY["multi-plane"],
    ),
    Claim("Approach 1 costs erases.", "Section 4.1.4, Figure 13 (a)"),
    Claim(
        "Approach 2, all commands wise, is faster than basic commands.",
        "Section 4.1.4, Figure 13 (a)",
        why=hu.WHY["late page"],
    ),
    Claim("Approach 2 costs no erases.", "Section 4.1.4, Figure 13 (a)", why=hu.WHY["sooner"]),
)


@STUDY.exhibit("figure-13", "Figure 13 (a): all advanced commands, in two combinations")
def figure_13(setting: Setting) -> Exhibit:
    """Run the two recommended combinations of all commands on one channel of an aged SSD, with dynamic allocation."""
    shown = hu2011.combined_exhibit(hu.combined(setting, hu2011.CLEANED, hu.dynamic("s6")), None, _COMBINED)
    static = hu.combined(setting, hu2011.CLEANED, hu.static("s6"))
    shown.findings.extend(
        [
            better(_SAME_TREND["all"], static.pairs("all us", "MPW blind", "basic")),
            better(_SAME_TREND["all wise"], static.pairs("all us", "all wise", "basic")),
        ]
    )
    return shown


_COMBINED_CURVE = Claim(
    "Under MSN, approach 1 is faster than approach 2, which is faster than basic commands.",
    "Section 4.1.4, Figure 13 (b)",
    why=hu.WHY["multi-plane"],
)


@STUDY.exhibit("figure-13b", "Figure 13 (b): distribution of response times with all commands, MSN")
def figure_13b(setting: Setting) -> Exhibit:
    """Compare response time distributions under MSN."""
    cases = {"basic": hu.BASIC, "MPW blind": hu.COMBINED["blind"], "all wise": hu.COMBINED["wise"]}
    found = hu.curves(setting, "MSN", _one_channel(cases, "s6"))
    order = ("MPW blind", "all wise", "basic")
    findings = [
        better(
            _COMBINED_CURVE,
            {
                f"{small} and {large}, p{100 * share:.0f}": (
                    hu.quantile(found[small], share),
                    hu.quantile(found[large], share),
                )
                for small, large in itertools.pairwise(order)
                for share in (0.5, 0.75, 0.9, 0.95)
            },
        )
    ]
    return _curves(found, findings)


# Section 4.2: allocation.

_BASE = "dynamic, 2 levels"
_ALLOCATIONS = {
    _BASE: {**hu.dynamic("s2"), "prewrite": "even"},
    "dynamic, 4 levels": {**hu.dynamic("s6"), **hu.COMBINED["blind"], "prewrite": "even"},
    "static, 2 levels": {**hu.static("s2"), "prewrite": "allocation"},
    "static, 4 levels": {**hu.static("s6"), **hu.COMBINED["blind"], "prewrite": "allocation"},
}
_LEVELS = ("2 levels", "4 levels")

_READS = Claim("Insight 5: static allocation is faster for reads.", "Section 4.2.1, Figure 15")
_WRITES = Claim(
    "Insight 6: dynamic allocation is faster for writes.",
    "Section 4.2.2, Figure 15",
    why=hu.WHY["allocation"],
)
_OVERALL = Claim(
    "Dynamic allocation is faster overall under Ex, Fin1 and Rad.", "Section 4.2.2, Figure 15", why=hu.WHY["allocation"]
)
_LITTLE = Claim(
    "Insight 7: dynamic: four levels hardly gain, except under Ex.",
    "Section 4.2.3, Figure 15",
    why=_WHY["four levels"],
)
_EX = Claim(
    "Under Ex with dynamic allocation, four levels take 20% less time.",
    "Section 4.2.3",
    "20 %",
    why=_WHY["four levels"],
)
_MUCH = Claim(
    "Insight 7: static: four levels gain more than 5%.",
    "Section 4.2.3, Figure 15",
    why=_WHY["four levels"],
)


def _allocations(setting: Setting, names: Sequence[str]) -> hu.Grid:
    return hu.grid(setting, names, {name: {**hu.FOUR_CHANNELS, **case} for name, case in _ALLOCATIONS.items()})


@STUDY.exhibit("figure-15", "Figure 15: allocation, with two and with four levels of parallelism")
def figure_15(setting: Setting) -> Exhibit:
    """Compare response times of reads, writes and all requests, static and dynamic, with two and four levels."""
    found = _allocations(setting, SIX)

    def pairs(metric: str, small: str, large: str, names: Sequence[str]) -> dict[str, tuple[float, float]]:
        return {
            f"{name}, {levels}": pair
            for levels in _LEVELS
            for name, pair in found.pairs(metric, f"{small}, {levels}", f"{large}, {levels}", names).items()
        }

    gain = found.mean("all us", "dynamic, 4 levels", _BASE, ["Ex"])
    static = {name: found.mean("all us", "static, 4 levels", "static, 2 levels", [name]) for name in SIX}
    findings = [
        better(_READS, pairs("read us", "static", "dynamic", SIX)),
        better(_WRITES, pairs("write us", "dynamic", "static", SIX)),
        better(_OVERALL, pairs("all us", "dynamic", "static", ("Ex", "Fin1", "Rad"))),
        equal(_LITTLE, found.pairs("all us", "dynamic, 4 levels", _BASE, [n for n in SIX if n != "Ex"]), within=0.05),
        number(_EX, 100 * (1 - 1 / gain), 20, neutral=0.0, unit=" %"),
        holds(
            _MUCH,
            min(static.values()) > 1.05,
            ", ".join(f"{name} {value:.2f}x" for name, value in static.items()),
            nearly=statistics.geometric_mean(static.values()) > 1 + EQUAL,
            rule="each, ≈ by the mean",
        ),
    ]

    def draw() -> Figure:
        return drawing.bars(
            *(found.bars(f"{kind} us", _BASE, "response time /\n" + _BASE, kind) for kind in ("read", "write", "all"))
        )

    caption = (
        "Response time relative to dynamic allocation with two levels. Two levels: basic commands, order channel, "
        "chip (S2). Four levels: all advanced commands, multi-plane writes blind, order channel, die, plane, chip "
        "(S6). 4 channels, aged."
    )
    return Exhibit(found.table("read us", "write us", "all us"), draw, findings, caption)


_WEAR = Claim(
    "Insight 8: dynamic allocation spreads erases more evenly over planes.",
    "Section 4.2.4, Table 5",
    why=hu.WHY["wear"],
)


@STUDY.exhibit("table-5", "Table 5: standard deviation of the erases per plane")
def table_5(setting: Setting) -> Exhibit:
    """Compare wear by plane, static and dynamic, with and without advanced commands."""
    found = _allocations(setting, SIX)
    pairs = {
        f"{name}, {commands}": found.pairs("deviation", f"dynamic, {levels}", f"static, {levels}", [name]).get(name)
        for levels, commands in zip(_LEVELS, ("B", "B+A"), strict=True)
        for name in SIX
    }
    findings = [better(_WEAR, {name: pair for name, pair in pairs.items() if pair is not None} or {"none": (1.0, 1.0)})]

    def draw() -> Figure:
        series = {case: [max(0.1, found.of("deviation", case, name)) for name in SIX] for case in found.cases}
        return drawing.bars(drawing.Bars("standard deviation of\nerases per plane (log)", SIX, series, log=True))

    caption = (
        "Aged. B: basic commands (two levels). B+A: advanced commands (four levels). The paper's text does not "
        "contain the numbers of its table. Values below 0.1 are drawn as 0.1."
    )
    return Exhibit(found.table("deviation", "erases"), draw, findings, caption)


#: Section 4.2.1: increase of the data stored in one channel, dynamic relative to static allocation.
MORE_IN_ONE_CHANNEL = {"Dev": 0.015, "Fin2": 1.637, "MSN": 0.955, "Ex": 0.085, "Fin1": 3.651, "Rad": 0.002}
_ONE_CHANNEL = {
    name: Claim(
        f"Under {name}, dynamic allocation stores {more:.1%} more of the read data in one channel.",
        "Section 4.2.1",
        f"+{more:.1%}",
        why=_WHY["one channel"],
    )
    for name, more in MORE_IN_ONE_CHANNEL.items()
}
#: Number of requests whose addresses are examined.
_PLACED = 10_000


@STUDY.exhibit("section-4-2-1", "Section 4.2.1: pages of a request that are read from the same channel")
def one_channel(setting: Setting) -> Exhibit:
    """Count the pages of read requests that share a channel with another page of their request."""
    import pyarrow as pa  # noqa: PLC0415 (half a second, and not always needed)

    rows: list[dict[str, Any]] = []
    findings = []
    for name, claim in _ONE_CHANNEL.items():
        static, dynamic = (_ALLOCATIONS[f"{case}, 2 levels"] for case in ("static", "dynamic"))
        pages = f"rw=randwrite bs=2k size={workloads.area(name, setting.footprint)}"
        shared = {
            "static": _sharing(setting, name, static),
            "dynamic": _sharing(setting, name, dynamic),
            "scattered: dynamic": _sharing(setting, name, dynamic, precondition=pages),
        }
        base = max(1e-9, shared["static"])
        more, scattered = shared["dynamic"] / base - 1, shared["scattered: dynamic"] / base - 1
        rows.append(
            {"workload": name, **{f"{case}, %": 100 * share for case, share in shared.items()}}
            | {"more, %": 100 * more, "scattered: more, %": 100 * scattered}
        )
        findings.append(number(claim, more, MORE_IN_ONE_CHANNEL[name], neutral=0.0))

    def draw() -> Figure:
        series = {case: [row[f"{case}, %"] for row in rows] for case in ("static", "dynamic", "scattered: dynamic")}
        return drawing.bars(drawing.Bars("pages after another one of\ntheir request, %", SIX, series))

    caption = (
        "Share of pages read that follow another page of the same request on their channel, in the first "
        f"{_PLACED:,} requests. Aged, 4 channels, basic commands, S2. 'Scattered': random writes of one page wrote the "
        "data before, on an empty SSD. No claim uses this state."
    )
    return Exhibit(pa.Table.from_pylist(rows), draw, findings, caption)


def _sharing(setting: Setting, name: str, case: Mapping[str, Any], precondition: str = hu.AGED) -> float:
    """Return the share of pages read that follow another page of their request on their channel."""
    import pyarrow.compute as pc  # noqa: PLC0415 (half a second, and not always needed)

    options = {**hu.SCHEDULER, **hu.FOUR_CHANNELS, **{k: v for k, v in case.items() if k != "prewrite"}}
    trace = replace(setting, requests=min(_PLACED, setting.requests)).workload(name).trace
    result = run(
        setting.changed("hu2011", options), trace,
        precondition=precondition, prewrite=case["prewrite"], series=False, requests=True, warn=False,
    )  # fmt: skip
    # The first page that a request reads on a channel follows none of its own pages.
    requests = result.requests()
    first = pc.sum(requests.filter(pc.equal(requests["operation"], "read"))["channels"]).as_py() or 0
    pages = result.summary.flash.reads_by_cause.host
    return (pages - first) / max(1, pages)


# Section 4.3: the order of parallelism levels.

_FOUR_PAGES = (
    Claim(
        "Two interleaved writes of two pages are faster than two multi-plane writes, if the chip waits for both dies "
        "(command, as in the other figures).",
        "Section 4.3, Figure 16",
        why=hu.WHY["four pages"],
    ),
    Claim("The same with independent dies (die).", "Section 4.3, Figure 16"),
)


@STUDY.exhibit("figure-16", "Figure 16: a write of four pages, by planes and by dies")
def figure_16(setting: Setting) -> Exhibit:
    """Write four pages to a chip with each command."""
    return hu.four_page_exhibit(setting, _FOUR_PAGES)


_DYNAMIC = (
    Claim(
        "Dynamic: channel first is faster than chip first (SSD2, SSD1).",
        "Section 4.3.1, Figure 17 (a)",
    ),
    Claim(
        "Dynamic: die before chip is faster than chip before die (SSD4, SSD3).",
        "Section 4.3.1, Figure 17 (b)",
        why=hu.WHY["load"],
    ),
    Claim(
        "Dynamic: die before plane is faster than plane before die.", "Section 4.3.1, Figure 17 (b)", why=hu.WHY["load"]
    ),
    Claim(
        "Dynamic: chip last is faster than plane last (SSD4).",
        "Section 4.3.1, Figure 17 (b)",
        why=hu.WHY["load"],
    ),
    Claim("A wrong order costs up to 60%.", "Section 1", "1.6x", why=hu.WHY["even"]),
)
_STATIC = (
    Claim("Static: S1, with the chip first, is the slowest.", "Section 4.3.2, Figure 18"),
    Claim(
        "Static: all other orders are almost equal under the real workloads.",
        "Section 4.3.2, Figure 18",
        why=hu.WHY["planes first"],
    ),
    Claim(
        "Static: under the synthetic workloads, S6 is the fastest.",
        "Section 4.3.2, Figure 18",
        why=hu.WHY["synthetic"],
    ),
    Claim("Insight 9: the best order is channel, die, plane, chip.", "Section 4.3", why=hu.WHY["order"]),
)


@STUDY.exhibit("figure-17", "Figure 17: priority orders of dynamic allocation")
def figure_17(setting: Setting) -> Exhibit:
    """Compare dynamic orders on eight channels and on one channel."""
    return hu2011.dynamic_exhibit(setting, SIX, _DYNAMIC)


@STUDY.exhibit("figure-18", "Figure 18: orders of static allocation")
def figure_18(setting: Setting) -> Exhibit:
    """Compare static orders on eight channels, including the synthetic workloads of Table 7."""
    return hu2011.static_exhibit(setting, SIX, _STATIC)


# Section 5: the design guide.

_SECTION_5 = (
    Claim(
        "A read without parallelism fills 72.5% of the channel (2 KiB pages of Table 2).",
        "Section 5.1, Figure 19 (a)",
        "72.5 %",
    ),
    Claim("An interleaved two-plane write fills 69.1% of the channel.", "Section 5.1, Figure 19 (e)", "69.1 %"),
    Claim("Two chips fill the channel with reads.", "Section 5.1, Figure 19 (g)", "2 chips"),
    Claim(
        "The same, if the chip waits for both dies (command, as in the other figures).",
        "Section 5.1, Figure 19 (e)",
        "69.1 %",
        why=_WHY["69.1"],
    ),
    Claim("The same with independent dies (die).", "Section 5.1, Figure 19 (e)", "69.1 %"),
    Claim("Five chips fill the channel with writes.", "Section 5.1, Figure 19 (h)", "5 chips"),
    Claim("At 30 ns, interleaved writes to two chips fill about 94%.", "Section 5.2, Figure 19 (f)", "94 %"),
    Claim(
        "Therefore, by formula (1), at least two chips fill a channel.",
        "Section 5.2",
        "2 chips",
        why="The paper's share already includes two chips, but formula (1) needs the utilization by one chip, which "
        "is half of it. Two chips do not fill the channel, three do.",
    ),
    Claim("Such a channel needs 17 pins.", "Section 5.2", "17 pins"),
    Claim("Four such channels need 68 pins.", "Section 5.2", "68 pins"),
)


@STUDY.exhibit("section-5", "Section 5: the design guide, by formula and by simulation")
def section_5(setting: Setting) -> Exhibit:
    """Compare the utilization of a channel by each kind of parallelism (Figure 19), and the design of Section 5.2."""
    import pyarrow as pa  # noqa: PLC0415 (half a second, and not always needed)

    check = not setting.quick
    first = design(read_mb_s=250, write_mb_s=240, cell="slc", check=check)
    second = design(read_mb_s=120, write_mb_s=120, cell="slc", spare=0, cycle="30ns", fill=0.94, check=check)
    full = design(read_mb_s=120, write_mb_s=120, cell="slc", spare=0, cycle="30ns", check=False)
    table_2 = {way.figure: way for way in first.ways}
    at_30 = {way.figure: way for way in second.ways}
    option = second.options[0]
    per_channel = option.pins // option.channels
    findings = [
        number(_SECTION_5[0], 100 * table_2["a"].utilization, 72.5, neutral=0.0, unit=" %"),
        number(_SECTION_5[1], 100 * table_2["e"].utilization, 69.1, neutral=0.0, unit=" %"),
        number(_SECTION_5[2], table_2["g"].chips, 2, neutral=0.0, unit=" chips"),
        *(
            number(_SECTION_5[index], 100 * hu.channel_share(setting, concurrency), 69.1, neutral=0.0, unit=" %")
            for index, concurrency in zip((3, 4), hu.CONCURRENCIES, strict=True)
        ),
        number(_SECTION_5[5], table_2["h"].chips, 5, neutral=0.0, unit=" chips"),
        number(_SECTION_5[6], 100 * at_30["f"].utilization, 94, neutral=0.0, unit=" %"),
        holds(
            _SECTION_5[7],
            full.options[0].chips == 2,
            f"{option.chips} chips for 94%, {full.options[0].chips} for a full channel",
            nearly=option.chips == 2,
            rule="for a full channel, ≈ for 94%",
        ),
        number(_SECTION_5[8], per_channel, 17, neutral=0.0, unit=" pins"),
        number(_SECTION_5[9], 4 * per_channel, 68, neutral=0.0, unit=" pins"),
    ]
    rows: list[dict[str, Any]] = [
        {
            "flash": flash,
            "figure": f"19 ({way.figure})",
            "way": way.name,
            "formula": 100 * way.utilization,
            "simulated": None if way.simulated is None else 100 * way.simulated,
        }
        for flash, guide in (("2112 B at 25 ns", first), ("2048 B at 30 ns", second))
        for way in guide.ways
    ]

    def draw() -> Figure:
        return drawing.bars(
            *(
                drawing.Bars(
                    "channel in use, %",
                    [row["figure"] for row in rows if row["flash"] == flash],
                    {what: [row[what] for row in rows if row["flash"] == flash] for what in ("formula", "simulated")},
                    title=flash,
                )
                for flash in dict.fromkeys(row["flash"] for row in rows)
            )
        )

    caption = (
        "Share of time in which the channel carries data: a basic read, b basic write, c two-plane write, d "
        "interleaved write of two dies, e interleaved two-plane write, f interleaved write to two chips, g and h "
        "basic reads and writes with the fewest chips that fill the channel. Above with the 64 spare bytes of a page, "
        "which 72.5 and 69.1% need; below without them, at 30 ns, which 94% needs."
    )
    return Exhibit(pa.Table.from_pylist(rows), draw, findings, caption)
