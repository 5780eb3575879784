"""Hu et al. 2011: page size, allocation, advanced commands and the order of parallelism levels."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

from floatgate.studies import drawing, hu
from floatgate.studies.study import EQUAL, Claim, Exhibit, Study, better, equal, holds, number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa
    from matplotlib.figure import Figure

    from floatgate.studies.study import Finding, Setting

#: Workloads of the figures: those named in the text, and the six of Table 4 and Figure 12.
SIX = ("Web", "Dev", "Fin2", "MSN", "Ex", "Fin1")
PAGE_SIZES = ("2KiB", "4KiB", "8KiB", "16KiB")
WRITERS = ("Dev", "Ex", "Fin1", "MSN", "Rad")
SYNTHETIC = ("Syn1", "Syn2", "Syn3", "Syn4")

#: When some workloads gain from multi-plane reads, and others hardly.
MPR_RULE = "each gains more than the others, which gain below 3%; ≈ by the mean"

#: Table 3: standard deviation of the total erases per plane, static and dynamic.
TABLE_3 = {"Dev": (284.9, 2.5), "Ex": (409.1, 39.5), "Fin1": (207.3, 3.9), "MSN": (3534.4, 112.6), "Rad": (7.5, 2.6)}
#: Table 4: speedup of response times by multi-plane reads, dynamic and static.
TABLE_4 = {
    "Web": (1.15, 1.09),
    "Dev": (1.11, 1.01),
    "Fin2": (1.02, 1.00),
    "MSN": (1.04, 1.01),
    "Ex": (1.00, 1.00),
    "Fin1": (1.00, 1.00),
}

STUDY = Study(
    "hu2011",
    "Performance impact and interplay of SSD parallelism through advanced commands, allocation strategy and data "
    "granularity",
    "Y. Hu, H. Jiang, D. Feng, L. Tian, H. Luo, S. Zhang, ICS 2011",
    [
        *hu.ABOUT,
        "Not reproduced: Figures 5 to 7, which compare SSDsim with a prototype. The text does not contain the "
        "measurements.",
    ],
    ["Web", "Dev", "Fin2", "MSN", "Ex", "Fin1", "Rad"],
    reasons=hu.WHY,
)


# Section 4.1: page size.

_PAGE_4K = Claim(
    "4 KiB pages are fastest under Dev, MSN, Ex and Rad.",
    "Section 4.1, Figure 10",
    why=hu.WHY["page"],
)
_PAGE_FIN1 = Claim("16 KiB pages are fastest under Fin1.", "Section 4.1, Figure 10", why=hu.WHY["page"])
_PAGE_MSN = Claim(
    "Under MSN, larger pages take up to 1.8 times as long as the best size.",
    "Section 1, Figure 10",
    "1.8x",
    why=hu.WHY["page"],
)
_UNCOVERED = Claim(
    "With larger pages, more updates replace part of a page and read the rest.",
    "Section 4.1, Figure 10",
)
_INSIGHT_1 = Claim("Insight 1: larger pages are a bad choice under some workloads.", "Section 4.1")


@STUDY.exhibit("figure-10", "Figure 10: page size")
def figure_10(setting: Setting) -> Exhibit:
    """Compare page sizes by mean response times and un-covered updates. Blocks always have 128 KiB."""
    cases = {size: {**hu.FOUR_CHANNELS, **hu.static("s2"), "geometry.page_size": size} for size in PAGE_SIZES}
    found = hu.grid(setting, WRITERS, cases, state=hu.NEW)
    best = {name: min(PAGE_SIZES, key=lambda size: found.of("all us", size, name)) for name in found.workloads}
    least = [found.of("all us", best[name], name) for name in found.workloads]
    normalized: dict[str, list[float | None]] = {
        size: [found.of("all us", size, name) / at for name, at in zip(found.workloads, least, strict=True)]
        for size in PAGE_SIZES
    }
    share: dict[str, list[float | None]] = {
        size: [100 * _uncovered(found, size, name) for name in found.workloads] for size in PAGE_SIZES
    }
    four = [name for name in ("Dev", "MSN", "Ex", "Rad") if best[name] == "4KiB"]
    told = ", ".join(f"{name} {size}" for name, size in best.items())
    msn = max(found.of("all us", size, "MSN") for size in PAGE_SIZES) / found.of("all us", best["MSN"], "MSN")
    others = {name: (found.of("all us", best[name], name), found.of("all us", "16KiB", name)) for name in WRITERS}
    findings = [
        holds(_PAGE_4K, len(four) == 4, f"best: {told}", nearly=len(four) >= 2, rule="≈ if two of them"),
        holds(
            _PAGE_FIN1,
            best["Fin1"] == "16KiB",
            f"best: {best['Fin1']}",
            nearly=best["Fin1"] == "8KiB",
            rule="≈ if 8 KiB",
        ),
        number(_PAGE_MSN, msn, 1.8, unit="x"),
        better(
            _UNCOVERED, {name: (_uncovered(found, "2KiB", name), _uncovered(found, "16KiB", name)) for name in WRITERS}
        ),
        holds(
            _INSIGHT_1,
            any(large > small * (1 + EQUAL) for small, large in others.values()),
            "16 KiB relative to the best: " + ", ".join(f"{name} {b / a:.2f}" for name, (a, b) in others.items()),
        ),
    ]

    def draw() -> Figure:
        return drawing.bars(
            drawing.Bars(
                "response time / best size", found.workloads, normalized, reference=1.0, ranges=_over_best(found, best)
            ),
            drawing.Bars("un-covered updates,\n% of pages written", found.workloads, share),
        )

    caption = (
        "Above: mean response time relative to the best page size. Below: writes that replace part of the valid "
        "sectors of a page, and need a read. Static allocation S2, non-aged SSD of 512 MiB."
    )
    return Exhibit(found.table("all us", "uncovered", "covered", "first"), draw, findings, caption)


def _over_best(found: hu.Grid, best: Mapping[str, str]) -> dict[str, list[tuple[float, float] | None]]:
    """Return the range over the seeds of response times, relative to the best size over all seeds together."""
    if len(found.samples) < 2:
        return {}
    return {
        size: [
            (min(ratios), max(ratios))
            for name in found.workloads
            if (
                ratios := [
                    each.of("all us", size, name) / each.of("all us", best[name], name) for each in found.samples
                ]
            )
        ]
        for size in PAGE_SIZES
    }


def _uncovered(found: hu.Grid, case: str, name: str) -> float:
    uncovered, covered, first = (found.of(key, case, name) for key in ("uncovered", "covered", "first"))
    return uncovered / max(1.0, uncovered + covered + first)


# Section 4.2: allocation.

_ALLOCATIONS = {"static S2": hu.static("s2"), "dynamic": hu.dynamic("s2")}

_INSIGHT_2 = Claim(
    "Insight 2: static allocation is faster for reads, non-aged and aged.",
    "Section 4.2, Figure 12",
)
_WRITES_NEW = Claim(
    "Non-aged: dynamic allocation is faster for writes.",
    "Section 4.2, Figure 12 (a)",
    why=hu.WHY["allocation"],
)
_OVERALL_NEW = Claim(
    "Non-aged: dynamic allocation is faster overall under Fin2, MSN, Ex and Fin1.",
    "Section 4.2, Figure 12 (a)",
    why=hu.WHY["allocation"],
)
_PRONOUNCED = Claim(
    "The advantage for writes is larger on an aged SSD.",
    "Section 4.2, Figure 12 (b)",
    why=hu.WHY["allocation"],
)
_INSIGHT_3 = Claim(
    "Insight 3: on an aged SSD, dynamic allocation is faster overall, except under Web.",
    "Section 4.2, Figure 12 (b)",
    why=hu.WHY["allocation"],
)
_ENDURANCE = Claim(
    "On an aged SSD, dynamic allocation erases less under most workloads.",
    "Section 6, Figure 12",
    why=hu.WHY["endurance"],
)
_WEB = Claim("Under Web, static allocation is faster overall, in both states.", "Section 4.2, Figure 12")


def _allocations(setting: Setting, names: Sequence[str]) -> hu.Grid:
    cases = {
        f"{state}, {name}": {
            **hu.FOUR_CHANNELS,
            **allocation,
            "precondition": precondition,
            "prewrite": "even" if name == "dynamic" else "allocation",
        }
        for state, precondition in (("non-aged", hu.NEW), ("aged", hu.AGED))
        for name, allocation in _ALLOCATIONS.items()
    }
    return hu.grid(setting, names, cases)


@STUDY.exhibit("figure-12", "Figure 12: static and dynamic allocation")
def figure_12(setting: Setting) -> Exhibit:
    """Compare response times of reads, writes and all requests, with basic commands only."""
    found = _allocations(setting, SIX)

    def pairs(metric: str, small: str, large: str, names: Sequence[str] = SIX) -> dict[str, tuple[float, float]]:
        return found.pairs(metric, small, large, names)

    reads = {
        f"{name}, {state}": pair
        for state in ("non-aged", "aged")
        for name, pair in pairs("read us", f"{state}, static S2", f"{state}, dynamic").items()
    }
    new, aged = (found.mean("write us", f"{state}, dynamic", f"{state}, static S2", SIX) for state in _STATES)
    web = {state: pairs("all us", f"{state}, static S2", f"{state}, dynamic", ["Web"])["Web"] for state in _STATES}
    others = [name for name in SIX if name != "Web"]
    findings = [
        better(_INSIGHT_2, reads),
        better(_WRITES_NEW, pairs("write us", "non-aged, dynamic", "non-aged, static S2")),
        better(
            _OVERALL_NEW, pairs("all us", "non-aged, dynamic", "non-aged, static S2", ["Fin2", "MSN", "Ex", "Fin1"])
        ),
        holds(
            _PRONOUNCED,
            aged > (1 + EQUAL) * max(1.0, new),
            f"static relative to dynamic, on average: {new:.3f} non-aged, {aged:.3f} aged",
        ),
        better(_INSIGHT_3, pairs("all us", "aged, dynamic", "aged, static S2", others)),
        better(_WEB, web),
        better(_ENDURANCE, pairs("erases", "aged, dynamic", "aged, static S2", others)),
    ]

    def draw() -> Figure:
        return drawing.bars(
            *(
                drawing.Bars(
                    "dynamic / static S2",
                    found.workloads,
                    {
                        kind: found.normalized(f"{kind} us", f"{state}, static S2")[f"{state}, dynamic"]
                        for kind in ("read", "write", "all")
                    },
                    reference=1.0,
                    title=state,
                    ranges={
                        kind: found.ranges(f"{kind} us", f"{state}, static S2").get(f"{state}, dynamic", [])
                        for kind in ("read", "write", "all")
                    },
                )
                for state in _STATES
            )
        )

    caption = (
        "Dynamic allocation (channel, then chip first) relative to static S2. Below the dashed line, dynamic "
        "allocation is faster. Basic commands, 4 channels."
    )
    return Exhibit(found.table("read us", "write us", "all us", "erases"), draw, findings, caption)


_STATES = ("non-aged", "aged")

_INSIGHT_4 = Claim(
    "Insight 4: dynamic allocation spreads erases more evenly over planes.",
    "Section 4.2, Table 3",
    why=hu.WHY["wear"],
)
_TABLE_3_FACTOR = Claim(
    "Deviation with static over dynamic allocation, geometric mean.",
    "Section 4.2, Table 3",
    f"{statistics.geometric_mean([a / b for a, b in TABLE_3.values()]):.0f}x (from its numbers)",
    why=hu.WHY["wear"],
)


@STUDY.exhibit("table-3", "Table 3: standard deviation of the erases per plane")
def table_3(setting: Setting) -> Exhibit:
    """Compare wear by plane of static and dynamic allocation on an aged SSD."""
    import pyarrow as pa  # noqa: PLC0415 (half a second, and not always needed)

    found = _allocations(setting, WRITERS)
    rows: list[dict[str, Any]] = []
    for name in WRITERS:
        ours = [found.of("deviation", f"aged, {case}", name) for case in _ALLOCATIONS]
        erases = found.of("erases", "aged, static S2", name)
        rows.append(
            {
                "workload": name,
                "static: paper": TABLE_3[name][0],
                "static: ours": ours[0],
                "dynamic: paper": TABLE_3[name][1],
                "dynamic: ours": ours[1],
                "erases, static: ours": erases,
            }
        )
    paper = statistics.geometric_mean([a / b for a, b in TABLE_3.values()])
    factors = {row["workload"]: (row["dynamic: ours"], row["static: ours"]) for row in rows}
    mean = statistics.geometric_mean([max(a, 1e-3) / max(b, 1e-3) for b, a in factors.values()])
    findings = [better(_INSIGHT_4, factors), number(_TABLE_3_FACTOR, mean, paper, unit="x")]

    def draw() -> Figure:
        keys = {
            "static, paper": "static: paper",
            "static, ours": "static: ours",
            "dynamic, paper": "dynamic: paper",
            "dynamic, ours": "dynamic: ours",
        }
        series = {label: [max(0.1, row[key]) for row in rows] for label, key in keys.items()}
        return drawing.bars(drawing.Bars("standard deviation of\nerases per plane (log)", WRITERS, series, log=True))

    caption = (
        "Aged. The magnitude depends on the data written, which are much more in the complete traces, so only the "
        "ratio of static to dynamic is comparable. Values below 0.1 are drawn as 0.1."
    )
    return Exhibit(pa.Table.from_pylist(rows), draw, findings, caption)


# Section 4.3: advanced commands.

_COPY_WORSE = Claim(
    "Blind copy-back is slower under Dev, MSN and Ex.",
    "Section 4.3.1, Figure 14",
    why=hu.WHY["copy-back"],
)
_COPY_7 = Claim(
    "Under MSN, blind copy-back takes 7.7 times as long.",
    "Section 1",
    "7.7x",
    why=hu.WHY["copy-back"],
)
_COPY_17 = Claim(
    "Under MSN, blind copy-back causes 17.8 times as many erases.", "Section 1", "17.8x", why=hu.WHY["copy-back"]
)
_COPY_HALF = Claim(
    "Almost half of the blind copy-backs waste a page.",
    "Section 4.3.1",
    "0.5",
    why=hu.WHY["copy-back half"],
)
_COPY_WISE = Claim("Wise copy-back is faster.", "Section 4.3.1, Figure 14", why=hu.WHY["copy-back wise"])
_COPY_ERASES = Claim("Wise copy-back needs no more erases.", "Section 4.3.1, Figure 14", why=hu.WHY["copy-back wise"])
_INSIGHT_5 = Claim(
    "Insight 5: blind copy-back, which ignores the parity of pages, costs erases.",
    "Section 4.3.1",
)

CLEANED = ("Dev", "MSN", "Ex", "Fin1", "Rad")


@STUDY.exhibit("figure-14", "Figure 14: copy-back")
def figure_14(setting: Setting) -> Exhibit:
    """Run blind and wise copy-back on one channel of an aged SSD."""
    found = hu.copy_back(setting, CLEANED)
    return copy_back_exhibit(
        found,
        {
            "worse": _COPY_WORSE,
            "7.7": _COPY_7,
            "17.8": _COPY_17,
            "half": _COPY_HALF,
            "wise": _COPY_WISE,
            "wise erases": _COPY_ERASES,
            "insight": _INSIGHT_5,
        },
    )


def copy_back_exhibit(found: hu.Grid, claims: Mapping[str, Claim]) -> Exhibit:
    """Return the exhibit of copy-back, which both papers contain."""
    three = ("Dev", "MSN", "Ex")
    wasted = {
        name: found.of("wasted", "blind", name) / found.of("copy-backs", "blind", name)
        for name in found.workloads
        if found.of("copy-backs", "blind", name) >= 50
    }
    findings = [
        better(claims["worse"], found.pairs("all us", "basic", "blind", three)),
        number(claims["7.7"], found.mean("all us", "basic", "blind", ["MSN"]), 7.7, unit="x"),
        number(claims["17.8"], found.mean("erases", "basic", "blind", ["MSN"]), 17.8, unit="x"),
        better(claims["wise"], found.pairs("all us", "wise", "basic")),
        equal(claims["wise erases"], found.pairs("erases", "basic", "wise")),
        better(claims["insight"], found.pairs("erases", "basic", "blind")),
    ]
    if "half" in claims and wasted:
        findings.append(number(claims["half"], statistics.mean(wasted.values()), 0.5, neutral=0.0))

    def draw() -> Figure:
        return drawing.bars(
            found.bars("all us", "basic", "response time / basic", cases=("blind", "wise")),
            found.bars("erases", "basic", "erases / basic", cases=("blind", "wise")),
        )

    caption = "Response time and erases, relative to basic commands. One channel, aged, dynamic allocation."
    return Exhibit(found.table("all us", "erases", "moved", "copy-backs", "wasted"), draw, findings, caption)


_MPW_FASTER = Claim(
    "Blind multi-plane writes are faster.",
    "Section 4.3.2, Figure 16",
    why=hu.WHY["multi-plane"],
)
_MPW_ERASES = Claim("Blind multi-plane writes cause more erases.", "Section 4.3.2, Figure 16")
_MPW_WISE = Claim(
    "Wise multi-plane writes, whose condition is rarely met, change little.",
    "Section 4.3.2, Figure 16",
)
_INSIGHT_6 = Claim(
    "Insight 6: with static allocation (S3), blind is also faster, at the cost of erases.",
    "Section 4.3.2, Figure 16",
    why=hu.WHY["multi-plane"],
)


@STUDY.exhibit("figure-16", "Figure 16: multi-plane writes")
def figure_16(setting: Setting) -> Exhibit:
    """Run blind and wise multi-plane writes, dynamic and static, on one channel of an aged SSD."""
    moving = hu.multi_plane_write(setting, CLEANED, hu.dynamic("s3"))
    fixed = hu.multi_plane_write(setting, CLEANED, hu.static("s3"))
    findings = [
        better(_MPW_FASTER, moving.pairs("all us", "blind", "basic")),
        better(_MPW_ERASES, moving.pairs("erases", "basic", "blind")),
        equal(_MPW_WISE, moving.pairs("all us", "wise", "basic"), within=0.05),
        better(_INSIGHT_6, fixed.pairs("all us", "blind", "basic")),
    ]

    def draw() -> Figure:
        return drawing.bars(
            *(
                grid.bars(metric, "basic", f"{label} / basic", title, cases=("blind", "wise"))
                for title, grid in (("dynamic", moving), ("static S3", fixed))
                for metric, label in (("all us", "response time"), ("erases", "erases"))
            )
        )

    caption = (
        "Response time and erases, relative to basic commands in the same order (channel, plane, chip, die). One "
        "channel, aged."
    )
    return Exhibit(both(moving, fixed, "all us", "erases", "left out"), draw, findings, caption)


def both(moving: hu.Grid, fixed: hu.Grid, *metrics: str) -> pa.Table:
    """Return the runs of dynamic and static allocation as one table."""
    rows = [
        {**row, "case": f"{how}, {row['case']}"}
        for how, grid in (("dynamic", moving), ("static", fixed))
        for row in grid.rows
    ]
    return hu.Grid(rows).table(*metrics)


_MPR_NUMBERS = Claim(
    "The speedups of the table.",
    "Section 4.3.2, Table 4",
    "1.00 to 1.15, see data",
    why=hu.WHY["mpr"],
)
_MPR_TWO_PAGES = Claim(
    "Dynamic allocation under Web has the largest speedup.", "Section 4.3.2, Table 4", "1.15", why=hu.WHY["mpr"]
)
_INSIGHT_7 = Claim(
    "Insight 7: workloads with many large reads gain (Web, Dev, MSN), Fin2, Ex and Fin1 hardly.",
    "Section 4.3.2, Table 4",
    why=hu.WHY["mpr"],
)


@STUDY.exhibit("table-4", "Table 4: speedup by multi-plane reads")
def table_4(setting: Setting) -> Exhibit:
    """Compare response times with multi-plane reads, dynamic and static, on one channel."""
    import pyarrow as pa  # noqa: PLC0415

    found = hu.multi_plane_read(setting, SIX)
    rows: list[dict[str, Any]] = []
    for name in SIX:
        ours = [found.mean("all us", f"{how}, MPR", f"{how}, basic", [name]) for how in ("dynamic", "static")]
        rows.append(
            {
                "workload": name,
                "dynamic: paper": TABLE_4[name][0],
                "dynamic: ours": ours[0],
                "static: paper": TABLE_4[name][1],
                "static: ours": ours[1],
            }
        )
    off = {
        (row["workload"], how): row[f"{how}: ours"] - row[f"{how}: paper"]
        for row in rows
        for how in ("dynamic", "static")
    }
    near = sum(abs(by) <= 0.05 for by in off.values())
    worst = max(off, key=lambda at: abs(off[at]))
    gains = {row["workload"]: max(row["dynamic: ours"], row["static: ours"]) for row in rows}
    large, small = [gains[name] for name in ("Web", "Dev", "MSN")], [gains[name] for name in ("Fin2", "Ex", "Fin1")]
    told = ", ".join(f"{name} {gain:.2f}" for name, gain in gains.items())
    findings = [
        holds(
            _MPR_NUMBERS,
            near == len(off),
            f"{near} of {len(off)} within 0.05; largest deviation: {worst[1]} under {worst[0]}, {off[worst]:+.2f}",
            nearly=near >= len(off) / 2,
            rule="all within 0.05, ≈ if half",
        ),
        number(_MPR_TWO_PAGES, rows[0]["dynamic: ours"], 1.15),
        holds(
            _INSIGHT_7,
            min(large) > max(small) and max(small) < 1.03,
            told,
            nearly=statistics.mean(large) > statistics.mean(small) * (1 + EQUAL),
            rule=MPR_RULE,
        ),
    ]

    def draw() -> Figure:
        keys = ("dynamic: paper", "dynamic: ours", "static: paper", "static: ours")
        series = {key.replace(":", ","): [row[key] for row in rows] for key in keys}
        return drawing.bars(drawing.Bars("response time, basic / with MPR", SIX, series, reference=1.0))

    caption = "Basic commands relative to multi-plane reads. One channel, non-aged, order S3."
    return Exhibit(pa.Table.from_pylist(rows), draw, findings, caption)


_INTERLEAVE = Claim(
    "With dynamic allocation, interleaving is faster.",
    "Section 4.3.3, Figure 17",
    why=hu.WHY["late page"],
)
_INTERLEAVE_STATIC = Claim(
    "With static allocation (S4), it is, except under Fin1 and Fin2 with small requests.",
    "Section 4.3.3, Figure 17",
)
_INSIGHT_8 = Claim(
    "Insight 8: erases stay the same.",
    "Section 4.3.3, Figure 17",
)


@STUDY.exhibit("figure-17", "Figure 17: interleave")
def figure_17(setting: Setting) -> Exhibit:
    """Run interleaved commands, dynamic and static, on one channel of an aged SSD."""
    moving = hu.interleave(setting, SIX, hu.dynamic("s4"))
    fixed = hu.interleave(setting, SIX, hu.static("s4"))
    cleaned = [name for name in SIX if moving.of("erases", "basic", name) >= 100]
    large = ["Web", "Dev", "MSN", "Ex"]
    findings = [
        better(_INTERLEAVE, moving.pairs("all us", "interleave", "basic")),
        better(_INTERLEAVE_STATIC, fixed.pairs("all us", "interleave", "basic", large)),
        equal(
            _INSIGHT_8,
            {
                f"{name}, {how}": grid.pairs("erases", "basic", "interleave", [name])[name]
                for how, grid in (("dynamic", moving), ("static", fixed))
                for name in cleaned
            }
            or {"none": (1.0, 1.0)},
        ),
    ]

    def draw() -> Figure:
        panels = [("response time", "all us"), ("erases", "erases")]
        return drawing.bars(
            *(
                drawing.Bars(
                    f"{label}, interleave / basic",
                    SIX,
                    {
                        how: grid.normalized(metric, "basic")["interleave"]
                        for how, grid in (("dynamic", moving), ("static S4", fixed))
                    },
                    reference=1.0,
                )
                for label, metric in panels
            )
        )

    caption = "Response time and erases, relative to basic commands. One channel, aged."
    return Exhibit(both(moving, fixed, "all us", "erases"), draw, findings, caption)


_APPROACH_2 = Claim(
    "Blind multi-plane writes with all other commands wise are fastest.",
    "Section 4.3.4, Figure 18",
    why=hu.WHY["multi-plane"],
)
_APPROACH_2_ERASES = Claim("That costs erases.", "Section 4.3.4, Figure 18")
_APPROACH_1 = Claim(
    "All commands wise are faster than basic commands.",
    "Section 4.3.4",
    why=hu.WHY["late page"],
)
_APPROACH_1_ERASES = Claim("That costs no erases.", "Section 4.3.4, Figure 18", why=hu.WHY["sooner"])


@STUDY.exhibit("figure-18", "Figure 18: all advanced commands, in two combinations")
def figure_18(setting: Setting) -> Exhibit:
    """Run the two recommended combinations of all commands, dynamic and static, on one channel of an aged SSD."""
    moving = hu.combined(setting, CLEANED, hu.dynamic("s6"))
    fixed = hu.combined(setting, CLEANED, hu.static("s6"))
    return combined_exhibit(moving, fixed, (_APPROACH_2, _APPROACH_2_ERASES, _APPROACH_1, _APPROACH_1_ERASES))


def combined_exhibit(moving: hu.Grid, fixed: hu.Grid | None, claims: tuple[Claim, Claim, Claim, Claim]) -> Exhibit:
    """Return the exhibit of the combined commands, which both papers contain, one without static allocation."""
    grids = {"dynamic": moving} if fixed is None else {"dynamic": moving, "static S6": fixed}

    def pairs(metric: str, small: str, large: str) -> dict[str, tuple[float, float]]:
        return {
            f"{name}, {how}" if len(grids) > 1 else name: pair
            for how, grid in grids.items()
            for name, pair in grid.pairs(metric, small, large).items()
        }

    findings = [
        better(claims[0], pairs("all us", "MPW blind", "all wise")),
        better(claims[1], pairs("erases", "basic", "MPW blind")),
        better(claims[2], pairs("all us", "all wise", "basic")),
        equal(claims[3], pairs("erases", "basic", "all wise")),
    ]

    def draw() -> Figure:
        return drawing.bars(
            *(
                grid.bars(metric, "basic", f"{label} / basic", how, cases=("MPW blind", "all wise"))
                for how, grid in grids.items()
                for metric, label in (("all us", "response time"), ("erases", "erases"))
            )
        )

    caption = (
        "Copy-back, multi-plane and interleaved commands together, relative to basic commands. Multi-plane writes are "
        "blind, or all commands wise. One channel, aged, order S6."
    )
    data = moving.table("all us", "erases") if fixed is None else both(moving, fixed, "all us", "erases")
    return Exhibit(data, draw, findings, caption)


_BEST_STATIC = {
    ("multi-plane", "S3"): Claim(
        "With multi-plane commands, S3 is the best static order.", "Section 4.3.2", why=hu.WHY["best order"]
    ),
    ("interleave", "S4"): Claim(
        "With interleaving, S4 is the best static order.", "Section 4.3.3", why=hu.WHY["best order"]
    ),
    ("all", "S6"): Claim(
        "With all advanced commands, S6 is the best static order.", "Section 4.3.4", why=hu.WHY["best order"]
    ),
}


@STUDY.exhibit("static-orders", "Sections 4.3.2 to 4.3.4: the static order for each advanced command")
def static_orders(setting: Setting) -> Exhibit:
    """Compare static orders with multi-plane commands, interleaving and all commands."""
    found = hu.static_by_command(setting, CLEANED)
    orders = [order.upper() for order in hu.STATIC_ONE]
    findings = []
    for (command, best), claim in _BEST_STATIC.items():
        others = [order for order in orders if order != best]
        findings.append(
            better(
                claim,
                {
                    name: (
                        found.of("all us", f"{command}, {best}", name),
                        min(found.of("all us", f"{command}, {order}", name) for order in others),
                    )
                    for name in found.workloads
                },
            )
        )

    def draw() -> Figure:
        return drawing.bars(
            *(
                found.bars(
                    "all us", f"{command}, {best}", f"response time / {best}", command,
                    cases=[f"{command}, {order}" for order in orders],
                )
                for command, best in _BEST_STATIC
            )
        )  # fmt: skip

    caption = "Relative to the order that the paper uses for the commands. One channel, aged; multi-plane writes blind."
    return Exhibit(found.table("all us", "erases"), draw, findings, caption)


# Section 4.4: the order of parallelism levels.

_FOUR_PAGES = (
    Claim(
        "Two interleaved writes of two pages are faster than two multi-plane writes, if the chip waits for both dies "
        "(command, as in the other figures).",
        "Section 4.4, Figure 19",
        why=hu.WHY["four pages"],
    ),
    Claim("The same with independent dies (die).", "Section 4.4, Figure 19"),
)
_TWO_PAGES = Claim("A multi-plane read of two pages is 1.16 times as fast as two reads.", "Section 4.3.2", "1.16x")


@STUDY.exhibit("figure-19", "Figure 19: a write of four pages, by planes and by dies")
def figure_19(setting: Setting) -> Exhibit:
    """Write four pages to a chip with each command."""
    return hu.four_page_exhibit(setting, _FOUR_PAGES, _TWO_PAGES)


_CHANNEL_FIRST = Claim(
    "Dynamic: channel first is faster than chip first (SSD2, SSD1).",
    "Section 4.4.1, Figure 20 (a)",
)
_DIE_CHIP = Claim(
    "Dynamic: die before chip is faster than chip before die (SSD4, SSD3).",
    "Section 4.4.1, Figure 20 (b)",
    why=hu.WHY["load"],
)
_DIE_PLANE = Claim(
    "Dynamic: die before plane is faster than plane before die.", "Section 4.4.1, Figure 20 (b)", why=hu.WHY["load"]
)
_CHIP_LAST = Claim(
    "Dynamic: chip last is faster than plane last (SSD4).",
    "Section 4.4.1, Figure 20 (b)",
    why=hu.WHY["load"],
)
_SIXTY_EVEN = Claim(
    "The same with data laid out evenly.",
    "hu2013, Section 4.2",
    "1.6x",
    why=hu.WHY["even sizes"],
)
_SIXTY = Claim("A wrong order costs up to 60%.", "Section 1", "1.6x", why=hu.WHY["even"])


@STUDY.exhibit("figure-20", "Figure 20: priority orders of dynamic allocation")
def figure_20(setting: Setting) -> Exhibit:
    """Compare dynamic orders on eight channels and on one channel."""
    return dynamic_exhibit(setting, SIX, (_CHANNEL_FIRST, _DIE_CHIP, _DIE_PLANE, _CHIP_LAST, _SIXTY))


def dynamic_exhibit(
    setting: Setting, names: Sequence[str], claims: tuple[Claim, Claim, Claim, Claim, Claim]
) -> Exhibit:
    """Return the exhibit of dynamic orders, which both papers contain."""
    eight = hu.dynamic_orders(setting, names, hu.EIGHT_CHANNELS)
    even = hu.dynamic_orders(setting, names, hu.EIGHT_CHANNELS, prewrite="even")
    one = hu.dynamic_orders(setting, names, hu.ONE_CHANNEL)
    chip, channel = hu.DYNAMIC_EIGHT
    ssd3, ssd4, dies, planes = hu.DYNAMIC_ONE
    worst = max(value or 0.0 for value in eight.normalized("all us", channel)[chip])
    worst = max(worst, *(value or 0.0 for case in one.cases for value in one.normalized("all us", dies)[case]))
    findings = [
        better(claims[0], eight.pairs("all us", channel, chip)),
        better(claims[1], one.pairs("all us", ssd4, ssd3)),
        better(claims[2], one.pairs("all us", dies, planes)),
        better(claims[3], one.pairs("all us", dies, ssd4)),
        number(claims[4], worst, 1.6, unit="x"),
        number(_SIXTY_EVEN, max(value or 0.0 for value in even.normalized("all us", channel)[chip]), 1.6, unit="x"),
    ]

    def draw() -> Figure:
        return drawing.bars(
            eight.bars("all us", channel, "response time /\nchannel first", "8 channels, data laid out by the order"),
            even.bars("all us", channel, "response time /\nchannel first", "8 channels, data laid out evenly"),
            one.bars("all us", dies, "response time /\nchannel > die > plane > chip", "1 channel"),
        )

    caption = (
        "Response time relative to one of the orders. All advanced commands, multi-plane writes blind; aged. Orders "
        "are named by their levels, because the papers swap the labels SSD5 and SSD6."
    )
    rows = [
        {**row, "case": f"{channels}: {row['case']}"}
        for channels, grid in (("8 channels", eight), ("8 channels, even", even), ("1 channel", one))
        for row in grid.rows
    ]
    return Exhibit(hu.Grid(rows).table("all us", "erases"), draw, findings, caption)


_S1_WORST = Claim("Static: S1, with the chip first, is the slowest.", "Section 4.4.2, Figure 21")
_REAL_EQUAL = Claim(
    "Static: all other orders are almost equal under the real workloads.",
    "Section 4.4.2, Figure 21",
    why=hu.WHY["planes first"],
)
_S6_BEST = Claim(
    "Static: under the synthetic workloads, S6 is the fastest.",
    "Section 4.4.2, Figure 21",
    why=hu.WHY["synthetic"],
)
_INSIGHT_9 = Claim("Insight 9: the best order is channel, die, plane, chip.", "Section 4.4", why=hu.WHY["order"])


@STUDY.exhibit("figure-21", "Figure 21: orders of static allocation")
def figure_21(setting: Setting) -> Exhibit:
    """Compare static orders on eight channels, including the synthetic workloads of Table 6."""
    return static_exhibit(setting, SIX, (_S1_WORST, _REAL_EQUAL, _S6_BEST, _INSIGHT_9))


def static_exhibit(setting: Setting, names: Sequence[str], claims: tuple[Claim, Claim, Claim, Claim]) -> Exhibit:
    """Return the exhibit of static orders, which both papers contain."""
    import pyarrow as pa  # noqa: PLC0415 (half a second, and not always needed)

    found = hu.static_orders(setting, [*names, *SYNTHETIC])
    first, *others = hu.STATIC_EIGHT
    best = others[-1]
    worst_pairs = {
        name: (max(found.of("all us", case, name) for case in others), found.of("all us", first, name))
        for name in found.workloads
    }
    spread = {
        name: (
            min(found.of("all us", case, name) for case in others),
            max(found.of("all us", case, name) for case in others),
        )
        for name in names
    }
    synthetic = {
        name: (found.of("all us", best, name), min(found.of("all us", case, name) for case in others[:-1]))
        for name in SYNTHETIC
    }
    overall = {
        case.split(":")[0]: statistics.geometric_mean([found.of("all us", case, name) for name in found.workloads])
        for case in hu.STATIC_EIGHT
    }
    least = min(overall.values())
    told = ", ".join(f"{case} {value / least:.3f}" for case, value in overall.items())
    findings: list[Finding] = [
        better(claims[0], worst_pairs),
        equal(claims[1], spread, within=0.05),
        better(claims[2], synthetic),
        holds(
            claims[3],
            overall["S6"] * (1 + EQUAL) < min(value for case, value in overall.items() if case != "S6"),
            f"mean over workloads, relative to the best: {told}",
        ),
    ]

    def draw() -> Figure:
        return drawing.bars(
            hu.Grid([row for row in found.rows if row["workload"] in names]).bars("all us", best, "response time / S6"),
            hu.Grid([row for row in found.rows if row["workload"] in SYNTHETIC]).bars(
                "all us", best, "response time / S6"
            ),
        )

    caption = (
        "Response time relative to S6. 8 channels, non-aged, all advanced commands, multi-plane writes blind. Syn1 to "
        "Syn4 are synthetic workloads."
    )
    table = found.table("read us", "write us", "all us")
    means = [
        {"workload": "all", "case": case, "all us": mean}
        for case, mean in zip(found.cases, overall.values(), strict=True)
    ]
    return Exhibit(
        pa.concat_tables([table, pa.Table.from_pylist(means)], promote_options="default"), draw, findings, caption
    )
