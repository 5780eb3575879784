#!/usr/bin/env python3
"""Check that two builds of the program give the same bytes.

    check_release.py PROGRAM OTHER

Runs both on each built-in device, and on `tiny` with each mapping. Fails unless the summaries, except for their section
`run`, the requests and the series are the same. `make soak` compares random devices with recorded digests.
"""

import json
import pathlib
import shlex
import subprocess
import sys
import tempfile

MIXED = "rw=randrw bs=4k iodepth=16 norandommap=1 number_ios=10k"
SMALL = "rw=randrw bs=4k iodepth=16 norandommap=1 number_ios=5k size=64m"
MAPPINGS = (
    '"page"',
    '"dftl"',
    '"block"',
    "{ bast = { logs = 8 } }",
    "{ fast = { logs = { sequential = 2, random = 6 } } }",
    "{ last = { logs = { sequential = 2, hot = 2, cold = 4 } } }",
)


def runs(program):
    """Yield the name and the arguments of each run."""
    listed = subprocess.run([program, "device", "list", "--json"], check=True, capture_output=True)
    for device in json.loads(listed.stdout)["devices"]:
        if device["name"] != "tiny":
            yield device["name"], [device["name"], SMALL, "--precondition", "none"]
    # Copies and merges need a full device, and the map in flash needs more spare blocks.
    full = ["tiny", MIXED, "--precondition", "fill", "--set", "capacity.spare=0.25"]
    for mapping in MAPPINGS:
        yield f"tiny with {mapping}", [*full, "--set", f"mapping.scheme={mapping}"]


def results(program, arguments, place):
    """Run a program, and return the bytes of its results by the name of the file."""
    files = ["--requests", "csv", "--out", str(place)]
    command = [program, "run", *arguments, *files]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{shlex.join(command)}: {done.stderr}")
    found = {path.name: path.read_bytes() for path in place.iterdir()}
    summary = json.loads(found.pop("summary.json"))
    # The time that the run took, the page that shows it, and the digest of the summary.
    del summary["run"], found["report.html"], found["digests.json"]
    return {**found, "summary.json": json.dumps(summary).encode()}


def main():
    """Compare the builds in all runs."""
    programs = sys.argv[1:]
    if len(programs) != 2:
        sys.exit(__doc__)
    count = 0
    for name, arguments in runs(programs[0]):
        with tempfile.TemporaryDirectory() as place:
            one = results(programs[0], arguments, pathlib.Path(place) / "one")
            other = results(programs[1], arguments, pathlib.Path(place) / "other")
        different = sorted(file for file in one.keys() | other.keys() if one.get(file) != other.get(file))
        if different:
            sys.exit(f"{name}: {' and '.join(programs)} differ in {', '.join(different)}")
        count += 1
    print(f"{count} runs of both builds gave the same bytes.")


if __name__ == "__main__":
    main()
