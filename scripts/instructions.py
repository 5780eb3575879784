#!/usr/bin/env python3
"""Count the instructions of short runs of two builds of the benchmark `speed`, with valgrind's cachegrind.

    scripts/instructions.py OLD [NEW] [RUN...]

OLD and NEW are executables: `cargo bench --package floatgate-core --bench speed --no-run` prints the path.
Counts do not depend on the machine's load: they differ by less than 0.01 % from run to run.
"""

import argparse
import re
import subprocess
import sys

# The prefix `attributed-` turns latency breakdowns on, for any of these runs.
RUNS = ["reads", "writes", "mixed", "buffer", "firmware", "planes", "dftl", "block", "functional"]
RUNS += ["attributed-reads", "attributed-writes"]


def count(program, run):
    """Return the number of instructions of one run, in millions."""
    command = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
    done = subprocess.run([*command, program, "instructions", run], capture_output=True, text=True, check=False)
    found = re.search(r"I\s+refs:\s+([\d,]+)", done.stderr)
    if done.returncode != 0 or not found:
        sys.exit(f"instructions.py: {program} instructions {run} failed:\n{done.stderr[-2000:]}")
    return int(found[1].replace(",", "")) / 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new", nargs="?")
    parser.add_argument("runs", nargs="*", metavar="RUN", help=f"one of {', '.join(RUNS)}; default: all")
    options = parser.parse_args()
    for run in options.runs or RUNS:
        old = count(options.old, run)
        line = f"{run:<12} {old:10.2f} M"
        if options.new:
            new = count(options.new, run)
            line += f" {new:10.2f} M  {(new / old - 1) * 100:+7.2f} %"
        print(line, flush=True)


if __name__ == "__main__":
    main()
