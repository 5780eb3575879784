"""Searches."""

import sys

import matplotlib as mpl
import pytest

import floatgate as fg
from floatgate.__main__ import main

mpl.use("agg")

SPACE = {"capacity.spare": (0.1, 0.4), "gc.victim": ["greedy", {"d-choices": {"d": 4}}], "gc.soft_threshold": (2, 4)}
OBJECTIVES = {"write_amplification": "minimize", "requests.write.iops": "maximize"}


def search(space=None, **options):
    given = {
        "device": "tiny", "workload": "rw=randwrite bs=4k iodepth=4 number_ios=500", "precondition": "steady",
        "objectives": OBJECTIVES, "trials": 8, "batch": 4, "n_jobs": 1,
    }  # fmt: skip
    return fg.optimize(SPACE if space is None else space, **{**given, **options})


@pytest.fixture
def runs(monkeypatch):
    """Count the runs."""
    calls = []
    run = fg.sweeping.run
    monkeypatch.setattr("floatgate.sweeping.run", lambda *a, **o: calls.append(a) or run(*a, **o))
    return calls


def dominates(one, other):
    """Return True if a row is at least as good in both objectives, and better in one."""
    pairs = [(one[name], other[name]) if way == "maximize" else (-one[name], -other[name])
             for name, way in OBJECTIVES.items()]  # fmt: skip
    return all(a >= b for a, b in pairs) and any(a > b for a, b in pairs)


def test_no_point_dominates_the_front():
    found = search(trials=12)
    rows = found.table().to_pylist()
    assert [row["trial"] for row in rows] == list(range(12))
    good = [row for row in rows if row["error"] is None]
    for row in good:
        assert row["front"] == (not any(dominates(other, row) for other in good))
    front = found.front().to_pylist()
    assert sorted(row["trial"] for row in front) == [row["trial"] for row in rows if row["front"]]
    assert [row["write_amplification"] for row in front] == sorted(row["write_amplification"] for row in front)
    # A point has the same values as in a sweep.
    first = good[0]
    victim = {"d-choices": {"d": 4}} if "{" in first["gc.victim"] else "greedy"
    point = {path: first[path] for path in SPACE} | {"gc.victim": victim}
    row = fg.sweep([point], device="tiny", workload="rw=randwrite bs=4k iodepth=4 number_ios=500",
                   precondition="steady", n_jobs=1).to_pylist()[0]  # fmt: skip
    assert {name: row[name] for name in OBJECTIVES} == {name: first[name] for name in OBJECTIVES}


def test_failed_points_are_failed_trials():
    # A share of 0.1 does not suffice for the blocks that must be kept free.
    found = search({"capacity.spare": [0.1, 0.4]}, trials=8, sampler="random")
    rows = found.table().to_pylist()
    assert {row["capacity.spare"]: row["error"] is not None for row in rows} == {0.1: True, 0.4: False}
    assert all((row["write_amplification"] is None) == (row["error"] is not None) for row in rows)
    assert not any(row["front"] for row in rows if row["error"])
    assert "cannot be kept free" in next(row["error"] for row in rows if row["error"])
    states = {trial.state.name for trial in found.study.trials}
    assert states == {"COMPLETE", "FAIL"}


@pytest.mark.parametrize("sampler", ["tpe", "nsga2"])
def test_an_interrupted_search_continues_with_the_same_points(tmp_path, sampler, runs, monkeypatch):
    expected = search(trials=16, sampler=sampler).table()
    run = fg.sweeping.run
    runs.clear()

    def stop(*arguments, **options):
        if len(runs) == 6:
            raise KeyboardInterrupt
        return run(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr("floatgate.sweeping.run", stop)
        with pytest.raises(KeyboardInterrupt):
            search(trials=16, sampler=sampler, store=tmp_path)
    assert len(runs) == 6
    assert search(trials=16, sampler=sampler, store=tmp_path).table().equals(expected)
    assert len(runs) <= 16
    # A finished search runs nothing, and a search with more trials continues it.
    before = len(runs)
    assert search(trials=16, sampler=sampler, store=tmp_path).table().equals(expected)
    assert len(runs) == before


def test_results_depend_on_the_seed_and_not_on_processors(tmp_path):
    one = search().table()
    assert search(n_jobs=2).table().equals(one)
    assert not search(seed=2).table().equals(one)
    # With several seeds, the objective is the mean.
    rows = search({"gc.soft_threshold": [2]}, seeds=[1, 2], trials=1).table().to_pylist()
    both = [search({"gc.soft_threshold": [2]}, seeds=[seed], trials=1).table().to_pylist()[0] for seed in (1, 2)]
    assert rows[0]["write_amplification"] == pytest.approx(sum(row["write_amplification"] for row in both) / 2)


def test_a_store_holds_one_search(tmp_path):
    search(store=tmp_path, trials=4)
    with pytest.raises(fg.OptionError, match="different objectives"):
        search(store=tmp_path, objectives=["write_amplification"])
    # A search without finished trials can be replaced.
    other = tmp_path / "other"
    with pytest.raises(fg.OptionError, match="the objective map_cache.hits is not a column.*; the results are kept in"):
        search(store=other, objectives=["map_cache.hits"])
    assert search(store=other, objectives=["write_amplification"], trials=4).table().num_rows == 4


def test_a_mistyped_objective_is_refused_before_any_run(tmp_path, runs):
    with pytest.raises(fg.OptionError, match="not a column .nearest: write_amplification"):
        search(store=tmp_path / "store", objectives=["write_amplificaton"])
    assert not runs
    assert not (tmp_path / "store").exists()


def test_a_search_without_joblib_warns_once(monkeypatch):
    monkeypatch.setitem(sys.modules, "joblib", None)
    with pytest.warns(fg.FloatgateWarning, match="joblib is not installed") as caught:
        found = search(n_jobs=None)
    assert len(caught) == 1
    assert found.table().num_rows == 8


def test_a_figure_has_all_points():
    found = search()
    ax = found.plot()
    points = [line for line in ax.lines if line.get_linestyle() == "None"]
    assert sum(len(line.get_xdata()) for line in points) == sum(e is None for e in found.table()["error"].to_pylist())
    assert (ax.get_xlabel(), ax.get_ylabel()) == tuple(OBJECTIVES)
    with pytest.raises(fg.OptionError, match="not an objective"):
        found.plot("capacity.spare")
    alone = search(objectives=["write_amplification"], trials=2).plot()
    assert alone.get_xlabel() == "trial"
    mpl.pyplot.close("all")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"objectives": []}, "no objective"),
        ({"objectives": {"write_amplification": "least"}}, "minimize or maximize"),
        ({"space": {}}, "empty"),
        ({"space": {"capacity.spare": 0.1}}, "a tuple"),
        ({"sampler": "best"}, "tpe, nsga2, random"),
        ({"trials": 0}, "1 or more"),
    ],
)
def test_mistakes(options, message):
    with pytest.raises(fg.OptionError, match=message):
        search(**options)


FILE = """
device = "tiny"
workload = "rw=randwrite bs=4k iodepth=4 number_ios=500"
trials = 4
batch = 2
[space]
capacity.spare = { from = 0.2, to = 0.4 }
gc.victim = ["greedy", "fifo"]
[objectives]
write_amplification = "minimize"
requests.write.iops = "maximize"
"""


def test_the_command(tmp_path, monkeypatch, capsys):
    def call(*arguments):
        monkeypatch.setattr("sys.argv", ["floatgate", "optimize", "search.toml", "--jobs=1", *arguments])
        return main(), *capsys.readouterr()

    monkeypatch.chdir(tmp_path)
    (tmp_path / "search.toml").write_text(FILE)
    status, output, errors = call("--out=all.csv", "--plot=front.svg")
    assert (status, errors) == (0, "")
    assert output.split()[:3] == ["trial", "capacity.spare", "gc.victim"]
    assert len((tmp_path / "all.csv").read_text().splitlines()) == 5
    assert "<svg" in (tmp_path / "front.svg").read_text()
    assert call()[1] == output
    (tmp_path / "search.toml").write_text('columns = ["write_amplificaton"]\n' + FILE)
    status, _, errors = call("--store=other")
    assert (status, errors) == (2, "error: unknown column `write_amplificaton` (nearest: write_amplification)\n")
    assert not (tmp_path / "other").exists()
    (tmp_path / "search.toml").write_text(FILE.replace("trials = 4", ""))
    status, _, errors = call()
    assert (status, "number of points" in errors) == (2, True)
    mpl.pyplot.close("all")
