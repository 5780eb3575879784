"""Reasons for unmet claims, whose numbers are taken from the data of the study's figures and tables.

A field of a reason is replaced by numbers of a column, or by their ratios::

    {figure-14@gc-first | all us | MSN; blind / basic | range %}

- the figure or table, and optionally a variant
- the column
- optionally the rows: values that columns of the row must have, separated by semicolons. After a slash, the rows that
  the numbers are divided by, in the same order, without zeros. They also have the values before the last semicolon
- optionally what to print of several numbers: `min`, `max`, `mean` or `range`. `%` prints a ratio as a change, and
  another number as a share
"""

from __future__ import annotations

import re
import statistics
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa

#: A field of a reason.
FIELD = re.compile(r"\{([^{}]+)\}")
#: Printed instead of a number of a figure that was not run.
NOT_RUN = "(not run)"

_OF: dict[str, Callable[[Sequence[float]], float]] = {"min": min, "max": max, "mean": statistics.fmean}


def fill(reason: str, tables: Mapping[tuple[str, str], pa.Table]) -> str:
    """Return a reason with the numbers of its fields.

    Parameters
    ----------
    reason
        The text.
    tables
        Data by the figure or table and the variant, which is empty for the standard runs.

    Raises
    ------
    ValueError
        A field has no numbers, or several without a word that chooses among them.
    """
    return FIELD.sub(lambda field: _number(field[1], tables), reason)


def _number(field: str, tables: Mapping[tuple[str, str], pa.Table]) -> str:
    where, column, names, how = ([part.strip() for part in field.split("|")] + ["", ""])[:4]
    exhibit, _, variant = where.partition("@")
    if (exhibit, "") not in tables:
        return NOT_RUN
    # The standard runs have the rows of all variants. Their numbers show whether the field is valid.
    values = _values(field, tables[exhibit, ""], column, names)
    text = _text(field, values, how, is_ratio="/" in names)
    if not variant:
        return text
    if (exhibit, variant) not in tables:
        return NOT_RUN
    return _text(field, _values(field, tables[exhibit, variant], column, names), how, is_ratio="/" in names)


def _values(field: str, table: pa.Table, column: str, names: str) -> list[float]:
    over, slash, under = names.partition(" / ")
    if column not in table.column_names:
        raise ValueError(f"{{{field}}}: no column {column!r}, expected one of {', '.join(table.column_names)}")
    rows = table.to_pylist()
    values = _column(field, rows, column, over)
    bases: list[float | None] = [1.0] * len(values)
    if slash:
        bases = _column(field, rows, column, f"{over.rpartition(';')[0]};{under}")
    if len(bases) != len(values):
        raise ValueError(f"{{{field}}}: {len(values)} rows over {len(bases)}")
    return [value / base for value, base in zip(values, bases, strict=True) if value is not None and base]


def _column(field: str, rows: Sequence[Mapping[str, Any]], column: str, names: str) -> list[float | None]:
    wanted = {name.strip() for name in names.split(";")} - {""}
    found = [row[column] for row in rows if wanted <= {_name(value) for value in row.values()}]
    if not found:
        raise ValueError(f"{{{field}}}: no such row")
    return [None if value is None else float(value) for value in found]


def _name(value: Any) -> str:  # noqa: ANN401 (of any column)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _text(field: str, values: Sequence[float], how: str, *, is_ratio: bool) -> str:
    word, percent = how.removesuffix("%").strip(), how.endswith("%")
    if not values:
        return "-"
    if percent:
        values = [100 * (value - 1) if is_ratio else 100 * value for value in values]
    if word == "range":
        ends = [_rounded(end, percent) for end in (min(values), max(values))]
        text = " to ".join(dict.fromkeys(ends))
    elif word in _OF:
        text = _rounded(_OF[word](values), percent)
    elif len(values) == 1 and not word:
        text = _rounded(values[0], percent)
    else:
        raise ValueError(f"{{{field}}}: {len(values)} rows and `{word}`, expected one row, or min, max, mean or range")
    return text + "%" * percent


def _rounded(value: float, percent: bool) -> str:
    # Adding zero removes the sign of a negative zero.
    text = f"{round(value, 1) + 0.0:.1f}" if percent and abs(value) < 100 else f"{value:.3g}"
    return f"{float(text):,.0f}" if "e+" in text else text
