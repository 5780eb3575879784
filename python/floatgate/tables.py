"""Tables of many runs, which show what varies and the key results."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from floatgate import _files, _html
from floatgate._metrics import KEY_RESULTS, full_name, short_name
from floatgate.exceptions import OptionError

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

#: Rows that a table shows.
_ROWS = 40


class Table:
    """A table with a row per run, from :func:`sweep`.

    ``print(table)`` shows the columns that vary and the key results. ``table["read.latency_us.p99"]`` returns any
    column, and :meth:`wide` all of them, as a `pyarrow.Table`, whose methods this class has as well.
    """

    def __init__(self, wide: pa.Table) -> None:
        self._wide = wide

    def wide(self) -> pa.Table:
        """Return all columns, about 300."""
        return self._wide

    def narrow(self) -> pa.Table:
        """Return what ``print(table)`` shows: the parameters and seeds that vary, the key results, and errors."""
        return self._wide.select(self.shown)

    @property
    def shown(self) -> list[str]:
        """Columns of :meth:`narrow`."""
        names: list[str] = self._wide.column_names
        identifying = names[: names.index("seed") + 1] if "seed" in names else []
        varying = [name for name in identifying if len(set(map(str, self._wide[name].to_pylist()))) > 1]
        results = ["write_amplification"]
        results += [
            f"requests.{operation}.{metric}"
            for operation in ("read", "write")
            for metric in KEY_RESULTS
            if f"requests.{operation}.count" in names and any(self._wide[f"requests.{operation}.count"].to_pylist())
        ]
        present = [name for name in results if name in names and self._wide[name].null_count < self.num_rows]
        failed = ["error"] if "error" in names and self._wide["error"].null_count < self.num_rows else []
        return [*varying, *present, *failed] or identifying

    @property
    def column_names(self) -> list[str]:
        """Names of all columns."""
        names: list[str] = self._wide.column_names
        return names

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return int(self._wide.num_rows)

    def __len__(self) -> int:
        return self.num_rows

    def __getitem__(self, name: str | int) -> pa.ChunkedArray:
        return self._wide[name if isinstance(name, int) else self._full(name)]

    def equals(self, other: Table | pa.Table) -> bool:
        """Return True if both tables have the same columns with the same values."""
        return bool(self._wide.equals(other.wide() if isinstance(other, Table) else other))

    def numbers(self, name: str) -> npt.NDArray[np.float64]:
        """Return a column of numbers as an array, in which missing values are NaN."""
        import numpy as np  # noqa: PLC0415 (not needed to import the package)

        try:
            values = [np.nan if value is None else float(value) for value in self[name].to_pylist()]
        except ValueError as error:
            raise OptionError(f"the column `{name}` has values that are not numbers: {error}") from error
        return np.array(values)

    def select(self, names: Iterable[str]) -> pa.Table:
        """Return columns by name."""
        return self._wide.select([self._full(name) for name in names])

    def to_pylist(self) -> list[dict[str, Any]]:
        """Return all rows as dictionaries."""
        rows: list[dict[str, Any]] = self._wide.to_pylist()
        return rows

    def _full(self, name: str) -> str:
        names = self.column_names
        full = full_name(name, names)
        if full not in names:
            raise OptionError(f"the table has no column `{name}`{_files.near(full, names)}")
        return full

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 (a method of pyarrow.Table)
        # A table that is being unpickled has no data yet.
        if name.startswith("_") and not name.startswith("__arrow"):
            raise AttributeError(name)
        return getattr(self._wide, name)

    def __str__(self) -> str:
        return text(self.narrow())

    def __repr__(self) -> str:
        return f"<floatgate.Table: {self.num_rows} rows of {len(self.column_names)} columns>"

    def _repr_html_(self) -> str:
        part = self.narrow()
        rows = [[_cell(value) for value in row.values()] for row in part.slice(0, _ROWS).to_pylist()]
        notes = f"<p style='opacity:.7'>{_note(self)}</p>"
        return _html.card("Runs", "", _html.table(list(map(short_name, part.column_names)), rows), notes)


def text(part: pa.Table) -> str:
    """Format columns of a table as text, with the shortest names."""
    shown = part.slice(0, _ROWS).rename_columns(list(map(short_name, part.column_names)))
    more = f"... and {part.num_rows - _ROWS} more rows\n" if part.num_rows > _ROWS else ""
    return (_files.text_table(shown) + more).rstrip("\n")


def _cell(value: object) -> str:
    return escape(str(value)) if isinstance(value, str | bool) else _html.number(value)  # type: ignore[arg-type]


def _note(table: Table) -> str:
    rows = f"The first {_ROWS} of {table.num_rows} rows. " if table.num_rows > _ROWS else ""
    return f"{rows}table.wide() has all {len(table.column_names)} columns."
