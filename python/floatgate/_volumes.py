"""Traces with many volumes: splits them by volume. Each partition is read once, as a stream, and sorted in blocks.

The result for a partition is a spool file (compressed Arrow) with its requests, sorted by volume within each block.
An index contains the positions of the requests of each volume. Therefore reading a volume reads little more than its
own requests, and no process ever holds more than one block.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import os
import zlib
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from floatgate._files import draft
from floatgate.exceptions import OptionError, OutputError, TraceError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

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
    #: Value of the operation column for a write.
    write: str


LAYOUTS = {
    "tencent": Layout(
        "tencent",
        {"time": "Timestamp", "offset": "Offset", "size": "Size", "op": "IOType", "volume": "VolumeID"},
        unit=512, ticks=1, write="1",
    ),
    "alibaba": Layout(
        "alibaba",
        {"volume": "device_id", "op": "opcode", "offset": "offset", "size": "length", "time": "timestamp"},
        unit=1, ticks=10**6, write="W",
    ),
}  # fmt: skip

#: Bytes of text that are read and sorted together, and bytes per partition if a file can be divided.
BLOCK_BYTES = 8 << 20
PARTITION_BYTES = 256 << 20

#: Requests per batch of a spool file. One batch must be decompressed to read a request.
_BATCH = 8192

#: Columns of a request in a spool file. The operation is 1 for a write.
_KEPT = ("time", "op", "offset", "size")

_PACKED = (".gz", ".bz2", ".xz", ".zst")


@dataclass(frozen=True)
class Partition:
    """Part of a trace that one task reads: a range of bytes of a text, or row groups of a Parquet file."""

    path: str
    layout: str
    start: int
    end: int
    block: int

    def key(self) -> str:
        """Return a key of the content, derived from the file's name, size and time."""
        state = Path(self.path).stat()
        said = [str(Path(self.path).absolute()), state.st_size, state.st_mtime_ns, self.layout, self.start, self.end,
                self.block]  # fmt: skip
        return hashlib.sha256(repr(said).encode()).hexdigest()[:32]


def partitions(files: Sequence[str], layout: str, partition: int, block: int) -> list[Partition]:
    """Divide files into partitions."""
    found = []
    for path in files:
        if path.endswith(".parquet"):
            groups = _row_groups(path)
            found += [Partition(path, layout, *span, block) for span in groups]
            continue
        size = Path(path).stat().st_size
        step = size if path.endswith(_PACKED) else partition
        found += [Partition(path, layout, start, min(start + step, size), block) for start in range(0, size, step or 1)]
    return found


def _row_groups(path: str) -> list[tuple[int, int]]:
    import pyarrow as pa  # noqa: PLC0415 (half a second, and not always needed)
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        with pq.ParquetFile(path) as file:
            return [(group, group + 1) for group in range(file.num_row_groups)]
    except (OSError, pa.ArrowInvalid) as error:
        raise TraceError(f"{path} is not a Parquet file: {error}") from error


def files_of(traces: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[str]:
    """List the files of a trace: files in the given order, and files of a directory sorted by name."""
    several = [traces] if isinstance(traces, str | os.PathLike) else list(traces)
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


def split(partition: Partition, spool: str) -> str:
    """Write a partition, sorted by volume, to the spool directory, and return its key."""
    import pyarrow as pa  # noqa: PLC0415 (half a second, and not always needed)

    key = partition.key()
    place = Path(spool, f"{key}.arrow")
    index = Path(spool, f"{key}.index.arrow")
    schema = pa.schema([("time", pa.int64()), ("op", pa.int8()), ("offset", pa.int64()), ("size", pa.int64())])
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    try:
        batches = 0
        with draft(index) as partial_index, draft(place) as partial, ExitStack() as stack:
            out = stack.enter_context(pa.OSFile(str(partial), "wb"))
            writer = stack.enter_context(pa.ipc.new_file(out, schema, options=options))
            out_index = stack.enter_context(pa.OSFile(str(partial_index), "wb"))
            index_writer = stack.enter_context(pa.ipc.new_file(out_index, _INDEX(), options=options))
            for table in _blocks(partition):
                requests, found = _sorted(table, batches, partition)
                writer.write_table(requests.cast(schema), max_chunksize=_BATCH)
                index_writer.write_table(found)
                batches += -(-requests.num_rows // _BATCH)
    except pa.ArrowInvalid as error:
        raise TraceError(f"{_called(partition)}: {error}") from error
    except (OSError, pa.ArrowException) as error:
        raise OutputError(f"cannot split {_called(partition)} into {spool}: {error}") from error
    return key


def _called(partition: Partition) -> str:
    what = "row groups" if partition.path.endswith(".parquet") else "bytes"
    return f"{partition.path}, {what} {partition.start} to {partition.end}"


def _INDEX() -> pa.Schema:  # noqa: N802 (a constant that needs pyarrow)
    import pyarrow as pa  # noqa: PLC0415

    numbers = ("volume", "batch", "row", "requests", "writes", "read_bytes", "written_bytes", "first", "last")
    return pa.schema([*((name, pa.int64()) for name in numbers), ("digest", pa.binary(16))])


def _sorted(table: pa.Table, first_batch: int, partition: Partition) -> tuple[pa.Table, pa.Table]:
    """Sort a block by volume and time, and return its requests and index."""
    import numpy as np  # noqa: PLC0415 (an import that is not always needed)
    import pyarrow as pa  # noqa: PLC0415

    layout = LAYOUTS[partition.layout]
    columns = {name: table[name].to_numpy() for name in ("volume", *_KEPT)}
    # Requests with the same time stay in order.
    order = np.lexsort((columns["time"], columns["volume"]))
    columns = {name: np.ascontiguousarray(values[order]) for name, values in columns.items()}
    volumes, starts, counts = np.unique(columns["volume"], return_index=True, return_counts=True)
    sizes = columns["size"] * layout.unit
    written, read = (np.add.reduceat(sizes * (columns["op"] == op), starts) for op in (1, 0))
    requests = np.stack([columns[name].astype(np.int64) for name in _KEPT], axis=1)
    digests = [
        hashlib.sha256(requests[start : start + count].tobytes()).digest()[:16]
        for start, count in zip(starts, counts, strict=True)
    ]
    found = [
        volumes, first_batch + starts // _BATCH, starts % _BATCH, counts,
        np.add.reduceat((columns["op"] == 1).astype(np.int64), starts), read, written,
        columns["time"][starts], columns["time"][starts + counts - 1],
    ]  # fmt: skip
    index = pa.table([*map(pa.array, found), pa.array(digests, pa.binary(16))], schema=_INDEX())
    return pa.table({name: columns[name] for name in _KEPT}), index


def _blocks(partition: Partition) -> Iterator[pa.Table]:
    """Read a partition in blocks, with numeric columns named as in :data:`_KEPT`."""
    tables = _of_parquet(partition) if partition.path.endswith(".parquet") else _of_text(partition)
    for table in tables:
        if table.num_rows:
            yield _numbers(table, partition)


def _numbers(table: pa.Table, partition: Partition) -> pa.Table:
    """Convert volume, time, offset and size to integers, and the operation to 1 for a write."""
    import pyarrow as pa  # noqa: PLC0415 (half a second, and not always needed)
    import pyarrow.compute as pc  # noqa: PLC0415

    layout = LAYOUTS[partition.layout]
    if any(table[name].null_count for name in layout.names):
        raise TraceError(f"{_called(partition)}: a request lacks a value in one of the columns")
    operation = table["op"].cast(pa.string())
    other = {"1": "0", "W": "R"}[layout.write]
    is_write = pc.equal(operation, layout.write)
    known = pc.or_(is_write, pc.equal(operation, other))
    if not pc.all(known).as_py():
        wrong = operation.filter(pc.invert(known))[0].as_py()
        raise TraceError(f"{_called(partition)}: the operation must be {other} or {layout.write}, not `{wrong}`")
    kept = {name: table[name].cast(pa.int64()) for name in ("volume", "time", "offset", "size")}
    if pc.min(kept["size"]).as_py() < 1 or pc.min(kept["offset"]).as_py() < 0:
        raise TraceError(f"{_called(partition)}: a request has length 0 or a negative offset")
    return pa.table({**kept, "op": is_write.cast(pa.int8())})


def _of_parquet(partition: Partition) -> Iterator[pa.Table]:
    import pyarrow as pa  # noqa: PLC0415 (half a second, and not always needed)
    import pyarrow.parquet as pq  # noqa: PLC0415

    layout = LAYOUTS[partition.layout]
    with pq.ParquetFile(partition.path) as file:
        known = {name.lower(): name for name in file.schema_arrow.names}
        missing = [theirs for theirs in layout.names.values() if theirs.lower() not in known]
        if missing:
            raise TraceError(
                f"{partition.path}: a Parquet file of this layout has the columns {', '.join(layout.names.values())}; "
                f"this one has no {' and no '.join(missing)}"
            )
        columns = {known[theirs.lower()]: ours for ours, theirs in layout.names.items()}
        groups = list(range(partition.start, partition.end))
        # A request takes about 40 bytes in memory.
        for batch in file.iter_batches(max(1, partition.block // 40), row_groups=groups, columns=list(columns)):
            yield pa.Table.from_batches([batch]).rename_columns([columns[name] for name in batch.schema.names])


def _of_text(partition: Partition) -> Iterator[pa.Table]:
    import pyarrow as pa  # noqa: PLC0415 (half a second, and not always needed)
    from pyarrow import csv  # noqa: PLC0415

    layout = LAYOUTS[partition.layout]
    types = {name: pa.string() if name == "op" else pa.int64() for name in layout.names}
    for text in _readable(partition):
        yield csv.read_csv(
            pa.py_buffer(text),
            # One thread, because tasks already run in parallel.
            read_options=csv.ReadOptions(column_names=list(layout.names), use_threads=False, block_size=len(text) + 1),
            convert_options=csv.ConvertOptions(column_types=types),
            parse_options=csv.ParseOptions(quote_char=False, ignore_empty_lines=True),
        )


def _readable(partition: Partition) -> Iterator[bytes]:
    try:
        yield from _texts(partition)
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise TraceError(f"cannot read {partition.path}: {error}") from error


def _texts(partition: Partition) -> Iterator[bytes]:
    """Read the lines that start in a partition, in blocks."""
    with ExitStack() as stack:
        file = stack.enter_context(_opened(partition.path))
        packed = partition.path.endswith(_PACKED)
        left = -1 if packed else partition.end - partition.start
        if partition.start:
            # A line that started before the partition belongs to the previous partition.
            file.seek(partition.start - 1)
            left -= len(file.readline()) - 1
        is_first = partition.start == 0
        while left:
            text = file.read(partition.block if packed else min(partition.block, max(left, 0)))
            if not text:
                return
            left -= 0 if packed else len(text)
            if not text.endswith(b"\n"):
                rest = file.readline()
                text += rest
                left -= 0 if packed else min(left, len(rest))
            if is_first and not text.lstrip()[:1].isdigit():
                # Skips the header.
                text = text.partition(b"\n")[2]
            is_first = False
            if text.strip():
                yield text


def _opened(path: str) -> IO[bytes]:
    if path.endswith(".zst"):
        import pyarrow as pa  # noqa: PLC0415 (half a second, and not always needed)

        return io.BufferedReader(pa.input_stream(path, compression="zstd"))
    openers: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
    opened: IO[bytes] = openers.get(Path(path).suffix, open)(path, "rb")
    return opened


def index_of(spool: str, key: str) -> pa.Table:
    """Read the index of a partition."""
    import pyarrow as pa  # noqa: PLC0415 (half a second, and not always needed)

    with pa.OSFile(str(Path(spool, f"{key}.index.arrow")), "rb") as file:
        return pa.ipc.open_file(file).read_all()


def write_volume(spool: str, keys: Sequence[str], volume: int, layout: str, place: str) -> None:
    """Write the requests of one volume as a trace, piece by piece."""
    import pyarrow as pa  # noqa: PLC0415 (half a second, and not always needed)
    import pyarrow.compute as pc  # noqa: PLC0415
    from pyarrow import csv  # noqa: PLC0415

    written = LAYOUTS[layout]
    options = csv.WriteOptions(include_header=False, quoting_style="none")
    other = {"1": "0", "W": "R"}[written.write]
    schema = pa.schema([(name, pa.string() if name == "op" else pa.int64()) for name in written.names])
    with csv.CSVWriter(place, schema, write_options=options) as out:
        for key in keys:
            for piece in _pieces(spool, key, volume):
                columns = {name: piece[name] for name in _KEPT}
                columns["volume"] = pa.repeat(volume, piece.num_rows)
                columns["op"] = pc.if_else(pc.equal(piece["op"], 1), written.write, other)
                out.write_table(pa.table([columns[name] for name in written.names], schema=schema))


def _pieces(spool: str, key: str, volume: int) -> Iterator[pa.Table]:
    import pyarrow as pa  # noqa: PLC0415 (half a second, and not always needed)
    import pyarrow.compute as pc  # noqa: PLC0415

    index = index_of(spool, key)
    own = index.filter(pc.equal(index["volume"], volume)).to_pylist()
    with pa.OSFile(str(Path(spool, f"{key}.arrow")), "rb") as file:
        reader = pa.ipc.open_file(file)
        for run in own:
            number, row, left = run["batch"], run["row"], run["requests"]
            while left:
                batch = reader.get_batch(number).slice(row, left)
                yield pa.Table.from_batches([batch])
                number, row, left = number + 1, 0, left - batch.num_rows
