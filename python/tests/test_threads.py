"""Threads: several runs at once, one result for all threads, one simulator for one call at a time; memory."""

import json
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import floatgate as fg

MIXED = "rw=randrw bs=4k iodepth=8 number_ios=3000"


def results(device, seed):
    """The results of a run, without its speed."""
    found = json.loads(fg.run(device, MIXED, seed=seed, warn=False).summary.to_json())
    del found["run"]
    return found


class First(fg.policies.Victim):
    def choose(self, plane, blocks, clock):
        return blocks.order.argmin()


@pytest.mark.parametrize("options", [{}, {"gc.victim": First}])
def test_several_runs_at_once_do_not_affect_each_other(options):
    device = fg.Device("tiny", options)
    expected = [results(device, seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(lambda seed: results(device, seed), range(4))) == expected


def test_threads_may_start_runs_from_one_simulator():
    simulator = fg.Simulator("tiny", precondition="steady")
    expected = fg.run(simulator, MIXED).summary.requests
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: fg.run(simulator, MIXED).summary.requests, range(8)))
    assert found == [expected] * 8


def test_threads_may_share_a_result(tmp_path):
    stored = fg.run("tiny", MIXED, requests=True, out=tmp_path / "run")

    def seen(shared, number):
        shared.report(tmp_path / f"{number}.html")
        page = (tmp_path / f"{number}.html").read_text()
        tables = shared.requests(), shared.series()
        return str(shared), shared.summary.to_json(), page, *(table.to_pydict() for table in tables)

    for shared in (fg.run("tiny", MIXED, requests=True), fg.load(stored.directory)):
        with ThreadPoolExecutor(8) as threads:
            first, *others = threads.map(seen, [shared] * 8, range(8))
        assert others == [first] * 7


BUSY = "^the simulator is busy with another call.* use a fork of the simulator$"


def test_a_busy_simulator_says_so():
    """While a call of one thread changes the simulator, calls of others are errors, and change nothing."""
    simulator = fg.Simulator("tiny")
    for block in range(2000):
        simulator.submit("write", 4096 * block, 4096)
    runs, ends = threading.Event(), threading.Event()

    def progress(part, share):
        runs.set()
        ends.wait(60)

    thread = threading.Thread(target=lambda: simulator.advance(progress=progress))
    thread.start()
    assert runs.wait(60)
    calls = [
        lambda: simulator.now, lambda: simulator.outstanding, lambda: simulator.is_idle, lambda: simulator.submitted,
        lambda: simulator.submit("read", 0, 4096), simulator.advance, simulator.completions, simulator.counters,
        simulator.inspect, simulator.fork, lambda: simulator.save("none.fgstate"), lambda: repr(simulator),
        lambda: fg.run(simulator, MIXED),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(fg.SimulationError, match=BUSY):
            call()
    ends.set()
    thread.join()
    assert (simulator.outstanding, simulator.submitted) == (0, 2000)


def write(simulator):
    for block in range(3000):
        simulator.submit("write", 4096 * (7919 * block % 2000), 4096)
        simulator.advance()


def test_a_policy_cannot_use_its_simulator():
    class Looks(fg.policies.Victim):
        simulator = None

        def choose(self, plane, blocks, clock):
            if Looks.simulator is not None:
                Looks.simulator.advance()
            return blocks.order.argmin()

    simulator = fg.Simulator(fg.Device("tiny", {"gc.victim": Looks}), precondition="steady")
    Looks.simulator = simulator
    with pytest.raises(fg.PolicyError, match="the simulator is busy with another call") as raised:
        write(simulator)
    assert isinstance(raised.value.__cause__, fg.SimulationError)


MEMORY = """
import gc
import floatgate as fg

class Raises(fg.policies.Victim):
    def choose(self, plane, blocks, clock):
        raise LookupError("no")

def resident():
    gc.collect()
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))

def run(number):
    options = {"seed": number, "warn": False}
    if number % 10 == 0:
        try:
            fg.run(fg.Device("tiny", {"gc.victim": Raises}), "rw=randwrite number_ios=20k", **options)
        except fg.PolicyError:
            return
        raise AssertionError
    if number % 10 == 1:
        try:
            fg.run(fg.Device("tiny", {f"gc.{number}": 1}), "rw=read", **options)
        except fg.ConfigError:
            return
        raise AssertionError
    found = fg.run("tiny", "rw=randrw iodepth=8 number_ios=100", requests=number % 2 == 0, **options)
    if number % 2 == 0:
        assert found.requests().num_rows >= 100
    str(found)
    simulator = fg.Simulator("tiny", precondition="none")
    simulator.submit("write", 0, 4096)
    simulator.fork().advance()

for number in range(100):
    run(number)
before = resident()
for number in range(400):
    run(number)
print(resident() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_the_memory_of_many_runs_is_flat():
    done = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 1024, "more than 1 MiB after 400 runs, some of which fail"
