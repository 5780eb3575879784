"""Results."""

import copy
import inspect
import json
import os
import pickle
import shutil
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import floatgate as fg
from conftest import MIXED


def test_summary_has_attributes_and_keys(result):
    summary = result.summary
    write = summary.requests.write
    assert write.latency_us.p99 == summary["requests"]["write"]["latency_us"]["p99"] > 0
    assert "p99" in write.latency_us
    assert dict(summary)["seed"] == summary.seed == 1
    assert list(summary) == list(json.loads(summary.to_json()))
    assert summary.to_dict() == json.loads(summary.to_json())
    assert summary.wear.histogram.from_ == summary["wear"]["histogram"]["from"]
    assert "requests" in dir(summary)
    with pytest.raises(AttributeError, match="no `latency` in this part"):
        summary.latency  # noqa: B018


def test_a_wrong_name_is_an_error_with_a_suggestion(result):
    write = result.summary.requests.write
    with pytest.raises(AttributeError, match=r"no `iop` in this part \(Operations\) \(nearest: iops"):
        write.iop  # noqa: B018
    with pytest.raises(KeyError, match="no key `latncy_us` .nearest: latency_us"):
        write["latncy_us"]
    # Keys that the document leaves out have values.
    assert "array" not in result.summary
    assert result.summary.array is None
    assert result.summary.temperature == []
    assert result.summary.flash.programs_by_cause.journal == 0
    assert write.attribution.mean.throttle_us == 0


def test_completion_has_the_keys_and_methods(result):
    shown = [name for name in dir(result.summary) if not name.startswith("_")]
    assert set(shown) >= {"requests", "write_amplification", "array", "to_json"}
    assert set(shown) - set(result.summary._keys()) == {"get", "items", "keys", "text", "to_dict", "to_json", "values"}
    for module in (fg, fg.plotting, fg.policies, fg.studies):
        assert sorted(set(dir(module)) - set(module.__all__)) == []


def test_a_result_prints_like_the_command(result, command, tmp_path):
    result.save(tmp_path / "result")
    printed = str(result)
    assert printed == str(fg.load(tmp_path / "result"))
    ran = command("run", "tiny", MIXED, "--precondition=steady", "--details")
    # The command also describes the workload, the time of preparation and the cost of the run.
    head, tail = ran.index("precondition"), ran.index("preparation ")
    assert ran[head:tail] in result.summary.text(details=True)
    assert len(printed.splitlines()) <= 20
    assert "amplification" in printed
    assert "<pre" in result.summary._repr_html_()


def test_differences_of_times_do_not_wrap_around(result):
    requests = result.requests().to_pandas()
    assert (requests["start_ps"] - requests["finish_ps"]).max() <= 0
    assert result.series()["end_ps"].type == "int64"
    assert {str(field.type) for field in result.requests().schema} == {
        "int64", "dictionary<values=string, indices=int32, ordered=0>"
    }  # fmt: skip
    # 2^63 ps are 106 days.
    import pyarrow as pa

    from floatgate.result import signed

    long = pa.table({"end_ps": pa.array([1 << 63], pa.uint64())})
    assert signed(long) is long


def test_columns_are_typed_arrays(result):
    from floatgate import columns

    for name, table in (("requests", result.requests()), ("series", result.series())):
        own = getattr(result.columns, name)
        declared = inspect.get_annotations(getattr(columns, name.title()))
        assert set(declared) == set(table.column_names)
        for column, kind in declared.items():
            values = getattr(own, column)
            assert f"np.{values.dtype.name.removesuffix('_')}" in kind, column
            assert len(values) == len(own) == table.num_rows
            assert not values.flags.writeable
    assert result.columns.requests.latency_ps.max() / 1e6 == result.summary.requests.all.latency_us.max
    assert set(result.columns.requests.operation) == {"read", "write"}
    assert result.columns.series.channel_data.shape[1] == result.summary.config.geometry.channels
    with pytest.raises(AttributeError, match="no column `latncy_ps` .nearest: latency_ps"):
        result.columns.requests.latncy_ps  # noqa: B018
    assert "latency_ps" in dir(result.columns.requests)


def test_explain_and_draw_are_those_of_the_command(tmp_path, command):
    fg.run("tiny", MIXED, out=tmp_path / "r", requests=True, timeline=True, warn=False)
    result = fg.load(tmp_path / "r")
    explanation = result.explain("write:p99")
    assert str(explanation) == command("explain", tmp_path / "r", "write:p99").rstrip("\n")
    assert explanation.to_dict() == json.loads(command("explain", tmp_path / "r", "write:p99", "--json"))
    assert explanation.operation == "write"
    assert result.explain(3).request == 3
    with pytest.raises(fg.ResultError, match="99999"):
        result.explain(99_999)
    with pytest.raises(fg.OptionError, match="slowest"):
        result.explain("slowst:1")
    drawn = result.draw("0us..200us", title="A title")
    assert drawn == tmp_path / "r" / "timeline.svg"
    own = drawn.read_text()
    command("draw", tmp_path / "r", "0us..200us", "--title", "A title", "--out", tmp_path / "other.svg")
    assert own == (tmp_path / "other.svg").read_text()
    assert "A title" in own
    with pytest.raises(fg.OptionError, match="end after its start"):
        result.draw("2us..1us")
    fg.run("tiny", "rw=read number_ios=50", out=tmp_path / "s")
    with pytest.raises(fg.ResultError, match="timeline="):
        fg.load(tmp_path / "s").draw()
    with pytest.raises(fg.ResultError, match="out=DIRECTORY"):
        fg.run("tiny", "rw=read number_ios=50").explain("max")


def test_requests_are_consistent_with_the_summary(result):
    requests = result.requests()
    assert requests.num_rows == result.summary.requests.all.count
    frame = requests.to_pandas()
    assert (frame["latency_ps"] == frame["waiting_ps"] + frame["service_ps"]).all()
    named = list(frame.columns[frame.columns.get_loc("host_queue_ps") :])
    assert (frame[named].sum(axis=1) == frame["latency_ps"]).all()
    writes = frame[frame["operation"] == "write"]
    assert len(writes) == result.summary.requests.write.count
    assert writes["latency_ps"].max() / 1e6 == result.summary.requests.write.latency_us.max


def test_tables_come_without_a_copy(result):
    column = result.requests()["latency_ps"].chunk(0)
    array = column.to_numpy(zero_copy_only=True)
    assert array.dtype == np.int64
    assert not array.flags.writeable
    assert array.ctypes.data == column.buffers()[1].address


def test_series_adds_up(result):
    series = result.series()
    assert sum(series["write_count"].to_pylist()) == result.summary.requests.write.count
    assert sum(series["erases"].to_pylist()) == result.summary.flash.blocks_erased


def test_polars_accepts_the_tables(result):
    import polars as pl

    frame = pl.from_arrow(result.requests())
    assert frame.height == result.requests().num_rows
    assert frame.filter(pl.col("operation").cast(pl.String) == "read").height == result.summary.requests.read.count


def test_missing_data_are_errors():
    result = fg.run("tiny", "rw=read number_ios=100", series=False)
    with pytest.raises(fg.ResultError, match="requests=True"):
        result.requests()
    with pytest.raises(fg.ResultError, match="series=True"):
        result.series()
    assert "over-time" not in result.to_html()


def test_results_are_plain_data(result, tmp_path):
    for again in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result)):
        assert again.summary == result.summary
        assert again.requests().equals(result.requests())
        assert again.to_html() == result.to_html()
    assert result.report(tmp_path) == tmp_path / "report.html"
    assert result.report(tmp_path / "other.html").read_text() == result.to_html()
    with pytest.raises(fg.OutputError, match="cannot write"):
        result.report(tmp_path / "missing" / "report.html")


def test_load_refuses_other_files(tmp_path):
    with pytest.raises(fg.ResultError, match="cannot read"):
        fg.load(tmp_path)
    (tmp_path / "summary.json").write_text("{}")
    with pytest.raises(fg.ResultError, match="not a result of Floatgate"):
        fg.load(tmp_path)
    (tmp_path / "summary.json").write_bytes(b"\xff")
    with pytest.raises(fg.ResultError, match="cannot read .*utf-8"):
        fg.load(tmp_path)
    (tmp_path / "summary.json").unlink()
    (tmp_path / "summary.json").symlink_to("/dev/zero")
    with pytest.raises(fg.ResultError, match="longer than the limit of 256 MiB"):
        fg.load(tmp_path)


def test_warnings_of_a_result_are_emitted():
    with pytest.warns(fg.FloatgateWarning, match="no request completed in the measured part"):
        result = fg.run("tiny", "rw=read number_ios=100 ramp_time=10s")
    assert len(result.warnings) == 1


def test_notebook_output(result):
    page = result._repr_html_()
    assert "write amplification" in page
    assert "rw=randrw" in page
    assert repr(result).startswith("<floatgate.Result tiny, rw=randrw")
    attack = fg.run("tiny", "rw=read number_ios=10 name=<script>")
    assert "<script>" not in attack._repr_html_()


def test_labels_contain_the_changes():
    device = fg.Device("tiny", {"gc.victim": "fifo", "geometry.channels": 4})
    assert fg.run(device, "rw=read number_ios=10", warn=False).label == "tiny geometry.channels=4 gc.victim=fifo"


def test_progress_is_reported():
    told = []
    fg.run(
        "tiny",
        "rw=randrw bs=4k iodepth=8 number_ios=60k",
        precondition="steady",
        progress=lambda part, share: told.append((part, share)),
    )
    assert {part for part, _ in told} == {"preconditioning", "running"}
    assert all(share is None or 0 <= share <= 1 for _, share in told)


def test_an_exception_of_progress_ends_the_run():
    def progress(part, share):
        raise LookupError(part)

    with pytest.raises(LookupError, match="running|preconditioning"):
        fg.run("tiny", "rw=randrw bs=4k iodepth=8 number_ios=10m", progress=progress)


def test_damage_and_files_of_other_runs_are_detected(tmp_path):
    for name, seed in (("a", 1), ("b", 2)):
        fg.run("tiny", "rw=randrw number_ios=1k", seed=seed, requests=True).save(tmp_path / name)
    a, b = tmp_path / "a", tmp_path / "b"
    for name in ("requests.parquet", "series.parquet", "summary.json"):
        own = (a / name).read_bytes()
        damaged = bytearray(own)
        damaged[len(own) // 3] ^= 4
        for content in (damaged, (b / name).read_bytes()):
            (a / name).write_bytes(content)
            with pytest.raises(fg.ResultError):
                read(a)
        (a / name).write_bytes(own)
    read(a)
    # Without the digests of files, the digest of the run shows it.
    (a / "digests.json").unlink()
    read(a)
    shutil.copy(b / "requests.parquet", a)
    with pytest.raises(fg.ResultError, match="another run than"):
        read(a)


def read(place):
    result = fg.load(place)
    result.series()
    result.requests()


def test_save_leaves_nothing_of_another_run(tmp_path):
    fg.run("tiny", "rw=read number_ios=100", out=tmp_path, requests=True, timeline=True)
    kept = fg.load(tmp_path)
    kept.save(tmp_path)
    read(tmp_path)
    assert (tmp_path / "timeline.pftrace.gz").is_file()
    fg.run("tiny", "rw=read number_ios=200").save(tmp_path)
    names = sorted(place.name for place in tmp_path.iterdir())
    assert names == ["digests.json", "report.html", "series.parquet", "summary.json"]


def test_a_page_does_not_overwrite_a_result(tmp_path):
    fg.run("tiny", "rw=read number_ios=100", out=tmp_path)
    with pytest.raises(fg.OptionError, match="would overwrite"):
        fg.load(tmp_path).report(tmp_path / "summary.json")
    fg.load(tmp_path).series()


def test_links_and_pipes_are_not_replaced(result, tmp_path):
    (tmp_path / "page.html").write_text("stale")
    (tmp_path / "link.html").symlink_to("page.html")
    result.report(tmp_path / "link.html")
    assert (tmp_path / "link.html").is_symlink()
    assert (tmp_path / "page.html").read_text() == result.to_html()
    os.mkfifo(tmp_path / "pipe")
    with ThreadPoolExecutor(1) as reader:
        heard = reader.submit((tmp_path / "pipe").read_text)
        result.report(tmp_path / "pipe")
        assert heard.result() == result.to_html()
    assert (tmp_path / "pipe").is_fifo()


def test_two_runs_cannot_write_to_one_directory(tmp_path):
    def progress(part, share):
        if part == "running":
            fg.run("tiny", "rw=read number_ios=10", out=tmp_path)

    with pytest.raises(fg.OutputError, match="another run is writing its result there"):
        fg.run("tiny", "rw=randrw bs=4k iodepth=8 number_ios=60k", out=tmp_path, progress=progress)
