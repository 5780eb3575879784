"""Storage of a sweep's runs: a directory with one Parquet file per run."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from floatgate._files import draft, read_table
from floatgate.exceptions import OutputError

if TYPE_CHECKING:
    import os

    import pyarrow as pa

#: Schema of the files, stored in each of them.
SCHEMA = "floatgate-sweep-2"


class Store:
    """Summaries and errors by the key of their run.

    Files are written atomically, so a sweep can be stopped at any time, and several sweeps can share a store. Together,
    the files are a data set that ``pyarrow.dataset``, DuckDB and polars read as one table: ``key``, ``summary`` (the
    JSON), ``error``, ``kind``.

    Parameters
    ----------
    directory
        The directory. It is created if it does not exist.

    Raises
    ------
    OutputError
        The directory cannot be created.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self._directory = Path(directory)
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"cannot create directory {self._directory}: {error}") from error

    def check(self) -> None:
        """Check that files can be written, before anything runs.

        Raises
        ------
        OutputError
            The directory is read-only, or its disk is full.
        """
        try:
            with tempfile.TemporaryFile(dir=self._directory):
                pass
        except OSError as error:
            raise OutputError(f"cannot write to directory {self._directory}: {error}") from error

    def _place(self, key: str) -> Path:
        return self._directory / f"{key}.parquet"

    def get(self, key: str) -> dict[str, Any] | None:
        """Return the data of a run, or None."""
        import pyarrow as pa  # noqa: PLC0415 (half a second, and not always needed)
        import pyarrow.parquet as pq  # noqa: PLC0415

        try:
            # Read a single file with one row, not a data set.
            with pq.ParquetFile(self._place(key)) as file:
                metadata = file.schema_arrow.metadata or {}
                if metadata.get(b"floatgate.schema") != SCHEMA.encode() or file.metadata.num_rows != 1:
                    return None
                row: dict[str, Any] = read_table(file).to_pylist()[0]
                return {name: row[name] for name in ("summary", "error", "kind")}
        except FileNotFoundError:
            return None
        except (OSError, KeyError, pa.ArrowException):
            return None  # The file is invalid. The run is repeated, and replaces it.

    def put(self, key: str, row: dict[str, Any]) -> None:
        """Store a run."""
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
