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
    """Whether two simulators hold the same in flash and map."""
    one, two = first.inspect(), second.inspect()
    names = ("block_state", "block_valid", "block_erases", "unit_state", "unit_lpn", "map")
    return all(np.array_equal(getattr(one, name), getattr(two, name)) for name in names)


def future(simulator):
    """Send some requests, and tell when they are answered, counted from now."""
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


def test_what_is_loaded_is_what_was_saved(tmp_path, aged):
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
    # After requests, too; their clock starts anew.
    original.save(again)
    loaded = fg.Simulator.load(again)
    assert loaded.now == 0
    assert loaded.precondition["requested"] == "steady, and 200 requests"
    assert future(loaded) == future(original)


def test_a_run_begins_with_a_state(aged, command):
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
    # No command line names a device that came with its state.
    alone = fg.run(fg.Simulator.load(aged), JOB).summary
    assert (alone.arguments, alone.requests) == ([], made.summary.requests)


def without_cost(summary):
    """Leave out what differs from one run of the same to the next."""
    return {key: value for key, value in summary.items() if key not in ("arguments", "run")}


def test_a_device_with_other_times_may_have_it(aged):
    slow = fg.Device("tiny", {"nand.read": "99us", "host.queue_depth": 3})
    assert slow.state_digest == fg.Device("tiny").state_digest != fg.Device("tiny", {"gc.victim": "fifo"}).state_digest
    loaded = fg.Simulator.load(aged, slow)
    assert loaded.device == slow
    by_path = fg.run(slow, JOB, precondition=aged, seed=3).summary
    by_simulator = fg.run(slow, JOB, precondition=fg.Simulator("tiny", precondition="steady", seed=3)).summary
    assert by_path.requests.read.latency_us.mean > 99
    assert without_cost(json.loads(by_path.to_json())) == without_cost(json.loads(by_simulator.to_json()))


def test_what_may_not_differ_is_named(aged):
    said = r"`gc\.victim` was greedy when it was saved, and is fifo here"
    fifo = fg.Device("tiny", {"gc.victim": "fifo"})
    with pytest.raises(fg.PreconditionError, match=said):
        fg.Simulator.load(aged, fifo)
    with pytest.raises(fg.PreconditionError, match=said):
        fg.run(fifo, JOB, precondition=aged)
    with pytest.raises(fg.PreconditionError, match=said):
        fg.run(fifo, JOB, precondition=fg.Simulator("tiny"))
    with pytest.raises(fg.OptionError, match="leave the precondition out"):
        fg.run(fg.Simulator("tiny"), JOB, precondition=fg.Simulator("tiny"))


def test_files_that_are_no_states_are_told(tmp_path, aged):
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


def test_only_a_device_at_rest_is_saved(tmp_path):
    simulator = fg.Simulator("tiny")
    simulator.submit("write", 0, "4KiB")
    with pytest.raises(fg.OutputError, match="1 requests have not completed"):
        simulator.save(tmp_path / "file")
    with pytest.raises(fg.OutputError, match="cannot write"):
        fg.Simulator("tiny").save(tmp_path / "missing" / "file")
    assert list(tmp_path.iterdir()) == []


SPACE = {"nand.read": ["20us", "40us"], "gc.victim": ["greedy", "random"], "host.queue_depth": [4, 64]}


def test_a_sweep_makes_each_state_once(tmp_path, monkeypatch):
    options = {"device": "tiny", "workload": JOB, "precondition": "steady", "seeds": (1, 2), "n_jobs": 1}
    made = []
    monkeypatch.setattr(states, "Simulator", counting(made))
    shared = fg.sweep(SPACE, store=tmp_path, **options)
    # Of 16 runs two victims and two seeds tell states apart.
    assert len(made) == 4
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".parquet"] * 16
    monkeypatch.setattr(states, "shared", alone)
    assert shared.drop_columns(costs(shared)).equals(fg.sweep(SPACE, **options).drop_columns(costs(shared)))
    assert len(made) == 4


def costs(table):
    """Name the columns of what a run cost."""
    return [name for name in table.column_names if name.startswith("run.")]


def counting(made):
    class Counted(fg.Simulator):
        def __init__(self, *arguments, **options):
            made.append(arguments)
            super().__init__(*arguments, **options)

    return Counted


class alone:  # noqa: N801 (it stands for a function)
    """Share nothing."""

    def __init__(self, tasks, *_):
        self.tasks = tasks

    def __enter__(self):
        return self.tasks

    def __exit__(self, *_):
        pass


def test_a_state_that_cannot_be_made_is_told_by_each_run(tmp_path, monkeypatch):
    options = {"device": "tiny", "workload": JOB, "n_jobs": 1}
    rows = fg.sweep({"nand.read": ["20us", "40us"]}, precondition="aged=0.99", **options).to_pylist()
    assert [row["error_kind"] for row in rows] == ["PreconditionError"] * 2
    # A full disk costs time, and nothing else.
    monkeypatch.setattr(fg.Simulator, "save", lambda *_: (_ for _ in ()).throw(fg.OutputError("full")))
    rows = fg.sweep({"nand.read": ["20us", "40us"]}, store=tmp_path, **options).to_pylist()
    assert [row["error_kind"] for row in rows] == [None] * 2


def test_makers_that_race_leave_one_whole_file(tmp_path):
    task = fg.sweeping._task({}, 1, workload=JOB, device="tiny", precondition="fill", prewrite="none", attribution=True)
    key = states._key(task)
    makers = [threading.Thread(target=states._Maker(task, str(tmp_path), key).row) for _ in range(2)]
    for maker in makers:
        maker.start()
    for maker in makers:
        maker.join()
    assert [path.name for path in tmp_path.iterdir()] == [f"{key}.fgstate"]
    fg.Simulator.load(tmp_path / f"{key}.fgstate")


def test_drafts_of_one_place_are_files_of_their_own(tmp_path):
    place = tmp_path / "a.txt"
    with draft(place) as first, draft(place) as second:
        first.write_text("first")
        second.write_text("second")
    # The one that ends last stays.
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a.txt", "first")]
    # What is never whole is gone, and the file stays.
    with pytest.raises(KeyboardInterrupt), draft(place):
        raise KeyboardInterrupt
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a.txt", "first")]


def test_a_state_overwrites_nothing_that_it_was_made_from(tmp_path, monkeypatch):
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
