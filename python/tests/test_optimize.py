"""Searches."""

import os
import signal
import sys

import matplotlib as mpl
import pytest

import floatgate as fg
from floatgate import sweepfile
from floatgate.__main__ import main

mpl.use("agg")

SPACE = {
    "capacity.spare": fg.Range(0.1, 0.4),
    "gc.victim": ["greedy", {"d-choices": {"d": 4}}],
    "gc.soft_threshold": fg.Range(2, 4),
}
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


@pytest.mark.parametrize("at", [1, 4, 5, 6, 7, 8, 20])
def test_ctrl_c_at_any_access_to_the_journal_changes_nothing(tmp_path, monkeypatch, at):
    """Ctrl-C arrives when Optuna is about to remove the file of its lock for the nth time."""
    expected = search(trials=4).table()
    rename, calls = os.rename, []

    def interrupted(*places):
        calls.append(places)
        if len(calls) == at:
            signal.raise_signal(signal.SIGINT)
        rename(*places)

    with monkeypatch.context() as patch:
        patch.setattr("os.rename", interrupted)
        with pytest.raises(KeyboardInterrupt):
            search(trials=4, store=tmp_path)
    assert [place.name for place in tmp_path.iterdir() if place.suffix != ".parquet"] == ["optuna.journal"]
    assert search(trials=4, store=tmp_path).table().equals(expected)


def test_results_depend_on_the_seed_and_not_on_processors(tmp_path):
    one = search().table()
    assert search(n_jobs=2).table().equals(one)
    assert not search(seed=2).table().equals(one)
    # With several seeds, the objective is the mean.
    rows = search({"gc.soft_threshold": [2]}, seeds=[1, 2], trials=1).table().to_pylist()
    both = [search({"gc.soft_threshold": [2]}, seeds=[seed], trials=1).table().to_pylist()[0] for seed in (1, 2)]
    assert rows[0]["write_amplification"] == pytest.approx(sum(row["write_amplification"] for row in both) / 2)


def test_an_objective_may_be_in_the_space(tmp_path):
    """The least spare capacity for the most IOPS is a question about a value of the space."""
    objectives = {"capacity.spare": "minimize", "requests.write.iops": "maximize"}
    found = search(objectives=objectives, seeds=[1, 2])
    table = found.table()
    assert table.column_names == [
        "trial", "capacity.spare", "gc.victim", "gc.soft_threshold", "requests.write.iops", "front", "error"
    ]  # fmt: skip
    front = found.front().to_pylist()
    assert [row["capacity.spare"] for row in front] == sorted(row["capacity.spare"] for row in front)
    assert [row["requests.write.iops"] for row in front] == sorted(row["requests.write.iops"] for row in front)
    ax = found.plot()
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("capacity.spare", "write throughput, IOPS")
    # The points of the front are named by their other parameters.
    assert all(text.get_text().startswith("victim ") and ", soft_threshold " in text.get_text() for text in ax.texts)
    assert ax.texts
    mpl.pyplot.close("all")


def test_a_range_may_have_units(tmp_path):
    """A value with a unit as objective is a number in the finer unit of its range."""
    path = "nand.advanced.suspend.latency"
    space = {path: fg.Range("20us", "0.1ms"), "gc.victim": ["greedy", "fifo"]}
    options = {"objectives": {path: "maximize", "write_amplification": "minimize"}, "store": tmp_path}
    found = search(space, trials=6, **options)
    rows = found.table().to_pylist()
    latencies = [float(row[path].removesuffix("us")) for row in rows]
    assert all(20 <= latency <= 100 for latency in latencies)
    assert len(set(latencies)) > 2
    assert [row["error"] for row in rows] == [None] * 6
    assert [trial.values[0] for trial in found.study.trials] == latencies
    front = [float(row[path].removesuffix("us")) for row in found.front().to_pylist()]
    assert front == sorted(front, reverse=True)
    found.plot()
    mpl.pyplot.close("all")
    # A table of the command describes the same range.
    (table,) = sweepfile.ranges_of("f", {"x": {"from": "20us", "to": "0.1ms"}}).values()
    assert table == space[path]
    assert search({**space, path: table}, trials=6, **options).table().equals(found.table())


RANGES = [
    (fg.Range(1, 4), {1, 2, 3, 4}),
    (fg.Range(2, 9, step=3), {2, 5, 8}),
    (fg.Range(0.1, 0.4, step=0.1), {0.1, 0.2, 0.3, 0.4}),
    (fg.Range("1MiB", "4MiB", log=True), {"1MiB", "2MiB", "3MiB", "4MiB"}),
    (fg.Range("512KiB", "2MiB", step="512KiB"), {"512KiB", "1024KiB", "1536KiB", "2048KiB"}),
    (fg.Range("1MiB", "2MiB", step="1B"), None),
    (fg.Range("1us", "2us", step="0.25us"), {"1us", "1.25us", "1.5us", "1.75us", "2us"}),
    (fg.Range("1%", "2%", step="0.5%"), {"1%", "1.5%", "2%"}),
    (fg.Range("800MT/s", "1.6GT/s", step="400MT/s", log=True), {"800MT/s", "1200MT/s", "1600MT/s"}),
    (fg.Range(1e-3, 1e3, log=True), None),
    (fg.Range("7us", "7us", log=True), {"7us"}),
]


@pytest.mark.parametrize(("within", "values"), RANGES, ids=[repr(within) for within, _ in RANGES])
def test_values_of_ranges(within, values):
    """A Sobol' sequence and a search choose the same values, all of which occur."""
    import optuna

    chosen = {within.at(share / 512) for share in range(512)}
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    parameters = [within.suggest(study.ask(), "x") for _ in range(64 if values else 8)]
    found = {within.of_parameter(parameter) for parameter in parameters}
    if values is None:
        assert len(chosen) > 500
        assert len(found) == 8
    else:
        assert chosen == found == values
    if within.log and within.least == 1e-3:
        # Each of the six factors of 10 has a sixth of the values.
        assert sum(value < 1 for value in chosen) == 256


def test_a_logarithmic_range_has_each_factor_equally_often():
    within = fg.Range("1us", "1ms", log=True)
    values = [float(within.at(share / 300).removesuffix("us")) for share in range(300)]
    assert [sum(10**n <= value < 10 ** (n + 1) for value in values) for n in range(3)] == [
        pytest.approx(100, abs=1)
    ] * 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((2, 1), "must not be greater"),
        (("2ms", "20us"), "must not be greater"),
        (("20us", 100), "both ends must be numbers, or both quantities"),
        (("20us", "1MiB"), "both ends must be numbers, or both quantities"),
        (("20", "100"), "'20' is not a number with a unit"),
        (("20 parsec", "100us"), "'20 parsec' is not a number with a unit"),
        ((float("nan"), 1), "neither a number"),
        ((1, float("inf")), "neither a number"),
        ((True, 2), "neither a number"),
        ((0, 2, True), "ends above 0"),
        ((1, 2, False, 0), "step must be above 0"),
        ((1, 2, False, "1us"), "must have a unit if the ends have one"),
        (("1us", "2us", False, 1), "must have a unit if the ends have one"),
    ],
)
def test_invalid_ranges(arguments, message):
    with pytest.raises(fg.OptionError, match=message):
        fg.Range(*arguments)


def test_a_tuple_is_a_list_of_values():
    with pytest.warns(fg.FloatgateWarning, match=r"write fg.Range\(0.2, 0.4\) for a range, or \[0.2, 0.4\]"):
        rows = search({"capacity.spare": (0.2, 0.4)}, trials=4).table().to_pylist()
    assert {row["capacity.spare"] for row in rows} <= {0.2, 0.4}
    assert set(search({"capacity.spare": (0.2, 0.3, 0.4)}, trials=4).table()["capacity.spare"].to_pylist()) <= {
        0.2, 0.3, 0.4
    }  # fmt: skip
    with pytest.warns(fg.FloatgateWarning, match="for two values"):
        points = fg.Sobol({"capacity.spare": (0.2, 0.4)}, n=4).points()
    assert sorted(point["capacity.spare"] for point in points) == [0.2, 0.2, 0.4, 0.4]


def test_a_search_whose_trials_all_fail_is_an_error(tmp_path, runs):
    """A number for a value with a unit is not a valid value in any trial."""
    space = {"nand.advanced.suspend.latency": fg.Range(20, 100)}
    message = r"all 4 trials of the search failed.* The first failed with: .*a time with its unit, like"
    with pytest.raises(fg.SimulationError, match=message):
        search(space, trials=4)
    with pytest.raises(fg.SimulationError, match=f"the trials are kept in {tmp_path}"):
        search(space, trials=4, store=tmp_path)
    with pytest.raises(fg.SimulationError, match="all 4 trials"):
        search(space, trials=4, store=tmp_path)
    with pytest.raises(fg.SimulationError, match="no number for error_kind"):
        search({"gc.soft_threshold": [2]}, objectives=["error_kind"], trials=1)
    assert len(runs) == 1


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
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("write amplification", "write throughput, IOPS")
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
        ({"space": {"capacity.spare": 0.1}}, "expected a range, such as fg.Range"),
        ({"space": {"capacity.spare": []}}, "the list of values is empty"),
        ({"space": {"gc.victim": ["greedy"]}, "objectives": ["gc.victim"]}, "not all its values are numbers"),
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
    # An objective that is also in the space is printed once, and a range may have units and a scale.
    latency = 'nand.advanced.suspend.latency = { from = "20us", to = "1ms", log = true, step = "1us" }\n'
    text = FILE.replace("gc.victim =", latency + "gc.victim =").replace("write_amplification =", "capacity.spare =")
    (tmp_path / "search.toml").write_text(text)
    status, output, errors = call("--store=objective", "--plot=spare.svg")
    assert (status, errors) == (0, "")
    assert output.split()[:5] == [
        "trial", "capacity.spare", "nand.advanced.suspend.latency", "gc.victim", "requests.write.iops"
    ]  # fmt: skip
    (tmp_path / "search.toml").write_text(
        text.replace('"20us"', "20").replace('"1ms", log', "30, log").replace('"1us"', "1")
    )
    status, output, errors = call("--store=failed")
    assert (status, output) == (1, "")
    assert errors.startswith("error: all 4 trials of the search failed; the trials are kept in failed")
    mpl.pyplot.close("all")


#: A run without load, and one in which a log is written next to reads.
CASES = {
    "idle": "rw=randread norandommap=1 bs=4k number_ios=50",
    "loaded": {
        "workload": "name=reads rw=randread norandommap=1 number_ios=100 ; name=log.1 rw=write bs=4k number_ios=200",
        "precondition": "steady",
    },
}


def test_objectives_are_of_several_runs_and_of_their_streams():
    objectives = {
        "idle.read.latency_us.mean": "minimize",
        "loaded.streams.log.1.write.latency_us.p99": "minimize",
        "loaded.write_amplification": "minimize",
        "capacity.spare": "minimize",
    }
    space = {"nand.read": ["25us", "50us"], "nand.program": ["200us", "400us"], "capacity.spare": [0.2, 0.3]}
    found = search(space, workload=CASES, objectives=objectives, precondition="fill", trials=4, seeds=[1, 2]).table()
    full = ["idle.requests.read.latency_us.mean", "loaded.streams.log.1.requests.write.latency_us.p99",
            "loaded.write_amplification", "capacity.spare"]  # fmt: skip
    assert found.column_names == list(dict.fromkeys(["trial", *space, *full, "front", "error"]))
    for row in found.to_pylist():
        device = fg.Device("tiny", {path: row[path] for path in space})
        idle = fg.run(device, CASES["idle"], precondition="fill", seeds=[1, 2], warn=False)
        loaded = fg.run(device, CASES["loaded"]["workload"], precondition="steady", seeds=[1, 2])
        logs = [stream for run in loaded for stream in run.summary.streams if stream.name == "log.1"]
        assert row[full[0]] == pytest.approx(sum(run.summary.requests.read.latency_us.mean for run in idle) / 2)
        assert row[full[1]] == pytest.approx(sum(log.requests.write.latency_us.p99 for log in logs) / 2)
        assert row[full[2]] == pytest.approx(sum(run.summary.write_amplification for run in loaded) / 2)


def test_an_objective_of_a_stream_needs_no_several_runs():
    both = CASES["loaded"]["workload"]
    found = search(
        {"nand.program": ["200us", "400us"]}, workload=both, objectives=["streams.reads.read.iops"], trials=2
    )
    assert found.objectives == {"streams.reads.requests.read.iops": "minimize"}
    with pytest.raises(fg.OptionError, match="of a stream that no workload has; the streams are reads, log.1"):
        search({"nand.program": ["200us"]}, workload=both, objectives=["streams.writes.read.iops"], trials=1)


@pytest.mark.parametrize(
    ("workload", "objective", "message"),
    [
        (CASES, "read.iops", r"must start with the name of a run; expected idle\., loaded\."),
        (CASES, "lodaed.read.iops", r"must start with the name of a run \(nearest: loaded\)"),
        (CASES, "idle.read.iosp", r"is not a column of the run idle \(nearest: requests.read.iops"),
        ({"a.b": "rw=read"}, "a.b.read.iops", "invalid name of a run `a.b`"),
        ({"a": {"precondition": "fill"}}, "a.read.iops", "the run a must have a workload"),
        ({}, "read.iops", "no workload"),
        ("rw=read", "streams.a.read.iosp", "the objective streams.a.read.iosp is not a column"),
    ],
)
def test_mistakes_of_several_runs_are_refused_before_any_run(workload, objective, message, runs):
    with pytest.raises(fg.OptionError, match=message):
        search({"nand.program": ["200us"]}, workload=workload, objectives=[objective])
    assert not runs


def test_a_file_has_several_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "search.toml").write_text("""
        device = "tiny"
        trials = 2
        batch = 2
        [space]
        nand.program = ["200us", "400us"]
        [workload.idle]
        workload = "rw=randread norandommap=1 number_ios=50"
        [workload.loaded]
        workload = "name=reads rw=randread norandommap=1 number_ios=50 ; name=log rw=write number_ios=50"
        precondition = "steady"
        [objectives]
        idle.read.iops = "maximize"
        loaded.streams.log.write.latency_us.p99 = "minimize"
    """)
    monkeypatch.setattr(sys, "argv", ["floatgate", "optimize", "search.toml", "--jobs", "1", "--quiet"])
    assert main() == 0
    header = capsys.readouterr().out.splitlines()[0].split()
    assert header == [
        "trial",
        "nand.program",
        "idle.requests.read.iops",
        "loaded.streams.log.requests.write.latency_us.p99",
    ]
