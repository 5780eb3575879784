"""Pages of studies: our figures, the papers' claims and numbers compared with ours, and verdicts."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any

from floatgate._floatgate import __version__
from floatgate.studies import drawing, reasons, workloads
from floatgate.studies import markdown as documentation
from floatgate.studies.markdown import SIGNS
from floatgate.studies.study import RULES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import pyarrow as pa

    from floatgate.studies.study import Entry, Exhibit, Finding, Setting, Study

_STYLE = """
:root{color-scheme:light dark;--line:#8886}
body{font:15px/1.5 system-ui,sans-serif;max-width:72rem;margin:0 auto;padding:1rem 1.5rem}
h1{line-height:1.2}h2{margin-top:2.5rem;border-bottom:1px solid var(--line)}
table{border-collapse:collapse;margin:.8rem 0;font-size:.92em}
th,td{border-bottom:1px solid var(--line);padding:.3rem .6rem;text-align:left;vertical-align:top}
td.n{text-align:right;font-variant-numeric:tabular-nums}
figure{margin:1rem 0;overflow-x:auto}figure svg{background:#fff;max-width:100%;height:auto}
figcaption{opacity:.8}.why td{border-bottom:1px solid var(--line);padding-top:0;font-style:italic}
tr.with-why td{border-bottom:none}
details{margin:.5rem 0}.data{overflow-x:auto}
.v{white-space:nowrap}.disagrees{font-weight:700}
@media print{details{display:none}}
"""


@dataclass
class Part:
    """An exhibit with its results, also in the variants."""

    entry: Entry
    exhibit: Exhibit
    repeats: dict[str, Exhibit] = field(default_factory=dict)

    @property
    def repeated(self) -> dict[str, list[Finding]]:
        """The findings in the variants."""
        return {variant: exhibit.findings for variant, exhibit in self.repeats.items()}

    @cached_property
    def svg(self) -> str:
        """The figure as SVG, drawn once."""
        return drawing.svg(self.exhibit.draw())


@dataclass
class Report:
    """A study with its results."""

    study: Study
    setting: Setting
    parts: list[Part]
    command: str

    def filled(self, reason: str) -> str:
        """Return a reason with the numbers of this report, or its name if another page has these numbers."""
        study = self.study
        if study.reasons_page != study.name and reason in study.reasons.values():
            name = next(name for name, why in study.reasons.items() if why == reason)
            return f"see `{name}` on the page of {study.reasons_page}"
        return reasons.fill(reason, self._tables)

    @cached_property
    def _tables(self) -> dict[tuple[str, str], pa.Table]:
        tables = {(part.entry.key, ""): part.exhibit.data for part in self.parts}
        for part in self.parts:
            tables |= {(part.entry.key, variant): shown.data for variant, shown in part.repeats.items()}
        return tables

    def counts(self) -> dict[str, int]:
        """Count the verdicts."""
        findings = [finding for part in self.parts for finding in part.exhibit.findings]
        return {verdict: sum(finding.verdict == verdict for finding in findings) for verdict in SIGNS}


def html(report: Report) -> str:
    """Return the page as one self-contained HTML file."""
    figures = [f"<figure>{part.svg}" for part in report.parts]
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(report.study.name)}: {escape(report.study.title)}</title><style>{_STYLE}</style></head>\n"
        f"<body>\n<h1>{escape(report.study.title)}</h1>\n{_body(report, figures)}</body></html>\n"
    )


def markdown(report: Report) -> dict[str, str]:
    """Return the files of the documentation by their paths: the page in Markdown, its figures and its data."""
    return documentation.pages(report, _workload_rows(report))


def exhibit(shown: Exhibit) -> str:
    """Return an exhibit alone as HTML, for notebooks."""
    return (
        f"<figure>{drawing.svg(shown.draw())}<figcaption>{escape(shown.caption)}</figcaption></figure>"
        f"{_claims(shown.findings, {}, lambda reason: reasons.fill(reason, {}))}"
    )


def _body(report: Report, figures: Sequence[str]) -> str:
    study = report.study
    parts = [f"<p>{escape(study.citation)}.</p>\n"]
    if report.setting.quick:
        parts.append("<p><b>A quick run: too short for reliable verdicts.</b></p>\n")
    parts += [f"<p>{escape(text)}</p>\n" for text in study.about]
    if study.workloads:
        parts.append(_workloads(report))
    if any(part.exhibit.findings for part in report.parts):
        parts += ["\n<h2>Verdicts</h2>\n", f"<p>{_emphasized(RULES)}</p>\n", _summary(report)]
    for part, figure in zip(report.parts, figures, strict=True):
        parts.append(_section(report, part, figure))
    parts.append(
        f"\n<h2>How to reproduce</h2>\n<p>Floatgate {escape(__version__)}: <code>{escape(report.command)}</code></p>\n"
    )
    return "".join(parts)


def _emphasized(text: str) -> str:
    pieces = escape(text).split("*")
    return "".join(f"<em>{piece}</em>" if index % 2 else piece for index, piece in enumerate(pieces))


def _section(report: Report, part: Part, figure: str) -> str:
    shown = part.exhibit
    claims = _claims(shown.findings, part.repeated, report.filled)
    return (
        f'\n<h2 id="{part.entry.key}">{escape(part.entry.title)}</h2>\n{figure}'
        f"<figcaption>{escape(shown.caption)}</figcaption></figure>\n{claims}"
        f"<details><summary>Data</summary>\n{_data(shown.data)}</details>\n"
    )


def _summary(report: Report) -> str:
    """Return a table of all claims with their verdicts and needs."""
    variants = list(dict.fromkeys(variant for part in report.parts for variant in part.repeats))
    head = ["Claim", "Ours", *variants, "What it needs"]
    rows = []
    for part in report.parts:
        for index, finding in enumerate(part.exhibit.findings):
            link = f'<a href="#{part.entry.key}">{escape(part.entry.key)}</a>: {escape(finding.claim.text)}'
            others = {variant: part.repeated[variant][index] for variant in variants}
            rows.append([link, _verdict(finding), *map(_verdict, others.values()), needs(finding, others)])
    counts = ", ".join(f"{number} {verdict}" for verdict, number in report.counts().items())
    text = f"<p>Of {len(rows)} claims: {counts}.</p>\n"
    for variant in variants:
        found: list[str] = [finding.verdict for part in report.parts for finding in part.repeated[variant]]
        text += f"<p>{escape(variant).capitalize()}: "
        text += ", ".join(f"{found.count(verdict)} {verdict}" for verdict in SIGNS) + ".</p>\n"
    return f"{text}{_table(head, rows)}"


def needs(finding: Finding, others: Mapping[str, Finding]) -> str:
    """Return where a claim agrees, as a short text."""
    where = {"the standard": finding, **others}
    agreeing = [name for name, each in where.items() if each.verdict == "agrees"]
    missing = [name for name in where if name not in agreeing]
    if not others:
        return "-"
    if not missing:
        return "nothing"
    if not agreeing:
        held = {each.verdict for each in where.values()} - {"disagrees"}
        return "met nowhere" if not held else "in direction only" if "agrees in direction" in held else "sign only"
    return "agrees with " + ", ".join(agreeing) if len(agreeing) <= len(missing) else "not with " + ", ".join(missing)


def _verdict(finding: Finding) -> str:
    short = finding.verdict.removeprefix("agrees ")
    return f'<span class="v {short.split()[-1]}">{SIGNS[finding.verdict]} {short}</span>'


def _claims(findings: Sequence[Finding], repeats: dict[str, list[Finding]], filled: Callable[[str], str]) -> str:
    """Return a table of claims: the paper's numbers, ours, and the verdicts."""
    if not findings:
        return ""
    variants = list(repeats)
    rows: list[str] = []
    told: set[str] = set()
    for index, finding in enumerate(findings):
        claim = finding.claim
        others = [repeats[variant][index] for variant in variants]
        cells = [
            f"{escape(claim.text)} <small>({escape(claim.where)})</small>", escape(claim.published) or "-",
            escape(finding.ours), _verdict(finding) + f" <small>{escape(finding.rule)}</small>" * bool(finding.rule),
            *(f"{_verdict(other)}<br><small>{escape(other.ours)}</small>" for other in others),
        ]  # fmt: skip
        explained = claim.why and any(each.verdict != "agrees" for each in [finding, *others])
        row = "".join(f"<td>{cell}</td>" for cell in cells)
        rows.append(f'<tr class="with-why">{row}</tr>' if explained else f"<tr>{row}</tr>")
        if explained:
            why = "as above." if claim.why in told else escape(filled(claim.why))
            told.add(claim.why)
            rows.append(f'<tr class="why"><td colspan="{len(cells)}">Why: {why}</td></tr>')
    head = ["The paper says", "It prints", "Ours", "Verdict", *variants]
    names = "".join(f"<th>{name}</th>" for name in head)
    return f'<div class="data"><table><thead><tr>{names}</tr></thead><tbody>\n' + "\n".join(rows) + \
        "\n</tbody></table></div>\n"  # fmt: skip


def _workloads(report: Report) -> str:
    """Return the moments of the paper's and the generated workloads."""
    import pyarrow as pa  # noqa: PLC0415 (half a second, and not always needed)

    text = (
        f"Workloads: {report.setting.requests:,} requests each. Results are means over {len(report.setting.seeds)} "
        f"random sequences, whose range the bars show; variants have one sequence. {workloads.ABOUT}"
    )
    return f"<p>{escape(text)}</p>\n{_data(pa.Table.from_pylist(_workload_rows(report)))}"


def _workload_rows(report: Report) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for name in report.study.workloads:
        moments = workloads.TABLE_1[name]
        made = report.setting.workload(name)
        row: dict[str, Any] = {"workload": f"{name} ({moments.title})", "what it is": made.origin}
        got = None if made.real else workloads.generate(name, report.setting.requests).moments()
        for key, label in _MOMENTS.items():
            row[f"{label}: paper"] = getattr(moments, key)
            row[f"{label}: ours"] = None if got is None else got[key]
        rows.append(row)
    return rows


_MOMENTS = {"read_kib": "read KiB", "write_kib": "write KiB", "read_share": "reads", "interval_us": "interval us"}


def _data(table: pa.Table) -> str:
    rows = [[_cell(value) for value in row.values()] for row in table.to_pylist()]
    return f'<div class="data">{_table([escape(name) for name in table.column_names], rows)}</div>\n'


def _cell(value: Any) -> str:  # noqa: ANN401 (of any column)
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1e4 else f"{value:.0f}"
    return "-" if value is None else escape(str(value))


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    names = "".join(f"<th>{name}</th>" for name in head)
    body = "\n".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{names}</tr></thead><tbody>\n{body}\n</tbody></table>\n"
