"""Processes: Ctrl-C and dying workers in sweeps, searches and fleets; forked and spawned processes; pickling."""

import copy
import csv
import json
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import floatgate as fg

JOB = "rw=randwrite bs=4k iodepth=4 number_ios=20k"

SWEEP = f"""
device = "tiny"
workload = "{JOB}"
seeds = 8
[space]
gc.victim = ["greedy", "fifo"]
"""

SEARCH = f"""
device = "tiny"
workload = "{JOB}"
trials = 16
batch = 4
[space]
capacity.spare = {{ from = 0.2, to = 0.4 }}
[objectives]
write_amplification = "minimize"
"""


def commands(place):
    """The arguments of each command of many runs, with 16 runs. Prepares their inputs."""
    (place / "s.toml").write_text(SWEEP)
    (place / "o.toml").write_text(SEARCH)
    for volume in range(16):
        lines = (f"0,{4096 * (7919 * i % 2000 + volume)},4096,W,{i}.0\n" for i in range(40_000))
        (place / f"v{volume}.csv").write_text("".join(lines))
    volumes = [f"v{volume}.csv" for volume in range(16)]
    return {
        "sweep": ["sweep", "s.toml", "--store=kept", "--out=all.csv"],
        "optimize": ["optimize", "o.toml", "--store=kept", "--out=all.csv"],
        "fleet": ["fleet", "tiny", *volumes, "--format=spc", "--store=kept", "--out=all.csv"],
    }


def started(arguments, place):
    options = {"cwd": place, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    command = [sys.executable, "-m", "floatgate", *arguments, "--jobs=2"]
    process = subprocess.Popen(command, start_new_session=True, **options)
    while not list(place.glob("kept/*.parquet")):
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    return process


def finished(arguments, place):
    """Run a command to its end, and return its table."""
    command = [sys.executable, "-m", "floatgate", *arguments, "--jobs=2"]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    # The speed of runs and the directory differ.
    with (place / "all.csv").open() as file:
        rows = list(csv.DictReader(file))
    kept = [{name: value for name, value in row.items() if not name.startswith("run.")} for row in rows]
    return [row | {"volume": Path(row.get("volume", "")).name} for row in kept]


def workers_of(process):
    listed = subprocess.run(["ps", "-A", "-ww", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True)
    lines = [line.split(None, 2) for line in listed.stdout.splitlines()]
    return [int(pid) for pid, parent, args in lines if parent == str(process.pid) and "popen_loky" in args]


@pytest.mark.parametrize("word", ["sweep", "optimize", "fleet"])
def test_an_interrupted_command_continues(word, tmp_path):
    """Ctrl-C and then the death of a worker end the command. It continues, with the results of a command alone."""
    arguments = commands(tmp_path)[word]
    process = started(arguments, tmp_path)
    os.killpg(process.pid, signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, output) == (130, ""), errors
    assert errors.startswith("interrupted: ")
    assert "kept in kept" in errors
    assert "the same command continues" in errors
    before = len(list(tmp_path.glob("kept/*.parquet")))
    assert 0 < before < 16

    process = started(arguments, tmp_path)
    while not (workers := workers_of(process)):
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    os.kill(workers[0], signal.SIGKILL)
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, output) == (1, ""), errors
    assert errors.startswith("error: a worker process died, perhaps because memory ran out: run fewer jobs at once")
    assert "the same" in errors
    assert not (tmp_path / "all.csv").exists()
    names = {place.name for place in (tmp_path / "kept").iterdir() if place.suffix != ".parquet"}
    assert names <= {"optuna.journal"}

    expected = tmp_path / "alone"
    expected.mkdir()
    assert finished(arguments, tmp_path) == finished(commands(expected)[word], expected)


class Dies(fg.policies.Victim):
    """Ends its process, as the system does if memory runs out."""

    def choose(self, plane, blocks, clock):
        os.kill(os.getpid(), signal.SIGKILL)
        return 0


def test_a_search_whose_worker_dies_is_an_error(tmp_path):
    space = {"gc.victim": ["greedy", Dies], "gc.soft_threshold": [2, 3]}
    options = {"device": "tiny", "workload": JOB, "trials": 8, "batch": 8, "n_jobs": 2, "store": tmp_path}
    with pytest.raises(fg.SimulationError, match="a worker process died"):
        fg.optimize(space, objectives=["write_amplification"], sampler="random", **options)


def results(seed):
    """The results of a run, without its speed."""
    found = json.loads(fg.run("tiny", JOB.replace("20k", "2k"), seed=seed, precondition="steady").summary.to_json())
    del found["run"]
    return found


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_other_processes_give_the_same_results(method):
    expected = [results(seed) for seed in (1, 2)]
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map_async(results, (1, 2)).get(timeout=120) == expected


@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_a_process_may_fork_while_threads_run():
    """No lock of the simulator stays locked in the child."""
    expected = results(1)
    ends = threading.Event()

    def runs():
        while not ends.is_set():
            results(3)

    threads = [threading.Thread(target=runs) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(5):
            child = os.fork()
            if child == 0:
                os._exit(0 if results(1) == expected else 1)
            assert ended(child) == 0
    finally:
        ends.set()
        for thread in threads:
            thread.join()


def ended(child):
    """Wait for a process, and return its exit status."""
    for _ in range(6000):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    pytest.fail("the process does not end")


def test_a_simulator_continues_in_a_forked_process():
    simulator = fg.Simulator("tiny", precondition="steady")
    for block in range(100):
        simulator.submit("write", 4096 * block, 4096)
    child = os.fork()
    if child == 0:
        simulator.advance()
        os._exit(0 if simulator.outstanding == 0 else 1)
    assert ended(child) == 0
    assert simulator.outstanding > 0
    simulator.advance()
    assert simulator.outstanding == 0


def test_public_objects_can_be_copied_and_pickled(result, trace):
    objects = [
        result, result.summary, result.requests(), fg.Device("tiny"), fg.Synthetic(JOB), fg.Trace(trace),
        fg.Range("20us", "1ms", log=True), fg.Sobol({"gc.victim": ["greedy"]}, n=2),
        fg.compare({"a": result, "b": result}),
        fg.Device("tiny", {"gc.victim": Dies}),
    ]  # fmt: skip
    for one in objects:
        for copied in (pickle.loads(pickle.dumps(one)), copy.copy(one), copy.deepcopy(one)):
            assert type(copied) is type(one)
            assert repr(copied) == repr(one)
    with pytest.raises(TypeError, match=r"a simulator cannot be pickled; save its state by Simulator.save"):
        pickle.dumps(fg.Simulator("tiny"))


def test_exceptions_can_be_pickled():
    with pytest.raises(fg.ConfigError) as raised:
        fg.Device("tiny", {"gc.victm": "greedy"})
    again = pickle.loads(pickle.dumps(raised.value))
    assert (str(again), again.problems) == (str(raised.value), raised.value.problems)
    for kind in (fg.OptionError, fg.PolicyError, fg.OutputError, fg.TraceError, fg.InternalError):
        again = pickle.loads(pickle.dumps(kind("--seed 7: too large")))
        assert type(again) is kind
        assert str(again) == str(kind("--seed 7: too large"))
