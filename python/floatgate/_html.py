"""Small pieces of HTML for notebooks. Texts in them are escaped by the caller."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Lay out rows below a head: the first column to the left, the others to the right."""

    def cells(tag: str, row: Sequence[str]) -> str:
        return "".join(
            f'<{tag} style="text-align:{"left" if index == 0 else "right"}">{text}</{tag}>'
            for index, text in enumerate(row)
        )

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return f"<table><thead><tr>{cells('th', head)}</tr></thead><tbody>{body}</tbody></table>"


def pairs(rows: Iterable[tuple[str, str]]) -> str:
    """Lay out names and what they stand for."""
    body = "".join(
        f'<tr><th style="text-align:left">{name}</th><td style="text-align:left">{text}</td></tr>'
        for name, text in rows
    )
    return f"<table><tbody>{body}</tbody></table>"


def card(title: str, subtitle: str, *parts: str) -> str:
    """Put parts below a title."""
    return f'<div class="floatgate"><b>{title}</b> <span style="opacity:.7">{subtitle}</span>{"".join(parts)}</div>'


def readable(size: float) -> str:
    """Write a number of bytes in the largest unit of which there is one."""
    for unit, shift in (("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if size >= 1 << shift:
            return f"{size / (1 << shift):.4g} {unit}"
    return f"{size:.0f} B"


def number(value: float | None, digits: int = 4) -> str:
    """Write a number with so many digits; a dash for none."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 10**digits else f"{value:.{digits}g}"
