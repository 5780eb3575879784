"""HTML fragments for notebooks. Callers escape the parts of tables and cards."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Format rows with a header: the first column left-aligned, the others right-aligned."""

    def cells(tag: str, row: Sequence[str]) -> str:
        return "".join(
            f'<{tag} style="text-align:{"left" if index == 0 else "right"}">{text}</{tag}>'
            for index, text in enumerate(row)
        )

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return f"<table><thead><tr>{cells('th', head)}</tr></thead><tbody>{body}</tbody></table>"


def pairs(rows: Iterable[tuple[str, str]]) -> str:
    """Format names and values."""
    body = "".join(
        f'<tr><th style="text-align:left">{name}</th><td style="text-align:left">{text}</td></tr>'
        for name, text in rows
    )
    return f"<table><tbody>{body}</tbody></table>"


def card(title: str, subtitle: str, *parts: str) -> str:
    """Format parts with a title."""
    return f'<div class="floatgate"><b>{title}</b> <span style="opacity:.7">{subtitle}</span>{"".join(parts)}</div>'


def text(lines: str) -> str:
    """Format a text of lines with aligned columns."""
    return f'<pre class="floatgate" style="line-height:1.25">{escape(lines)}</pre>'


def readable(size: float) -> str:
    """Format a number of bytes in the largest unit that does not exceed it."""
    for unit, shift in (("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if size >= 1 << shift:
            return f"{size / (1 << shift):.4g} {unit}"
    return f"{size:.0f} B"


def number(value: float | None, digits: int = 4) -> str:
    """Format a number with `digits` significant digits, or return a dash for None and NaN."""
    if value is None or math.isnan(value):
        return "-"
    return f"{value:,.0f}" if abs(value) >= 10**digits else f"{value:.{digits}g}"
