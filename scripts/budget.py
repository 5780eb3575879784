#!/usr/bin/env python3
"""Count what a request costs in the core, with valgrind's callgrind, and compare it with the bars.

    scripts/budget.py PROGRAM [RUN...] [--bless]

PROGRAM is the benchmark `speed`: `cargo bench --package floatgate-core --bench speed --no-run` prints its path. The
runs are those of `crates/core/benches/speed/budget.rs`. For each run, prints instructions and conditional branches per
request or flash operation, and the number of source files of the workspace that matter: those with at least one
instruction in ten requests. Exits with status 1 if a value is more than 1 % above the recorded one in
`crates/core/benches/budget.toml`; `--bless` records the values of this build. Counts do not depend on the load of the
machine: they differ by less than 0.1 % from run to run.
"""

import argparse
import collections
import concurrent.futures
import pathlib
import re
import subprocess
import sys
import tempfile
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
RECORD = ROOT / "crates/core/benches/budget.toml"
# Runs whose host writes cause garbage collection are counted per flash operation, all others per request.
PER_OPERATION = re.compile(r"^(attributed-|floor-)?(collecting|.*writes)$")
PER_WRITE = ("writes", "attributed-writes")
# Functions whose instructions are counted, with all that they call.
MEASURED = ("speed::measured*", "speed::floor::Floor::measured*")
TOLERANCE = 1.01


def executed_files(text, least):
    """Return the source files of the workspace in which at least `least` instructions ran, from a file of callgrind."""
    names, costs, current, is_call = {}, collections.Counter(), None, False
    for line in text.splitlines():
        declared = re.match(r"(c?)f[lie]=\((\d+)\)(?: (.*))?$", line)
        if declared:
            of_callee, number, name = declared.groups()
            names[number] = name or names[number]
            current = current if of_callee else names[number]
        elif line.startswith("calls="):
            is_call = True
        elif line[:1] in "+-*0123456789" and current:
            # The cost after a call is that of the callee, which has lines of its own. A line may have no cost.
            if not is_call:
                costs[current] += sum(map(int, line.split()[1:2]))
            is_call = False
    ours = [name for name, cost in costs.items() if cost >= least and re.search(r"crates/\w+/(src|benches)/", name)]
    if not ours:
        sys.exit("budget.py: the program has no line tables; build it with `cargo bench --no-run`")
    return [name for name in ours if "/src/" in name]


def count(program, run):
    """Return instructions and branches per unit of work, and the number of executed files."""
    with tempfile.TemporaryDirectory() as directory:
        out = pathlib.Path(directory) / "out"
        command = ["valgrind", "--tool=callgrind", "--branch-sim=yes", f"--callgrind-out-file={out}"]
        command += [f"--toggle-collect={name}" for name in MEASURED]
        done = subprocess.run([*command, program, "instructions", run], capture_output=True, text=True, check=False)
        worked = re.search(r"requests (\d+) operations (\d+)", done.stdout)
        if done.returncode != 0 or not worked:
            sys.exit(f"budget.py: {program} instructions {run} failed:\n{done.stderr[-2000:]}")
        text = out.read_text()
    events = re.search(r"^events: (.*)$", text, re.MULTILINE)[1].split()
    totals = re.search(r"^(?:totals|summary): (.*)$", text, re.MULTILINE)[1].split()
    totals = dict(zip(events, map(int, totals)))
    requests, operations = map(int, worked.groups())
    is_per_operation = PER_OPERATION.match(run) and run not in PER_WRITE
    per = operations if is_per_operation else requests
    return {
        "per": "flash operation" if is_per_operation else "request",
        "instructions": round(totals["Ir"] / per),
        "branches": round(totals["Bc"] / per),
        "files": len(executed_files(text, per / 10)),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("runs", nargs="*", metavar="RUN", help="a run that `PROGRAM instructions` lists; default: all")
    parser.add_argument("--bless", action="store_true", help="record the values of this build")
    options = parser.parse_args()
    recorded = tomllib.loads(RECORD.read_text()) if RECORD.exists() else {}
    command = [options.program, "instructions"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    runs, exceeded = options.runs or listed, []
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for run, found in zip(runs, pool.map(lambda run: count(options.program, run), runs)):
            before = recorded.get(run, {})
            shown = [f"{found[name]:6} {name} ({before.get(name, 'new')})" for name in found if name != "per"]
            print(f"{run:24} per {found['per']:16}" + "".join(shown), flush=True)
            limits = {name: value * TOLERANCE for name, value in before.items() if name != "per"}
            exceeded += [f"{run}: {found[n]} {n}, recorded {before[n]}" for n in limits if found[n] > limits[n]]
            recorded[run] = found
    if options.bless:
        lines = ["# Written by `make budget BLESS=1`: costs of a request, by run (scripts/budget.py)."]
        for run in listed:
            fields = recorded.get(run, {}).items()
            values = ", ".join(f'{name} = {f"{value!r}".replace(chr(39), chr(34))}' for name, value in fields)
            lines += [f"{run} = {{ {values} }}"] if values else []
        RECORD.write_text("\n".join(lines) + "\n")
    elif exceeded:
        sys.exit("budget.py: more than the recorded cost:\n" + "\n".join(exceeded))


if __name__ == "__main__":
    main()
