"""What a study is made of: exhibits (figures and tables), the claims that they bear on, and verdicts."""

from __future__ import annotations

import shutil
import statistics
import tempfile
import weakref
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from floatgate.exceptions import OptionError, SimulationError
from floatgate.studies import workloads
from floatgate.sweeping import sweep

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import pyarrow as pa
    from matplotlib.figure import Figure

#: What comes of comparing a claim with runs.
Verdict = Literal["agrees", "agrees in direction", "disagrees"]

#: Two figures that differ by less than this share are called equal.
EQUAL = 0.01
#: A published number is met by one that differs from it by no more than this share.
CLOSE = 0.10

#: How verdicts come about, for the pages.
RULES = (
    f"A claim that one thing is better than another under all workloads *agrees* if no workload contradicts it by more "
    f"than {EQUAL:.0%} and most show it by more than that; *agrees in direction* if the geometric mean over the "
    f"workloads shows it by more than that; else it *disagrees*. A number *agrees* within {CLOSE:.0%} if it shows the "
    f"effect, by more than {EQUAL:.0%} on the same side; it is *in direction* if it does so and the effect is not ten "
    "times smaller or larger; else it *disagrees*. What is said to be equal agrees within 2 %. The rules were fixed "
    "before the first run, and made stricter once: no effect of any size was needed before."
)

#: What each verdict is repeated at, one thing changed at a time: what is changed, and how.
VARIANTS: dict[str, dict[str, Any]] = {
    "half the footprint": {"footprint": 0.5},
    "twice the footprint": {"footprint": 2.0},
    "batches of 8": {"batch": 8},
    "batches of 32": {"batch": 32},
    "first come, first served": {"scheduler": "fcfs"},
}
#: Of those, what patterns of jobs can be repeated at.
FOOTPRINTS = ("half the footprint", "twice the footprint")


@dataclass(frozen=True)
class Claim:
    """What a paper says, in our words, with the numbers of its tables and sentences.

    Nothing is read off the bars of its figures.
    """

    text: str
    where: str
    #: The number as it is printed, with what it is of.
    published: str = ""
    #: Why ours differs, where it does: found out by hand on the standard runs, on which it stands.
    why: str = ""


@dataclass(frozen=True)
class Finding:
    """What runs say to a claim."""

    claim: Claim
    verdict: Verdict
    ours: str


def better(claim: Claim, pairs: Mapping[str, tuple[float, float]]) -> Finding:
    """Hold a claim that the first of two figures is the smaller one, under each of several workloads.

    Parameters
    ----------
    pairs
        By workload, the figure that is claimed to be smaller, and the other one.
    """
    ratios = {name: _ratio(small, large) for name, (small, large) in pairs.items()}
    against = [name for name, ratio in ratios.items() if ratio < 1 / (1 + EQUAL)]
    shown = [name for name, ratio in ratios.items() if ratio > 1 + EQUAL]
    mean = statistics.geometric_mean(ratios.values())
    if not against and 2 * len(shown) >= len(ratios):
        verdict: Verdict = "agrees"
    else:
        verdict = "agrees in direction" if mean > 1 + EQUAL else "disagrees"
    return Finding(claim, verdict, _spread(ratios, mean, f"better in {len(shown)} of {len(ratios)}"))


def equal(claim: Claim, pairs: Mapping[str, tuple[float, float]], within: float = 0.02) -> Finding:
    """Hold a claim that two figures are equal, under each of several workloads."""
    ratios = {name: _ratio(*pair) for name, pair in pairs.items()}
    same = sum(abs(ratio - 1) <= within for ratio in ratios.values())
    mean = statistics.geometric_mean(ratios.values())
    verdict: Verdict = "disagrees"
    if same == len(ratios):
        verdict = "agrees"
    elif abs(mean - 1) <= within:
        verdict = "agrees in direction"
    return Finding(claim, verdict, _spread(ratios, mean, f"equal in {same} of {len(ratios)}"))


def number(claim: Claim, ours: float, published: float, *, neutral: float = 1.0, unit: str = "") -> Finding:
    """Hold a number that is printed; `neutral` is the number that would say that there is no effect."""
    verdict: Verdict = "disagrees"
    least = EQUAL * max(1.0, abs(neutral))
    shows = abs(ours - neutral) > least and (ours - neutral) * (published - neutral) > 0
    if published and abs(ours / published - 1) <= CLOSE and (shows or abs(published - neutral) <= least):
        verdict = "agrees"
    elif shows and 0.1 < (ours - neutral) / (published - neutral) < 10:
        verdict = "agrees in direction"
    off = f", {ours / published - 1:+.0%}" if published else ""
    return Finding(claim, verdict, f"{ours:.3g}{unit} (paper {published:.4g}{unit}{off})")


def holds(claim: Claim, true: bool, ours: str, *, nearly: bool = False) -> Finding:
    """Hold a claim that is true or not, or nearly so."""
    return Finding(claim, "agrees" if true else "agrees in direction" if nearly else "disagrees", ours)


def _ratio(small: float, large: float) -> float:
    """Compare two figures; two zeros are equal, and nothing is infinitely better than 1,000 times."""
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
    """A figure or table of a paper, done again: our data, how to draw them, and what they say to its claims."""

    data: pa.Table
    draw: Callable[[], Figure]
    findings: list[Finding]
    #: What is shown, and how to read it.
    caption: str

    def _repr_html_(self) -> str:
        from floatgate.studies import page  # noqa: PLC0415 (it takes matplotlib)

        return page.exhibit(self)


class _Scratch:
    """A directory that is there when it is asked for, and gone with this object."""

    @cached_property
    def place(self) -> Path:
        place = tempfile.mkdtemp(prefix="floatgate-study-")
        weakref.finalize(self, shutil.rmtree, place, ignore_errors=True)
        return Path(place)


@dataclass(frozen=True)
class Setting:
    """How a study is run.

    Parameters
    ----------
    requests
        Requests of each workload.
    footprint
        What the footprint of generated workloads is multiplied by.
    batch
        Requests of generated workloads that come together; 1 for each by itself.
    scheduler
        Which waiting operation a chip takes next, as the option ``scheduler`` of a device.
    seeds
        Random sequences of generated workloads: figures are means over them, and show their range.
    traces
        A directory with real traces, which are replayed in the place of generated workloads.
    directory
        Where workloads and finished runs are kept, so that a run is made once; a temporary one where not given.
    jobs
        Runs at once, as ``n_jobs`` of :func:`floatgate.sweep`.
    quick
        Whether this is a small run, of which the verdicts count for little.
    progress
        As in :func:`floatgate.sweep`.
    """

    requests: int = workloads.REQUESTS
    footprint: float = 1.0
    batch: int = 1
    scheduler: str = "reads-before-writes"
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

    def varied(self, name: str) -> Setting:
        """Return the setting of a variant, one of :data:`VARIANTS`, with one seed."""
        return replace(self, seeds=self.seeds[:1], **VARIANTS[name])

    def workload(self, name: str, seed: int = 0) -> workloads.Made:
        """Return a workload of the papers."""
        return workloads.workload(
            name, self._place / "workloads", requests=self.requests, footprint=self.footprint, batch=self.batch,
            seed=seed, traces=self.traces,
        )  # fmt: skip

    def rows(self, points: Iterable[Mapping[str, Any]], **options: Any) -> list[dict[str, Any]]:  # noqa: ANN401
        """Run points as :func:`floatgate.sweep` does, and give their rows; a point may have a ``prewrite``.

        Keys of a point that begin with an underscore are ours, and stand in its row.

        Raises
        ------
        SimulationError
            A run failed.
        """
        points = [dict(point) for point in points]
        rows: list[dict[str, Any]] = [{} for _ in points]
        for prewrite in dict.fromkeys(point.get("prewrite", "none") for point in points):
            indices = [index for index, point in enumerate(points) if point.get("prewrite", "none") == prewrite]
            space = [_plain(points[index]) for index in indices]
            table = sweep(
                space, prewrite=prewrite, store=self._place / "runs", n_jobs=self.jobs, progress=self.progress,
                attribution=False, **options,
            )  # fmt: skip
            for index, row in zip(indices, table.to_pylist(), strict=True):
                if row["error"] is not None:
                    raise SimulationError(f"a run of the study failed: {row['error']}")
                rows[index] = row | {key: value for key, value in points[index].items() if key.startswith("_")}
        return rows


def _plain(point: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in point.items() if key != "prewrite" and not key.startswith("_")}


class _Function(Protocol):
    """A figure or table: a function of how it is run."""

    def __call__(self, setting: Setting | None = None) -> Exhibit: ...


@dataclass(frozen=True)
class Entry:
    """A figure or table of a study."""

    key: str
    title: str
    function: _Function


class Study:
    """A paper, done again.

    Parameters
    ----------
    name
        What it is called on the command line.
    title, citation
        Of the paper.
    about
        What is run, and how what the paper leaves open is read: paragraphs.
    workloads
        The workloads that it uses, by their names in :mod:`floatgate.studies.workloads`.
    variants
        What its verdicts are repeated at, of :data:`VARIANTS`.
    """

    def __init__(
        self,
        name: str,
        title: str,
        citation: str,
        about: Sequence[str],
        workloads: Sequence[str],
        *,
        variants: Sequence[str] = tuple(VARIANTS),
    ) -> None:
        self.variants = tuple(variants)
        self.name = name
        self.title = title
        self.citation = citation
        self.about = list(about)
        self.workloads = list(workloads)
        self.entries: dict[str, Entry] = {}

    def exhibit(self, key: str, title: str) -> Callable[[Callable[[Setting], Exhibit]], _Function]:
        """Take a function as a figure or table of the study, called by `key` on the command line."""

        def register(function: Callable[[Setting], Exhibit]) -> _Function:
            @wraps(function)
            def call(setting: Setting | None = None) -> Exhibit:
                return function(Setting() if setting is None else setting)

            self.entries[key] = Entry(key, title, call)
            return call

        return register

    def chosen(self, keys: Sequence[str]) -> list[Entry]:
        """Give figures and tables by their keys, all where there are none.

        Raises
        ------
        OptionError
            There is no such one.
        """
        for key in keys:
            if key not in self.entries:
                raise OptionError(f"{self.name} has no {key}: it has {', '.join(self.entries)}")
        return [entry for key, entry in self.entries.items() if not keys or key in keys]
