"""Comparisons."""

import pytest

import floatgate as fg
from conftest import MIXED
from floatgate.__main__ import main


@pytest.fixture(scope="module")
def runs():
    def of(victim):
        return [
            fg.run(fg.Device("tiny", {"gc.victim": victim}), MIXED, precondition="steady", seed=seed, series=False)
            for seed in (1, 2, 3)
        ]

    return {victim: of(victim) for victim in ("greedy", "fifo")}


def test_seeds_form_groups(runs):
    comparison = fg.compare([*runs["greedy"], *runs["fifo"]])
    assert comparison.labels == ["tiny", "tiny gc.victim=fifo"]
    assert list(map(len, comparison.groups.values())) == [3, 3]
    labeled = fg.compare(runs)
    assert labeled.labels == ["greedy", "fifo"]
    assert labeled.groups["fifo"] == runs["fifo"]


def test_table_has_confidence_intervals(runs):
    rows = fg.compare(runs).table().to_pylist()
    row = next(row for row in rows if row["metric"] == "write_amplification" and row["group"] == "fifo")
    values = [run.summary.write_amplification for run in runs["fifo"]]
    assert row["n"] == 3
    assert row["mean"] == pytest.approx(sum(values) / 3)
    # t(0.975; 2) = 4.303
    deviation = (sum((value - row["mean"]) ** 2 for value in values) / 2) ** 0.5
    assert row["half_width"] == pytest.approx(4.303 * deviation / 3**0.5, rel=1e-3)
    assert row["difference"] in ("significant", "within_noise")


def test_differences_are_corrected_for_their_number(runs):
    comparison = fg.compare(runs)
    rows = [row for row in comparison.table().to_pylist() if row["p"] is not None]
    assert comparison.tested == len({round(row["p"], 9) for row in rows}) > 1
    for row in rows:
        assert row["p"] <= row["p_corrected"] <= 1.0
        assert (row["low"] <= 0.0 <= row["high"]) == (row["difference"] == "within_noise")
        assert (row["p_corrected"] < 0.05) == (row["difference"] == "significant")
    assert min(row["p_corrected"] for row in rows) == pytest.approx(comparison.tested * min(row["p"] for row in rows))


def test_runs_of_one_configuration_and_seed_stay_apart(runs):
    first = runs["greedy"][0]
    comparison = fg.compare([first, first])
    assert len(comparison.labels) == len(set(comparison.labels)) == 2
    assert {row["difference"] for row in comparison.table().to_pylist()} == {None, "same"}


def test_different_workloads_cause_a_warning(runs):
    comparison = fg.compare([runs["greedy"][0], fg.run("tiny", "rw=read number_ios=100")])
    assert any("workload" in text for text in comparison.warnings)
    assert "warning" in comparison._repr_html_()


def test_mistakes(runs):
    with pytest.raises(fg.ResultError, match="nothing to compare"):
        fg.compare(runs["greedy"][:1])
    with pytest.raises(fg.ResultError, match="no result"):
        fg.compare({"a": runs["greedy"], "b": []})
    with pytest.raises(fg.ResultError, match="same run"):
        fg.compare({"a": [runs["greedy"][0]] * 2, "b": runs["fifo"]})


def test_pages_and_texts(runs, tmp_path):
    comparison = fg.compare({"<i>": runs["greedy"], "fifo": runs["fifo"]})
    assert "+-" in str(comparison)
    assert "<i>" not in comparison._repr_html_()
    assert comparison.report(tmp_path).read_text().startswith("<!DOCTYPE html>")
    assert [run.summary.seed for run in comparison.results] == [1, 2, 3, 1, 2, 3]


def test_a_page_does_not_overwrite_a_result(tmp_path):
    for seed, name in ((1, "a"), (2, "b")):
        fg.run("tiny", "rw=randread number_ios=100", seed=seed, out=tmp_path / name)
    comparison = fg.compare([fg.load(tmp_path / name) for name in "ab"])
    (tmp_path / "link.html").symlink_to("b/summary.json")
    for place in ("a/summary.json", "b/series.parquet", "b/digests.json", "link.html"):
        with pytest.raises(fg.OptionError, match="would overwrite"):
            comparison.report(tmp_path / place)
    assert comparison.report(tmp_path).read_text().startswith("<!DOCTYPE html>")
    for name in "ab":
        fg.load(tmp_path / name).series()


def test_the_command_draws_a_metric(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    for victim in ("greedy", "fifo"):
        device = fg.Device("tiny", {"gc.victim": victim})
        fg.run(device, MIXED, precondition="steady", seeds=2, out=victim, series=False, warn=False)

    def call(*arguments):
        monkeypatch.setattr("sys.argv", ["floatgate", "compare", *arguments])
        status = main()
        return status, *capfd.readouterr()

    status, out, err = call("greedy", "b=fifo", "--metric", "read.latency_us.p99", "--plot", "p99.svg")
    assert (status, "wrote p99.svg" in err) == (0, True)
    assert out.splitlines()[2].startswith("read.latency_us.p99 ")
    assert "read latency p99, us" in "".join((tmp_path / "p99.svg").read_text().split("<!--")[1:])
    status, out, err = call("greedy", "fifo", "--plot=all.pdf", "--all")
    assert (status, (tmp_path / "all.pdf").stat().st_size > 1000) == (0, True)
    assert len(out.splitlines()) > 40
    for arguments, what in (
        (["greedy", "fifo", "--plot", "a.doc"], "must end in"),
        (["greedy", "no", "--plot", "a.svg"], "no"),
    ):
        status, _, err = call(*arguments)
        assert (status, what in err) == (2, True)
