"""Step-by-step simulation."""

import copy

import numpy as np
import pytest

import floatgate as fg
from floatgate.simulator import State


def test_stepping_gives_the_results_of_a_run():
    """Repeat the loop of fg.run by hand, with requests at given times."""
    job = "rw=randwrite bs=4k rate_iops=20000 number_ios=400"
    requests = fg.run("tiny", job, precondition="steady", seed=3, requests=True).requests()
    simulator = fg.Simulator("tiny", precondition="steady", seed=3)
    for row in requests.sort_by("number").to_pylist():
        number = simulator.submit(row["operation"], 512 * row["lba"], 512 * row["sectors"], at=row["arrival_ps"])
        assert number == row["number"]
    simulator.advance()
    stepped = simulator.completions().sort_by("number")
    expected = requests.sort_by("number")
    for name in ("arrival_ps", "start_ps", "finish_ps", "gc_ps", "cell_ps"):
        assert stepped[name].to_pylist() == expected[name].to_pylist(), name


def test_the_latency_of_a_read_is_the_sum_of_its_phases():
    config = fg.Device("tiny").config
    assert (config["nand"]["read"], config["bus"]["protocol"]) == ("25us", {"nv-ddr": "200MT/s"})
    simulator = fg.Simulator("tiny")
    simulator.submit("read", "4KiB", "4KiB", at="10us")
    assert simulator.now == 10_000_000
    assert simulator.next_event_time is not None
    simulator.advance("1ms")
    assert simulator.now == 10**9
    (completion,) = simulator.completions().to_pylist()
    # 4 KiB at 200 MB/s take 20.48 us.
    assert completion["latency_ps"] == 25_000_000 + 20_480_000
    assert simulator.completions().num_rows == 0
    assert simulator.is_idle
    assert simulator.next_event_time is None


def test_forks_have_the_same_future_and_are_independent():
    simulator = fg.Simulator("tiny", precondition="steady")
    for unit in range(64):
        simulator.submit("write", 4096 * unit, 4096)
    fork, other = simulator.fork(), copy.deepcopy(simulator)
    fork.submit("write", "1MiB", "1MiB")
    for one in (simulator, fork, other):
        one.advance()
    assert simulator.completions().equals(other.completions())
    assert simulator.now == other.now
    assert fork.completions().num_rows == 65


def test_inspect_shows_blocks_and_addresses():
    simulator = fg.Simulator("tiny", precondition="none")
    empty = simulator.inspect()
    assert (empty.block_state == State.BLOCK_STATES.index("free")).all()
    assert (empty.unit_state == 0).all()
    assert (empty.unit_lpn == -1).all()
    assert (empty.map == -1).all()
    simulator.submit("write", 0, "64KiB")
    simulator.advance()
    simulator.submit("write", 0, "4KiB")
    simulator.advance()
    state = simulator.inspect()
    valid, invalid = State.UNIT_STATES.index("valid"), State.UNIT_STATES.index("invalid")
    assert (state.unit_state == valid).sum() == 16
    assert (state.unit_state == invalid).sum() == 1
    assert state.block_valid.sum() == 16
    assert np.array_equal(np.sort(state.unit_lpn[state.unit_state == valid]), np.arange(16))
    assert np.array_equal(state.unit_lpn.ravel()[state.map[:16]], np.arange(16))
    assert (state.map[16:] == -1).all()
    assert (empty.unit_state == 0).all(), "a snapshot does not change"
    for array in (state.block_state, state.unit_state, state.map):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


@pytest.mark.parametrize("scheme", ["page", "dftl", "block", "fast"])
def test_inspect_is_consistent_on_a_used_device(scheme):
    merges = scheme in {"block", "fast"}
    device = fg.Device("tiny", {"mapping.scheme": scheme, "capacity.spare": 0.6 if merges else 0.3})
    simulator = fg.Simulator(device, precondition="fill" if merges else "steady")
    for unit in range(100):
        simulator.submit("write", 4096 * 7 * unit, 4096)
    simulator.advance()
    state = simulator.inspect()
    assert np.array_equal((state.unit_state == 1).sum(axis=1), state.block_valid)
    mapped = np.flatnonzero(state.map >= 0)
    assert np.array_equal(state.unit_lpn.ravel()[state.map[mapped]], mapped)
    assert (state.unit_state.ravel()[state.map[mapped]] == 1).all()
    assert state.block_erases.sum() == simulator.counters()["blocks_erased"] > 0
    planes, counts = np.unique(state.block_plane, return_counts=True)
    assert len(planes) * counts[0] == len(state.block_plane)


@pytest.mark.parametrize("prewrite", ["none", "even"])
def test_a_prepared_state_serves_many_runs(prewrite, tmp_path):
    options = {"precondition": "none" if prewrite == "even" else "steady", "seed": 5}
    simulator = fg.Simulator("tiny", **options)
    for workload in ("rw=randread number_ios=300", "rw=randrw number_ios=300"):
        for place in (None, tmp_path):
            expected = fg.run("tiny", workload, prewrite=prewrite, **options).summary.to_dict()
            found = fg.run(simulator, workload, prewrite=prewrite, out=place).summary.to_dict()
            expected.pop("run")
            found.pop("run")
            assert found == expected
    with pytest.raises(fg.OptionError, match="seed=1: the simulator was created with seed=5"):
        fg.run(simulator, "rw=read", seed=1)
    simulator.submit("read", 0, 4096)
    with pytest.raises(fg.OptionError, match="received no requests"):
        fg.run(simulator, "rw=read")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("reed", 0, 4096), "invalid operation"),
        (("read", 1, 4096), "multiples of 512"),
        (("read", 0, 0), "invalid length"),
        (("flush", 0, 4096), "invalid length"),
        (("read", 1 << 80, 4096), "too large"),
    ],
)
def test_invalid_requests_are_errors(arguments, message):
    simulator = fg.Simulator("tiny")
    with pytest.raises(fg.WorkloadError, match=message):
        simulator.submit(*arguments)


def test_time_does_not_go_back():
    simulator = fg.Simulator("tiny")
    simulator.advance("1ms")
    with pytest.raises(fg.WorkloadError, match="before the clock"):
        simulator.submit("read", 0, 4096, at="10us")
    simulator.advance("10us")
    assert simulator.now == 10**9
    with pytest.raises(fg.WorkloadError, match="the end of simulated time"):
        simulator.advance(2**64 - 1)


def test_beyond_the_device_is_a_status():
    simulator = fg.Simulator("tiny")
    simulator.submit("read", "1TiB", "4KiB")
    simulator.advance()
    assert simulator.completions()["status"].to_pylist() == ["out_of_range"]


def test_the_precondition_is_reported():
    simulator = fg.Simulator("tiny", precondition="aged=0.05")
    assert simulator.precondition["requested"] == "aged=0.05"
    assert simulator.precondition["mapped"] == 1.0
    with pytest.raises(fg.PreconditionError, match="aged=0.9"):
        fg.Simulator("tiny", precondition="aged=0.9")
    assert repr(simulator) == "<floatgate.Simulator tiny at 0.000 us, 0 outstanding>"
