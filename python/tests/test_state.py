"""Saved states."""

import json
import threading

import numpy as np
import pytest

import floatgate as fg
from floatgate import states
from floatgate._files import draft

JOB = "rw=randrw bs=4k iodepth=4 number_ios=400"


def same(first, second):
    """Return True if two simulators have the same flash and map."""
    one, two = first.inspect(), second.inspect()
    names = ("block_state", "block_valid", "block_erases", "unit_state", "unit_lpn", "map")
    return all(np.array_equal(getattr(one, name), getattr(two, name)) for name in names)


def future(simulator):
    """Submit some requests, and return their completion times relative to now."""
    start = simulator.now
    for number in range(200):
        simulator.submit("write", number * 7919 % 3000 * 4096, "4KiB", at=start + number * 1000)
    simulator.advance()
    table = simulator.completions()
    return [ps - start for ps in table["finish_ps"].to_pylist()]


@pytest.fixture(scope="module")
def aged(tmp_path_factory):
    """Save a state."""
    path = tmp_path_factory.mktemp("state") / "aged.fgstate"
    fg.Simulator("tiny", precondition="steady", seed=3).save(path)
    return path


def test_a_loaded_state_equals_the_saved_one(tmp_path, aged):
    original = fg.Simulator("tiny", precondition="steady", seed=3)
    loaded = fg.Simulator.load(aged)
    assert same(original, loaded)
    assert (loaded.now, loaded.submitted, loaded.seed) == (0, 0, 3)
    assert loaded.device == fg.Device("tiny")
    assert loaded.precondition == original.precondition
    assert loaded.counters() == original.counters()
    again = tmp_path / "again.fgstate"
    loaded.save(again)
    assert again.read_bytes() == aged.read_bytes()
    assert future(loaded) == future(original)
    assert same(original, loaded)
    # This also holds after requests, with a clock that restarts at 0.
    original.save(again)
    loaded = fg.Simulator.load(again)
    assert loaded.now == 0
    assert loaded.precondition["requested"] == "steady, and 200 requests"
    assert future(loaded) == future(original)


def test_a_run_starts_from_a_state(aged, command):
    made = fg.run("tiny", JOB, precondition="steady", seed=3)
    by_path = fg.run("tiny", JOB, precondition=aged, seed=3)
    simulator = fg.Simulator.load(aged, "tiny")
    by_simulator = fg.run("tiny", JOB, precondition=simulator)
    on_simulator = fg.run(simulator, JOB)
    numbers = json.loads(made.summary.to_json())
    for result in (by_path, by_simulator, on_simulator):
        other = json.loads(result.summary.to_json())
        assert other["arguments"] == ["run", "tiny", JOB, f"--load-state={aged}", "--seed", "3"]
        assert without_cost(other) == without_cost(numbers)
    printed = command("run", "tiny", JOB, "--load-state", aged, "--seed", 3, "--json")
    assert without_cost(json.loads(printed)) == without_cost(numbers)
    # A command line cannot name the device in a state file.
    alone = fg.run(fg.Simulator.load(aged), JOB).summary
    assert (alone.arguments, alone.requests) == ([], made.summary.requests)


def without_cost(summary):
    """Remove the parts that differ between repetitions of a run."""
    return {key: value for key, value in summary.items() if key not in ("arguments", "run")}


def test_a_device_with_other_times_accepts_the_state(aged):
    slow = fg.Device("tiny", {"nand.read": "99us", "host.queue_depth": 3})
    assert slow.state_digest == fg.Device("tiny").state_digest != fg.Device("tiny", {"gc.victim": "fifo"}).state_digest
    loaded = fg.Simulator.load(aged, slow)
    assert loaded.device == slow
    by_path = fg.run(slow, JOB, precondition=aged, seed=3).summary
    by_simulator = fg.run(slow, JOB, precondition=fg.Simulator("tiny", precondition="steady", seed=3)).summary
    assert by_path.requests.read.latency_us.mean > 99
    assert without_cost(json.loads(by_path.to_json())) == without_cost(json.loads(by_simulator.to_json()))


def test_conflicting_parameters_are_named(aged):
    said = r"`gc\.victim` was greedy when it was saved, and is fifo here"
    fifo = fg.Device("tiny", {"gc.victim": "fifo"})
    with pytest.raises(fg.PreconditionError, match=said):
        fg.Simulator.load(aged, fifo)
    with pytest.raises(fg.PreconditionError, match=said):
        fg.run(fifo, JOB, precondition=aged)
    with pytest.raises(fg.PreconditionError, match=said):
        fg.run(fifo, JOB, precondition=fg.Simulator("tiny"))
    with pytest.raises(fg.OptionError, match="omit the precondition"):
        fg.run(fg.Simulator("tiny"), JOB, precondition=fg.Simulator("tiny"))


def test_files_that_are_not_states_are_refused(tmp_path, aged):
    file = tmp_path / "file"
    for content, said in [
        (b"", "not a saved state"),
        (b"[geometry]", "not a saved state"),
        (aged.read_bytes()[:-9], "it is damaged: it ends"),
        (aged.read_bytes()[:5000] + b"?" + aged.read_bytes()[5001:], "it is damaged"),
    ]:
        file.write_bytes(content)
        with pytest.raises(fg.PreconditionError, match=said):
            fg.Simulator.load(file)
    with pytest.raises(fg.PreconditionError, match="cannot read the state"):
        fg.Simulator.load(tmp_path / "missing")


def test_only_an_idle_device_is_saved(tmp_path):
    simulator = fg.Simulator("tiny")
    simulator.submit("write", 0, "4KiB")
    with pytest.raises(fg.OutputError, match="1 requests have not completed"):
        simulator.save(tmp_path / "file")
    with pytest.raises(fg.OutputError, match="cannot write"):
        fg.Simulator("tiny").save(tmp_path / "missing" / "file")
    assert list(tmp_path.iterdir()) == []


SPACE = {"nand.read": ["20us", "40us"], "gc.victim": ["greedy", "random"], "host.queue_depth": [4, 64]}


def test_a_sweep_prepares_each_state_once(tmp_path, monkeypatch):
    options = {"device": "tiny", "workload": JOB, "precondition": "steady", "seeds": (1, 2), "n_jobs": 1}
    made = []
    monkeypatch.setattr(states, "Simulator", counting(made))
    shared = fg.sweep(SPACE, store=tmp_path, **options)
    # The 16 runs have four states, by two victim policies and two seeds.
    assert len(made) == 4
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".parquet"] * 16
    monkeypatch.setattr(states, "shared", alone)
    assert shared.drop_columns(costs(shared)).equals(fg.sweep(SPACE, **options).drop_columns(costs(shared)))
    assert len(made) == 4


def test_a_sweep_prepares_a_state_once_for_all_seeds(monkeypatch):
    options = {"device": "tiny", "workload": JOB, "precondition": "fill", "seeds": (1, 2, 3), "n_jobs": 1}
    made = []
    monkeypatch.setattr(states, "Simulator", counting(made))
    shared = fg.sweep(SPACE, **options)
    # A random victim policy has a state of each seed, and the greedy one has a single state.
    assert len(made) == 1 + 3
    monkeypatch.setattr(states, "shared", alone)
    assert shared.drop_columns(costs(shared)).equals(fg.sweep(SPACE, **options).drop_columns(costs(shared)))
    assert len(made) == 4


def costs(table):
    """Return the columns with the cost of a run."""
    return [name for name in table.column_names if name.startswith("run.")]


def counting(made):
    class Counted(fg.Simulator):
        def __init__(self, *arguments, **options):
            made.append(arguments)
            super().__init__(*arguments, **options)

    return Counted


class alone:  # noqa: N801 (it replaces a function)
    """Shares no states."""

    def __init__(self, tasks, *_):
        self.tasks = tasks

    def __enter__(self):
        return self.tasks

    def __exit__(self, *_):
        pass


def test_each_run_reports_a_state_that_cannot_be_prepared(tmp_path, monkeypatch):
    options = {"device": "tiny", "workload": JOB, "n_jobs": 1}
    rows = fg.sweep({"nand.read": ["20us", "40us"]}, precondition="aged=0.99", **options).to_pylist()
    assert [row["error_kind"] for row in rows] == ["PreconditionError"] * 2
    # A full disk only costs time.
    monkeypatch.setattr(fg.Simulator, "save", lambda *_: (_ for _ in ()).throw(fg.OutputError("full")))
    rows = fg.sweep({"nand.read": ["20us", "40us"]}, store=tmp_path, **options).to_pylist()
    assert [row["error_kind"] for row in rows] == [None] * 2


def test_concurrent_workers_leave_one_complete_file(tmp_path):
    task = fg.sweeping._task({}, 1, workload=JOB, device="tiny", precondition="fill", prewrite="none", attribution=True)
    key = states._key(task)
    makers = [threading.Thread(target=states._Maker(task, str(tmp_path), key).row) for _ in range(2)]
    for maker in makers:
        maker.start()
    for maker in makers:
        maker.join()
    assert [path.name for path in tmp_path.iterdir()] == [f"{key}.fgstate"]
    fg.Simulator.load(tmp_path / f"{key}.fgstate")


def test_drafts_of_one_path_are_separate_files(tmp_path):
    place = tmp_path / "a.txt"
    with draft(place) as first, draft(place) as second:
        first.write_text("first")
        second.write_text("second")
    # The draft that ends last remains.
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a.txt", "first")]
    # An incomplete draft is deleted, and the file remains.
    with pytest.raises(KeyboardInterrupt), draft(place):
        raise KeyboardInterrupt
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a.txt", "first")]


def test_a_state_does_not_overwrite_its_inputs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    trace = "".join(f"0,{8 * index},4096,W,{index}.0\n" for index in range(9))
    (tmp_path / "device.toml").write_text('base = "tiny"\n')
    (tmp_path / "t.spc").write_text(trace)
    simulator = fg.Simulator("./device.toml", precondition="trace=t.spc devices=merge")
    for place in ("device.toml", "t.spc"):
        with pytest.raises(fg.OptionError, match="would overwrite"):
            simulator.fork().save(place)
    assert (tmp_path / "t.spc").read_text() == trace
    simulator.save("a.fgstate")
    loaded = fg.Simulator.load("a.fgstate", "./device.toml")
    with pytest.raises(fg.OptionError, match="would overwrite the device file"):
        loaded.save("device.toml")
    loaded.save("a.fgstate")
