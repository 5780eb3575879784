"""Arrays of SSDs: runs, sweeps, options and errors."""

import pytest

import floatgate as fg

RAID5 = """
[array]
level = 5
device = "tiny"
count = 4
stripe = "16KiB"
"""
WORKLOAD = "rw=randwrite bs=4k iodepth=4 number_ios=300"


@pytest.fixture
def raid5(tmp_path):
    path = tmp_path / "raid5.toml"
    path.write_text(RAID5)
    return path


def test_a_run_has_results_of_the_array_and_its_members(raid5, tmp_path):
    result = fg.run(raid5, WORKLOAD, out=tmp_path / "out")
    summary = result.summary
    assert summary.requests.write.count == 300
    assert summary.array.writes.reconstruct == 300
    assert len(summary.members) == 4
    assert sum(member.requests.all.count for member in summary.members) == 4 * 300
    assert fg.load(tmp_path / "out" / "member-3").summary.device.name == "tiny"


def test_devices_know_their_array(raid5):
    device = fg.Device(raid5)
    assert device.name == "raid5"
    assert device.array["level"] == 5
    assert fg.Device("tiny").array is None
    other = device.with_options({"array.stripe": "8KiB", "member.gc.victim": "fifo"})
    assert other.digest != device.digest
    assert fg.Device.from_toml(other.to_toml()).digest == other.digest


def test_sweeps_vary_the_array_and_its_members(raid5):
    results = fg.sweep(
        {"array.level": [0, 5], "member.gc.victim": ["greedy", "fifo"]},
        device=raid5,
        workload=WORKLOAD,
        seeds=range(1, 3),
        n_jobs=1,
    )
    assert len(results) == 8


def test_arrays_can_be_stepped(raid5):
    simulator = fg.Simulator(raid5, precondition="fill")
    written = simulator.counters()["host_units"]
    simulator.submit("write", 0, 4096)
    fork = simulator.fork()
    simulator.advance()
    fork.advance()
    [row] = simulator.completions().to_pylist()
    assert row["status"] == "ok"
    assert [row] == fork.completions().to_pylist()
    # Two writes: data and parity.
    assert simulator.counters()["host_units"] == written + 2
    with pytest.raises(fg.FloatgateError, match="needs a single SSD"):
        simulator.inspect()


def test_states_can_be_saved_and_loaded(raid5, tmp_path):
    aged = fg.Simulator(raid5, precondition="steady")
    path = tmp_path / "aged.fgstate"
    aged.save(path)
    requests = fg.run(raid5, WORKLOAD, precondition="steady").summary.requests
    for result in (
        fg.run(raid5, WORKLOAD, precondition=path),
        fg.run(fg.Simulator.load(path), WORKLOAD),
        fg.run(fg.Simulator.load(path, raid5), WORKLOAD),
        fg.run(aged, WORKLOAD),
        fg.run(raid5, WORKLOAD, precondition=aged),
    ):
        assert repr(result.summary.requests) == repr(requests)
    for other, key in ((fg.Device(raid5, {"array.stripe": "8KiB"}), "array.stripe"), ("tiny", "state of an array")):
        with pytest.raises(fg.PreconditionError, match=key):
            fg.Simulator.load(path, other)
        with pytest.raises(fg.PreconditionError, match=key):
            fg.run(other, WORKLOAD, precondition=aged)


def test_runs_of_a_sweep_share_the_state_of_an_array(raid5, monkeypatch):
    made = []
    save = fg.Simulator.save
    monkeypatch.setattr(fg.Simulator, "save", lambda self, path: made.append(path) or save(self, path))
    setting = {"device": raid5, "workload": WORKLOAD, "precondition": "steady", "n_jobs": 1}
    shared = fg.sweep({"array.queue_depth": [2, 8]}, **setting)
    assert len(made) == 1, shared.to_pylist()
    alone = fg.sweep({"array.queue_depth": [2]}, **setting)
    column = "requests.write.latency_us.p99"
    assert shared[column][0] == alone[column][0]


def test_errors_name_the_key(raid5):
    with pytest.raises(fg.ConfigError, match="member.gc.victim"):
        fg.Device(raid5, {"gc.victim": "fifo"})


def test_workloads_prepare_an_array(raid5):
    job = "rw=write bs=48k size=480k"
    result = fg.run(raid5, WORKLOAD, precondition=job)
    assert result.summary.precondition.requested == job
    assert fg.Simulator(raid5, precondition=job).counters()["host_units"] == 10 * 4 * 4
    prewritten = fg.run(raid5, "rw=read bs=16k number_ios=3", precondition="none", prewrite="even")
    assert "64 KiB of read data prewritten evenly" in prewritten.summary.precondition.requested
