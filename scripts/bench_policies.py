#!/usr/bin/env python3
"""Measures what policies in Python cost, compared with built-in policies that make the same choices.

    bench_policies.py [--runs N]

Prints the processor time of each run, best of N, and its ratio to that of the built-in policy. Fails if a ratio exceeds
its target, or if the mapping scheme of examples/policies/python does fewer host writes per second than its target.
Install the package in the release profile, with numba, before.
"""

import argparse
import importlib.util
import sys
import time
from pathlib import Path

import numba
import numpy as np

import floatgate as fg

Class = fg.policies.OperationClass


@fg.policies.register("bench-greedy")
class Greedy(fg.policies.Victim):
    """The fewest valid units. Among blocks with equally many, the choice is arbitrary."""

    def choose(self, plane, blocks, clock):
        return blocks.valid.argmin()


@fg.policies.register("bench-compiled-greedy")
class CompiledGreedy(fg.policies.Victim):
    @staticmethod
    @numba.njit
    def choose(plane, blocks, clock):
        # A minimum of count and position in one number, which the compiler turns into vector instructions.
        least = np.uint32(0xFFFF_FFFF)
        for row in range(blocks.valid.size):
            least = min(least, (np.uint32(blocks.valid[row]) << np.uint32(16)) | np.uint32(row))
        return np.int64(least & np.uint32(0xFFFF))


@fg.policies.register("bench-turns")
class Turns(fg.policies.Allocation):
    """Takes idle planes in turn."""

    turn = 0

    def choose(self, planes):
        self.turn += 1
        return self.turn % len(planes)


@fg.policies.register("bench-compiled-turns")
class CompiledTurns(fg.policies.Allocation):
    @staticmethod
    @numba.njit
    def choose(planes):
        return (planes[0] * 5 + 3) % planes.size


class Ranked(fg.policies.Scheduler):
    """The ranks of read-first."""

    def rank(self, cls):
        if cls in (Class.HOST_READ, Class.MAP_READ):
            return 0
        return 1 if cls in (Class.URGENT_GC, Class.SUMMARY) else 2


@fg.policies.register("bench-read-first")
class ReadFirst(Ranked):
    def pick(self, queue, now):
        return queue.rank.argmin()


@fg.policies.register("bench-compiled-read-first")
class CompiledReadFirst(Ranked):
    @staticmethod
    @numba.njit
    def pick(queue, now):
        return queue.rank.argmin()


WRITES = "rw=randwrite bs=4k iodepth=32 number_ios=400k"
MIXED = "rw=randrw bs=4k iodepth=32 number_ios=200k"
#: Key, device, changes, workload, built-in policy, and other policies with the greatest ratio to it.
CASES = (
    ("gc.victim", "hu2011", {}, WRITES, "greedy", {"bench-greedy": 1.5, "bench-compiled-greedy": 1.1}),
    ("allocation", "hu2011", {}, WRITES, "dynamic", {"bench-turns": 2, "bench-compiled-turns": 1.1}),
    ("scheduler", "hu2011", {}, MIXED, "read-first", {"bench-read-first": 2, "bench-compiled-read-first": 1.1}),
)


def seconds(device, workload):
    """Return the processor time of a run from a steady state."""
    start = time.process_time()
    fg.run(device, workload, precondition="steady", warn=False)
    return time.process_time() - start


#: Host writes per second of processor time that the mapping scheme of the example must do.
SCHEME_WRITES = 50_000
#: Random writes of 4 KiB to a full device, which the scheme reclaims itself.
SCHEME_JOB = "rw=randwrite bs=4k iodepth=32 number_ios=200k"


def writes_per_second(scheme):
    """Return the host writes per second of processor time that a mapping scheme does."""
    changes = {"mapping.scheme": scheme, "gc.soft_threshold": 4, "capacity.spare": 0.4}
    simulator = fg.Simulator(fg.Device("tiny", changes), precondition="fill")
    start = time.process_time()
    summary = fg.run(simulator, SCHEME_JOB, warn=False).summary
    return summary.requests.write.count / (time.process_time() - start), summary.write_amplification


def measure_scheme(runs):
    """Measure the mapping scheme of the example, and return the exit status."""
    place = Path(__file__).parents[1] / "examples/policies/python/append.py"
    spec = importlib.util.spec_from_file_location("append", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    best, amplification = max(writes_per_second(module.AppendLog) for _ in range(runs))
    verdict = "" if best >= SCHEME_WRITES else f"  fewer than {SCHEME_WRITES}"
    text = f"{best:8.0f} host writes per second, write amplification {amplification:.2f}"
    print(f"{'mapping':<12}{'append-log':<28}{text}{verdict}", flush=True)
    return bool(verdict)


def main():
    """Measure all cases, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=3, help="runs of each policy [3]")
    runs = parser.parse_args().runs
    status = measure_scheme(runs)
    for key, device, changes, workload, built_in, others in CASES:
        devices = {name: fg.Device(device, {**changes, key: name}) for name in (built_in, *others)}
        for each in devices.values():
            # numba compiles when a device is created.
            fg.run(each, "rw=randwrite bs=4k number_ios=1k", precondition="none", warn=False)
        # In turns, so that a machine that gets slower slows all of them.
        times = [{name: seconds(each, workload) for name, each in devices.items()} for _ in range(runs)]
        base, *best = (min(each[name] for each in times) for name in devices)
        print(f"{key:<12}{built_in:<28}{base:8.2f} s")
        for (name, most), took in zip(others.items(), best, strict=True):
            verdict = "" if took <= most * base else f"  more than {most}"
            status |= bool(verdict)
            print(f"{'':<12}{name:<28}{took:8.2f} s  {took / base:5.2f} times{verdict}", flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
