"""What runs of a sweep are kept in: a directory of Parquet files, one for each run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from floatgate._files import draft
from floatgate.exceptions import OutputError

if TYPE_CHECKING:
    import os

    import pyarrow as pa

#: The form of the files, which each of them names.
SCHEMA = "floatgate-sweep-1"


class Store:
    """Summaries and errors by the key of their run.

    A file is whole or absent, so that a sweep may be stopped at any time, and several may use one store. All files
    together are a data set, which ``pyarrow.dataset``, DuckDB and polars read as one table: ``key``, ``summary`` (the
    JSON), ``error``, ``kind``.

    Parameters
    ----------
    directory
        It is made where there is none.

    Raises
    ------
    OutputError
        It cannot be made.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self._directory = Path(directory)
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"cannot make the directory {self._directory}: {error}") from error

    def _place(self, key: str) -> Path:
        return self._directory / f"{key}.parquet"

    def get(self, key: str) -> dict[str, Any] | None:
        """Give what is kept of a run, or None."""
        import pyarrow as pa  # noqa: PLC0415 (half a second, and not always needed)
        import pyarrow.parquet as pq  # noqa: PLC0415

        try:
            # Not as a data set: one file has one row.
            with pq.ParquetFile(self._place(key)) as file:
                table = file.read()
        except FileNotFoundError:
            return None
        except (OSError, pa.ArrowInvalid):
            return None  # No file of ours: it is run again, and replaced.
        metadata = table.schema.metadata or {}
        if metadata.get(b"floatgate.schema") != SCHEMA.encode() or table.num_rows != 1:
            return None
        row: dict[str, Any] = table.to_pylist()[0]
        return {name: row[name] for name in ("summary", "error", "kind")}

    def put(self, key: str, row: dict[str, Any]) -> None:
        """Keep a run."""
        import pyarrow.parquet as pq  # noqa: PLC0415 (half a second, and not always needed)

        place = self._place(key)
        try:
            with draft(place) as partial:
                pq.write_table(_table(key, row), partial, compression="zstd")
        except OSError as error:
            raise OutputError(f"cannot write {place}: {error}") from error


def _table(key: str, row: dict[str, Any]) -> pa.Table:
    import pyarrow as pa  # noqa: PLC0415 (half a second, and not always needed)

    schema = pa.schema([(name, pa.string()) for name in ("key", "summary", "error", "kind")])
    schema = schema.with_metadata({"floatgate.schema": SCHEMA})
    return pa.Table.from_pylist([{"key": key, **row}], schema=schema)
