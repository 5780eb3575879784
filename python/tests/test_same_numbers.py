"""The results of the package equal those of the command, byte for byte."""

import json

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import floatgate as fg
from conftest import MIXED


def without_cost(text):
    """Remove the cost of the run, which is the last key."""
    assert json.loads(text)["run"] is not None
    return text[: text.rindex('\n  "run": ')]


CASES = {
    "job": (["tiny", MIXED], {}),
    "overrides": (
        [
            "tiny",
            MIXED,
            "--set",
            "gc.victim=fifo",
            "--set",
            "geometry.channels=4",
            "--precondition",
            "steady",
            "--seed",
            "7",
        ],
        {"precondition": "steady", "seed": 7},
    ),
    "policy with options": (
        ["tiny", MIXED, "--set", "gc.victim={ d-choices = { d = 4 } }", "--precondition", "aged=0.05"],
        {"precondition": "aged=0.05"},
    ),
    "no attribution": (["tiny", MIXED, "--no-attribution"], {"attribution": False}),
    "several": (["tiny", MIXED, "rw=read bs=64k name=other number_ios=500"], {}),
    "prewrite": (
        ["tiny", "rw=read number_ios=500", "--precondition", "none", "--prewrite", "even"],
        {"precondition": "none", "prewrite": "even"},
    ),
    "by a workload": (
        ["tiny", MIXED, "--precondition", "rw=write bs=64k size=32m"],
        {"precondition": fg.Synthetic("rw=write bs=64k size=32m")},
    ),
}

OPTIONS = {
    "overrides": {"gc.victim": "fifo", "geometry.channels": 4},
    "policy with options": {"gc.victim": {"d-choices": {"d": 4}}},
}


@pytest.mark.parametrize("case", CASES)
def test_the_summary_equals_that_of_the_command(case, command):
    arguments, options = CASES[case]
    printed = command("run", *arguments, "--json")
    workloads = arguments[1 : 3 if case == "several" else 2]
    result = fg.run(fg.Device("tiny", OPTIONS.get(case)), workloads, **options, warn=False)
    assert without_cost(result.summary.to_json()) == without_cost(printed)


def test_trace_and_job_file(command, trace, tmp_path):
    words = f"trace={trace} format=msr time_scale=0.5 limit=400"
    printed = command("run", "tiny", words, "--json")
    result = fg.run("tiny", fg.Trace(trace, format="msr", time_scale=0.5, limit=400))
    assert without_cost(result.summary.to_json()) == without_cost(printed)
    plain = fg.run("tiny", fg.Trace(trace))
    assert without_cost(plain.summary.to_json()) == without_cost(command("run", "tiny", trace, "--json"))
    job = tmp_path / "job.fio"
    job.write_text("[job]\nrw=randwrite\nbs=4k\nnumber_ios=1000\n")
    result = fg.run("tiny", fg.JobFile(job))
    assert without_cost(result.summary.to_json()) == without_cost(command("run", "tiny", job, "--json"))


def test_device_file(command, tmp_path):
    text = 'base = "tiny"\nname = "mine"\ngeometry.channels = 4\n'
    place = tmp_path / "mine.toml"
    place.write_text(text)
    printed = command("run", place, MIXED, "--json")
    assert without_cost(fg.run(place, MIXED).summary.to_json()) == without_cost(printed)
    assert without_cost(fg.run(fg.Device.from_toml(place), MIXED).summary.to_json()) == without_cost(printed)
    # A text has no file name that a command line could contain. Everything else is equal.
    by_text = json.loads(fg.run(fg.Device.from_toml(text), MIXED).summary.to_json())
    expected = json.loads(printed)
    assert by_text.pop("arguments") == []
    expected.pop("arguments")
    for told in (by_text, expected):
        told.pop("run")
        told["config"].pop("sources")  # which name the file
    assert by_text == expected


def plain_texts(table):
    """Convert dictionary-encoded texts to texts."""
    texts = {i: f.name for i, f in enumerate(table.schema) if pa.types.is_dictionary(f.type)}
    for index, name in texts.items():
        table = table.set_column(index, pa.field(name, pa.string(), nullable=False), pc.cast(table[name], pa.string()))
    return table


@pytest.mark.parametrize("windows", ["auto", "10ms"])
def test_tables_equal_those_of_the_files(windows, command, tmp_path):
    width = [] if windows == "auto" else [f"--series={windows}"]
    command("run", "tiny", MIXED, "--out", tmp_path / "out", "--requests", "parquet", *width)
    result = fg.run("tiny", MIXED, requests=True, series=True if windows == "auto" else windows)
    requests = pq.read_table(tmp_path / "out" / "requests.parquet")
    assert plain_texts(result.requests()).cast(requests.schema).equals(requests)
    assert result.requests().schema.metadata == requests.schema.metadata
    series = pq.read_table(tmp_path / "out" / "series.parquet")
    assert result.series().cast(series.schema).equals(series)
    assert [f.nullable for f in result.series().schema] == [f.nullable for f in series.schema]


def test_out_writes_what_the_command_writes(command, tmp_path):
    command("run", "tiny", MIXED, "--out", tmp_path / "a", "--requests", "parquet", "--timeline")
    result = fg.run("tiny", MIXED, out=tmp_path / "b", requests=True, timeline=True)
    names = sorted(place.name for place in (tmp_path / "a").iterdir())
    assert names == sorted(place.name for place in (tmp_path / "b").iterdir())
    for name in names:
        first, second = [(tmp_path / where / name).read_bytes() for where in "ab"]
        if name == "summary.json":
            assert without_cost(first.decode()) == without_cost(second.decode())
        elif name not in ("report.html", "digests.json"):  # which contain the cost of the run
            assert first == second, name
    assert result.requests().num_rows == 3000
    assert result.directory == tmp_path / "b"


def test_the_report_equals_that_of_the_command(command, tmp_path):
    command("run", "tiny", MIXED, "--out", tmp_path)
    assert fg.load(tmp_path).to_html().encode() == (tmp_path / "report.html").read_bytes()


def test_saved_results_are_read_by_the_command(result, command, tmp_path):
    result.save(tmp_path / "saved")
    before = (tmp_path / "saved" / "report.html").read_bytes()
    command("report", tmp_path / "saved")
    assert (tmp_path / "saved" / "report.html").read_bytes() == before
    assert "p99" in command("compare", tmp_path / "saved", f"other={tmp_path / 'saved'}", "--all")
    again = fg.load(tmp_path / "saved")
    assert again.summary == result.summary
    assert again.requests().equals(result.requests())
    assert again.series().equals(result.series())


def test_the_comparison_equals_that_of_the_command(command, tmp_path):
    groups = {}
    for victim in ("greedy", "fifo"):
        device = fg.Device("tiny", {"gc.victim": victim})
        groups[victim] = [
            fg.run(device, MIXED, precondition="steady", seed=seed, out=tmp_path / f"{victim}-{seed}")
            for seed in (1, 2)
        ]
    printed = command("compare", *(f"{victim}={victim}-1,{victim}-2" for victim in groups), "--json")
    expected = json.loads(printed)
    found = fg.compare(groups).to_dict()
    for comparison in (expected, found):
        for group in comparison["groups"]:
            group.pop("files")
    assert found == expected
