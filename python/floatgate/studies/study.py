"""Parts of a study: exhibits (figures and tables), their claims, and verdicts."""

from __future__ import annotations

import shutil
import statistics
import tempfile
import weakref
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from floatgate.device import Device
from floatgate.exceptions import OptionError, OutputError, SimulationError
from floatgate.studies import workloads
from floatgate.sweeping import sweep

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import pyarrow as pa
    from matplotlib.figure import Figure

#: Result of comparing a claim with runs.
Verdict = Literal["agrees", "agrees in direction", "sign only", "disagrees"]

#: Two values that differ by less than this share are considered equal.
EQUAL = 0.01
#: A published effect agrees with an effect within this share of it.
CLOSE = 0.10
#: Effects that differ by less than these factors agree in direction, and in their sign only.
NEAR, FAR = 2, 10
#: Values that are claimed to be equal agree within this share, unless the claim states another one.
SAME = 0.02

#: Rules for verdicts, for the pages.
RULES = (
    "A claim that one thing is better than another, under all workloads or those that it names, *agrees* if no "
    f"workload contradicts it by more than {EQUAL:.0%} and most show it by more than {EQUAL:.0%}. It agrees *in "
    f"direction* if the geometric mean over the workloads shows it by more than {EQUAL:.0%}. Numbers are compared by "
    "their effect, the difference from the value without an effect: 0.05 for 1.05 times as long. A number agrees if "
    f"its effect is above {EQUAL:.0%}, has the sign of the published effect, and is within {CLOSE:.0%} of it. If the "
    f"sign is the same, it agrees in direction if the effects differ by at most a factor of {NEAR}, and in *sign only* "
    f"below a factor of {FAR}. A published effect of at most {EQUAL:.0%} is none, and agrees within {SAME:.0%}. Values "
    f"that are claimed to be equal agree within {SAME:.0%}. If a claim has another rule, it is printed with the "
    "verdict. The rules were fixed before the first run, and made stricter three times: at first, an effect of any "
    "size was enough. Later, ratios were compared instead of effects, so that 1.16 times as long agreed with 1.05. "
    "Then, effects that differ by more than a factor of two were separated."
)
#: A result of more words is not shown in tables.
_SHORT = 4


@dataclass(frozen=True)
class Variant:
    """A named change of the setting."""

    #: Heading of its column.
    short: str
    #: The change in words, for the pages.
    about: str
    #: Options of the device.
    device: Mapping[str, Any] = field(default_factory=dict)
    #: Other fields of the setting.
    setting: Mapping[str, Any] = field(default_factory=dict)


#: Variants by name. Studies repeat each verdict for some of them.
VARIANTS: dict[str, Variant] = {
    "half the footprint": Variant("1/2", "the workload uses half the addresses", setting={"footprint": 0.5}),
    "twice the footprint": Variant("2x", "the workload uses twice the addresses", setting={"footprint": 2.0}),
    "batches of 8": Variant("b8", "requests in batches of 8", setting={"batch": 8}),
    "batches of 32": Variant("b32", "requests in batches of 32", setting={"batch": 32}),
    "first come, first served": Variant(
        "fcfs", "first come, first served, instead of reads before writes", {"scheduler": "fcfs"}
    ),
    "gc-first": Variant(
        "gc", "garbage collection precedes host requests and holds the channel for all its moves, as in SSDsim's "
        "process()", {"gc.pace": "exclusive"},
    ),
    "queue-5": Variant("q5", "at most 5 outstanding requests, as SSDsim ships", {"host.queue_depth": 5}),
    "buffer-128k": Variant("buf", "a write buffer of 128 KiB, as SSDsim ships", {"buffer.capacity": "128KiB"}),
    "bimodal sizes": Variant("bi", "two sizes of reads, with the same mean", setting={"sizes": "bimodal"}),
    "chips=1": Variant(
        "c1", "one chip per channel, with four times the blocks", {"geometry.chips": 1, "geometry.blocks": 256}
    ),
    "half the blocks": Variant("1/2", "half the blocks of a plane", setting={"footprint": 0.5}),
    "twice the blocks": Variant("2x", "twice the blocks of a plane", setting={"footprint": 2.0}),
    "written once": Variant("once", "each address is written once", setting={"once": True}),
    "written in order": Variant(
        "order", "each address is written once, and places differ from the order of writing by at most 16 MiB",
        setting={"once": True, "window": 16},
    ),
}  # fmt: skip
#: Variants that are possible for patterns of jobs.
FOOTPRINTS = ("half the footprint", "twice the footprint")
#: Variants that are possible for workloads of the size of the device.
SIZES = ("half the blocks", "twice the blocks")
#: Variants of scenarios that write each address twice.
ONCE = ("written once", "written in order")
#: Variants of studies of traces.
STANDARD = tuple(each for each in VARIANTS if each not in (*SIZES, *ONCE))


@dataclass(frozen=True)
class Claim:
    """A claim of a paper in our words, with the numbers of its tables and sentences.

    No numbers are read from the bars of its figures.
    """

    text: str
    where: str
    #: The published number, and what it refers to.
    published: str = ""
    #: Reason for a deviation, found by hand on the standard runs.
    why: str = ""


@dataclass(frozen=True)
class Finding:
    """The comparison of a claim with runs."""

    claim: Claim
    verdict: Verdict
    ours: str
    #: The result in a word or two, for tables, in the unit of the published number. Empty if there is no such form.
    short: str = ""
    #: The rule of the verdict, if it is not the common one.
    rule: str = ""


def better(claim: Claim, pairs: Mapping[str, tuple[float, float]]) -> Finding:
    """Check the claim that the first of two values is smaller, under each of several workloads.

    Parameters
    ----------
    pairs
        By workload: the value that is claimed to be smaller, and the other one.
    """
    ratios = {name: _ratio(small, large) for name, (small, large) in pairs.items()}
    against = [name for name, ratio in ratios.items() if ratio < 1 / (1 + EQUAL)]
    shown = [name for name, ratio in ratios.items() if ratio > 1 + EQUAL]
    mean = statistics.geometric_mean(ratios.values())
    if not against and 2 * len(shown) >= len(ratios):
        verdict: Verdict = "agrees"
    else:
        verdict = "agrees in direction" if mean > 1 + EQUAL else "disagrees"
    return Finding(
        claim, verdict, _spread(ratios, mean, f"better in {len(shown)} of {len(ratios)}"), f"{_round(mean)}x"
    )


def equal(claim: Claim, pairs: Mapping[str, tuple[float, float]], within: float = SAME) -> Finding:
    """Check the claim that two values are equal, under each of several workloads."""
    ratios = {name: _ratio(*pair) for name, pair in pairs.items()}
    same = sum(abs(ratio - 1) <= within for ratio in ratios.values())
    mean = statistics.geometric_mean(ratios.values())
    verdict: Verdict = "disagrees"
    if same == len(ratios):
        verdict = "agrees"
    elif abs(mean - 1) <= within:
        verdict = "agrees in direction"
    rule = "" if within == SAME else f"within {100 * within:g}%"
    return Finding(claim, verdict, _spread(ratios, mean, f"equal in {same} of {len(ratios)}"), f"{_round(mean)}x", rule)


def number(claim: Claim, ours: float, published: float, *, neutral: float = 1.0, unit: str = "") -> Finding:
    """Check a published number by its effect: its difference from `neutral`, the value without an effect."""
    effect, expected = ours - neutral, published - neutral
    unity = max(1.0, abs(neutral))
    shows = abs(effect) > EQUAL * unity and effect * expected > 0
    verdict: Verdict = "disagrees"
    if abs(expected) <= EQUAL * unity:
        # The paper prints that there is no effect.
        verdict = "agrees" if abs(effect - expected) <= SAME * unity else "disagrees"
    elif shows and abs(effect / expected - 1) <= CLOSE:
        verdict = "agrees"
    elif shows and 1 / NEAR <= effect / expected <= NEAR:
        verdict = "agrees in direction"
    elif shows and 1 / FAR < effect / expected < FAR:
        verdict = "sign only"
    what = "effect " if neutral else ""
    off = f", {what}{effect / expected - 1:+.0%}" if expected else ""
    if not neutral and not unit and claim.published.endswith("%"):
        short = f"{_round(100 * ours)}%"
    else:
        # A separate unit is in the next column.
        is_known = unit.startswith(" ") and claim.published.endswith(unit)
        short = _round(ours) + ("" if is_known else unit)
    return Finding(claim, verdict, f"{ours:.3g}{unit} (paper {published:.4g}{unit}{off})", short)


def holds(claim: Claim, true: bool, ours: str, *, nearly: bool | None = None, rule: str = "") -> Finding:
    """Check a claim that is true, nearly true, or false.

    Raises
    ------
    ValueError
        The claim can be nearly true, and no rule says when.
    """
    if nearly is not None and not rule:
        raise ValueError(f"the claim {claim.text!r} needs its rule")
    verdict: Verdict = "agrees" if true else "agrees in direction" if nearly else "disagrees"
    return Finding(claim, verdict, ours, ours if len(ours.split()) <= _SHORT else "", rule)


def _round(value: float) -> str:
    """Format a number with three significant digits, without a positive exponent."""
    text = f"{value:.3g}"
    return f"{float(text):,.0f}" if "e+" in text else text


def _ratio(small: float, large: float) -> float:
    """Return the ratio of two values, limited to 1,000. The ratio of two zeros is 1."""
    if small == large:
        return 1.0
    return min(1e3, max(1e-3, large / small if small else 1e3))


def _spread(ratios: Mapping[str, float], mean: float, count: str) -> str:
    least, most = min(ratios, key=lambda name: ratios[name]), max(ratios, key=lambda name: ratios[name])
    if len(ratios) == 1:
        return f"ratio {mean:.3g}"
    return f"ratio {mean:.3g} on average; {ratios[least]:.3g} ({least}) to {ratios[most]:.3g} ({most}); {count}"


@dataclass(frozen=True)
class Exhibit:
    """A reproduced figure or table of a paper: our data, the drawing, and the findings for its claims."""

    data: pa.Table
    #: Returns a figure or an SVG element. Not printed, because its text has an address that differs from run to run.
    draw: Callable[[], Figure | str] = field(repr=False)
    findings: list[Finding]
    #: Description of the content, and how to read it.
    caption: str

    def _repr_html_(self) -> str:
        from floatgate.studies import page  # noqa: PLC0415 (it takes matplotlib)

        return page.exhibit(self)


class _Scratch:
    """A temporary directory, created on first use and deleted with this object."""

    @cached_property
    def place(self) -> Path:
        try:
            place = tempfile.mkdtemp(prefix="floatgate-study-")
        except OSError as error:
            raise OutputError(f"cannot create a temporary directory: {error}") from error
        weakref.finalize(self, shutil.rmtree, place, ignore_errors=True)
        return Path(place)


@dataclass(frozen=True)
class Setting:
    """Parameters of a study.

    Parameters
    ----------
    requests
        Number of requests per workload.
    footprint
        Factor for the footprint of generated workloads, or for the blocks of the device.
    batch
        Requests per batch of generated workloads; 1 for single requests.
    sizes
        Distribution of the sizes of generated reads, with the same mean: ``"geometric"`` or ``"bimodal"``.
    once
        True if scenarios of yoo2013 write each address once, instead of twice on average.
    window
        MiB by which places of such scenarios differ from the order of writing. None: any place.
    device
        Options of the device by path, as in :meth:`floatgate.Device.with_options`. They override those of the study.
    seeds
        Random sequences of generated workloads. Figures show means over them, and their range.
    traces
        A directory with real traces, which are replayed instead of generated workloads.
    directory
        Directory for workloads and finished runs, which are reused. Default: a temporary directory.
    jobs
        Parallel runs, as ``n_jobs`` of :func:`floatgate.sweep`.
    quick
        True for a small run, whose verdicts are not reliable.
    progress
        As in :func:`floatgate.sweep`.
    """

    requests: int = workloads.REQUESTS
    footprint: float = 1.0
    batch: int = 1
    sizes: workloads.Sizes = "geometric"
    once: bool = False
    window: int | None = None
    device: Mapping[str, Any] = field(default_factory=dict, hash=False)
    seeds: tuple[int, ...] = (0,)
    traces: Path | None = None
    directory: Path | None = None
    jobs: int | None = None
    quick: bool = False
    progress: bool | None = None
    _scratch: _Scratch = field(default_factory=_Scratch, repr=False, compare=False)

    @cached_property
    def _place(self) -> Path:
        return self._scratch.place if self.directory is None else self.directory

    def directory_of(self, what: str) -> Path:
        """Return a directory for files of one kind."""
        place = self._place / what
        place.mkdir(parents=True, exist_ok=True)
        return place

    def varied(self, name: str) -> Setting:
        """Return the setting of a variant, one of :data:`VARIANTS`, with one seed."""
        variant = VARIANTS[name]
        return replace(self, seeds=self.seeds[:1], device={**self.device, **variant.device}, **variant.setting)

    def options(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return options of a device, or a point, with the options of the setting."""
        return {path: value for path, value in options.items() if path not in self.device} | dict(self.device)

    def changed(self, device: str, options: Mapping[str, Any]) -> Device:
        """Return a device of the study with its options, and with those of the setting."""
        return Device(device).with_options(self.options(options))

    def workload(self, name: str, seed: int = 0) -> workloads.Made:
        """Return a workload of the papers."""
        return workloads.workload(
            name, self._place / "workloads", requests=self.requests, footprint=self.footprint, batch=self.batch,
            sizes=self.sizes, seed=seed, traces=self.traces,
        )  # fmt: skip

    def rows(self, points: Iterable[Mapping[str, Any]], **options: Any) -> list[dict[str, Any]]:  # noqa: ANN401
        """Run points as :func:`floatgate.sweep` does, and return their rows. A point may have a ``prewrite``.

        Keys of a point that start with an underscore are not passed on, and are copied to its row.

        Raises
        ------
        SimulationError
            A run failed.
        """
        points = [dict(point) for point in points]
        rows: list[dict[str, Any]] = [{} for _ in points]
        for prewrite in dict.fromkeys(point.get("prewrite", "none") for point in points):
            indices = [index for index, point in enumerate(points) if point.get("prewrite", "none") == prewrite]
            space = [self.options(_plain(points[index])) for index in indices]
            table = sweep(
                space, prewrite=prewrite, store=self._place / "runs", n_jobs=self.jobs, progress=self.progress,
                **{"attribution": False, **options},
            )  # fmt: skip
            for index, row in zip(indices, table.to_pylist(), strict=True):
                if row["error"] is not None:
                    raise SimulationError(f"a run of the study failed: {row['error']}")
                rows[index] = row | {key: value for key, value in points[index].items() if key.startswith("_")}
        return rows


def _plain(point: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in point.items() if key != "prewrite" and not key.startswith("_")}


class _Function(Protocol):
    """A figure or table, as a function of the setting."""

    def __call__(self, setting: Setting | None = None) -> Exhibit: ...


@dataclass(frozen=True)
class Entry:
    """A figure or table of a study."""

    key: str
    title: str
    function: _Function


class Study:
    """A reproduction of a paper.

    Parameters
    ----------
    name
        Name on the command line.
    title, citation
        Title and citation of the paper.
    about
        Paragraphs about the runs, and about assumptions that the paper leaves open.
    workloads
        Names of the workloads in :mod:`floatgate.studies.workloads`.
    variants
        Names of the :data:`VARIANTS` for which verdicts are repeated.
    reasons
        Reasons of several studies for unmet claims, by a short name.
    reasons_page
        The study whose documentation page has them. Default: this one.
    """

    def __init__(
        self,
        name: str,
        title: str,
        citation: str,
        about: Sequence[str],
        workloads: Sequence[str],
        *,
        variants: Sequence[str] = STANDARD,
        reasons: Mapping[str, str] | None = None,
        reasons_page: str = "",
    ) -> None:
        self.variants = tuple(variants)
        self.name = name
        self.title = title
        self.citation = citation
        self.about = list(about)
        self.workloads = list(workloads)
        self.reasons = dict(reasons or {})
        self.reasons_page = reasons_page or name
        self.entries: dict[str, Entry] = {}

    def exhibit(self, key: str, title: str) -> Callable[[Callable[[Setting], Exhibit]], _Function]:
        """Register a function as a figure or table of the study. Its name on the command line is `key`."""

        def register(function: Callable[[Setting], Exhibit]) -> _Function:
            @wraps(function)
            def call(setting: Setting | None = None) -> Exhibit:
                return function(Setting() if setting is None else setting)

            self.entries[key] = Entry(key, title, call)
            return call

        return register

    def chosen(self, keys: Sequence[str]) -> list[Entry]:
        """Return figures and tables by key, or all without keys.

        Raises
        ------
        OptionError
            A figure or table does not exist.
        """
        for key in keys:
            if key not in self.entries:
                raise OptionError(f"{self.name} has no {key}: expected {', '.join(self.entries)}")
        return [entry for key, entry in self.entries.items() if not keys or key in keys]
