"""Workloads."""

import json
import pickle
import time

import pytest

import floatgate as fg
from floatgate._words import in_python


def test_jobs_have_options():
    job = fg.Synthetic("rw=randwrite bs=4k", iodepth=32, norandommap=True)
    assert str(job) == "rw=randwrite bs=4k iodepth=32 norandommap=1"
    assert str(fg.Synthetic(rw="read", number_ios="1k")) == "rw=read number_ios=1k"
    assert job == fg.Synthetic(str(job)) != "rw=randwrite"
    with pytest.raises(fg.WorkloadError, match="rw="):
        fg.Synthetic("bs=4k")


def test_traces_have_the_options_of_the_readers(trace, tmp_path):
    assert str(fg.Trace(trace)) == str(trace)
    words = "replay=depth=4 fit=wrap limit=9"
    assert str(fg.Trace(trace, fit="wrap", replay="depth=4", limit=9)) == f"trace={trace} {words}"
    spaced = tmp_path / "a b=c.csv"
    spaced.write_text(trace.read_text())
    assert str(fg.Trace(spaced)) == f'trace="{spaced}"'
    assert fg.run("tiny", fg.Trace(spaced)).summary.requests.all.count == 500
    with pytest.raises(fg.TraceError, match="does not exist"):
        fg.Trace(tmp_path / "missing.csv")
    with pytest.raises(fg.TraceError, match="double quote"):
        fg.Trace(trace, name='a"b')


def test_every_option_reaches_the_reader(trace):
    options = {
        "format": "msr", "time_unit": "ns", "time_scale": 2.0, "max_gap": "1s", "replay": "timed", "fit": "compact",
        "devices": "merge", "limit": 100, "sort_window": 5, "skip_bad_lines": 3, "offset": "1MiB", "size": "50%",
        "start": "1ms", "name": "db",
    }  # fmt: skip
    with pytest.warns(fg.FloatgateWarning, match="arrivals outran completions"):
        result = fg.run("tiny", fg.Trace(trace, **options))
    assert result.summary.requests.all.count == 100
    with pytest.raises(fg.TraceError, match="action"):
        fg.Trace(trace, action="X")


def test_options_are_checked_when_the_workload_is_made(trace, tmp_path):
    with pytest.raises(fg.WorkloadError, match="iodeph.*iodepth"):
        fg.Synthetic("rw=randwrite iodeph=4")
    with pytest.raises(fg.WorkloadError, match="rw=randwrte"):
        fg.Synthetic(rw="randwrte")
    with pytest.raises(fg.WorkloadError, match="number_ios"):
        fg.Synthetic("rw=read", number_ios="many")
    # A region that depends on the device is checked by the run.
    large = fg.Synthetic("rw=read size=1g number_ios=10")
    with pytest.raises(fg.WorkloadError, match="size"):
        fg.run("tiny", large)
    job = tmp_path / "a.fio"
    job.write_text("[a]\nrw=read\nbss=4k\n")
    with pytest.raises(fg.WorkloadError, match="a.fio.*bss"):
        fg.JobFile(job)
    with pytest.raises(fg.TraceError, match="time_unit=weeks"):
        fg.Trace(trace, time_unit="weeks")
    with pytest.raises(fg.TraceError, match="limit=0"):
        fg.Trace(trace, limit=0)


def test_messages_have_the_words_of_python(tmp_path):
    with pytest.raises(fg.OptionError) as caught:
        fg.run("tiny", "rw=read number_ios=10", precondition="fill", prewrite="even")
    assert "--" not in str(caught.value)
    assert 'precondition="none"' in str(caught.value)
    with pytest.raises(fg.OptionError, match="^endurance_scale"):
        fg.lifetime("tiny", "rw=randwrite number_ios=10", until="erases=5", endurance_scale=-1.0)


def test_a_trace_is_analyzed_like_by_the_command(trace, command):
    found = fg.Trace(trace, fit="compact", limit=400).info()
    assert found.requests == 400
    assert found.operations[0].size_kib.mean == 4
    assert json.loads(found.to_json()) == json.loads(command("trace", "info", trace, "--limit=400", "--json"))
    assert str(found) == command("trace", "info", trace, "--limit=400").rstrip("\n")
    with pytest.raises(AttributeError, match="no `request` .*nearest: requests"):
        found.request  # noqa: B018
    with pytest.raises(fg.TraceError, match="line 1"):
        fg.Trace(trace, format="tencent").info()


def test_a_workload_is_fitted_to_a_trace(trace, command, tmp_path):
    fit = fg.Trace(trace).synth(tmp_path / "model.json", seed=3)
    command("trace", "synth", trace, "--seed=3", "-o", tmp_path / "other.json")
    assert (tmp_path / "model.json").read_text() == (tmp_path / "other.json").read_text()
    assert fit.model == json.loads((tmp_path / "model.json").read_text())
    assert {moment.name for moment in fit.moments if moment.is_poor} <= {moment.name for moment in fit.moments}
    assert "deviation" in str(fit)
    assert fg.run("tiny", fit.workload).summary.requests.all.count == 500
    assert fg.Trace(trace).synth(requests=50).model["requests"] == 50
    with pytest.raises(fg.OptionError, match="model.json"):
        fg.Trace(trace).synth().workload  # noqa: B018
    with pytest.raises(fg.TraceError, match=r"\.json .*\.fio"):
        fg.Trace(trace).synth(tmp_path / "model.txt")
    with pytest.raises(fg.OptionError, match="requests=0"):
        fg.Trace(trace).synth(requests=0)


def test_a_trace_is_converted(trace, command, tmp_path):
    with pytest.warns(fg.FloatgateWarning, match="0 is host_0"):
        converted = fg.Trace(trace, replay="asap", limit=100).convert(tmp_path / "a.csv.zst", "alibaba")
    assert converted.info().requests == 100
    assert converted.path == tmp_path / "a.csv.zst"
    command("trace", "convert", trace, tmp_path / "b.csv.zst", "--to=alibaba", "--limit=100")
    assert (tmp_path / "a.csv.zst").read_bytes() == (tmp_path / "b.csv.zst").read_bytes()
    with pytest.raises(fg.OptionError, match="alibba"):
        fg.Trace(trace).convert(tmp_path / "c.csv", "alibba")
    with pytest.raises(fg.OptionError, match="would overwrite"):
        fg.Trace(trace).convert(trace, "msr")


def test_workloads_have_their_own_streams(trace):
    result = fg.run("tiny", [fg.Trace(trace, name="db"), "rw=read number_ios=50 name=scan"])
    assert [stream.name for stream in result.summary.streams] == ["db", "scan"]
    assert [stream.requests.all.count for stream in result.summary.streams] == [500, 50]


def test_workloads_are_pickled(trace):
    for workload in (fg.Synthetic("rw=read"), fg.Trace(trace, limit=3)):
        again = pickle.loads(pickle.dumps(workload))
        assert not isinstance(again, fg.Trace) or again.info().requests == 3
        assert again == workload
        assert type(again) is type(workload)


def test_invalid_workloads_are_errors():
    with pytest.raises(TypeError, match="workload"):
        fg.run("tiny", [3])
    with pytest.raises(fg.WorkloadError, match="no workload"):
        fg.run("tiny", [])
    with pytest.raises(fg.WorkloadError, match="does not exist"):
        fg.JobFile("/missing.fio")


def test_bad_lines_are_trace_errors(tmp_path, command):
    place = tmp_path / "bad.csv"
    place.write_text("128166372003061629,host,0,Read,0,4096,0\n" * 5 + "128166372003061629,host,0,Read,zero,4096,0\n")
    with pytest.raises(fg.TraceError) as caught:
        fg.run("tiny", fg.Trace(place, format="msr"))
    said = command("run", "tiny", f"trace={place} format=msr", status=2)
    assert in_python(said).endswith(f"error: {caught.value}\n")
    assert "`skip_bad_lines=N` leaves up to N such lines out" in str(caught.value)


def test_tables_in_memory_are_traces():
    pa = pytest.importorskip("pyarrow")
    columns = {
        "arrival": [0.0, 0.001, 0.0005], "operation": ["write", "read", "W"],
        "offset": [0, 0, 4096], "size": [4096] * 3,
    }  # fmt: skip
    table = pa.table(columns)
    for workload in [table, fg.Trace.from_table(table, name="db"), [table, "rw=read number_ios=1"]]:
        summary = fg.run("tiny", workload, precondition="none").summary
        assert summary.requests.write.count == 2
    rows = [(1000, "write", 0, 4096), (501_000, "W", 4096, 4096), (1_001_000, "read", 0, 4096)]
    result = fg.run("tiny", rows, precondition="none", requests=True)
    assert result.summary.requests.write.count == 2
    assert result.requests()["arrival_ps"].to_pylist() == [0, 500_000_000, 1_000_000_000]
    typed = pa.table({
        "time": pa.array([5, 7], pa.timestamp("us")), "op": pa.array(["R", "F"]).dictionary_encode(),
        "lba": pa.array([8, 0], pa.uint32()), "sectors": pa.array([16, 0], pa.int16()),
    })  # fmt: skip
    trace = fg.Trace.from_table(typed, limit=1, replay="depth=2", fit="wrap")
    assert len(trace) == 2
    assert fg.run("tiny", trace).summary.requests.all.count == 1


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_frames_are_traces(package):
    frame = pytest.importorskip(package).DataFrame(
        {"arrival": [0, 1000], "operation": ["write", "read"], "offset": [0, 4096], "size": [4096, 4096]}
    )
    assert fg.run("tiny", frame, precondition="none").summary.requests.all.count == 2


def test_tables_are_read_at_a_million_requests_per_second():
    pa = pytest.importorskip("pyarrow")
    count = 200_000
    columns = {"operation": ["read"] * count, "lba": range(count), "sectors": [8] * count}
    table, rows = pa.table(columns), [(0, "read", 0, 4096)] * count
    for requests in table, rows:
        start = time.process_time()
        assert len(fg.Trace.from_table(requests)) == count
        assert time.process_time() - start < count / 1e6


def test_tables_state_what_is_wrong():
    pa = pytest.importorskip("pyarrow")

    def error(columns):
        with pytest.raises(fg.TraceError) as caught:
            fg.Trace.from_table(pa.table(columns))
        return str(caught.value)

    assert "no column `operation`; the table has lba" in error({"lba": [1]})
    good = {"op": ["R", "R"], "lba": [1, 2], "sectors": [1, 1]}
    assert "no column `offset` or `lba`" in error({"op": ["R"], "sectors": [1]})
    assert "row 1: expected an operation" in error({**good, "op": ["R", "X"]})
    assert "column `lba`: expected numbers from 0" in error({**good, "lba": [1, -2]})
    assert "expected a value in every row, but 1 are missing" in error({**good, "lba": [1, None]})
    assert "row 0: expected a length of at least one byte" in error({**good, "sectors": [0, 1]})
    with pytest.raises(fg.TraceError, match="row 0 of the table is beyond the end"):
        fg.run("tiny", pa.table({**good, "lba": [1 << 40, 1]}))
    with pytest.raises(TypeError, match="stays in its process"):
        pickle.dumps(fg.Trace.from_table([(0, "read", 0, 512)]))


def test_object_traces_have_hits(tmp_path):
    path = tmp_path / "kv.csv"
    path.write_text("Timestamp,Operation,Object_Size_Bytes,Tier,Key\n1.0,Write,4096,Tier-2,a\n1.5,Read,4096,Tier-2,a\n")
    (objects,) = fg.run("tiny", f"objects={path}", precondition="none").summary.objects
    assert (objects.stream, objects.hits, objects.hit_ratio, objects.bytes) == ("kv", 1, 1.0, 4096)
    with pytest.raises(fg.WorkloadError, match="must be one of extent, log, sets"):
        fg.run("tiny", f"objects={path} placement=heap")
