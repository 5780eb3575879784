"""Figures."""

import json

import matplotlib as mpl
import numpy as np
import pyarrow as pa
import pytest

import floatgate as fg
from floatgate import plotting
from floatgate.summary import Summary

mpl.use("agg")
import itertools

from matplotlib import pyplot as plt


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_the_cdf_matches_the_summary(result):
    ax = result.plot.cdf()
    assert [line.get_label() for line in ax.lines] == ["read", "write"]
    x, y = ax.lines[1].get_data()
    assert x[-1] == result.summary.requests.write.latency_us.max
    assert (y[0], y[-1]) == (0, 1)
    assert all(earlier <= later for earlier, later in itertools.pairwise(y))
    tail = result.plot.cdf(operations=["write"], tail=True)
    assert min(tail.lines[0].get_ydata()) > 0


def with_curves(result, **curves):
    """A copy of a result with other latency distributions: latencies, and how many requests took longer."""
    summary = json.loads(result.summary.to_json())
    summary["distributions"]["latency"] = [
        {"operation": name, "requests": 1000, "us": us, "longer": longer} for name, (us, longer) in curves.items()
    ]
    return fg.Result(Summary(json.dumps(summary)))


def test_a_cdf_has_steps_where_many_requests_took_the_same_time(result):
    # 20 reads of 0 us, 5 of 40 us, 170 of 50 us, 5 up to 60 us, and 800 of 90 us.
    reads = with_curves(result, read=([0, 40, 50, 60, 90], [980, 975, 805, 800, 0]))
    x, y = reads.plot.cdf().lines[0].get_data()
    points = [
        (0, 0),
        (0, 0),
        (0, 0.02),
        (40, 0.02),
        (40, 0.025),
        (50, 0.025),
        (50, 0.195),
        (60, 0.2),
        (90, 0.2),
        (90, 1),
    ]
    assert list(zip(x, y, strict=True)) == [pytest.approx(point) for point in points]
    compared = fg.compare({"a": reads, "b": reads}).plot.cdf(operation="read").lines[1].get_data()
    assert np.array_equal(compared, (x, y))
    x, y = reads.plot.cdf(tail=True).lines[0].get_data()
    # The curve ends at the slowest request.
    assert list(zip(x, y, strict=True)) == [pytest.approx((at, max(1 - share, 0.001))) for at, share in points]


def test_requests_of_0_us_are_at_the_left_edge_of_a_cdf(result):
    ax = with_curves(result, read=([0, 50], [980, 0]), write=([0], [0])).plot.cdf()
    assert 0 < ax.get_xlim()[0] < 50
    assert [line.get_label() for line in ax.lines] == ["read", "write (at once)"]
    at_once = with_curves(result, write=([0], [0]))
    with pytest.raises(fg.ResultError, match="no requests to draw: all of them completed at once"):
        at_once.plot.cdf()
    with pytest.raises(fg.ResultError, match="no write requests to draw: all of them completed at once"):
        fg.compare({"a": at_once, "b": at_once}).plot.cdf(operation="write")


def test_latencies_match_the_series(result):
    ax = result.plot.latency(operations=["write"])
    assert [line.get_label() for line in ax.lines[:2]] == ["write, mean", "write, p99"]
    assert len(ax.lines[0].get_xdata()) == result.series().num_rows
    for line, column in zip(ax.lines, ("write_mean_us", "write_p99_us"), strict=True):
        windows = result.series()[column].to_numpy()
        assert np.nanmin(windows) <= line.get_ydata().min() <= line.get_ydata().max() <= np.nanmax(windows)
    bands = result.plot.latency().collections
    assert [band.get_hatch() for band in bands] == ["//", "\\\\"]


def test_requests_that_all_completed_at_once_have_figures():
    trims = fg.run("tiny", "rw=trim number_ios=50")
    assert trims.plot.latency().get_yscale() == "linear"
    assert trims.plot.attribution().child_axes[0].get_xlim() == (0, 1)


def test_throughput_matches_the_series(result):
    ax = result.plot.throughput(operations=["write"], unit="mib_per_s")
    series = result.series().to_pandas()
    windows = series["write_bytes"] / (series["end_ps"] - series["start_ps"]) * 1e12 / 2**20
    assert ax.lines[0].get_ydata() == pytest.approx(windows)
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["write, windows", "write, moving average"]
    # No window is cut off.
    assert (ax.get_ylim()[0], ax.get_ylim()[1] > windows.max()) == (0, True)
    smooth = ax.lines[1].get_ydata()
    width = (series["end_ps"] - series["start_ps"]).to_numpy()
    assert windows.min() <= smooth.min() <= smooth.max() <= windows.max()
    assert np.average(smooth, weights=width) == pytest.approx(np.average(windows, weights=width), rel=0.05)


def test_write_amplification_ends_at_that_of_the_summary(result):
    ax = result.plot.write_amplification()
    moving, so_far = ax.lines
    assert so_far.get_ydata()[-1] == pytest.approx(result.summary.write_amplification)
    ratio = moving.get_ydata()
    # It is missing where little was written, and close to the value of the run elsewhere.
    assert 0 < np.isnan(ratio).sum() < len(ratio) / 2
    assert np.nanmedian(ratio) == pytest.approx(result.summary.write_amplification, rel=0.5)
    reads = fg.run("tiny", "rw=read number_ios=100")
    with pytest.raises(fg.ResultError, match="no writes"):
        reads.plot.write_amplification()


def test_wear_has_a_bar_per_class(result):
    ax = result.plot.wear()
    classes = result.summary.wear.histogram
    assert [bar.get_height() for bar in ax.patches] == classes.blocks
    assert ax.patches[0].get_x() + 0.5 == classes.from_


def test_wear_has_whole_numbers_at_its_axes():
    ax = fg.run("tiny", "rw=read number_ios=9", precondition="none").plot.wear()
    assert all(tick == int(tick) for tick in (*ax.get_xticks(), *ax.get_yticks()))


def table(rows):
    return pa.table({name: [row[name] for row in rows] for name in rows[0]})


def test_a_heat_map_averages_seeds():
    rows = [{"spare": spare, "victim": victim, "seed": seed, "wa": 2 * spare + seed + len(victim)}
            for spare in (30, 10) for victim in ("fifo", "greedy") for seed in (1, 2)]  # fmt: skip
    rows[0]["wa"] = None
    ax = fg.plotting.heat_map(table(rows), "spare", "victim", "wa")
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["10", "30"]
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["fifo", "greedy"]
    assert ax.images[0].get_array().tolist() == [[25.5, 66.0], [27.5, 67.5]]
    assert [text.get_text() for text in ax.texts] == ["25.5", "66", "27.5", "67.5"]
    with pytest.raises(fg.OptionError, match="no column `spar` .nearest: spare"):
        fg.plotting.heat_map(table(rows), "spar", "victim", "wa")
    with pytest.raises(fg.ResultError, match="no run has a value"):
        fg.plotting.heat_map(table([{"a": 1, "b": 1, "c": None}]), "a", "b", "c")


def test_a_heat_map_shows_designs_that_failed():
    rows = [{"spare": spare, "victim": victim, "seed": 1, "error": None, "wa": spare}
            for spare in (10, 20) for victim in ("fiffo", "fifo")]  # fmt: skip
    for row in rows[::2]:
        row |= {"wa": None, "error": "unknown name"}
    with pytest.warns(
        fg.FloatgateWarning, match="2 of 4 runs failed and have no values; the first error: unknown name"
    ):
        ax = fg.plotting.heat_map(table(rows), "spare", "victim", "wa")
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["fiffo", "fifo"]
    assert ax.images[0].get_array().tolist() == [[None, None], [10, 20]]
    assert [text.get_text() for text in ax.texts] == ["10", "20", "failed", "failed"]


def test_if_all_runs_failed_the_first_error_is_reported():
    failed = fg.sweep({"gc.victim": ["fiffo", "gready"]}, device="tiny", workload="rw=read number_ios=9", n_jobs=1)
    for draw in (fg.plotting.heat_map, fg.plotting.pareto_front):
        with pytest.raises(fg.ResultError, match="(?s)all 2 runs failed; the first error: .*`fiffo`"):
            draw(failed, "gc.victim", "write_amplification", *(["x"] if draw is fg.plotting.heat_map else []))


def test_a_pareto_front_averages_seeds():
    rows = [{"spare": spare, "name": f"{spare}%", "seed": seed, "error": None, "config_digest": f"{spare}",
             "workload_digest": f"{seed}", "wa": wa}
            for spare, both in ((10, (5, 7)), (20, (2, 6)), (30, (5, 5))) for seed, wa in enumerate(both)]  # fmt: skip
    ax = fg.plotting.pareto_front(table(rows), "spare", "wa", label="name")
    tried, front = (next(line for line in ax.lines if line.get_label() == label) for label in ("tried", "front"))
    assert list(zip(*front.get_data(), strict=True)) == [(10, 6), (20, 4)]
    assert list(zip(*tried.get_data(), strict=True)) == [(30, 5)]
    assert [text.get_text() for text in ax.texts] == ["10%", "20%"]
    # A design is drawn even if one of its runs failed, and the failure is reported.
    rows[0] |= {"wa": None, "error": "no space"}
    with pytest.warns(fg.FloatgateWarning, match="1 of 6 runs failed and have no values; the first error: no space"):
        ax = fg.plotting.pareto_front(table(rows), "spare", "wa")
    assert list(next(line for line in ax.lines if line.get_label() == "front").get_ydata()) == [7, 4]
    # Not all parameters are before the seed.
    wrong = table(rows[2:]).select(["error", "seed", "spare", "wa"])
    with pytest.raises(fg.OptionError, match="parameters are the columns before `seed`"):
        fg.plotting.pareto_front(wrong, "spare", "wa")


def test_a_pareto_front_has_the_runs_that_no_other_dominates():
    rows = [{"wa": wa, "iops": iops, "name": f"{wa}/{iops}"} for wa, iops in ((1, 5), (2, 9), (2, 7), (3, 8), (4, 20))]
    ax = fg.plotting.pareto_front(table(rows), "wa", "iops", maximize=["iops"], label="name")
    fronts = [line for line in ax.lines if line.get_label() == "front"]
    assert list(zip(*fronts[0].get_data(), strict=True)) == [(1, 5), (2, 9), (4, 20)]
    assert [text.get_text() for text in ax.texts] == ["1/5", "2/9", "4/20"]
    ax = fg.plotting.pareto_front(table(rows), "wa", "iops")
    assert list(next(line for line in ax.lines if line.get_label() == "front").get_xdata()) == [1]
    with pytest.raises(fg.OptionError, match="maximize=speed: expected wa or iops"):
        fg.plotting.pareto_front(table(rows), "wa", "iops", maximize=["speed"])


def test_attribution_has_a_panel_per_percentile_that_adds_up(result):
    ax = result.plot.attribution(at=["mean", "p99_9"])
    assert [panel.get_title(loc="left") for panel in ax.child_axes] == [
        "all requests, on average",
        "requests near p99.9",
    ]
    for panel, kind in zip(ax.child_axes, ("mean", "p99_9"), strict=True):
        widths = {}
        for bar in panel.patches:
            widths[bar.get_y()] = widths.get(bar.get_y(), 0) + bar.get_width()
        breakdowns = [result.summary.requests[name].attribution[kind].latency_us for name in ("read", "write")]
        assert [widths[at] for at in sorted(widths)] == pytest.approx(breakdowns)
        assert [tick.get_text() for tick in panel.get_yticklabels()] == ["read", "write"]
        # Each panel has its own scale.
        assert max(breakdowns) < panel.get_xlim()[1] < 1.1 * max(breakdowns)
    for at in ([], ["p98"]):
        with pytest.raises(fg.OptionError, match="expected one or more of mean, p50, p99, p99_9"):
            result.plot.attribution(at=at)


def test_figures_know_all_parts_of_a_latency(result):
    parts = set(result.summary.requests.read.attribution.mean.to_dict()) - {"requests", "latency_us"}
    assert parts <= set(plotting._PARTS)
    # A part of the latency that only some runs have.
    assert set(plotting._PARTS) - parts <= {"throttle_us", "ecc_us", "rebuild_us"}


def test_utilization_has_a_bar_per_channel_and_die(result):
    geometry = result.summary.config.geometry
    channels, dies = geometry.channels, geometry.channels * geometry.chips * geometry.dies
    ax = result.plot.utilization()
    assert len(ax.patches) == 2 * (channels + dies)
    assert ax.patches[0].get_height() == result.summary.utilization.each.channel_data[0]


def test_figures_use_the_given_axes(result):
    _, axes = plt.subplots(2, 4)
    names = ("cdf", "latency", "attribution", "utilization", "throughput", "write_amplification", "wear")
    for ax, name in zip(axes.flat, names, strict=False):
        assert getattr(result.plot, name)(ax) is ax
        assert ax.get_title()


def test_missing_data_are_errors():
    result = fg.run("tiny", "rw=read number_ios=50", attribution=False, series=False)
    with pytest.raises(fg.ResultError, match="attribution=True"):
        result.plot.attribution()
    with pytest.raises(fg.ResultError, match="series=True"):
        result.plot.latency()
    with pytest.warns(fg.FloatgateWarning):
        nothing = fg.run("tiny", "rw=read number_ios=50 ramp_time=10s")
    with pytest.raises(fg.ResultError, match="no requests"):
        nothing.plot.cdf()
    with pytest.raises(fg.ResultError, match="nothing was measured"):
        nothing.plot.utilization()


def test_comparisons(result):
    other = fg.run("tiny", "rw=randrw bs=4k iodepth=8 number_ios=3000", precondition="steady", seed=2)
    comparison = fg.compare({"a": [result, other], "b": fg.run("tiny", "rw=randrw bs=4k iodepth=8 number_ios=3000")})
    ax = comparison.plot.cdf(operation="write")
    assert len(ax.lines) == 3
    assert ax.lines[0].get_color() == ax.lines[1].get_color() != ax.lines[2].get_color()
    ax = comparison.plot.metric("write_amplification")
    assert ax.get_ylabel() == ax.get_title() == "write amplification"
    assert ax.get_axisbelow()  # the grid is behind bars ...
    assert all(patch.get_alpha() in (None, 1) for patch in ax.patches)  # ... that are opaque
    assert ax.patches[0].get_height() == pytest.approx(
        (result.summary.write_amplification + other.summary.write_amplification) / 2
    )
    with pytest.raises(fg.ResultError, match="unknown metric"):
        comparison.plot.metric("speed")
    with pytest.raises(fg.ResultError, match="no trim"):
        comparison.plot.cdf(operation="trim")


@pytest.fixture(scope="module")
def compared():
    job = "rw=randrw bs=4k iodepth=8 number_ios=2000"
    return fg.compare(
        {
            victim: fg.run(fg.Device("tiny", {"gc.victim": victim}), job, precondition="steady", seeds=3, warn=False)
            for victim in ("greedy", "fifo")
        }
    )


def test_differences_are_those_of_the_table(compared):
    ax = compared.plot.differences()
    rows = [row for row in compared.table().to_pylist() if row["group"] == "fifo"]
    rows = {row["metric"]: row for row in rows if "demerit" not in row["metric"] and row["ratio"] is not None}
    named = [text.get_text() for text in ax.get_yticklabels()]
    assert "read latency p99, us" in named
    assert not [name for name in named if "demerit" in name]
    assert len(named) == len(set(named))
    p99 = rows["requests.read.latency_us.p99"]
    ((line, _, (bars,)),) = compared.plot.differences(["read.latency_us.p99"]).containers
    assert line.get_xdata()[0] == pytest.approx(p99["ratio"] - 1)
    # The corrected interval, relative to the mean of the first group.
    (segment,) = bars.get_segments()
    first = p99["mean"] / p99["ratio"]
    assert [end[0] for end in segment] == pytest.approx([p99["low"] / first, p99["high"] / first])
    assert line.get_markerfacecolor() == ("C0" if p99["difference"] == "significant" else "white")
    assert len(compared.plot.differences(most=5).get_yticks()) == 5
    with pytest.raises(fg.ResultError, match="unknown metric"):
        compared.plot.differences(["speed"])
    with pytest.raises(fg.ResultError, match="no differences"):
        fg.compare(compared.results[:1] * 2).plot.differences()


def test_figures_for_papers(compared, tmp_path):
    fg.plot.style("paper")
    try:
        ax = compared.plot.cdf()
        assert ax.figure.get_figwidth() == pytest.approx(3.33)
        assert ax.get_title() == ""
        assert ax.xaxis.label.get_size() == 8
        for name in ("a.pdf", "a.svg", "a.png"):
            assert fg.plot.save(ax, tmp_path / name).stat().st_size > 1000
        assert b"/FontFile2" in (tmp_path / "a.pdf").read_bytes()  # TrueType, as publishers require
        assert "latency, us</text>" in (tmp_path / "a.svg").read_text()
        assert b"CreationDate" not in (tmp_path / "a.pdf").read_bytes()
    finally:
        fg.plot.style("default")
    assert compared.plot.cdf().figure.get_figwidth() == pytest.approx(6.4)
    assert compared.plot.cdf().get_title()
    with pytest.raises(fg.OptionError, match="unknown style"):
        fg.plot.style("poster")
    with pytest.raises(fg.OutputError, match="cannot write"):
        fg.plot.save(ax, tmp_path / "a.doc")


def test_titles_have_no_absolute_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for place, label in ((tmp_path / "elsewhere", "elsewhere"), (tmp_path / "here" / "deep" / "run", "deep/run")):
        run = fg.run("tiny", "rw=read number_ios=50", out=place)
        assert run.label == label
        assert str(tmp_path) not in run.plot.cdf().get_title()


def test_chips_are_a_labeled_heat_map(result):
    each = result.summary.utilization.each
    channels = len(each.channel_data)
    ax = result.plot.chips()
    (image,) = ax.get_images()
    shares = image.get_array()
    assert shares.shape == (channels, 1 + len(each.die_cell) // channels)
    assert list(shares[:, 0]) == each.channel_data
    assert list(shares[:, 1:].ravel()) == each.die_cell
    assert [text.get_text() for text in ax.get_xticklabels()][:2] == ["channel", "0"]
    assert ax.get_xlabel().startswith("chip of the channel")
    assert {text.get_text() for text in ax.texts} == {f"{100 * share:.0f}" for share in shares.ravel()}
    held = result.plot.chips(held=True, text=False)
    assert not held.texts
    busy = held.get_images()[0].get_array()[:, 1:].ravel()
    assert list(busy) == pytest.approx([a + b for a, b in zip(each.die_cell, each.die_register_held, strict=True)])
    two = fg.run(fg.Device("tiny", {"geometry.dies": 2}), "rw=read number_ios=200")
    assert [text.get_text() for text in two.plot.chips().get_xticklabels()] == ["channel", "0.0", "0.1", "1.0", "1.1"]


def test_axes_of_sweeps_are_in_words():
    table = fg.sweep(
        {"gc.victim": ["greedy", "fifo"], "capacity.spare": [0.2, 0.3]}, device="tiny", n_jobs=1,
        workload="rw=randwrite bs=4k iodepth=8 number_ios=1000", precondition="steady",
    )  # fmt: skip
    ax = plotting.pareto_front(table, "capacity.spare", "write.latency_us.p99")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("capacity.spare", "write latency p99, us")
    names = [text.get_text() for text in ax.texts]
    assert names
    assert set(names) <= {"victim greedy", "victim fifo"}
    assert not plotting.pareto_front(table, "capacity.spare", "write.latency_us.p99", label="").texts
    ax = plotting.heat_map(table, "capacity.spare", "gc.victim", "write.iops")
    assert ax.figure.axes[-1].get_ylabel() == "write throughput, IOPS"
