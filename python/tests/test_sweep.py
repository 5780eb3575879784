"""Sweeps."""

import itertools
import json
import os
import pickle
import sys
import threading

import pyarrow.dataset as ds
import pytest

import floatgate as fg
from floatgate import _distributing
from floatgate._distributing import each
from floatgate.store import Store

JOB = "rw=randwrite bs=4k iodepth=4 number_ios=500"
GRID = {"gc.victim": ["greedy", "fifo"], "geometry.channels": [2, 4]}


def sweep(space=None, **options):
    """Sweep in this process."""
    return fg.sweep(GRID if space is None else space, **{"device": "tiny", "workload": JOB, "n_jobs": 1, **options})


@pytest.fixture
def runs(monkeypatch):
    """Count the runs."""
    calls = []
    run = fg.sweeping.run

    def counted(*arguments, **options):
        calls.append(arguments)
        return run(*arguments, **options)

    monkeypatch.setattr("floatgate.sweeping.run", counted)
    return calls


def test_a_grid_has_a_row_per_run():
    table = sweep(seeds=range(1, 3))
    rows = table.to_pylist()
    names = ("gc.victim", "geometry.channels", "seed")
    assert [tuple(map(row.get, names)) for row in rows] == list(itertools.product(*GRID.values(), (1, 2)))
    expected = fg.run(fg.Device("tiny", {"gc.victim": "fifo", "geometry.channels": 4}), JOB, seed=2, warn=False).summary
    last = rows[-1]
    assert last["config_digest"] == expected.config_digest
    assert last["workload_digest"] == expected.workload.digest
    assert last["requests.write.latency_us.p99"] == expected.requests.write.latency_us.p99
    assert last["write_amplification"] == expected.write_amplification
    assert last["bottleneck.limited_by"] == expected.bottleneck.limited_by
    assert last["error"] is None


def test_a_scale_applies_after_the_parameters_of_a_point(tmp_path, runs):
    base = fg.Device("tiny", {"capacity.spare": 0.4})
    table = sweep({"geometry.blocks": [64, 128]}, device=base, scale="1/4", store=tmp_path)
    scaled = [base.with_options({"geometry.blocks": blocks}).scaled("1/4") for blocks in (64, 128)]
    assert table["config_digest"].to_pylist() == [one.digest for one in scaled]
    # A sweep of the scaled devices finds these runs in the store.
    before = len(runs)
    sweep([{"device": one} for one in scaled], store=tmp_path)
    assert len(runs) == before


@pytest.mark.parametrize("device", ["tiny", "hu2011", "agrawal2008-mtron", "raid.toml"])
def test_the_columns_are_known_before_the_runs(device, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "raid.toml").write_text('[array]\nlevel = 5\ndevice = "tiny"\ncount = 4\n')
    space = {"member.nand.read" if device == "raid.toml" else "nand.read": ["30us"]}
    table = sweep(space, device=device, precondition="none", workload="rw=randrw number_ios=100")
    assert table["error"].to_pylist() == [None]
    known = fg.sweeping.columns_of(space)
    assert [name for name in table.column_names if not fg._files.has_column(name, known)] == []
    assert "requests.write.iop" not in known


def test_points_may_have_devices_workloads_and_states():
    points = [
        {"device": "tiny", "workload": fg.Synthetic("rw=read number_ios=50")},
        {"device": fg.Device("tiny", {"gc.victim": "fifo"}), "workload": JOB, "precondition": "steady"},
    ]
    rows = fg.sweep(points, n_jobs=1).to_pylist()
    assert [row["requests.all.count"] for row in rows] == [50, 500]
    assert [row["device"] for row in rows] == ["tiny", "tiny gc.victim=fifo"]
    assert [row["precondition"] for row in rows] == [None, "steady"]


def test_a_finished_sweep_is_kept_and_an_interrupted_one_continues(tmp_path, runs):
    def stop(done, total, eta):
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep(store=tmp_path, progress=stop)
    assert len(runs) == 3
    first = sweep(store=tmp_path)
    assert len(runs) == 4
    again = sweep(store=tmp_path)
    assert len(runs) == 4
    assert again.equals(first)
    assert ds.dataset(tmp_path).to_table().num_rows == 4
    sweep(store=tmp_path, seeds=[2])
    assert len(runs) == 8


def test_the_key_covers_everything_that_affects_a_result(tmp_path, trace, runs):
    space = [{"gc.victim": "fifo"}]
    variations = [
        {},
        {"precondition": "none"},
        {"workload": f"{JOB} name=x"},
        {"attribution": False},
        {"workload": trace},
        {"seeds": [9]},
    ]
    for options in variations * 2:
        sweep(space, store=tmp_path, **options)
    assert len(runs) == len(variations)
    # Another way to define the same device gives the same key.
    sweep([{}], device=fg.Device.from_toml('base = "tiny"\ngc.victim = "fifo"'), store=tmp_path)
    assert len(runs) == len(variations)
    trace.write_text(trace.read_text().replace(",Write,", ",Read,"))
    sweep(space, workload=trace, store=tmp_path)
    sweep(space, workload=fg.Trace(trace, limit=100), store=tmp_path)
    assert len(runs) == len(variations) + 2
    trace.write_text("".join(trace.read_text().splitlines(keepends=True)[:50]))
    sweep(space, workload=fg.Trace(trace, limit=100), store=tmp_path)
    assert len(runs) == len(variations) + 3


def test_a_failing_point_is_a_row(tmp_path, runs):
    table = sweep({"gc.soft_threshold": [2, 10_000], "gc.victim": ["greedy", "none"]}, store=tmp_path)
    kinds = table["error_kind"].to_pylist()
    assert kinds == [None, "ConfigError", "ConfigError", "ConfigError"]
    assert "soft_threshold" in table["error"][2].as_py()
    assert table["requests.all.count"].to_pylist() == [500, None, None, None]
    failing = sweep([{"precondition": "aged=0.9"}, {}], store=tmp_path)
    assert failing["error_kind"].to_pylist() == ["PreconditionError", None]
    before = len(runs)
    assert sweep([{"precondition": "aged=0.9"}, {}], store=tmp_path).equals(failing)
    assert len(runs) == before


def test_equal_runs_are_run_once(runs):
    table = sweep([{"geometry.channels": 2}, {"geometry.channels": 2.0}, {"geometry.channels": 2}])
    assert table.num_rows == 3
    assert len(runs) <= 2


def test_broken_files_of_a_store_are_replaced(tmp_path, runs):
    sweep([{}], store=tmp_path)
    (place,) = tmp_path.iterdir()
    place.write_bytes(b"PAR1")
    sweep([{}], store=tmp_path)
    assert len(runs) == 2
    assert Store(tmp_path).get(place.stem)["error"] is None
    with pytest.raises(fg.OutputError, match="cannot create"):
        Store(place)


def test_sobol_fills_the_space():
    spare, channels = fg.Range(0.2, 0.4), fg.Range(1, 4)
    sobol = fg.Sobol({"capacity.spare": spare, "geometry.channels": channels, "gc.victim": ["greedy", "fifo"]}, n=16)
    points = sobol.points()
    assert points == sobol.points() != fg.Sobol(sobol.space, n=16, seed=1).points()
    assert all(0.2 <= point["capacity.spare"] < 0.4 for point in points)
    # For a power of two of points, each half and quarter of every dimension has an equal share.
    assert [sum(point["geometry.channels"] == channels for point in points) for channels in (1, 2, 3, 4)] == [4] * 4
    assert sum(point["gc.victim"] == "fifo" for point in points) == 8
    assert sweep(fg.Sobol({"capacity.spare": spare}, n=2)).num_rows == 2


def test_results_do_not_depend_on_processes(tmp_path):
    expected = sweep(seeds=[1, 2])
    found = sweep(seeds=[1, 2], n_jobs=2, store=tmp_path)
    names = [name for name in expected.column_names if not name.startswith("run.")]
    assert found.select(names).equals(expected.select(names))
    assert len(list(tmp_path.iterdir())) == 8


def test_progress_reports_the_remaining_time():
    told = []
    sweep(progress=lambda done, total, eta: told.append((done, total, eta)))
    assert [done for done, _, _ in told] == [1, 2, 3, 4]
    assert told[-1][1:] == (4, 0)


@pytest.mark.parametrize(
    ("space", "options", "message"),
    [
        ({"gc.victim": "greedy"}, {}, "list of values"),
        ([], {}, "no points"),
        (GRID, {"workload": None}, "no workload"),
        (GRID, {"device": None}, "no device"),
    ],
)
def test_mistakes(space, options, message):
    with pytest.raises(fg.OptionError, match=message):
        sweep(space, **options)


def test_tasks_find_their_files_from_other_directories(tmp_path, trace, monkeypatch):
    monkeypatch.chdir(trace.parent)
    (trace.parent / "mine.toml").write_text('base = "tiny"\ngc.victim = "fifo"\n')
    points = [
        {"workload": trace.name, "device": "./mine.toml"},
        {"workload": f"trace={trace.name} limit=100", "device": fg.Device("./mine.toml")},
        {"workload": "rw=write number_ios=50", "device": "tiny", "precondition": f'trace="{trace.name}"'},
    ]
    tasks = [
        pickle.dumps(fg.sweeping._task(point, 1, workload=None, device=None, precondition="fill", prewrite="none",
                                       attribution=True))
        for point in points
    ]  # fmt: skip
    monkeypatch.chdir("/")
    rows = [pickle.loads(task).row() for task in tasks]
    assert [row["error"] for row in rows] == [None] * 3
    assert [json.loads(row["summary"])["requests"]["all"]["count"] for row in rows] == [500, 100, 50]


def test_the_death_of_a_worker_is_an_error():
    with pytest.raises(fg.SimulationError, match="worker process died"):
        list(each(os._exit, [1, 1], 2))
    with pytest.raises(fg.OptionError, match="number of jobs `0`"):
        sweep(n_jobs=0)


def test_a_missing_task_is_not_printed_while_tasks_are_cancelled(monkeypatch):
    """After Ctrl-C, the thread of joblib that hands out tasks may not find one that was cancelled."""
    printed = []
    monkeypatch.setattr(threading, "excepthook", printed.append)

    def fail(name):
        thread = threading.Thread(target=lambda: {}[1], name=name)
        thread.start()
        thread.join()

    with _distributing._cancelling():
        fail("ExecutorManagerThread")
        assert not printed
        fail("another")
    fail("ExecutorManagerThread")
    assert [arguments.thread.name for arguments in printed] == ["another", "ExecutorManagerThread"]


@pytest.mark.parametrize(
    ("path", "nearest"),
    [
        ("gc.victm", "victim"),
        ("capacity.sparse", "spare"),
        ("allocation.statik.order", "static"),
        ("bus.protocol.nvddr", "nv-ddr"),
        ("gc.victim.d-choces.d", "d-choices"),
        ("gc.victim.d-choices.dd", "d"),
    ],
)
def test_a_mistyped_parameter_raises_at_once(path, nearest):
    message = f"the device does not have: {path}=5: .*did you mean `{nearest}`"
    with pytest.raises(fg.OptionError, match=message):
        sweep({path: [5]})


def test_a_mistyped_parameter_of_an_array_raises_at_once():
    array = fg.Device.from_toml('[array]\nlevel = 5\ndevice = "tiny"\ncount = 4\n')
    for path, message in [
        ("member.geometry.chanels", "have: member 0 .tiny.: geometry.chanels=8: unknown key .*did you mean `channels`"),
        ("member.capacity.sparse", "unknown name `sparse`, did you mean `spare`"),
        ("array.levels", "unknown field `levels`, did you mean `level`"),
        ("geometry.channels", "write member.geometry.channels=8"),
    ]:
        with pytest.raises(fg.OptionError, match=message):
            sweep({path: [8]}, device=array)
    assert sweep({"member.gc.victim": ["gredy"]}, device=array)["error_kind"].to_pylist() == ["ConfigError"]


def test_parts_of_a_value_are_not_parameters():
    with pytest.raises(fg.OptionError, match="`nand.read` is one value, not a table"):
        sweep({"nand.read.pages": [5]})
    with pytest.raises(fg.OptionError, match="did you mean `d-choices`"):
        sweep({"gc.victim": [{"d-choces": {"d": 4}}]})


def test_a_mistyped_value_is_a_row():
    errors = sweep({"gc.victim": ["gredy", "greedy"]})["error"].to_pylist()
    assert errors[0].startswith("gc.victim=gredy: `gc.victim`: unknown name `gredy`, did you mean `greedy`?")
    assert errors[1] is None


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"device": "tinyy"}, fg.ConfigError, "^no built-in device is called `tinyy`, did you mean `tiny`"),
        ({"device": "other.toml"}, fg.ConfigError, "^cannot read the device file other.toml"),
        ({"workload": "rw=randwrit"}, fg.WorkloadError, "did you mean `randwrite`"),
        ({"workload": ["rw=read number_ios=9", "other.csv"]}, fg.WorkloadError, "`other.csv` is not a file"),
        ({"precondition": "stedy"}, fg.PreconditionError, "did you mean `steady`"),
        ({"precondition": "rw=randwrit"}, fg.PreconditionError, "did you mean `randwrite`"),
    ],
)
def test_an_invalid_device_workload_or_precondition_of_all_runs_raises_at_once(options, kind, message, tmp_path, runs):
    with pytest.raises(kind, match=message):
        sweep(store=tmp_path / "store", **options)
    with pytest.raises(kind, match=message):
        sweep([options, options])
    assert not runs
    assert not (tmp_path / "store").exists()
    # If only some runs have it, they are rows.
    assert sweep([options, {}])["error_kind"].to_pylist()[1] is None


def test_cells_of_a_csv_file_are_one_line(tmp_path):
    from floatgate import _files

    table = fg.sweep(
        {"gc.soft_threshold": [500, 5], "gc.hard_threshold": [600]}, device="tiny", workload="rw=read number_ios=10",
        n_jobs=1,
    )  # fmt: skip
    assert any("\n" in (text or "") for text in table["error"].to_pylist())
    _files.write_table(table, str(tmp_path / "t.csv"))
    assert len((tmp_path / "t.csv").read_text().splitlines()) == 1 + table.num_rows


def test_without_joblib_runs_are_in_one_process(monkeypatch):
    monkeypatch.setitem(sys.modules, "joblib", None)
    with pytest.warns(fg.FloatgateWarning, match=r"pip install 'floatgate\[joblib\]'") as caught:
        found = sweep(n_jobs=None, precondition="steady", seeds=[1, 1])
    assert found["error"].null_count == found.num_rows
    # Saved states and runs are made in parallel, but the note is one.
    assert [warning.filename for warning in caught] == [__file__]
    # One run needs no parallel processes, so there is no note.
    assert sweep([{}], n_jobs=None).num_rows == 1
    with pytest.raises(ImportError, match=r"pip install 'floatgate\[joblib\]', or set n_jobs=1"):
        sweep(n_jobs=2)
