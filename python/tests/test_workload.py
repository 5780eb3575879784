"""Workloads."""

import pickle

import pytest

import floatgate as fg


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
    result = fg.run("tiny", fg.Trace(trace, **options))
    assert result.summary.requests.all.count == 100
    with pytest.raises(fg.TraceError, match="action"):
        fg.run("tiny", fg.Trace(trace, action="X"))


def test_workloads_have_their_own_streams(trace):
    result = fg.run("tiny", [fg.Trace(trace, name="db"), "rw=read number_ios=50 name=scan"])
    assert [stream.name for stream in result.summary.streams] == ["db", "scan"]
    assert [stream.requests.all.count for stream in result.summary.streams] == [500, 50]


def test_workloads_are_pickled(trace):
    for workload in (fg.Synthetic("rw=read"), fg.Trace(trace, limit=3)):
        again = pickle.loads(pickle.dumps(workload))
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
    assert command("run", "tiny", f"trace={place} format=msr", status=2).endswith(f"error: {caught.value}\n")
