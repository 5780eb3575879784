#!/usr/bin/env python3
"""Run the random devices of two builds, and print the first operation that differs for each kind of device.

    scripts/first_difference.py OLD [NEW] [--release] [--cases N]

OLD and NEW (default: this checkout) are directories or Git revisions. A revision is checked out in `target/revisions`.
Each must have `crates/core/tests/common/history.rs`. Exits with status 1 if something differs.

The numbers of an operation are, in this order: start and end in ps, lane (channel or plane), phase, kind, class, tag of
the request, physical page, and plane. The text after the tab is for readers, and is not compared.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Kinds of devices: the test binary, and the test in its module `recorded` that writes their digests.
KINDS = {
    "page": ("model", "reads_return_the_last_acknowledged_write"),
    "dftl": ("model", "a_map_in_flash_changes_no_answer"),
    "block": ("model", "mapping_blocks_changes_no_answer"),
    "logs": ("model", "log_blocks_change_no_answer"),
    "faulty": ("model", "what_fails_is_told_and_nothing_else_changes"),
    "blocks": ("model", "blocks_of_schemes_that_fail_change_no_answer"),
    "worn": ("model", "leveling_wear_changes_no_answer"),
    "pools": ("model", "pools_change_no_answer"),
    "ganged": ("model", "gangs_change_no_answer"),
    "power": ("power", "what_was_flushed_outlives_every_power_cut"),
}
PARTS = ("operations", "answers", "state", "flash")
# Number of lines printed before a difference.
CONTEXT = 5


def tree_of(name):
    """Return the directory of a build: `name` itself, or a checkout of that revision."""
    if pathlib.Path(name).is_dir():
        return pathlib.Path(name).resolve()
    command = ["git", "-C", ROOT, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"]
    revision = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    if not revision:
        sys.exit(f"first_difference.py: {name} is neither a directory nor a revision of {ROOT}")
    tree = ROOT / "target/revisions" / revision[:12]
    if not tree.exists():
        subprocess.run(["git", "-C", ROOT, "worktree", "add", "--force", "--detach", tree, revision], check=True)
    return tree


def build(tree, release):
    """Build the tests of a tree, and return their executables by name."""
    command = ["cargo", "test", "--package", "floatgate-core", "--test", "model", "--test", "power", "--no-run"]
    command += ["--locked", "--message-format=json"] + (["--release"] if release else [])
    output = subprocess.run(command, cwd=tree, stdout=subprocess.PIPE, text=True, check=True).stdout
    messages = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    return {m["target"]["name"]: m["executable"] for m in messages if m.get("executable")}


def tell(tree, programs, kind, into, seed=None, cases=None):
    """Run a test that writes the digests of its devices, or with `seed` the complete history of one device."""
    program, test = KINDS[kind]
    into.mkdir(parents=True, exist_ok=True)
    settings = {"FLOATGATE_TELL": str(into), "FLOATGATE_SEED": seed, "FLOATGATE_CASES": cases}
    environment = os.environ | {name: str(value) for name, value in settings.items() if value is not None}
    command = [programs[program], "--exact", f"recorded::{test}"]
    done = subprocess.run(
        command, cwd=tree / "crates/core", env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        print(f"{tree}: {test} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


def lines_of(path):
    return path.read_text().splitlines() if path.exists() else []


def first_difference(old, new):
    """Return the index of the first line whose numbers (before the tab) differ, or None."""
    for index in range(max(len(old), len(new))):
        pair = [lines[index].split("\t")[0] if index < len(lines) else None for lines in (old, new)]
        if pair[0] != pair[1]:
            return index
    return None


def show(old, new, index):
    """Return the first difference and the lines before it."""
    shown = [f"    {line}" for line in old[max(0, index - CONTEXT) : index]]
    for name, lines in (("old", old), ("new", new)):
        shown.append(f"{name} {lines[index] if index < len(lines) else '(nothing more)'}")
    return "\n".join(shown)


def compare(kind, trees, directory, cases):
    """Print the first difference of the first device of a kind that differs, and return how many differ."""
    digests = []
    for name, (tree, programs) in trees.items():
        tell(tree, programs, kind, directory / name, cases=cases)
        digests.append(lines_of(directory / name / f"{kind}.txt"))
    differing = [a for a, b in zip(*digests) if a != b]
    print(f"{kind}: {len(differing)} of {min(map(len, digests))} devices differ")
    if not differing:
        return 0
    seed = differing[0].split()[0]
    for name, (tree, programs) in trees.items():
        tell(tree, programs, kind, directory / name / "all", seed=seed)
    for part in PARTS:
        old, new = (lines_of(directory / name / "all" / f"{kind}-{seed}-{part}.txt") for name in trees)
        index = first_difference(old, new)
        if index is not None:
            print(f"{kind} {seed}, line {index + 1} of {part}:\n{show(old, new, index)}")
    return len(differing)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new", nargs="?", default=str(ROOT))
    parser.add_argument("--release", action="store_true", help="build with optimization across crates")
    parser.add_argument("--cases", type=int, help="number of devices of the first kind; the others scale with it")
    options = parser.parse_args()
    trees = {}
    for name in ("old", "new"):
        tree = tree_of(getattr(options, name))
        trees[name] = (tree, build(tree, options.release))
    with tempfile.TemporaryDirectory() as directory:
        different = sum(compare(kind, trees, pathlib.Path(directory), options.cases) for kind in KINDS)
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
