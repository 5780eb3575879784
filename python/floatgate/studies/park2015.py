"""Park et al. 2015: which allocation suits which request pattern."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from floatgate._files import scratch
from floatgate.running import run
from floatgate.studies import drawing
from floatgate.studies.study import FOOTPRINTS, Claim, Exhibit, Study, better, equal, holds, number
from floatgate.workload import Trace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.figure import Figure

    from floatgate.result import Result
    from floatgate.studies.study import Finding, Setting

#: Parameters of the patterns, which the paper does not contain. They were fixed before the first run.
REGION_MIB = 128
#: Pages of 4 KiB per request for continuous data.
REQUEST_PAGES = 16
#: Requests per second at which each request ends before the next arrives.
CALM = 100
#: Share of the pages modified in pattern B: one per request on average.
MODIFIED = 1 / REQUEST_PAGES
#: Concurrent streams of continuous data in pattern C.
STREAMS = 4
#: Share of the time that patterns C and D would keep the dies busy.
LOAD = 0.5
SEEDS = (1, 2, 3)

#: Blocks per plane when B's pages are modified until dies wear, and number of times that the flash is filled.
WORN_BLOCKS = 64
WORN_WRITES = 2

#: 8 channels, 2 packages, 2 dies; 100 us a read, 1000 us a write.
_DIES = 32
_READS = _DIES * 10_000
_WRITES = _DIES * 1_000

PATTERNS = ("A", "B", "C", "C, one stream", "D")
_SCHEMES = {"static": {"static": {"order": "s4"}}, "dynamic": {"dynamic": {"order": "s4"}}}

STUDY = Study(
    "park2015",
    "Exploring SSD suitable allocation schemes in compliance with workload patterns",
    "J. Y. Park, H. Jung, J. T. Kim, International Journal of Electrical, Electronic and Communication Sciences 9(12), "
    "2015",
    [
        "Device: the built-in park2015, 8 channels x 2 packages x 2 dies, 100 us per page read, 1000 us per page "
        "write. Static and dynamic allocation in the order channel, die, package.",
        "The paper describes its patterns only in words. Here data are continuous in requests of "
        f"{REQUEST_PAGES} pages of 4 KiB over {REGION_MIB} MiB, and are written first, then read. A: {CALM} requests "
        f"per second, which do not overlap. B: the same, and in between, {MODIFIED:.1%} of the pages "
        f"are modified one by one. C: Poisson arrivals keep the dies busy for {LOAD:.0%} of the time, in {STREAMS} "
        "concurrent streams, because the paper mentions dies that other operations occupy. Our first reading of C, "
        "with one stream, is shown as well. D: as C, with single pages at random addresses of written data. Means of "
        f"{len(SEEDS)} seeds.",
        f"Only the figure of wear needs garbage collection: its device has {WORN_BLOCKS} blocks per plane, and the "
        f"flash is filled {WORN_WRITES} times.",
    ],
    [],
    variants=FOOTPRINTS,
)


def _words(pattern: str, setting: Setting, load: float = LOAD, modified: float = MODIFIED) -> tuple[str, str]:
    """Return the initial state of a pattern, and its two jobs, which write and read."""
    size = max(1, int(REGION_MIB * setting.footprint * (0.125 if setting.quick else 1.0)))
    region = f"size={size}m"
    block = f"bs={4 * REQUEST_PAGES}k"
    written = f"rw=write {block} {region}"
    requests = size * 256 // REQUEST_PAGES
    if pattern == "A":
        return (
            "none",
            f"name=writes {written} rate_iops={CALM} ; name=reads stonewall rw=read {block} {region} rate_iops={CALM}",
        )
    if pattern == "B":
        pages = max(1, int(size * 256 * modified))
        return (
            written,
            f"name=writes rw=randwrite bs=4k {region} number_ios={pages} rate_iops={CALM} ; "
            f"name=reads stonewall rw=read {block} {region} rate_iops={CALM}",
        )
    writes, reads = int(_WRITES * load), int(_READS * load)
    if pattern.startswith("C"):
        streams = STREAMS if pattern == "C" else 1
        clones = f"numjobs={streams} {block} size={size * 1024 // streams}k offset_increment={size * 1024 // streams}k"
        rates = [rate // REQUEST_PAGES // streams for rate in (writes, reads)]
        return (
            "none",
            f"name=writes rw=write {clones} rate_iops={rates[0]} rate_process=poisson ; "
            f"name=reads stonewall rw=read {clones} rate_iops={rates[1]} rate_process=poisson",
        )
    pages = requests * 4
    return (
        written,
        f"name=writes rw=randwrite bs=4k {region} number_ios={pages} rate_iops={writes} "
        f"rate_process=poisson ; name=reads stonewall rw=randread bs=4k {region} number_ios={pages} "
        f"rate_iops={reads} rate_process=poisson",
    )


def _times(setting: Setting, cases: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Run cases with both schemes, and return mean response times in microseconds over the seeds."""
    points = [
        {
            "device": "park2015",
            "allocation": scheme,
            "precondition": case["words"][0],
            "workload": case["words"][1],
            "_case": index,
            "_scheme": name,
        }
        for index, case in enumerate(cases)
        for name, scheme in _SCHEMES.items()
    ]
    seeds = SEEDS[:1] if setting.quick else SEEDS
    sums: dict[tuple[int, str], list[float]] = {}
    for seed in seeds:
        for row in setting.rows(points, seeds=(seed,)):
            for kind in ("read", "write"):
                sums.setdefault((row["_case"], f"{row['_scheme']} {kind}"), []).append(
                    row[f"requests.{kind}.latency_us.mean"]
                )
    return [
        {key: value for key, value in case.items() if key != "words"}
        | {f"{what} us": sum(values) / len(values) for (at, what), values in sums.items() if at == index}
        for index, case in enumerate(cases)
    ]


_A = Claim(
    "A: if requests do not overlap, both schemes take the same time.",
    "Section III-A, Figure 3",
)
_B_READ = Claim(
    "B: after a few modifications, reads take almost 1.5 times as long with dynamic allocation.",
    "Section III-B, Figure 3",
    "1.5x",
    why="The paper does not say how many pages are modified. By their share, the factor is {penalty-of-reads | "
    "penalty | | range} in a later figure.",
)
_B_WRITE = Claim("B: writes take the same time.", "Section III-B")
_C_READ = Claim("C: reads are faster with static allocation.", "Section III-C, Figure 3")
_ONE_STREAM = (
    "With one stream, requests of equal size use the dies in turn, so both allocations put the same pages on the same "
    "dies."
)
_C_ONE_READ = Claim("C with one stream: reads are faster with static allocation.", "Section III-C", why=_ONE_STREAM)
_C_ONE_WRITE = Claim("C with one stream: writes are faster with dynamic allocation.", "Section III-C", why=_ONE_STREAM)
_C_WRITE = Claim("C: writes are faster with dynamic allocation.", "Section III-C, Figure 3")
_D_READ = Claim("D: random reads take the same time.", "Section III-D, Figure 3")
_D_WRITE = Claim(
    "D: random writes take 1.15 times as long with static allocation.",
    "Section III-D, Figure 3",
    "1.15x",
    why="The paper does not specify the load. A die of static allocation is a separate queue (M/D/1), while dynamic "
    "allocation nearly always finds an idle die. By the load, the factor is {penalty-of-writes | penalty | | range} in "
    "the last figure.",
)


def _pair(row: Mapping[str, Any], smaller: str, larger: str) -> tuple[float, float]:
    return float(row[f"{smaller} us"]), float(row[f"{larger} us"])


def _verdicts(rows: Mapping[str, Mapping[str, Any]]) -> list[Finding]:
    pairs = {name: _pair(row, "static read", "dynamic read") for name, row in rows.items()}
    writes = {name: _pair(row, "dynamic write", "static write") for name, row in rows.items()}
    return [
        equal(_A, {"reads": pairs["A"], "writes": writes["A"]}),
        number(_B_READ, pairs["B"][1] / pairs["B"][0], 1.5, unit="x"),
        equal(_B_WRITE, {"B": writes["B"]}),
        better(_C_READ, {"C": pairs["C"]}),
        better(_C_WRITE, {"C": writes["C"]}),
        better(_C_ONE_READ, {"C": pairs["C, one stream"]}),
        better(_C_ONE_WRITE, {"C": writes["C, one stream"]}),
        number(_D_WRITE, writes["D"][1] / writes["D"][0], 1.15, unit="x"),
        equal(_D_READ, {"D": pairs["D"]}),
    ]


@STUDY.exhibit("figure-3", "Figure 3: normalized mean response time by pattern and allocation")
def figure_3(setting: Setting) -> Exhibit:
    """Run patterns A to D with both schemes."""
    import pyarrow as pa  # noqa: PLC0415 (half a second, and not always needed)

    rows = _times(setting, [{"pattern": name, "words": _words(name, setting)} for name in PATTERNS])

    def draw() -> Figure:
        panels = []
        for kind in ("read", "write"):
            best = [min(*_pair(row, f"static {kind}", f"dynamic {kind}")) for row in rows]
            series = {
                scheme: [float(row[f"{scheme} {kind} us"]) / least for row, least in zip(rows, best, strict=True)]
                for scheme in _SCHEMES
            }
            panels.append(
                drawing.Bars(
                    "response time / better one",
                    [f"Syn {row['pattern']}" for row in rows],
                    series,
                    reference=1.0,
                    title=f"{kind}s",
                )
            )
        return drawing.bars(*panels)

    findings = _verdicts({str(row["pattern"]): row for row in rows})
    caption = "Normalized to the better scheme of each pair."
    return Exhibit(pa.Table.from_pylist(rows), draw, findings, caption)


_FIGURE_1 = (
    Claim("Three reads of one die take three times as long as one.", "Section II, Figure 1", "3x"),
    Claim("Three reads of different channels take as long as one.", "Section II, Figure 1", "1x"),
    Claim(
        "Three reads of different dies of one channel take as long as one.",
        "Section II, Figure 1",
        "1x",
    ),
)
#: Distance of the numbers of three pages that differ in the first level of a static order.
_CASES_1 = {"one die": 32, "one channel": 8, "different channels": 1}


@STUDY.exhibit("figure-1", "Figure 1: three reads of one die, of different channels and of different dies of a channel")
def figure_1(setting: Setting) -> Exhibit:
    """Read three pages at once at addresses that differ in one level."""
    import pyarrow as pa  # noqa: PLC0415

    one = _at_once(setting, [0])
    times = {name: _at_once(setting, [0, step, 2 * step]) for name, step in _CASES_1.items()}
    rows = [{"three reads of": name, "us": us, "over one read": us / one} for name, us in times.items()]
    ratios = [times[name] / one for name in ("one die", "different channels", "one channel")]
    findings = [
        number(_FIGURE_1[0], ratios[0], 3.0, unit="x"),
        equal(_FIGURE_1[1], {"channels": (one, times["different channels"])}),
        equal(_FIGURE_1[2], {"dies": (one, times["one channel"])}),
    ]

    def draw() -> Figure:
        return drawing.bars(
            drawing.Bars(
                "time / one read", list(times), {"three reads": [us / one for us in times.values()]}, reference=1.0
            )
        )

    caption = (
        "Time to read three pages at once, relative to one page. Static allocation in the order channel, die, "
        "package. In the paper, the bus takes no time."
    )
    return Exhibit(pa.Table.from_pylist(rows), draw, findings, caption)


def _at_once(setting: Setting, pages: Sequence[int]) -> float:
    """Return the time to read some pages at once, in microseconds."""
    with scratch("floatgate-study-") as place:
        trace = Path(place, "reads.ascii")
        trace.write_text("".join(f"0 0 {8 * page} 8 1\n" for page in pages), encoding="ascii")
        result = run(
            setting.changed("park2015", {"allocation": _SCHEMES["static"]}), Trace(trace, format="ssdsim"),
            precondition="none", prewrite="allocation", series=False, attribution=False, warn=False,
        )  # fmt: skip
    return float(result.summary["requests"]["all"]["latency_us"]["max"])


_FIGURE_2 = (
    Claim("Dynamic allocation writes earlier, by A.", "Section II, Figure 2"),
    Claim("It puts two of the pages on one die, and reads only two in parallel.", "Section II, Figure 2"),
    Claim("Static allocation reads all pages in parallel, earlier by B.", "Section II, Figure 2"),
    Claim("A is greater than B.", "Section II, Figure 2"),
)
#: The example: one of three dies is occupied by reads of a page, as long as three writes.
_EXAMPLE = {"geometry.channels": 3, "geometry.chips": 1, "geometry.dies": 1, "geometry.blocks": 64}
_OCCUPYING, _PAGES = 30, 3
_READ_AT_US = 6_000


def _example(setting: Setting, scheme: str, place: Path) -> Result:
    """Write three pages while one of three dies is occupied, and read them when all dies are idle."""
    occupied = [(0, _PAGES, 1)] * _OCCUPYING
    pages = [(at, index, kind) for at, kind in ((10, 0), (_READ_AT_US, 1)) for index in range(_PAGES)]
    trace = place / "example.ascii"
    trace.write_text(
        "".join(f"{1000 * at} 0 {8 * page} 8 {kind}\n" for at, page, kind in occupied + pages), encoding="ascii"
    )
    return run(
        setting.changed("park2015", {**_EXAMPLE, "allocation": _SCHEMES[scheme]}), Trace(trace, format="ssdsim"),
        precondition="none", prewrite="allocation", series=False, requests=True, timeline=True, warn=False,
        out=place / scheme,
    )  # fmt: skip


@STUDY.exhibit("figure-2", "Figure 2: timing of writes and reads by allocation")
def figure_2(setting: Setting) -> Exhibit:
    """Draw the paper's example."""
    import pyarrow as pa  # noqa: PLC0415

    rows: list[dict[str, Any]] = []
    diagrams = []
    with scratch("floatgate-study-") as place:
        for scheme in _SCHEMES:
            result = _example(setting, scheme, Path(place))
            found = result.requests().to_pylist()
            pages = [each for each in found if each["lba"] < 8 * _PAGES]
            spans = {
                kind: [each["latency_ps"] / 1e6 for each in pages if each["operation"] == kind]
                for kind in ("write", "read")
            }
            rows.append(
                {"allocation": scheme}
                | {f"{kind}s end after, us": max(each) for kind, each in spans.items()}
                | {"pages read in parallel": sum(us < 1.5 * min(spans["read"]) for us in spans["read"])}
            )
            diagram = result.draw(title=f"{scheme} allocation")
            diagrams.append(diagram.read_text(encoding="utf-8"))
    static, dynamic = rows
    ends = {kind: (dynamic[f"{kind}s end after, us"], static[f"{kind}s end after, us"]) for kind in ("write", "read")}
    gain, loss = (abs(other - one) for one, other in ends.values())
    findings = [
        better(_FIGURE_2[0], {"writes": ends["write"]}),
        number(_FIGURE_2[1], dynamic["pages read in parallel"], _PAGES - 1, neutral=0.0),
        better(_FIGURE_2[2], {"reads": ends["read"][::-1]}),
        holds(_FIGURE_2[3], gain > loss > 0, f"A {gain:.0f} us, B {loss:.0f} us"),
    ]
    caption = (
        f"Reads occupy the first of three dies. {_PAGES} pages are written at once, and read later. The paper does not "
        "say what occupies the die."
    )
    return Exhibit(pa.Table.from_pylist(rows), lambda: drawing.stacked(diagrams), findings, caption)


_SECTION_3_C = (
    Claim(
        "The gain B is repeated with each read until the data are modified or erased.",
        "Section II",
        why="Each read gains, {section-3-c | B: lost in a read, us | | range} us, which differs by more than the rule "
        "allows.",
    ),
    Claim("C: with enough reads per write, static allocation is faster overall.", "Section III-C"),
)
#: Number of times that the data of pattern C are read.
_RE_READS = (1, 2, 4, 8, 16)


@STUDY.exhibit("section-3-c", "Section III-C: gains per write and per read")
def section_3_c(setting: Setting) -> Exhibit:
    """Read the data of pattern C several times, and compare the total time of both schemes."""
    import pyarrow as pa  # noqa: PLC0415

    times = _RE_READS[::2] if setting.quick else _RE_READS
    cases = []
    for count in times:
        state, words = _words("C", setting)
        writes, reads = words.split(" ; ")
        jobs = " ; ".join([writes, *(reads.replace("name=reads", f"name=reads{number}") for number in range(count))])
        cases.append({"reads of each page": count, "words": (state, jobs)})
    rows = _times(setting, cases)
    won, lost = [], []
    for row in rows:
        write_won = row["static write us"] - row["dynamic write us"]
        read_lost = row["dynamic read us"] - row["static read us"]
        won.append(write_won)
        lost.append(read_lost)
        row["A: won in a write, us"], row["B: lost in a read, us"] = write_won, read_lost
        row["dynamic over static, all"] = (
            row["dynamic write us"] + row["reads of each page"] * row["dynamic read us"]
        ) / (row["static write us"] + row["reads of each page"] * row["static read us"])
    findings = [
        equal(_SECTION_3_C[0], {f"{n} reads": (lost[0], b) for n, b in zip(times, lost, strict=True)}),
        better(_SECTION_3_C[1], {f"{times[-1]} reads": (1.0, rows[-1]["dynamic over static, all"])}),
    ]

    def draw() -> Figure:
        series = {"pattern C": ([float(n) for n in times], [float(row["dynamic over static, all"]) for row in rows])}
        return drawing.lines(
            drawing.Lines(
                "times that each page is read (logarithmic)", "time of all requests, dynamic / static", series,
                reference=1.0, log_x=True,
            )
        )  # fmt: skip

    caption = (
        "Pattern C with data that are read several times: total time of the write and the reads of a request's data, "
        "dynamic relative to static. Above the dashed line, static is faster."
    )
    return Exhibit(pa.Table.from_pylist(rows), draw, findings, caption)


_GROWS = Claim(
    "B: the penalty depends on how many pages are no longer read in parallel.",
    "Section III-B",
)


@STUDY.exhibit("penalty-of-reads", "Pattern B by the share of modified pages")
def penalty_of_reads(setting: Setting) -> Exhibit:
    """Measure the penalty of reads, which Section III-B describes in words, by the share of modified pages."""
    import pyarrow as pa  # noqa: PLC0415

    shares = [1 / 128, 1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4]
    shares = shares[::2] if setting.quick else shares
    rows = _times(setting, [{"modified": at, "words": _words("B", setting, modified=at)} for at in shares])
    ratio = [_pair(row, "static read", "dynamic read") for row in rows]
    penalty = [dynamic / static for static, dynamic in ratio]
    rows = [row | {"penalty": value} for row, value in zip(rows, penalty, strict=True)]
    findings = [
        better(
            _GROWS,
            {
                f"{first:.1%} to {second:.1%}": (small, large)
                for first, second, small, large in zip(shares, shares[1:], penalty, penalty[1:], strict=False)
            },
        )
    ]

    def draw() -> Figure:
        percent = [100 * share for share in shares]
        return drawing.lines(
            drawing.Lines(
                "modified pages, % of all (logarithmic)",
                "read time, dynamic / static",
                {"measured": (percent, penalty)},
                reference=1.5,
                log_x=True,
            )
        )

    caption = (
        f"Reads of {REQUEST_PAGES} pages, some of them modified. Dashed: the paper's 'almost 1.5 times'. A read "
        "takes twice as long if the new die of a modified page is one of the 15 dies of the other pages. With one "
        "modified page per read, this affects about every second read."
    )
    return Exhibit(pa.Table.from_pylist(rows), draw, findings, caption)


_WEAR = Claim(
    "B: static allocation is suitable 'except wear-leveling problem': the dies of the modified pages wear most.",
    "Section III-B",
)


@STUDY.exhibit("wear-of-modified-pages", "Pattern B, with repeated changes of the same few pages")
def wear_of_modified_pages(setting: Setting) -> Exhibit:
    """Measure how evenly dies wear, which Section III-B omits, by how often the same pages are modified."""
    import pyarrow as pa  # noqa: PLC0415

    size = max(1, int(REGION_MIB * setting.footprint * (0.125 if setting.quick else 1.0)))
    amount = f"size={size}m io_size={_DIES * WORN_BLOCKS * WORN_WRITES // 4}m"
    job = f"rw=randwrite norandommap=1 bs=4k {amount}"
    skews = {"uniform": ""} | {f"Zipf {theta:g}": f" random_distribution=zipf:{theta:g}" for theta in (0.6, 0.9, 1.2)}
    jobs = {name: job + skew for name, skew in skews.items()}
    jobs["first pages"] = f"rw=write:{4 * (REQUEST_PAGES - 1)}k bs=4k {amount}"
    points = [
        {
            "device": "park2015",
            "geometry.blocks": WORN_BLOCKS,
            "allocation": scheme,
            "precondition": f"rw=write bs={4 * REQUEST_PAGES}k size={size}m",
            "workload": words,
            "_case": name,
            "_scheme": scheme_name,
        }
        for name, words in jobs.items()
        for scheme_name, scheme in _SCHEMES.items()
    ]
    worst: dict[str, dict[str, float]] = {name: {} for name in jobs}
    for row in setting.rows(points, seeds=SEEDS[:1]):
        worst[row["_case"]][row["_scheme"]] = row["wear.planes.max"] / row["wear.planes.mean"]
    rows = [{"modified": name, **ratios} for name, ratios in worst.items()]
    findings = [better(_WEAR, {name: (ratios["dynamic"], ratios["static"]) for name, ratios in worst.items()})]

    def draw() -> Figure:
        series = {scheme: [ratios[scheme] for ratios in worst.values()] for scheme in _SCHEMES}
        return drawing.bars(
            drawing.Bars("erases of the\nmost worn die / mean", list(worst), series, reference=1, log=True)
        )

    caption = (
        "Single pages of data written in requests of 64 KiB are modified, at random or the first page of each "
        "request. With static allocation, a page always returns to the same die. If the first pages are modified, 2 "
        "of the 32 dies receive all writes, 16 times the mean. Dynamic allocation cycles through the dies."
    )
    return Exhibit(pa.Table.from_pylist(rows), draw, findings, caption)


_LOADS = Claim("D: with static allocation, writes wait for a busy die.", "Section III-D and Figure 2")


@STUDY.exhibit("penalty-of-writes", "Pattern D by load")
def penalty_of_writes(setting: Setting) -> Exhibit:
    """Measure the penalty of writes, for which Section III-D gives no load, by load."""
    import pyarrow as pa  # noqa: PLC0415

    loads = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]
    loads = loads[1::3] if setting.quick else loads
    rows = _times(setting, [{"load": load, "words": _words("D", setting, load=load)} for load in loads])
    penalty = [larger / smaller for smaller, larger in (_pair(row, "dynamic write", "static write") for row in rows)]
    formula = [1 + load / (2 * (1 - load)) for load in loads]
    rows = [row | {"penalty": value, "M/D/1": form} for row, value, form in zip(rows, penalty, formula, strict=True)]
    findings = [
        better(
            _LOADS,
            {
                f"load {load:g}": _pair(row, "dynamic write", "static write")
                for load, row in zip(loads, rows, strict=True)
            },
        )
    ]

    def draw() -> Figure:
        series = {"measured": (loads, penalty), "M/D/1 for each die": (loads, formula)}
        return drawing.lines(
            drawing.Lines(
                "share of the time that dies are busy", "write time, static / dynamic", series, reference=1.15
            )
        )

    caption = (
        "Random writes of a page. Dashed: the paper's 1.15. With static allocation, each die is a separate queue. The "
        "formula is the mean time in such a queue, relative to one write."
    )
    return Exhibit(pa.Table.from_pylist(rows), draw, findings, caption)
