"""Fleets: one device per volume."""

import bz2
import gzip
import lzma
import os
import random
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import floatgate as fg
from conftest import python
from floatgate.__main__ import main

DEVICE = fg.Device("tiny")
DAY_US = 86_400 * 10**6


def requests(count, seed=1):
    """Return requests of three volumes over two days, most of volume 3: volume, time in us, write, offset, bytes."""
    rng = random.Random(seed)
    return [
        (rng.choice([3, 3, 3, 7, 12]), 10**15 + i * (2 * DAY_US) // (count - 1), rng.random() < 0.8,
         4096 * rng.randrange(2000), 4096 * rng.randrange(1, 4))
        for i in range(count)
    ]  # fmt: skip


def alibaba(rows):
    return "".join(f"{volume},{'W' if write else 'R'},{offset},{length},{time}\n"
                   for volume, time, write, offset, length in rows)  # fmt: skip


@pytest.fixture
def rows():
    return requests(1500)


@pytest.fixture
def text(rows, tmp_path):
    place = tmp_path / "volumes.csv"
    place.write_text(alibaba(rows))
    return place


def fleet(traces, **options):
    return fg.fleet(traces, DEVICE, **{"layout": "alibaba", "n_jobs": 1, "precondition": "steady", **options})


@pytest.fixture
def runs(monkeypatch):
    """Count the runs."""
    calls = []
    run = fg.fleets.run
    monkeypatch.setattr("floatgate.fleets.run", lambda *a, **o: calls.append(a) or run(*a, **o))
    return calls


def test_a_row_equals_a_run_of_the_volume_alone(text, rows, tmp_path):
    table = fleet(text).to_pylist()
    assert [row["volume"] for row in table] == [3, 7, 12]
    for row in table:
        own = [request for request in rows if request[0] == row["volume"]]
        alone = tmp_path / "alone.csv"
        alone.write_text(alibaba(own))
        summary = fg.run(DEVICE, fg.Trace(alone, fit="compact"), precondition="steady").summary
        assert row["requests"] == len(own) == summary.requests.all.count
        assert row["writes"] == sum(write for _, _, write, _, _ in own) == summary.requests.write.count
        assert row["written_bytes"] == sum(n for _, _, write, _, n in own if write) == summary.requests.write.bytes
        assert row["read_bytes"] == sum(n for _, _, write, _, n in own if not write) == summary.requests.read.bytes
        assert row["write_amplification"] == summary.write_amplification
        assert row["blocks_erased"] == summary.flash.blocks_erased > 0
        assert row["wear_max"] == summary.wear.blocks.max
        assert row["write_p99_us"] == summary.requests.write.latency_us.p99
        # Endurance x blocks / erases per day: 100,000 x 2 x 2 x 1 x 2 x 32.
        days = (own[-1][1] - own[0][1]) / DAY_US
        assert row["days"] == pytest.approx(days)
        assert row["erases_per_day"] == pytest.approx(row["blocks_erased"] / days)
        assert row["lifetime_days"] == pytest.approx(100_000 * 256 * days / row["blocks_erased"])
        assert row["drive_writes_per_day"] == pytest.approx(row["written_bytes"] / days / DEVICE.logical_bytes)


def test_compression_memory_and_order_do_not_matter(text, rows, tmp_path):
    expected = fleet(text)
    assert fleet(text, memory="64MiB", n_jobs=2).equals(expected)
    for suffix, pack in (("gz", gzip.compress), ("bz2", bz2.compress), ("xz", lzma.compress),
                         ("zst", lambda data: pa.compress(data, "zstd", asbytes=True))):  # fmt: skip
        packed = tmp_path / f"packed.csv.{suffix}"
        packed.write_bytes(pack(text.read_bytes()))
        assert fleet(packed).equals(expected), suffix
    parts = tmp_path / "parts"
    parts.mkdir()
    (parts / "a.csv").write_text(
        "device_id,opcode,offset,length,timestamp\r\n" + alibaba(rows[:700]).replace("\n", "\r\n")
    )
    columns = list(zip(*rows[700:], strict=True))
    pq.write_table(
        pa.table({"device_id": columns[0], "timestamp": columns[1], "opcode": ["W" if w else "R" for w in columns[2]],
                  "offset": columns[3], "length": columns[4]}),
        parts / "b.parquet", row_group_size=300,
    )  # fmt: skip
    assert fleet(parts).equals(expected)
    shuffled = list(rows)
    for i in range(0, len(rows) - 1, 2):
        shuffled[i : i + 2] = reversed(shuffled[i : i + 2])
    text.write_text(alibaba(shuffled))
    assert fleet(text).equals(expected)


def test_tencent(tmp_path):
    place = tmp_path / "tencent.csv"
    # Times in seconds, addresses in sectors. The times of the second volume decrease.
    place.write_text("".join(f"{1000 + i * 60},{8 * i},8,1,5\n{9000 - i * 60},{8 * i},16,0,6\n" for i in range(100)))
    rows = fleet(place, layout="tencent").to_pylist()
    assert [(row["volume"], row["requests"], row["writes"]) for row in rows] == [(5, 100, 100), (6, 100, 0)]
    assert [(row["written_bytes"], row["read_bytes"]) for row in rows] == [(409_600, 0), (0, 819_200)]
    assert rows[0]["days"] == pytest.approx(99 * 60 / 86_400)
    assert rows[1]["write_amplification"] is None
    assert rows[1]["lifetime_days"] is None
    one = fleet(place, layout="tencent", volumes=[6]).to_pylist()
    assert one == rows[1:]


def test_an_interrupted_fleet_continues_and_a_finished_one_is_kept(text, tmp_path, runs, monkeypatch):
    store = tmp_path / "store"
    expected = fleet(text)
    runs.clear()

    def stop(done, total, eta):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fleet(text, store=store, progress=stop)
    assert fleet(text, store=store).equals(expected)
    assert len(runs) == 3
    # Split requests are deleted. The index shows that nothing has to be split again.
    assert [file.name.split(".", 1)[1] for file in (store / "volumes").iterdir()] == ["index.parquet"]
    with monkeypatch.context() as patch:
        patch.setattr("floatgate._volumes.Volumes._sort", lambda *_: pytest.fail("sorted again"))
        assert fleet(text, store=store).equals(expected)
    assert len(runs) == 3
    # Only volumes that changed are run again.
    changed = text.read_text().replace("7,W,", "7,R,", 1)
    text.write_text(changed)
    assert not fleet(text, store=store).equals(expected)
    assert len(runs) == 4
    fleet(text, store=store, precondition="fill")
    assert len(runs) == 7


def test_volumes_share_one_prepared_state(text, tmp_path, monkeypatch):
    made = []

    def counted(*arguments, **options):
        made.append(options)
        return fg.Simulator(*arguments, **options)

    counted.load = fg.Simulator.load
    monkeypatch.setattr("floatgate.states.Simulator", counted)
    shared = fleet(text, store=tmp_path / "store")
    assert len(made) == 1
    # A single volume prepares its own state.
    alone = [fleet(text, volumes=[volume]).to_pylist()[0] for volume in (3, 7, 12)]
    assert len(made) == 1
    assert shared.to_pylist() == alone
    assert sorted(file.name for file in (tmp_path / "store").iterdir() if file.suffix != ".parquet") == ["volumes"]


def test_files_may_be_volumes(text, rows, tmp_path):
    several = []
    for volume in (7, 12):
        several.append(tmp_path / f"{volume}.csv")
        several[-1].write_text(alibaba([row for row in rows if row[0] == volume]))
    found = fleet(several, layout=None).to_pylist()
    expected = fleet(text, volumes=[7, 12]).to_pylist()
    assert [row.pop("volume") for row in found] == list(map(str, several))
    same = [
        name for name in found[0] if name not in ("days", "erases_per_day", "drive_writes_per_day", "lifetime_days")
    ]
    assert [[row[name] for name in same] for row in found] == [[row[name] for name in same] for row in expected]
    # The time of these rows ends with the last completion.
    assert found[0]["days"] == pytest.approx(expected[0]["days"], rel=1e-6)
    assert fleet(several, layout=None, replay="depth=4")["lifetime_days"].null_count == 2


def test_a_volume_that_fails_is_a_row(text):
    rows = fleet(text, fit="refuse", precondition="aged=0.99").to_pylist()
    assert {row["error_kind"] for row in rows} == {"PreconditionError"}
    assert all(row["requests"] and row["write_amplification"] is None for row in rows)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("3,W,0,4096\n", "Expected 5 columns"),
        ("3,X,0,4096,1\n", "R or W, not `X`"),
        ("3,W,zero,4096,1\n", "conversion error"),
        ("3,W,0,0,1\n", "has length 0"),
        ("3,W,,8,1\n", "lacks a value"),
    ],
)
def test_invalid_lines_are_errors(text, line, message):
    text.write_text(text.read_text() + line)
    with pytest.raises(fg.TraceError, match=message) as raised:
        fleet(text)
    assert str(text) in str(raised.value)


def test_mistakes(text, tmp_path):
    with pytest.raises(fg.OptionError, match="alibaba"):
        fleet(text, layout="msr")
    with pytest.raises(fg.OptionError, match="layout"):
        fleet(str(text), layout=None)
    with pytest.raises(fg.TraceError, match="no volume 8"):
        fleet(text, volumes=[3, 8])
    with pytest.raises(fg.TraceError, match="does not exist"):
        fleet(tmp_path / "none")
    with pytest.raises(fg.OptionError, match="at least 1MiB"):
        fleet(text, memory=0)
    with pytest.raises(fg.OptionError, match="time_unit= is for files"):
        fleet(text, time_unit="us")
    pq.write_table(pa.table({"device_id": [1]}), tmp_path / "x.parquet")
    with pytest.raises(fg.TraceError, match="no opcode and no offset"):
        fleet(tmp_path / "x.parquet")
    packed = tmp_path / "cut.csv.xz"
    packed.write_bytes(lzma.compress(text.read_bytes())[:-100])
    with pytest.raises(fg.TraceError, match="cannot read .*cut.csv.xz"):
        fleet(packed)
    text.write_text("\n")
    with pytest.raises(fg.TraceError, match="no request"):
        fleet(text)


PEAK = """
import resource, sys
from pathlib import Path
from floatgate import _volumes
path, spool = sys.argv[1:]
trace = _volumes.Volumes((path,), "alibaba", Path(spool), 64 << 20)
_volumes.write_volume(str(trace.sorted()), 3, "alibaba", path + ".one")
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def test_memory_does_not_grow_with_the_trace(tmp_path):
    # Size of the longer trace in MB. FLOATGATE_FLEET_MB changes it.
    longer = int(os.environ.get("FLOATGATE_FLEET_MB", "100"))
    chunk = alibaba(requests(30_000))
    peaks = []
    for megabytes in (longer // 4, longer):
        path = tmp_path / f"{megabytes}.csv"
        with path.open("w") as file:
            for _ in range(megabytes * 10**6 // len(chunk)):
                file.write(chunk)
        done = python(PEAK.replace("sys.argv[1:]", repr([str(path), str(tmp_path / "spool")])))
        assert done.returncode == 0, done.stderr
        peaks.append(int(done.stdout))
    # In KiB. Sorting keeps its limit, and libraries take the rest.
    assert peaks[1] - peaks[0] < 96 * 1024, peaks


def test_without_joblib_volumes_run_in_one_process(trace, monkeypatch):
    monkeypatch.setitem(sys.modules, "joblib", None)
    with pytest.warns(fg.FloatgateWarning, match="joblib is not installed") as caught:
        table = fg.fleet([trace, trace], "tiny", limit=100, n_jobs=None)
    assert len(caught) == 1
    assert table["error"].null_count == 2


def test_a_missing_library_is_named(text, monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(ImportError, match=r"pip install 'floatgate\[fleet\]'"):
        fleet(text)


def test_traces_have_their_own_options(text, rows, tmp_path):
    for volume in (3, 7):
        (tmp_path / f"{volume}.csv").write_text(alibaba([row for row in rows if row[0] == volume]))
    one = fg.Trace(tmp_path / "3.csv", format="alibaba", limit=100)
    table = fleet([one, tmp_path / "7.csv"], layout=None, limit=50)
    assert table["requests"].to_pylist() == [100, 50]
    assert fleet(one, layout=None)["requests"].to_pylist() == [100]
    with pytest.raises(fg.TraceError, match="time_unit"):
        fg.Trace(tmp_path / "3.csv", time_unit="days")
    assert fleet([tmp_path / "3.csv"], layout=None, format="msr")["error_kind"].to_pylist() == ["TraceError"]


def test_the_command(text, tmp_path, monkeypatch, capsys):
    def call(*arguments):
        monkeypatch.setattr("sys.argv", ["floatgate", "fleet", "tiny", str(text), "--layout=alibaba", "--jobs=1",
                                         *arguments])  # fmt: skip
        return main(), *capsys.readouterr()

    out = tmp_path / "fleet.parquet"
    status, output, errors = call("--precondition=steady", f"--out={out}")
    assert (status, errors) == (0, "")
    head, found = output.split("\n\n")
    assert head.startswith("volumes        3\nrequests       1,500: ")
    assert [line.split(" ")[0] for line in head.splitlines()][2:] == [
        "amplification",
        "write",
        "read",
        "erases,",
        "lifetime,",
    ]
    assert len(found.splitlines()) == 4
    assert pq.read_table(out).equals(fleet(text))
    status, output, _ = call("--volumes=7", "--set=gc.victim=fifo", "--columns=volume,write_amplification")
    assert (status, output.split("\n\n")[1].split()[:3]) == (0, ["volume", "write_amplification", "7"])
    assert call("--volumes=x")[0] == 2
    status, output, errors = call("--columns=nothing")
    assert status == 2
    assert "unknown column `nothing`" in errors
