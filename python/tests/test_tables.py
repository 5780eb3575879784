"""Parquet files that lie about their size, or are damaged: clear errors, and memory that does not follow the lie."""

import random
import resource
import struct
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import floatgate as fg
from floatgate.store import Store

ROWS = 300


def varint(number):
    """The form of a number in the footer of a Parquet file: zigzag, seven bits per byte."""
    number = (number << 1) ^ (number >> 63)
    made = b""
    while number > 127:
        made += bytes([number & 127 | 128])
        number >>= 7
    return made + bytes([number])


def footer(content):
    (size,) = struct.unpack("<I", content[-8:-4])
    return len(content) - 8 - size, size


def claiming(content, rows, claimed):
    """A file whose footer claims another number of rows, in the file, its groups and its columns."""
    at, size = footer(content)
    changed = content[at : at + size].replace(varint(rows), varint(claimed))
    assert changed != content[at : at + size]
    return content[:at] + changed + struct.pack("<I", len(changed)) + b"PAR1"


def damaged(content, seed):
    """A file with a wrong footer, wrong pages, or without its end."""
    draw = random.Random(seed)
    at, size = footer(content)
    changed = bytearray(content)
    kind = draw.choice(["footer", "pages", "end", "length"])
    if kind == "footer":
        for _ in range(draw.randint(1, 3)):
            changed[at + draw.randrange(size)] = draw.choice([0, 0x7F, 0xFF, draw.randrange(256)])
    elif kind == "pages":
        for _ in range(draw.randint(1, 4)):
            changed[4 + draw.randrange(at - 4)] = draw.randrange(256)
    elif kind == "end":
        del changed[draw.randrange(len(changed)) :]
    else:
        changed[-8:-4] = struct.pack("<I", draw.choice([0, 1, size - 1, size + 1, len(content), (1 << 32) - 1]))
    return bytes(changed)


@pytest.fixture
def bounded():
    """Limit the memory of the test to 2 GiB more than it has. A larger allocation raises MemoryError, or aborts."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + (2 << 30), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="limits of memory differ"),
    pytest.mark.filterwarnings("ignore:.*digests.json is missing"),
]

LIES = [0, 299, 301, 10**6, 10**9, 10**12, 1 << 61, -1]


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """The files of a result, without the digests that would show any change."""
    place = tmp_path_factory.mktemp("stored") / "run"
    fg.run("tiny", f"rw=randrw bs=4k iodepth=8 number_ios={ROWS}", out=place, requests=True, timeline=True)
    (place / "digests.json").unlink()
    rows = {name: pq.ParquetFile(place / f"{name}.parquet").metadata.num_rows for name in ("requests", "series")}
    assert rows["requests"] == ROWS
    return place, {name: ((place / f"{name}.parquet").read_bytes(), count) for name, count in rows.items()}


def read(place, name):
    result = fg.load(place)
    if name == "series":
        result.to_html()
        return result.series()
    result.explain(5)
    return result.requests()


@pytest.mark.parametrize("claimed", LIES)
def test_the_requests_of_a_result_lie_about_their_number(claimed, stored, bounded):
    place, tables = stored
    content, rows = tables["requests"]
    path = place / "requests.parquet"
    path.write_bytes(claiming(content, rows, claimed))
    try:
        result = fg.load(place)
        with pytest.raises(fg.ResultError, match="requests.parquet"):
            result.requests()
        if claimed > ROWS:
            with pytest.raises(fg.ResultError):
                result.explain("p99")
    finally:
        path.write_bytes(content)


@pytest.mark.parametrize("name", ["requests", "series"])
def test_damaged_tables_of_a_result_are_errors(name, stored, bounded):
    place, tables = stored
    content, _ = tables[name]
    path = place / f"{name}.parquet"
    expected = read(place, name)
    refused = 0
    try:
        for seed in range(100):
            path.write_bytes(damaged(content, seed))
            try:
                found = read(place, name)
            except fg.ResultError:
                refused += 1
            else:
                # The damage hit no data, but statistics, for example.
                assert found.num_rows == expected.num_rows
    finally:
        path.write_bytes(content)
    assert refused > 50


def volumes(**columns):
    usual = {
        "device_id": [3 + row % 2 for row in range(ROWS)], "opcode": ["W"] * ROWS,
        "offset": [4096 * row for row in range(ROWS)], "length": [4096] * ROWS, "timestamp": list(range(ROWS)),
    }  # fmt: skip
    return pa.table(usual | columns)


def fleet(path, **options):
    return fg.fleet(path, "tiny", layout="alibaba", n_jobs=1, memory="64MiB", **options)


# A footer that consistently claims fewer rows than the pages have is that of a shorter trace.
@pytest.mark.parametrize("claimed", [lie for lie in LIES if not 0 < lie < ROWS])
def test_a_trace_lies_about_its_number_of_requests(claimed, tmp_path, bounded):
    path = tmp_path / "trace.parquet"
    pq.write_table(volumes(), path)
    assert fleet(path)["requests"].to_pylist() == [150, 150]
    path.write_bytes(claiming(path.read_bytes(), ROWS, claimed))
    with pytest.raises(fg.TraceError, match="cannot read .*trace.parquet: |has no requests"):
        fleet(path)


def test_damaged_traces_are_errors(tmp_path, bounded):
    path = tmp_path / "trace.parquet"
    pq.write_table(volumes(), path)
    content = path.read_bytes()
    refused = 0
    for seed in range(60):
        path.write_bytes(damaged(content, seed))
        try:
            fleet(path)
        except fg.TraceError:
            refused += 1
    assert refused > 40


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"timestamp": ["now"] * ROWS}, "a column has values of another type: .*'now'"),
        ({"timestamp": [{"s": 1}] * ROWS}, "a column has values of another type: "),
        ({"timestamp": [-1] * ROWS}, "a request has a negative time"),
        ({"opcode": [["W"]] * ROWS}, "a column has values of another type: "),
        ({"opcode": [b"\xff"] * ROWS}, "a column has values of another type: "),
        ({"offset": [0.5] * ROWS}, "a column has values of another type: "),
        ({"offset": [float("nan")] * ROWS}, "a column has values of another type: "),
        ({"offset": pa.array([1 << 63] * ROWS, pa.uint64())}, "a column has values of another type: "),
        ({"length": [1 << 62] * ROWS}, "a request is longer than 1 TiB"),
        ({"length": [None] * ROWS}, "a request lacks a value"),
    ],
)
def test_wrong_types_and_values_of_traces_are_errors(columns, message, tmp_path):
    pq.write_table(volumes(**columns), tmp_path / "trace.parquet")
    with pytest.raises(fg.TraceError, match=f"^{tmp_path}/trace.parquet: {message}"):
        fleet(tmp_path / "trace.parquet")


def test_damaged_files_of_a_fleet_are_replaced_or_named(tmp_path):
    trace, store = tmp_path / "trace.parquet", tmp_path / "store"
    pq.write_table(volumes(), trace)
    expected = fleet(trace, store=store)
    (index,) = (store / "volumes").glob("*.index.parquet")
    content = index.read_bytes()
    # The index of a killed fleet may be missing next to the sorted copy.
    for changed in (claiming(content, 2, 10**12), content[:-1], b"", None):
        index.unlink() if changed is None else index.write_bytes(changed)
        assert fleet(trace, store=store).equals(expected)
        assert pq.read_table(index).num_rows == 2
    copy = index.with_name(index.name.replace(".index", ""))
    copy.write_bytes(b"PAR1PAR1")
    for run in store.glob("*.parquet"):
        run.unlink()
    errors = fleet(trace, store=store)["error"].to_pylist()
    assert all(f"cannot extract volume {3 + number} from {copy}" in error for number, error in enumerate(errors))


@pytest.mark.parametrize("claimed", [0, 2, 10**9, 1 << 61])
def test_a_stored_run_that_lies_is_repeated(claimed, tmp_path, bounded):
    options = {"device": "tiny", "workload": "rw=randwrite number_ios=100", "store": tmp_path, "n_jobs": 1}
    expected = fg.sweep([{}], **options)
    (path,) = tmp_path.glob("*.parquet")
    path.write_bytes(claiming(path.read_bytes(), 1, claimed))
    assert Store(tmp_path).get(path.stem) is None
    found = fg.sweep([{}], **options)
    names = [name for name in expected.column_names if not name.startswith("run.")]
    assert found.select(names).equals(expected.select(names))
