#!/usr/bin/env python3
"""Count what a request costs in the core, with valgrind's callgrind, and compare it with the bars.

    scripts/budget.py PROGRAM [RUN...] [--bless] [--build BUILD]

PROGRAM is the benchmark `speed`: `cargo bench --package floatgate-core --bench speed --no-run` prints its path. The
runs are those of `crates/core/benches/speed/budget.rs`. For each run, prints instructions and conditional branches per
request or flash operation, and the number of source files of the workspace that matter: those with at least one
instruction in ten requests. Exits with status 1 if a value is more than 1 % above the recorded one in
`crates/core/benches/budget.toml` (3 % with BUILD `dev`); `--bless` records the values of this build. Counts do not
depend on the load of the machine: they differ by less than 0.1 % from run to run. They depend on the compiler: with
another one than that of the record, values are printed and not compared.

BUILD is the profile of Cargo that built the program, `bench` by default. `dev` is that of the tests, which needs no
other build. It has no line tables, so files are not counted.

    scripts/budget.py PROGRAM --components

prints where the instructions of three runs go, by component, and writes the table of docs/architecture.md.
"""

import argparse
import collections
import concurrent.futures
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
RECORD = ROOT / "crates/core/benches/budget.toml"
PAGE = ROOT / "docs/architecture.md"
# Runs whose host writes cause garbage collection are counted per flash operation, all others per request.
PER_OPERATION = re.compile(r"^(attributed-|floor-)?(collecting|.*writes)$")
PER_WRITE = ("writes", "attributed-writes")
# Functions whose instructions are counted, with all that they call.
MEASURED = ("speed::measured*", "speed::floor::Floor::measured*")
# Costs above the record that are accepted. With several codegen units, other changes of a crate affect which functions
# are inlined.
TOLERANCE = 1.01
TOLERANCE_IN_PARTS = 1.03
# Path of a source file of the workspace.
OURS = re.compile(r"crates/(\w+/(?:src|benches)/.*)")
# Rows of the table by component, with the starts of the paths below `crates/` that belong to each. The first match
# counts.
COMPONENTS = (
    ("`crates/workload`", "workload/", "sim/src/rng.rs", "sim/src/source.rs"),
    ("`run`, `metrics`", "core/src/run", "core/src/metrics/"),
    ("`host`", "core/src/host/"),
    ("`cache`", "core/src/cache/"),
    ("`ftl/mapping`", "core/src/ftl/mapping/"),
    ("`ftl/space`", "core/src/ftl/space/"),
    ("`ftl/gc`, `ftl/mover`", "core/src/ftl/gc/", "core/src/ftl/mover/"),
    ("`ftl`, other", "core/src/ftl/"),
    ("`dispatch`, `scheduler`", "core/src/dispatch/", "core/src/scheduler/"),
    ("`nand`", "core/src/nand/"),
    ("event queue (`crates/sim`)", "sim/src/queue.rs"),
    ("`device`", "core/src/device/"),
    ("`work`, tables and records (`crates/sim`)", "core/src/work/", "sim/src/"),
)
OTHER = "other"
TABULATED = {"reads": "read", "writes": "write", "collecting": "flash operation with GC"}


def costs_of_files(text):
    """Return the instructions of each source file, from a file of callgrind.

    With addresses (`--dump-instr=yes`), the lines of a function are in the order of its code. Inlined code of libraries
    then counts for the file of the workspace before it.
    """
    has_addresses = "\npositions: instr line\n" in text
    names, costs, current, is_call = {}, collections.Counter(), None, False
    for line in text.splitlines():
        declared = re.match(r"(c?)f([lie])=\((\d+)\)(?: (.*))?$", line)
        if declared:
            of_callee, kind, number, name = declared.groups()
            names[number] = name or names[number]
            if not of_callee and (kind == "l" or not has_addresses or OURS.search(names[number])):
                current = names[number]
        elif line.startswith("calls="):
            is_call = True
        elif line[:1] in "+-*0123456789" and current:
            # The cost after a call is that of the callee, which has lines of its own. A line may have no cost.
            if not is_call:
                costs[current] += sum(map(int, line.split()[1 + has_addresses : 2 + has_addresses]))
            is_call = False
    if not any(OURS.search(name) for name in costs):
        sys.exit("budget.py: the program has no line tables; build it with `cargo bench --no-run`")
    return costs


def executed_files(text, least):
    """Return the source files of the workspace in which at least `least` instructions ran, from a file of callgrind."""
    ours = [name for name, cost in costs_of_files(text).items() if cost >= least and OURS.search(name)]
    return [name for name in ours if "/src/" in name]


def component(name):
    """Return the row of the table that a source file belongs to."""
    inner = OURS.search(name)
    path = inner[1] if inner else name
    return next((row for row, *starts in COMPONENTS if path.startswith(tuple(starts))), OTHER)


def run_counted(program, run, *options):
    """Run the benchmark below callgrind. Return callgrind's file, and the numbers of requests and flash operations."""
    with tempfile.TemporaryDirectory() as directory:
        out = pathlib.Path(directory) / "out"
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", *options]
        command += [f"--toggle-collect={name}" for name in MEASURED]
        done = subprocess.run([*command, program, "instructions", run], capture_output=True, text=True, check=False)
        worked = re.search(r"requests (\d+) operations (\d+)", done.stdout)
        if done.returncode != 0 or not worked:
            sys.exit(f"budget.py: {program} instructions {run} failed:\n{done.stderr[-2000:]}")
        return out.read_text(), *map(int, worked.groups())


def is_per_operation(run):
    """Return `True` if a run is counted per flash operation."""
    return bool(PER_OPERATION.match(run)) and run not in PER_WRITE


def component_table(program):
    """Return the lines of a table of instructions by component."""
    columns = []
    for run in TABULATED:
        text, requests, operations = run_counted(program, run, "--dump-instr=yes")
        costs = collections.Counter()
        for name, cost in costs_of_files(text).items():
            costs[component(name)] += cost / (operations if is_per_operation(run) else requests)
        columns.append(costs)
    rows = [*(row for row, *_ in COMPONENTS), OTHER]
    lines = ["| component | " + " | ".join(TABULATED.values()) + " |", "|---" + "|--:" * len(columns) + "|"]
    lines += ["| " + " | ".join([row, *(f"{costs[row]:,.0f}" for costs in columns)]) + " |" for row in rows]
    return [*lines, "| all | " + " | ".join(f"{costs.total():,.0f}" for costs in columns) + " |"]


def write_table(page, lines):
    """Replace the table between the two marks of a page."""
    before, mark, rest = page.partition("<!-- instructions: written by make budget BLESS=1 -->\n")
    end = "<!-- end -->"
    if not mark or end not in rest:
        sys.exit(f"budget.py: {PAGE} has no marks of the table")
    return before + mark + "\n".join(lines) + "\n" + rest[rest.index(end) :]


def count(program, run, *, files):
    """Return instructions and branches per unit of work, and the number of executed `files` if they are wanted."""
    text, requests, operations = run_counted(program, run, "--branch-sim=yes")
    events = re.search(r"^events: (.*)$", text, re.MULTILINE)[1].split()
    totals = re.search(r"^(?:totals|summary): (.*)$", text, re.MULTILINE)[1].split()
    totals = dict(zip(events, map(int, totals)))
    per = operations if is_per_operation(run) else requests
    return {
        "per": "flash operation" if is_per_operation(run) else "request",
        "instructions": round(totals["Ir"] / per),
        "branches": round(totals["Bc"] / per),
        **({"files": len(executed_files(text, per / 10))} if files else {}),
    }


def compiler():
    """Return the version of the compiler."""
    return subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=True).stdout.strip()


def written(records):
    """Return the text of the record, a table for each build."""
    lines = ["# Written by `make budget BLESS=1`: costs of a request, by build and run (scripts/budget.py)."]
    for build, runs in records.items():
        lines += ["", f"[{build}]", f"compiler = {json.dumps(runs['compiler'])}"]
        for run in (run for run in runs if run != "compiler"):
            fields = ", ".join(f"{name} = {json.dumps(value)}" for name, value in runs[run].items())
            lines.append(f"{run} = {{ {fields} }}")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("runs", nargs="*", metavar="RUN", help="a run that `PROGRAM instructions` lists; default: all")
    parser.add_argument("--bless", action="store_true", help="record the values of this build")
    parser.add_argument("--build", default="bench", help="profile of Cargo that built the program")
    parser.add_argument("--components", action="store_true", help="print instructions by component, and write the page")
    options = parser.parse_args()
    if options.components:
        lines = component_table(options.program)
        PAGE.write_text(write_table(PAGE.read_text(), lines))
        print(*lines, sep="\n")
        return
    records = tomllib.loads(RECORD.read_text()) if RECORD.exists() else {}
    recorded = records.setdefault(options.build, {})
    is_same = recorded.get("compiler") == compiler()
    if not (is_same or options.bless):
        print(f"budget.py: compiled by {compiler()}, recorded with {recorded.get('compiler')}: not compared")
    command = [options.program, "instructions"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    runs, exceeded = options.runs or listed, []
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        has_lines = options.build != "dev"
        tolerance = TOLERANCE if has_lines else TOLERANCE_IN_PARTS
        for run, found in zip(runs, pool.map(lambda run: count(options.program, run, files=has_lines), runs)):
            before = recorded.get(run, {})
            shown = [f"{found[name]:6} {name} ({before.get(name, 'new')})" for name in found if name != "per"]
            print(f"{run:24} per {found['per']:16}" + "".join(shown), flush=True)
            limits = {name: value * tolerance for name, value in before.items() if name != "per"}
            exceeded += [f"{run}: {found[n]} {n}, recorded {before[n]}" for n in limits if found[n] > limits[n]]
            recorded[run] = found
    if options.bless:
        records[options.build] = {"compiler": compiler(), **{run: recorded[run] for run in listed if run in recorded}}
        RECORD.write_text(written(records))
    elif exceeded and is_same:
        sys.exit("budget.py: more than the recorded cost:\n" + "\n".join(exceeded))


if __name__ == "__main__":
    main()
