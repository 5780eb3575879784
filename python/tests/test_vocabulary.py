"""One vocabulary: names of metrics, seeds, ranges, types, and tables that show what varies."""

import json
import math
import pickle
import re
import subprocess
import sys

import pyarrow as pa
import pytest

import floatgate as fg
from floatgate import _metrics
from floatgate.seeds import seeds_of
from floatgate.summary import Summary

JOB = "rw=randwrite bs=4k iodepth=4 number_ios=300"


def test_a_metric_has_one_name_everywhere(tmp_path):
    path = "requests.write.latency_us.p99"
    runs = {
        victim: fg.run(fg.Device("tiny", {"gc.victim": victim}), JOB, seeds=2, precondition="steady")
        for victim in ("greedy", "fifo")
    }
    comparison = fg.compare(runs)
    rows = {row["metric"]: row for row in comparison.to_dict()["metrics"]}
    assert (rows[path]["label"], rows[path]["unit"]) == ("write latency p99", "us")
    assert rows["write_amplification"]["unit"] == ""
    assert len(rows) == len(comparison.to_dict()["metrics"])  # no name occurs twice
    for name in (path, "write.latency_us.p99"):
        assert comparison.plot.metric(name).get_ylabel() == "write latency p99, us"
    table = fg.sweep({"gc.victim": ["greedy", "fifo"]}, device="tiny", workload=JOB, n_jobs=1)
    assert path in table.column_names
    assert table["write.latency_us.p99"] == table[path]
    with pytest.raises(fg.ResultError, match=r"unknown metric.*nearest: write_amplification"):
        comparison.plot.metric("write amplification")
    with pytest.raises(
        fg.OptionError, match=r"no column `write.latency_us.p98`.*nearest: requests.write.latency_us.p9"
    ):
        table["write.latency_us.p98"]


def test_values_of_comparisons_are_those_of_summaries(result):
    other = fg.run("tiny", "rw=randrw bs=4k iodepth=8 number_ios=300", precondition="steady")
    for row in fg.compare([result, other]).to_dict()["metrics"]:
        if row["metric"].endswith(("demerit_us", "demerit_share")):
            continue
        value = result.summary
        for key in row["metric"].split("."):
            value = value[key]
        assert row["values"][0]["mean"] == pytest.approx(value), row["metric"]


def test_every_metric_has_a_title_in_words():
    titles = [_metrics.title(name) for name in _metrics.declared() if "*" not in name]
    assert len(set(titles)) == len(titles)
    assert not [title for title in titles if "_" in title or "." in title.replace("p99.9", "")]
    assert _metrics.title("gc.victim") == "gc.victim"  # a parameter of the device


def renamed(root):
    """Yield the rows of the table of renamed names: where, old and new."""
    section = (root / "CHANGELOG.md").read_text().split("### Renamed\n")[1].split("\n### ")[0]
    for row in re.findall(r"^\| (?!where|-)(.*) \|$", section, re.MULTILINE):
        where, old, new = row.split(" | ")
        yield where.strip("`"), re.match("`(.*?)`", old)[1], new.strip("`")


def said_about(where, old, result):
    """Return the error about an old name."""
    command, *option = where.split()
    key, _, value = old.partition(" = ")
    if command in ("run", "vm"):
        arguments = [command, "tiny", *(["rw=read"] if command == "run" else []), *option, old]
        called = [sys.executable, "-m", "floatgate", *arguments]
        return subprocess.run(called, capture_output=True, text=True, check=False).stderr
    use = {
        "device file": lambda: fg.Device("tiny", {key: json.loads(value or "1")}),
        "metric": lambda: fg.compare({"a": result, "b": result}).plot.metric(old),
    }[where]
    with pytest.raises(fg.FloatgateError) as caught:
        use()
    return str(caught.value)


def test_old_names_are_errors_with_the_new_ones(root):
    result = fg.run(fg.Device("tiny", {"buffer.capacity": "1MiB"}), JOB, precondition="steady")
    rows = list(renamed(root))
    assert {where.split()[0] for where, *_ in rows} == {"device", "run", "vm", "metric"}
    for where, old, new in rows:
        said = said_about(where, old, result)
        assert re.search(rf"(now `?|exists: '){re.escape(new.split('=')[0])}", said), said
    # Attributes and keys of a summary have the last part of a metric.
    summary = result.summary
    for part, old, new in [
        (summary, "cleaning", "gc"),
        (summary.gc, "stock_blocks", "free_blocks"),
        (summary.buffer, "written_out", "written_back"),
    ]:
        with pytest.raises(AttributeError, match=rf"which is now {new}\b"):
            getattr(part, old)
        with pytest.raises(KeyError, match=rf"which is now {new}\b"):
            part[old]


def test_seeds_are_written_in_the_same_ways_everywhere(tmp_path):
    assert seeds_of(3) == seeds_of("3") == seeds_of("1..3") == seeds_of([1, 2, 3]) == seeds_of(range(1, 4)) == [1, 2, 3]
    assert seeds_of("5..6,9") == [5, 6, 9]
    for wrong in (0, "x", [], "3..1", [-1], True, None, "1,", [1 << 64]):
        with pytest.raises(fg.OptionError, match="seeds="):
            seeds_of(wrong)
    runs = fg.run("tiny", JOB, seeds="5..6")
    assert [run.summary.seed for run in runs] == [5, 6]
    assert runs[0].summary.to_json() != runs[1].summary.to_json()
    table = fg.sweep({"gc.victim": ["fifo"]}, device="tiny", workload=JOB, seeds="5..6", n_jobs=1)
    assert table["seed"].to_pylist() == [5, 6]
    worn = fg.Device("tiny", {"faults": {}, "nand.endurance": 20})
    life = fg.lifetime(worn, JOB, seeds=[4, 7], until="drive-writes=0.01")
    assert [run.seed for run in life.runs] == [4, 7]
    search = fg.optimize(
        {"gc.victim": ["greedy", "fifo"]}, objectives=["write.latency_us.p99"], device="tiny", workload=JOB, seeds=2,
        trials=2, batch=2, n_jobs=1,
    )  # fmt: skip
    assert "requests.write.latency_us.p99" in search.table().column_names


def test_runs_with_several_seeds_are_those_of_each_seed(tmp_path):
    alone = [fg.run("tiny", JOB, seed=seed).summary.to_dict() for seed in (1, 2, 3)]
    for n_jobs in (1, 3):
        together = fg.run("tiny", JOB, seeds=3, n_jobs=n_jobs, out=tmp_path / str(n_jobs), precondition="fill")
        for one, run in zip(alone, together, strict=True):
            same = run.summary.to_dict()
            for summary in (one, same):
                summary.pop("run", None)
                summary["arguments"] = []
            assert same == one
    loaded = fg.load(tmp_path / "3", seeds=True)
    assert [run.summary.seed for run in loaded] == [1, 2, 3]
    with pytest.raises(fg.ResultError, match=r"results of 3 seeds; load\(\.\.\., seeds=True\)"):
        fg.load(tmp_path / "3")


@pytest.mark.parametrize(
    ("key", "value", "count"),
    [
        ("gc.victim", "greedy", 1),
        ("gc.victim", "random", 4),
        ("mapping.scheme", "dftl", 1),
        ("mapping.scheme", "fast", 1),
    ],
)
def test_seeds_prepare_a_state_once_if_it_does_not_depend_on_them(key, value, count):
    device, job, parts = (
        fg.Device("tiny", {key: value, "capacity.spare": 0.3}),
        "rw=randwrite bs=4k iodepth=8 number_ios=6k",
        [],
    )
    alone = [fg.run(device, job, seed=seed) for seed in (1, 2, 3, 4)]
    for n_jobs in (2, 1):
        parts.clear()
        runs = fg.run(device, job, seeds=4, n_jobs=n_jobs, progress=lambda part, _: parts.append(part))
        for run, other in zip(runs, alone, strict=True):
            assert run.summary.write_amplification > 1
            assert json.loads(run.summary.to_json()) | {"run": 0} == json.loads(other.summary.to_json()) | {"run": 0}
            assert run.series().equals(other.series())
    changes = [part for part, before in zip(parts, [None, *parts], strict=False) if part != before]
    assert changes.count("preconditioning") == count


def test_a_failure_of_one_seed_ends_the_others():
    with pytest.raises(fg.WorkloadError):
        fg.run("tiny", "rw=nonsense", seeds=4, n_jobs=2)
    for options in ({"seed": 1, "seeds": 2}, {"n_jobs": 2}, {"seeds": 2, "n_jobs": 0}, {"seeds": [1, 1]}):
        with pytest.raises(fg.OptionError):
            fg.run("tiny", JOB, **options)
    with pytest.raises(fg.OptionError, match="prepared with one seed"):
        fg.run(fg.Simulator("tiny"), JOB, seeds=2)


def test_compare_takes_paths_directories_results_and_lists(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = fg.run("tiny", JOB, seeds=2, out="many")
    fg.run(fg.Device("tiny", {"nand.program": "300us"}), JOB, out=tmp_path / "one")
    for results in (["many", "one"], [tmp_path / "many", fg.load("one")], [first, "one/summary.json"]):
        comparison = fg.compare(results)
        assert list(map(len, comparison.groups.values())) == [2, 1]
        assert comparison.labels[0] == "many"
        assert str(tmp_path) not in str(comparison)
    labeled = fg.compare({"a": "many", "b": ["one"]})
    assert labeled.labels == ["a", "b"]
    assert fg.compare("many").labels == ["many"]


def test_a_range_is_not_a_list_of_values():
    with pytest.raises(fg.OptionError, match=r"a list of values for each path, not a range.*fg\.Sobol"):
        fg.sweep({"capacity.spare": fg.Range(0.1, 0.2)}, device="tiny", workload=JOB)
    table = fg.sweep({"capacity.spare": (0.2, 0.3)}, device="tiny", workload=JOB, n_jobs=1)
    assert table["capacity.spare"].to_pylist() == [0.2, 0.3]


def test_numbers_that_do_not_exist_are_nan(result):
    assert result.summary.requests.read.latency_us.p99 > 0
    nothing = result.summary.requests.trim.latency_us
    assert math.isnan(nothing.p99)
    assert nothing["p99"] is None  # JSON has no NaN
    assert json.loads(result.summary.to_json())["requests"]["trim"]["latency_us"]["p99"] is None
    reads = fg.run("tiny", "rw=read number_ios=50").summary
    assert math.isnan(reads.write_amplification)
    assert math.isnan(pickle.loads(pickle.dumps(reads)).write_amplification)
    assert isinstance(reads, Summary)


def test_tables_of_sweeps_show_what_varies():
    table = fg.sweep(
        {"gc.victim": ["greedy", "fifo"], "geometry.channels": [2]}, device="tiny", workload=JOB, seeds=2, n_jobs=1
    )
    shown = ["gc.victim", "seed", "write_amplification", "requests.write.iops", "requests.write.latency_us.mean",
             "requests.write.latency_us.p99"]  # fmt: skip
    assert table.narrow().column_names == table.shown == shown
    assert isinstance(table.wide(), pa.Table)
    assert len(table.wide().column_names) > 200
    head, *rows = str(table).splitlines()
    assert head.split() == [name.removeprefix("requests.") for name in shown]
    assert len(rows) == len(table) == table.num_rows == 4
    assert max(map(len, [head, *rows])) <= 140
    assert "wide()" in table._repr_html_()
    assert table.numbers("write.iops").shape == (4,)
    with pytest.raises(fg.OptionError, match="not numbers"):
        table.numbers("gc.victim")
    again = pickle.loads(pickle.dumps(table))
    assert again.equals(table)
    assert again.equals(table.wide())
    assert table.select(["write.iops"]).num_columns == 1
    assert table.slice(0, 1).num_rows == 1  # a method of pyarrow


def test_failed_runs_are_shown():
    table = fg.sweep({"geometry.channels": [2, 0]}, device="tiny", workload=JOB, n_jobs=1)
    assert "error" in table.shown
    assert "channels" in str(table)
