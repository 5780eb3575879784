"""``floatgate study``: runs the studies from the command line."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from floatgate._values import overrides
from floatgate.exceptions import OptionError, OutputError
from floatgate.studies import (
    agrawal2008,
    consumer,
    hu2011,
    hu2013,
    kvcache,
    page,
    park2015,
    ssdiq2025,
    workloads,
    yoo2013,
)
from floatgate.studies.study import Setting

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from floatgate.studies.study import Study

#: All studies by name.
STUDIES: dict[str, Study] = {
    module.STUDY.name: module.STUDY
    for module in (hu2011, hu2013, park2015, agrawal2008, yoo2013, kvcache, consumer, ssdiq2025)
}

#: Seeds of the standard runs.
SEEDS = (0, 1, 2)


def run(
    name: str,
    figures: Sequence[str] = (),
    *,
    out: str | os.PathLike[str] = "studies",
    quick: bool = False,
    device: Mapping[str, Any] | None = None,
    traces: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    markdown: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
) -> page.Report:
    """Run a study, and write its page.

    Parameters
    ----------
    name
        Name of the study, such as ``"hu2011"``.
    figures
        Keys of the figures and tables to run. Default: all.
    out
        A directory for the page, ``NAME.html``, the data of each figure, and the runs. Finished runs are reused.
    quick
        Do a small test run.
    device
        Options of the device by path, as in :meth:`floatgate.Device.with_options`. They override those of the study.
    traces
        A directory with real traces.
    jobs
        Parallel runs, as ``n_jobs`` of :func:`floatgate.sweep`.
    markdown
        A directory for the documentation page.
    progress
        As in :func:`floatgate.sweep`.

    Raises
    ------
    OptionError
        The study or a figure does not exist.
    OutputError
        The directory is not writable.
    """
    if name not in STUDIES:
        raise OptionError(f"unknown study `{name}`: expected {', '.join(STUDIES)}")
    study = STUDIES[name]
    place = Path(out)
    chosen = study.chosen(figures)
    requests = workloads.QUICK_REQUESTS if quick else workloads.REQUESTS
    seeds = SEEDS[:1] if quick or traces is not None else SEEDS
    setting = Setting(
        requests=requests, seeds=seeds, traces=None if traces is None else Path(traces), directory=place, jobs=jobs,
        quick=quick, progress=progress, device=dict(device or {}),
    )  # fmt: skip
    parts = [page.Part(entry, entry.function(setting)) for entry in chosen]
    for variant in () if quick else study.variants:
        for part in parts:
            part.repeats[variant] = part.entry.function(setting.varied(variant))
    words = ["floatgate", "study", name, *figures, *(["--quick"] if quick else [])]
    words += [f"--set {option}" for option in overrides(setting.device)]
    words += [] if traces is None else ["--traces", str(traces)]
    report = page.Report(study, setting, parts, " ".join(words))
    _write(report, place, None if markdown is None else Path(markdown))
    return report


def _write(report: page.Report, place: Path, documentation: Path | None) -> None:
    import pyarrow.parquet as pq  # noqa: PLC0415 (half a second, and not always needed)

    name = report.study.name
    try:
        data = place / name
        data.mkdir(parents=True, exist_ok=True)
        for part in report.parts:
            pq.write_table(part.exhibit.data, data / f"{part.entry.key}.parquet")
        (place / f"{name}.html").write_text(page.html(report), encoding="utf-8")
        if documentation is not None:
            (documentation / name).mkdir(parents=True, exist_ok=True)
            for file, content in page.markdown(report).items():
                (documentation / file).write_text(content, encoding="utf-8")
    except OSError as error:
        raise OutputError(f"cannot write the page of {name}: {error}") from error


def command(arguments: Sequence[str]) -> int:
    """Run ``floatgate study ARGUMENTS``, and return the exit status."""
    parser = _parser()
    asked = parser.parse_intermixed_args(list(arguments))
    if asked.name.lower() == "list":
        for study in STUDIES.values():
            print(f"{study.name}: {study.title}")
            for entry in study.entries.values():
                print(f"  {entry.key}: {entry.title}")
        return 0
    start = time.monotonic()
    report = run(
        asked.name, asked.figures, out=asked.out, quick=asked.quick, device=_options(asked.set), traces=asked.traces,
        jobs=asked.jobs, markdown=asked.markdown,
    )  # fmt: skip
    for part in report.parts:
        print(part.entry.title)
        for finding in part.exhibit.findings:
            print(f"  {finding.verdict}: {finding.claim.text} Ours: {finding.ours}")
    print(f"{Path(asked.out, asked.name)}.html, in {time.monotonic() - start:.0f} s")
    return 0


def _options(words: Sequence[str]) -> dict[str, Any]:
    """Return options of a device by path. A value is a number, a truth value or another value of JSON, or a text."""
    options: dict[str, Any] = {}
    for word in words:
        path, sign, value = word.partition("=")
        if not path or not sign:
            raise OptionError(f"invalid --set `{word}`: expected PATH=VALUE, such as gc.hard_threshold=3")
        try:
            options[path] = json.loads(value)
        except json.JSONDecodeError:
            options[path] = value
    return options


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="floatgate study", description="Reproduce a paper: write a page that compares its claims with runs."
    )
    parser.add_argument("name", metavar="NAME", help="study, or LIST to list all studies and figures")
    parser.add_argument("figures", metavar="FIGURE", nargs="*", help="figures and tables, such as figure-14 [all]")
    parser.add_argument("--quick", action="store_true", help="do a small run, whose verdicts are not reliable")
    parser.add_argument(
        "--set", metavar="PATH=VALUE", action="append", default=[], help="change a device parameter, in all runs"
    )
    parser.add_argument("--traces", metavar="DIR", help="replay real traces instead of generated workloads")
    parser.add_argument("--out", metavar="DIR", default="studies", help="directory for the page [studies]")
    parser.add_argument("--jobs", metavar="N", type=int, help="parallel runs [default: one per processor]")
    parser.add_argument("--markdown", metavar="DIR", help="also write the documentation page to DIR")
    return parser
