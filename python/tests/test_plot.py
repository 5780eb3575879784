"""Figures."""

import matplotlib as mpl
import pytest

import floatgate as fg

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
    assert y[-1] == 1
    assert all(earlier <= later for earlier, later in itertools.pairwise(y))
    tail = result.plot.cdf(operations=["write"], tail=True)
    assert min(tail.lines[0].get_ydata()) > 0


def test_latencies_match_the_series(result):
    ax = result.plot.latency(operations=["write"])
    assert [line.get_label() for line in ax.lines] == ["write, mean", "write, p99", "write, max"]
    assert len(ax.lines[0].get_xdata()) == result.series().num_rows


def test_attribution_adds_up(result):
    ax = result.plot.attribution(at=["mean"])
    widths = {}
    for bar in ax.patches:
        widths[bar.get_y()] = widths.get(bar.get_y(), 0) + bar.get_width()
    means = [result.summary.requests[name].latency_us.mean for name in ("read", "write")]
    assert sorted(widths.values()) == pytest.approx(sorted(means))


def test_utilization_has_a_bar_per_channel_and_die(result):
    geometry = result.summary.config.geometry
    channels, dies = geometry.channels, geometry.channels * geometry.chips * geometry.dies
    ax = result.plot.utilization()
    assert len(ax.patches) == 2 * (channels + dies)
    assert ax.patches[0].get_height() == result.summary.utilization.each.channel_data[0]


def test_figures_use_the_given_axes(result):
    _, axes = plt.subplots(2, 2)
    for ax, name in zip(axes.flat, ("cdf", "latency", "attribution", "utilization"), strict=True):
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
    ax = comparison.plot.metric("write amplification")
    assert ax.patches[0].get_height() == pytest.approx(
        (result.summary.write_amplification + other.summary.write_amplification) / 2
    )
    with pytest.raises(fg.ResultError, match="unknown metric"):
        comparison.plot.metric("speed")
    with pytest.raises(fg.ResultError, match="no trim"):
        comparison.plot.cdf(operation="trim")
