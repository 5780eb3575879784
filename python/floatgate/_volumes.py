"""Traces with many volumes: sorts them by volume with DuckDB, which spills to disk, and extracts single volumes."""

from __future__ import annotations

import hashlib
import lzma
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from floatgate._files import batches, draft, read_table
from floatgate.exceptions import FloatgateError, OptionError, OutputError, TraceError

if TYPE_CHECKING:
    import os

    import pyarrow as pa


@dataclass(frozen=True)
class Layout:
    """Format of a trace with many volumes."""

    #: Name of the trace format.
    format: str
    #: Columns in order (volume, time, op, offset and size), with their names in Parquet files.
    names: Mapping[str, str]
    #: Bytes per unit of offset and size.
    unit: int
    #: Units of time per second.
    ticks: int
    #: Values of the operation column for a write and for a read.
    write: str
    read: str


LAYOUTS = {
    "tencent": Layout(
        "tencent",
        {"time": "Timestamp", "offset": "Offset", "size": "Size", "op": "IOType", "volume": "VolumeID"},
        unit=512, ticks=1, write="1", read="0",
    ),
    "alibaba": Layout(
        "alibaba",
        {"volume": "device_id", "op": "opcode", "offset": "offset", "size": "length", "time": "timestamp"},
        unit=1, ticks=10**6, write="W", read="R",
    ),
}  # fmt: skip

#: Bytes of text that are read together, and rows of the sorted copy.
_BLOCK_BYTES, _BLOCK_ROWS = 4 << 20, 1 << 16

#: Most bytes of a request, so that the sums of a volume fit into 64 bits.
_LONGEST = 1 << 40

#: Sorts the rows of `requests`. Requests with the same time stay in the order of the files, by `row`.
_SORT = """
COPY (SELECT volume, time, op, "offset", size FROM requests ORDER BY volume, time, row)
TO '{place}' (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 122880)
"""

#: Statistics of each volume. MD5 is the same in all versions of DuckDB.
_INDEX = """
SELECT volume, count(*) AS requests, sum(op)::BIGINT AS writes,
    sum(CASE op WHEN 0 THEN size ELSE 0 END)::BIGINT * {unit} AS read_bytes,
    sum(CASE op WHEN 1 THEN size ELSE 0 END)::BIGINT * {unit} AS written_bytes,
    min(time) AS first, max(time) AS last,
    sum(md5_number_lower(concat_ws(' ', time, op, "offset", size))::HUGEINT)::VARCHAR AS digest
FROM read_parquet('{place}') GROUP BY volume ORDER BY volume
"""


def files_of(traces: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[str]:
    """List the files of a trace: files in the given order, and files of a directory sorted by name."""
    several = [traces] if isinstance(traces, str) or not isinstance(traces, Sequence) else list(traces)
    found: list[str] = []
    for one in several:
        path = Path(one)
        if path.is_dir():
            inside = sorted(str(file) for file in path.iterdir() if file.is_file() and not file.name.startswith("."))
            if not inside:
                raise TraceError(f"no files in {path}")
            found += inside
        elif path.is_file():
            found.append(str(path))
        else:
            raise TraceError(f"trace {path} does not exist")
    if not found:
        raise OptionError("no trace: give at least one")
    # Workers may run in another directory.
    return [str(Path(path).absolute()) for path in found]


@dataclass(frozen=True)
class Volumes:
    """A trace of many volumes, and its copy in a spool directory that is sorted by volume and time."""

    files: tuple[str, ...]
    layout: str
    spool: Path
    #: Memory for sorting in bytes. The rest is sorted in files of the spool directory.
    memory: int

    def _place(self, suffix: str) -> Path:
        """Return a file in the spool directory, named by the names, sizes and times of the trace's files."""
        states = [(path, Path(path).stat()) for path in self.files]
        said = [self.layout, *((path, state.st_size, state.st_mtime_ns) for path, state in states)]
        return self.spool / f"{hashlib.sha256(repr(said).encode()).hexdigest()[:32]}.{suffix}"

    def index(self) -> list[dict[str, Any]]:
        """Return the statistics of all volumes, in the order of their numbers. Sorts the trace if it is new."""
        place = self._place("index.parquet")
        rows = _index_in(place)
        if rows is None:
            # A damaged index is replaced.
            place.unlink(missing_ok=True)
            self.sorted()
            rows = _index_in(place)
        if rows is None:
            raise OutputError(f"cannot read {place}, which has just been written")
        return rows

    def sorted(self) -> Path:
        """Return the sorted copy, and create it and its index if one of them is missing."""
        place, index = self._place("parquet"), self._place("index.parquet")
        if not (place.is_file() and index.is_file()):
            try:
                self.spool.mkdir(parents=True, exist_ok=True)
                with draft(index) as partial_index, draft(place) as partial:
                    self._sort(partial, partial_index)
            except FloatgateError:
                raise
            except OSError as error:
                raise OutputError(f"cannot sort the trace into {self.spool}: {error}") from error
        return place

    def _sort(self, place: Path, index: Path) -> None:
        import pyarrow as pa  # noqa: PLC0415 (half a second, and not always needed)

        try:
            import duckdb  # noqa: PLC0415 (an extra)
        except ImportError as error:
            raise ImportError("a trace of many volumes needs DuckDB: pip install 'floatgate[fleet]'") from error
        failures: list[Exception] = []
        requests = pa.RecordBatchReader.from_batches(_SCHEMA(), _kept(self._batches(), failures))
        unit = LAYOUTS[self.layout].unit
        try:
            with duckdb.connect() as database:
                settings = {
                    "memory_limit": f"{self.memory}B",
                    "temp_directory": str(self.spool / "sorting"),
                    "enable_progress_bar": "false",
                }
                for name, value in settings.items():
                    database.execute(f"SET {name} = {_quoted(value)}")
                # The rows are numbered, so their order need not be preserved.
                database.execute("SET preserve_insertion_order = false")
                database.register("requests", requests)
                database.execute(_SORT.replace("'{place}'", _quoted(str(place))))
                table = _INDEX.replace("'{place}'", _quoted(str(place))).format(unit=unit)
                database.execute(f"COPY ({table}) TO {_quoted(str(index))} (FORMAT parquet)")
        except duckdb.Error as error:
            if failures:
                raise failures[0] from None
            if isinstance(error, duckdb.OutOfMemoryException):
                raise OptionError(f"memory={self.memory} is too little to sort the trace: {error}") from error
            raise OutputError(f"cannot sort the trace into {self.spool}: {error}") from error

    def _batches(self) -> Iterator[pa.RecordBatch]:
        """Read the files, and number the requests."""
        import numpy as np  # noqa: PLC0415 (not needed to import the package)
        import pyarrow as pa  # noqa: PLC0415 (half a second, and not always needed)

        row = 0
        for path in self.files:
            layout = LAYOUTS[self.layout]
            for batch in _of_parquet(path, layout) if path.endswith(".parquet") else _of_text(path, layout):
                if batch.num_rows:
                    try:
                        numbers = _numbers(batch, path, layout)
                    except pa.ArrowException as error:
                        raise TraceError(f"{path}: a column has values of another type: {error}") from error
                    rows = pa.array(np.arange(row, row + batch.num_rows))
                    yield pa.RecordBatch.from_arrays([*numbers, rows], schema=_SCHEMA())
                    row += batch.num_rows


#: Columns of an index.
_INDEXED = ("volume", "requests", "writes", "read_bytes", "written_bytes", "first", "last", "digest")


def _index_in(place: Path) -> list[dict[str, Any]] | None:
    """Return the rows of an index, or None if it does not exist or is damaged."""
    import pyarrow as pa  # noqa: PLC0415 (half a second, and not always needed)
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        with pq.ParquetFile(place) as file:
            if tuple(file.schema_arrow.names) != _INDEXED:
                return None
            rows: list[dict[str, Any]] = read_table(file).to_pylist()
            return rows
    except (OSError, pa.ArrowException):
        return None


def _quoted(text: str) -> str:
    """Quote a text for SQL."""
    return "'" + text.replace("'", "''") + "'"


def _kept(batches: Iterator[pa.RecordBatch], failures: list[Exception]) -> Iterator[pa.RecordBatch]:
    """Yield batches, and keep the exception that ends them, because DuckDB reports only its text."""
    try:
        yield from batches
    except Exception as error:
        failures.append(error)
        raise


def _SCHEMA() -> pa.Schema:  # noqa: N802 (a constant that needs pyarrow)
    import pyarrow as pa  # noqa: PLC0415

    kinds = {"volume": pa.int64(), "time": pa.int64(), "op": pa.int8(), "offset": pa.int64(), "size": pa.int64()}
    return pa.schema([*kinds.items(), ("row", pa.int64())])


def _numbers(batch: pa.RecordBatch, path: str, layout: Layout) -> list[pa.Array]:
    """Check the requests, and convert the operation to 1 for a write."""
    import pyarrow as pa  # noqa: PLC0415 (half a second, and not always needed)
    import pyarrow.compute as pc  # noqa: PLC0415

    columns = {name: batch.column(name) for name in layout.names}
    if any(column.null_count for column in columns.values()):
        raise TraceError(f"{path}: a request lacks a value in one of the columns")
    operation = columns["op"].cast(pa.string())
    is_write = pc.equal(operation, layout.write)
    known = pc.or_(is_write, pc.equal(operation, layout.read))
    if not pc.all(known).as_py():
        wrong = operation.filter(pc.invert(known))[0].as_py()
        raise TraceError(f"{path}: the operation must be {layout.read} or {layout.write}, not `{wrong}`")
    kept = {name: columns[name].cast(pa.int64()) for name in ("volume", "time", "offset", "size")}
    if pc.min(kept["size"]).as_py() < 1 or pc.min(kept["offset"]).as_py() < 0:
        raise TraceError(f"{path}: a request has length 0 or a negative offset")
    if pc.min(kept["time"]).as_py() < 0:
        raise TraceError(f"{path}: a request has a negative time")
    if pc.max(kept["size"]).as_py() * layout.unit > _LONGEST:
        raise TraceError(f"{path}: a request is longer than {_LONGEST >> 40} TiB")
    return [kept["volume"], kept["time"], is_write.cast(pa.int8()), kept["offset"], kept["size"]]


def _of_parquet(path: str, layout: Layout) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa  # noqa: PLC0415 (half a second, and not always needed)
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        with pq.ParquetFile(path) as file:
            known = {name.lower(): name for name in file.schema_arrow.names}
            missing = [theirs for theirs in layout.names.values() if theirs.lower() not in known]
            if missing:
                raise TraceError(
                    f"{path}: a Parquet file of this layout has the columns {', '.join(layout.names.values())}; "
                    f"this one has no {' and no '.join(missing)}"
                )
            columns = {known[theirs.lower()]: ours for ours, theirs in layout.names.items()}
            for batch in batches(file, list(columns)):
                yield batch.rename_columns([columns[name] for name in batch.schema.names])
    except TraceError:
        raise
    except (OSError, pa.ArrowException) as error:
        raise TraceError(f"cannot read {path}: {error}") from error


def _of_text(path: str, layout: Layout) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa  # noqa: PLC0415 (half a second, and not always needed)
    from pyarrow import csv  # noqa: PLC0415

    types = {name: pa.string() if name == "op" else pa.int64() for name in layout.names}
    try:
        with ExitStack() as stack:
            has_header = not stack.enter_context(_opened(path)).read(4096).lstrip()[:1].isdigit()
            yield from csv.open_csv(
                stack.enter_context(_opened(path)),
                read_options=csv.ReadOptions(
                    column_names=list(layout.names), block_size=_BLOCK_BYTES, skip_rows=int(has_header)
                ),
                convert_options=csv.ConvertOptions(column_types=types),
                parse_options=csv.ParseOptions(quote_char=False, ignore_empty_lines=True),
            )
    except pa.ArrowInvalid as error:
        if "Empty CSV file" not in str(error):
            raise TraceError(f"{path}: {error}") from error
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise TraceError(f"cannot read {path}: {error}") from error


def _opened(path: str) -> pa.NativeFile:
    import pyarrow as pa  # noqa: PLC0415 (half a second, and not always needed)

    return pa.PythonFile(lzma.open(path), "r") if path.endswith(".xz") else pa.input_stream(path, compression="detect")


def write_volume(requests: str, volume: int, layout: str, place: str) -> None:
    """Write the requests of one volume as a trace. Reads the parts of the sorted copy that contain the volume.

    Raises
    ------
    OutputError
        The copy is damaged, or the trace cannot be written.
    """
    import pyarrow as pa  # noqa: PLC0415 (half a second, and not always needed)

    try:
        _write_volume(requests, volume, layout, place)
    except (OSError, pa.ArrowException) as error:
        raise OutputError(
            f"cannot extract volume {volume} from {requests} to {place}: {error}; if the first file is damaged, "
            "delete it, and the trace is sorted again"
        ) from error


def _write_volume(requests: str, volume: int, layout: str, place: str) -> None:
    import pyarrow as pa  # noqa: PLC0415 (half a second, and not always needed)
    import pyarrow.compute as pc  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415
    from pyarrow import csv  # noqa: PLC0415

    written = LAYOUTS[layout]
    options = csv.WriteOptions(include_header=False, quoting_style="none")
    schema = pa.schema([(name, pa.string() if name == "op" else pa.int64()) for name in written.names])
    with pq.ParquetFile(requests) as file, csv.CSVWriter(place, schema, write_options=options) as out:
        spans = [file.metadata.row_group(group).column(0).statistics for group in range(file.num_row_groups)]
        groups = [group for group, span in enumerate(spans) if span.min <= volume <= span.max]
        for batch in file.iter_batches(_BLOCK_ROWS, row_groups=groups):
            own = batch.filter(pc.equal(batch["volume"], volume))
            columns = {name: own[name] for name in written.names}
            columns["op"] = pc.if_else(pc.equal(own["op"], 1), written.write, written.read)
            out.write_table(pa.table([columns[name] for name in written.names], schema=schema))
