#!/usr/bin/env python3
"""Repeat all published tables from a clean checkout, and print a checklist. ARTIFACT.md describes it.

    scripts/artifact.py [--quick]

Runs `make validate` and `make studies`, which write the pages of docs/ again, and compares the pages with the committed
ones. With --quick, both do small runs and write no pages. The checklist and the logs are in target/artifact. Exits with
status 1 if a step fails or a table differs.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import pathlib
import platform
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
#: The page of this study was made with traces that are not part of the repository.
NEEDS_TRACES = "agrawal2008"
#: Page of a measurement in real time, which differs with each run: `make study-yoo2013` writes it.
LIVE = "docs/studies/vssim.md"
#: The line that a study prints at its end, and lines with verdicts before it.
ENDED = re.compile(r"^.*?(\w+)\.html, in (\d+) s$")
VERDICT = re.compile(r"^  (agrees in direction|agrees|sign only|disagrees): ")


@dataclasses.dataclass
class Item:
    """An entry of the checklist: True, False, or None if it was not compared."""

    passed: bool | None
    text: str

    def __str__(self) -> str:
        """Return the line of the checklist."""
        return f"- [{ {True: 'x', False: ' ', None: '-'}[self.passed] }] {self.text}"


def main() -> int:
    """Run all steps, and print the checklist."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="do small runs, and compare no pages of studies")
    quick = parser.parse_args().quick
    directory = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"), "artifact")
    directory.mkdir(parents=True, exist_ok=True)
    dirty = changed("docs", "validation", "crates", "python")
    items = [Item(not dirty, "the checkout has no changes" + "".join(f"; changed: {path}" for path in dirty))]
    for target, compare in (("validate", validation), ("studies", quick_studies if quick else studies)):
        log = directory / f"{target}.log"
        status, seconds = make(target, quick, log)
        items.append(Item(status == 0, f"`make {target}` ends without an error ({seconds} s, {log})"))
        items += compare(log.read_text(encoding="utf-8"))
    text = page(items, quick)
    (directory / "checklist.md").write_text(text, encoding="utf-8")
    print(text)
    return 1 if any(item.passed is False for item in items) else 0


def make(target: str, quick: bool, log: pathlib.Path) -> tuple[int, int]:
    """Run a target, show and store its output, and return its status and its seconds."""
    start = time.monotonic()
    command = ["make", target, *(["QUICK=1"] if quick else [])]
    with log.open("w", encoding="utf-8") as file:
        running = subprocess.Popen(
            command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace"
        )
        for line in running.stdout:
            file.write(line)
            sys.stdout.write(line)
    return running.wait(), round(time.monotonic() - start)


def changed(*paths: str) -> list[str]:
    """Return the files below these paths that differ from the commit."""
    command = ["git", "-C", str(ROOT), "status", "--porcelain", "--", *paths]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return [line[3:] for line in lines]


def validation(_log: str) -> list[Item]:
    """Compare the page of the validation."""
    differing = changed("docs/validation.md", "validation/results.json", "validation/commands.txt")
    return [Item(not differing, "docs/validation.md: all tables are the committed ones")]


def ended(log: str) -> dict[str, tuple[int, dict[str, int]]]:
    """Return the seconds and the verdicts of each study, from its output."""
    found, verdicts = {}, {}
    for line in log.splitlines():
        if match := ENDED.match(line):
            found[match[1]] = (int(match[2]), verdicts)
            verdicts = {}
        elif match := VERDICT.match(line):
            verdicts[match[1]] = verdicts.get(match[1], 0) + 1
    return found


def names() -> list[str]:
    """Return the names of the studies that have a page, except for the live one."""
    pages = sorted((ROOT / "docs/studies").glob("*.md"))
    return [page.stem for page in pages if page.stem != "index" and page != ROOT / LIVE]


def quick_studies(log: str) -> list[Item]:
    """Check that each study ran, and count its verdicts, which are not reliable."""
    found = ended(log)
    items = []
    for name in names():
        seconds, verdicts = found.get(name, (0, {}))
        counts = ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items()))
        text = f"{name}: {counts or 'no verdict'} in small runs ({seconds} s)"
        items.append(Item(name in found and bool(verdicts), text))
    return [*items, Item(None, f"{LIVE}: not part of a quick run")]


def studies(log: str) -> list[Item]:
    """Compare the page of each study, with its figures apart: another matplotlib draws other curves."""
    found = ended(log)
    items = []
    for name in names():
        seconds = found.get(name, (0, {}))[0]
        pictures = changed(f"docs/studies/{name}-*.svg")
        text = f"docs/studies/{name}.md: all tables and verdicts are the committed ones ({seconds} s)"
        if pictures:
            text += f"; {len(pictures)} figures have other bytes, which the version of matplotlib decides"
        same = not changed(f"docs/studies/{name}.md", f"docs/studies/{name}")
        if not same and name == NEEDS_TRACES and not os.environ.get("TRACES"):
            items.append(Item(None, f"docs/studies/{name}.md: not compared; it needs TRACES=DIR ({seconds} s)"))
        else:
            items.append(Item(name in found and same, text))
    items.append(Item(not changed("docs/fidelity.md"), "docs/fidelity.md: the table is the committed one"))
    items.append(Item(None, f"{LIVE}: measured in real time, so it is not compared; `make study-yoo2013` repeats it"))
    return items


def page(items: list[Item], quick: bool) -> str:
    """Return the checklist as Markdown."""
    version = subprocess.run(
        ["git", "-C", str(ROOT), "describe", "--always", "--dirty"], capture_output=True, text=True, check=True
    ).stdout.strip()
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors"
    what = "Quick run: whether everything works, not whether tables are equal." if quick else "Full run."
    lines = [f"# Checklist of {version}", "", f"{what} {machine}.", "", *map(str, items), ""]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
