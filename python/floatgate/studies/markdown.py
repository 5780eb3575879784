"""Pages of studies for the documentation: Markdown, with figures and data in files of their own."""

from __future__ import annotations

import csv
import io
import re
from typing import TYPE_CHECKING, Any

from floatgate.studies.study import VARIANTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from floatgate.studies.page import Part, Report
    from floatgate.studies.study import Finding

#: Signs of verdicts, which are distinguishable without color.
SIGNS = {"agrees": "✓", "agrees in direction": "≈", "sign only": "±", "disagrees": "✗"}


def pages(report: Report, workloads: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the files of a study by their paths in the documentation: the page, its figures and its data.

    Parameters
    ----------
    workloads
        Rows about the generated workloads, or nothing if the study has none.
    """
    name = report.study.name
    files = {f"{name}.md": _page(report, has_workloads=bool(workloads))}
    if _has_claims(report):
        files[f"{name}/claims.csv"] = _claims_file(report)
    if workloads:
        files[f"{name}/workloads.csv"] = table(workloads)
    for part in report.parts:
        files[_figure(name, part)] = part.svg
        files[f"{name}/{part.entry.key}.csv"] = table(part.exhibit.data.to_pylist())
    return files


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as CSV with a header. Numbers have four significant digits, so that files differ only in results."""
    head = list(rows[0]) if rows else []
    return _csv([head, *([text_of(row[key]) for key in head] for row in rows)])


def _csv(rows: Iterable[Iterable[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def text_of(value: Any) -> str:  # noqa: ANN401 (of any column)
    """Return a value as it is written to CSV."""
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1e4 else f"{value:.0f}"
    return "" if value is None else str(value)


def _figure(name: str, part: Part) -> str:
    return f"{name}-{part.entry.key}.svg"


def _page(report: Report, *, has_workloads: bool) -> str:
    study = report.study
    reasons = _reasons(report)
    blocks = [
        "<!-- Written by `make studies`: changes made here are lost. -->",
        f"# {study.name}: {_escaped(study.title)}",
        f"{_escaped(study.citation)}. To reproduce: `{report.command}`",
        *(["**A quick run: too short for reliable verdicts.**"] if report.setting.quick else []),
        *map(_escaped, study.about),
    ]
    if has_workloads:
        blocks.append(
            f"Workloads have {report.setting.requests:,} requests, and results are means over "
            f"{len(report.setting.seeds)} random sequences. [How they are generated](index.md#workloads).\n\n"
            f"[Data]({study.name}/workloads.csv)"
        )
    if _has_claims(report):
        blocks += [
            "## Verdicts",
            "✓ agrees, ≈ in direction, ± sign only, ✗ disagrees ([rules](index.md#verdicts)).",
            _counts(report),
            f"[Data]({study.name}/claims.csv)",
        ]
    for part in report.parts:
        blocks += _section(report, part, reasons)
    blocks += _reason_list(report, reasons)
    return "\n\n".join(blocks) + "\n"


def _section(report: Report, part: Part, reasons: Mapping[str, str]) -> list[str]:
    key, name, shown = part.entry.key, report.study.name, part.exhibit
    blocks = [f'## <a id="{key}"></a>{_escaped(part.entry.title)}', f"![{key}]({_figure(name, part)})"]
    if shown.caption:
        blocks.append(_escaped(shown.caption))
    if shown.findings:
        blocks.append(_verdicts(part, reasons))
    elif not _has_claims(report):
        rows = shown.data.to_pylist()
        blocks.append(grid(shown.data.column_names, [[text_of(value) for value in row.values()] for row in rows]))
    return [*blocks, f"[Data]({name}/{key}.csv)"]


def _has_claims(report: Report) -> bool:
    """Return False for a study of our own, which compares with no paper."""
    return any(part.exhibit.findings for part in report.parts)


def _counts(report: Report) -> str:
    """Return the number of claims by verdict, for the standard runs and each variant."""
    runs = {"standard": [finding for part in report.parts for finding in part.exhibit.findings]}
    for variant in _variants(report):
        found = [finding for part in report.parts for finding in part.repeats[variant].findings]
        runs[f"{VARIANTS[variant].short}: {variant}"] = found
    rows = [
        [name, *(str(sum(finding.verdict == verdict for finding in findings)) for verdict in SIGNS)]
        for name, findings in runs.items()
    ]
    return grid(["Runs", *SIGNS.values()], rows)


def _variants(report: Report) -> list[str]:
    return list(dict.fromkeys(variant for part in report.parts for variant in part.repeats))


def _reasons(report: Report) -> dict[str, str]:
    """Return a link to each reason for an unmet claim: to its name, or to its number in the order of the page."""
    page = "" if report.study.reasons_page == report.study.name else f"{report.study.reasons_page}.md"
    named = {why: f"[{name.replace(' ', '-')}]({page}#{_anchor(name)})" for name, why in report.study.reasons.items()}
    reasons: dict[str, str] = {}
    for part in report.parts:
        for findings in _by_claim(part):
            why = findings[0].claim.why
            if _is_explained(findings) and why not in named:
                reasons.setdefault(why, f"[{len(reasons) + 1}](#reasons)")
    return named | reasons


def _reason_list(report: Report, reasons: Mapping[str, str]) -> list[str]:
    """Return the reasons of the page: those with a name, if it is the page that has them, and those with a number."""
    study = report.study
    numbered = [why for why in reasons if why not in study.reasons.values()]
    lines = [f"{number}. {_escaped(report.filled(why))}" for number, why in enumerate(numbered, 1)]
    if study.reasons_page == study.name:
        lines += [
            f'- <a id="{_anchor(name)}"></a>**{name.replace(" ", "-")}**: {_escaped(report.filled(why))}'
            for name, why in study.reasons.items()
        ]
    return ["## Reasons", "\n".join(lines)] if lines else []


def _anchor(reason: str) -> str:
    return f"why-{reason.replace(' ', '-')}"


def _by_claim(part: Part) -> list[list[Finding]]:
    """Return the findings of each claim: the standard one, then those of the variants."""
    shown = (part.exhibit, *part.repeats.values())
    return [list(findings) for findings in zip(*(each.findings for each in shown), strict=True)]


def _is_explained(findings: Sequence[Finding]) -> bool:
    return bool(findings[0].claim.why) and any(each.verdict != "agrees" for each in findings)


def _verdicts(part: Part, reasons: Mapping[str, str]) -> str:
    """Return the claims of a part with the paper's numbers, ours, the verdicts and the reason."""
    rows = []
    for findings in _by_claim(part):
        claim = findings[0].claim
        why = reasons[claim.why] if _is_explained(findings) else ""
        signs = [SIGNS[each.verdict] for each in findings]
        if findings[0].rule:
            signs[0] += f" ({findings[0].rule})"
        rows.append([claim.text.removesuffix("."), claim.published, findings[0].short, *signs, why])
    return grid(["Claim", "Paper", "Ours", "Verdict", *(VARIANTS[name].short for name in part.repeats), "Why"], rows)


def _claims_file(report: Report) -> str:
    variants = _variants(report)
    head = ["figure", "claim", "section", "paper", "ours", "verdict", "rule"]
    head += [f"{variant}{what}" for variant in variants for what in ("", ": ours")]
    rows = []
    for part in report.parts:
        for first, *others in _by_claim(part):
            claim = first.claim
            row = [part.entry.key, claim.text, claim.where, claim.published, first.ours, first.verdict, first.rule]
            rows.append(row + [text for each in others for text in (each.verdict, each.ours)])
    return _csv([head, *rows])


def grid(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = ["|" + "|".join(head) + "|", "|" + "---|" * len(head)]
    lines += ["|" + "|".join(_escaped(cell).replace("|", "\\|") for cell in row) + "|" for row in rows]
    return "\n".join(lines)


def _escaped(text: str) -> str:
    """Keep characters of a plain text from being taken as Markdown or HTML."""
    return re.sub(r"(?<!\w)[*_]|[*_](?!\w)", r"\\\g<0>", text).replace("<", "&lt;")
