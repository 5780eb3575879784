"""Files: reads TOML files with checks, writes tables, and replaces files atomically."""

from __future__ import annotations

import contextlib
import difflib
import fnmatch
import importlib
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from floatgate import _floatgate
from floatgate.exceptions import OptionError, OutputError

if TYPE_CHECKING:
    import argparse
    import os

    import pyarrow as pa
    import pyarrow.parquet as pq


def read_limited(path: str | os.PathLike[str], limit: int) -> str:
    """Read a text file of at most `limit` bytes in UTF-8. A longer file, which may be endless, raises OSError."""
    with Path(path).open("rb") as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise OSError(f"it is longer than the limit of {limit >> 20} MiB")
    return content.decode()


#: Limit for TOML files in bytes.
LARGEST_TOML = 4 << 20


def read_toml(path: str, keys: Mapping[str, type | tuple[type, ...]]) -> dict[str, Any]:
    """Read a TOML file, and reject unknown keys and values of other types."""
    try:
        tomllib = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    except ImportError as error:
        raise ImportError("Python 3.10 has no TOML parser: pip install tomli") from error
    try:
        said: dict[str, Any] = tomllib.loads(read_limited(path, LARGEST_TOML))
    except OSError as error:
        raise OptionError(f"cannot read {path}: {error.strerror or error}") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise OptionError(f"{path} is not valid TOML: {error}") from error
    check_keys(path, said, keys)
    return said


def check_keys(where: str, said: Mapping[str, Any], keys: Mapping[str, type | tuple[type, ...]]) -> None:
    """Reject unknown keys, and values of other types."""
    for key, value in said.items():
        if key not in keys:
            raise OptionError(f"{where}: unknown key `{key}`{near(key, keys)}; expected {', '.join(keys)}")
        # `bool` is a subclass of `int`, but a truth value is not accepted as a number.
        if not isinstance(value, keys[key]) or (isinstance(value, bool) and keys[key] is not bool):
            kinds = keys[key]
            names = [_TYPES[kind] for kind in (kinds if isinstance(kinds, tuple) else (kinds,))]
            raise OptionError(f"{where}: `{key}` must be {' or '.join(names)}, not {value!r}")


_TYPES = {str: "a text", int: "a whole number", float: "a number", bool: "true or false", list: "a list",
          dict: "a table"}  # fmt: skip


def near(name: str, names: Iterable[str]) -> str:
    """Return a hint with the names nearest to an unknown name, or with its new name."""
    new = _floatgate.new_name(name)
    if new is not None:
        return f", which is now {new}"
    found = difflib.get_close_matches(name, list(names), n=3)
    return f" (nearest: {', '.join(found)})" if found else ""


def flat(table: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    """Flatten nested tables into one table with paths: ``gc.victim = [...]`` is two tables in TOML."""
    found: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{path}{key}.")
        else:
            found[path + key] = value
    return found


def has_column(name: str, columns: Iterable[str]) -> bool:
    """Return True if a name is one of the columns, which may be patterns such as ``gc.*.units``."""
    return any(fnmatch.fnmatchcase(name, column) if "*" in column else name == column for column in columns)


def check_columns(names: Iterable[str], columns: Iterable[str]) -> None:
    """Reject names that are not one of the columns."""
    columns = list(columns)
    for name in names:
        if not has_column(str(name), columns):
            raise OptionError(f"unknown column `{name}`{near(str(name), columns)}")


def select(table: pa.Table, columns: Iterable[str]) -> pa.Table:
    """Select columns by name."""
    columns = list(columns)
    check_columns(columns, table.column_names)
    return table.select(columns)


def refuse_overwrites(inputs: Iterable[str | os.PathLike[str]], output: str | os.PathLike[str]) -> None:
    """Refuse an output that would overwrite an input, also through links."""
    for path in inputs:
        try:
            same = Path(path).samefile(output)
        except OSError:
            continue  # One of the files does not exist.
        if same:
            raise OptionError(f"{output} would overwrite {path}; give the output another name")


def check_output(path: str, inputs: Iterable[str | os.PathLike[str]] = ()) -> None:
    """Refuse an output that cannot be written or is an input, before anything runs."""
    refuse_overwrites(inputs, path)
    if Path(path).suffix not in (".csv", ".parquet"):
        raise OptionError(f"{path}: the name of a table must end in .csv or .parquet")
    if not Path(path).absolute().parent.is_dir():
        raise OptionError(f"{path}: directory {Path(path).parent} does not exist")


@contextlib.contextmanager
def scratch(prefix: str, directory: str | os.PathLike[str] | None = None) -> Iterator[str]:
    """Yield a temporary directory, in `directory` or in that of the system, which is deleted at the end.

    Raises
    ------
    OutputError
        The directory cannot be created.
    """
    try:
        made = tempfile.TemporaryDirectory(prefix=prefix, dir=directory, ignore_cleanup_errors=True)
    except OSError as error:
        hint = "; set TMPDIR to a directory that can be written to" if directory is None else ""
        raise OutputError(f"cannot create a temporary directory: {error}{hint}") from error
    with made as place:
        yield place


@contextlib.contextmanager
def draft(place: Path) -> Iterator[Path]:
    """Yield a temporary file next to `place`. Rename it to `place` on success, and delete it on failure.

    No other thread, process or machine that creates `place` uses the same temporary file. Symbolic links are followed.
    A file that is not a regular file, such as a device node or a pipe, cannot be replaced, and is yielded itself.
    """
    if place.exists() and not place.is_file():
        yield place
        return
    place = place.resolve() if place.is_symlink() else place
    partial = place.with_name(f"{place.name}.{uuid.uuid4().hex}.partial")
    try:
        yield partial
        if place.is_file():
            partial.chmod(place.stat().st_mode)
        partial.replace(place)
    finally:
        # Ctrl-C may occur at any time.
        partial.unlink(missing_ok=True)


#: Rows of a Parquet file that are read together.
_BATCH_ROWS = 1 << 16


def batches(file: pq.ParquetFile, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a Parquet file. The memory does not depend on the number of rows that its footer claims.

    Raises
    ------
    OSError
        The file has fewer or more rows than its footer claims.
    """
    claimed = file.metadata.num_rows
    rows = 0
    for batch in file.iter_batches(_BATCH_ROWS, columns=columns):
        rows += batch.num_rows
        yield batch
    if rows != claimed:
        raise OSError(f"it has {rows} rows, but {claimed} according to its footer")


def read_table(file: pq.ParquetFile) -> pa.Table:
    """Read a Parquet file as :func:`batches` does."""
    import pyarrow as pa  # noqa: PLC0415 (half a second, and not always needed)

    found = list(batches(file))
    table = pa.Table.from_batches(found) if found else file.schema_arrow.empty_table()
    return table.replace_schema_metadata(file.schema_arrow.metadata)


def write_table(table: pa.Table, path: str) -> None:
    """Write a table to a file, atomically."""
    import pyarrow.parquet as pq  # noqa: PLC0415
    from pyarrow import csv  # noqa: PLC0415 (half a second, and not always needed)

    try:
        with draft(Path(path)) as partial:
            if path.endswith(".csv"):
                csv.write_csv(in_lines(table), partial)
            else:
                pq.write_table(table, partial, compression="zstd")
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error}") from error


def in_lines(table: pa.Table) -> pa.Table:
    """Return a table whose texts are on one line each, because programs read a CSV file line by line."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    for index, field in enumerate(table.schema):
        if field.type == pa.string():
            table = table.set_column(index, field, pc.replace_substring_regex(table[index], r"\s*\n\s*", " "))
    return table


def text_table(table: pa.Table) -> str:
    """Format a table as text: one line per row, numbers right-aligned."""
    columns = [[name, *(_shown(value) for value in table[name].to_pylist())] for name in table.column_names]
    widths = [max(map(len, column)) for column in columns]
    numeric = [all(not isinstance(value, str) for value in table[name].to_pylist()) for name in table.column_names]
    lines = [
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ).rstrip()
        for row in zip(*columns, strict=True)
    ]
    return "\n".join(lines) + "\n"


def _shown(value: Any) -> str:  # noqa: ANN401 (a value of a table)
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.6g}"
    # A text with several lines, such as an error, would become several rows.
    return " ".join(str(value).split())


def progress_line(word: str, done: int, total: int, *, failed: int = 0, eta_s: float | None = None) -> None:
    """Write the progress to standard error, over the previous progress line."""
    left = f", {_duration(eta_s)} left" if eta_s is not None and done < total else ""
    errors = f", {failed} failed" if failed else ""
    end = "\n" if done == total else ""
    sys.stderr.write(f"\r{word}: {done} of {total}{errors}{left}\x1b[K{end}")
    sys.stderr.flush()


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


class Progress:
    """Reports the progress of many runs, to a function or on the terminal."""

    def __init__(
        self,
        word: str,
        total: int,
        known: int,
        progress: bool | Callable[[int, int, float | None], object] | None,
        *,
        failed: int = 0,
    ) -> None:
        self._word, self._total, self._done, self._failed = word, total, known, failed
        self._ran = 0
        self._start = time.monotonic()
        self._tell = progress if callable(progress) else None
        self._shows = progress is True or (progress is None and sys.stderr.isatty())

    def step(self, count: int = 1, *, failed: bool) -> None:
        """Count completed runs."""
        self._done += count
        self._ran += count
        self._failed += count * failed
        # Assumes that the rest takes as long as the runs so far.
        eta_s = (time.monotonic() - self._start) / self._ran * (self._total - self._done)
        if self._tell:
            self._tell(self._done, self._total, eta_s)
        elif self._shows:
            progress_line(self._word, self._done, self._total, failed=self._failed, eta_s=eta_s)


def runs_in(store: str) -> int:
    """Count the runs in a store."""
    return sum(1 for _ in Path(store).glob("*.parquet"))


def add_engine(made: argparse.ArgumentParser) -> None:
    """Add the options for parallel runs."""
    made.add_argument(
        "--jobs", metavar="N", type=int, help="parallel runs [default: one per processor, or all of the cluster]"
    )
    made.add_argument("--scheduler", metavar="ADDRESS", help="cluster: tcp://HOST:PORT (Dask), ray://HOST:PORT, or ray")
    made.add_argument("--quiet", action="store_true", help="do not show progress")
