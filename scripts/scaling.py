#!/usr/bin/env python3
"""Measure how a sweep scales on this machine, and the overhead of a task.

    python3 scripts/scaling.py [RUNS [REQUESTS]]

Needs the Python package with joblib. docs/cluster.md has the results, and what they mean for a thousand workers. On a
busy machine, wall-clock time says little, so that processor time is measured too. Runs with one and two processes
alternate, and the fastest of each counts, because interference can only slow a run down.
"""

import pickle
import resource
import sys
import tempfile
import time

import cloudpickle
import floatgate as fg
from floatgate import _distributing, sweeping
from joblib.externals.loky import get_reusable_executor

ROUNDS = 4
POINT = {"gc.victim": "greedy", "capacity.spare": 0.25}


def job(requests):
    return f"rw=randwrite bs=4k iodepth=8 number_ios={requests}"


def cpu_s(who):
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def measure(runs, requests, jobs, precondition="steady", store=None):
    """Run a sweep. Return its wall-clock time, and the processor times of this process, the workers and the runs."""
    before = [time.monotonic(), cpu_s(resource.RUSAGE_SELF), cpu_s(resource.RUSAGE_CHILDREN)]
    table = fg.sweep(
        [POINT],
        device="tiny",
        workload=job(requests),
        seeds=range(runs),
        precondition=precondition,
        n_jobs=jobs,
        store=store,
        progress=False,
    )
    wall = time.monotonic() - before[0]
    if jobs > 1:
        # The processor time of workers is known only after they have ended.
        get_reusable_executor().shutdown(wait=True)
    own, workers = cpu_s(resource.RUSAGE_SELF) - before[1], cpu_s(resource.RUSAGE_CHILDREN) - before[2]
    return wall, own, workers, sum(table["run.cpu_s"].to_pylist())


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 32
    requests = int(sys.argv[2]) if len(sys.argv) > 2 else 400_000
    fg.sweep([POINT], device="tiny", workload=job(1), n_jobs=1)  # Load modules before the measurement.
    print(f"{runs} runs of {requests} requests; seconds")
    print("jobs    wall  this process  workers  simulating")
    times = {1: [], 2: []}
    for jobs in [1, 2] * ROUNDS:
        wall, own, workers, simulating = measured = measure(runs, requests, jobs)
        times[jobs].append(measured)
        print(f"{jobs:4}  {wall:6.2f}  {own:12.2f}  {workers:7.2f}  {simulating:10.2f}", flush=True)
    one, two = (tuple(map(min, zip(*times[jobs], strict=True))) for jobs in (1, 2))
    # Estimated time on two idle processors: this process works while the workers run.
    free = two[2] / 2
    print(f"speed-up on 2 processors: {one[0] / two[0]:.2f} by wall-clock time, {one[1] / free:.2f} by processor time")
    small = 200
    with tempfile.TemporaryDirectory() as store:
        _, own, workers, _ = measure(small, 1, 2, "none", store)
    _, _, start, _ = measure(2, 1, 2, "none")
    print(
        f"overhead of a run, with a store: {own / small * 1e3:.2f} ms of this process, "
        f"{(workers - start) / (small - 2) * 1e3:.2f} ms of a worker; {start / 2:.2f} s for a worker to start"
    )
    task = sweeping._task(
        POINT,
        1,
        workload=job(requests),
        device=fg.Device("tiny"),
        precondition="steady",
        layout="none",
        attribution=True,
    )
    row = task.row()
    call = cloudpickle.dumps((_distributing._numbered, sweeping._Task.row, 0, task))
    result = pickle.dumps((0, row))
    print(f"bytes: {len(call)} for a task, {len(result)} for its result")


if __name__ == "__main__":
    main()
