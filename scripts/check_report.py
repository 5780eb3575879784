#!/usr/bin/env python3
"""Open reports in a headless browser, and fail if they do not work as expected.

    python3 scripts/check_report.py FILE.html...

A page must draw each of its figures: assets/report.js of the report crate counts them in the page. The plotting library
must accept all its input, and the browser's console must stay empty. Each page is opened light and dark, and printed:
the PDF must have more than one page. At several widths, no part of the page may be cut off or need a scroll bar, except
wide tables. No bar may be empty, and plots over time must have few windows for few requests. The browser is Chromium,
or $BROWSER. Without a browser, nothing is checked and the exit status is 3. Prints the size of each page, and how long
the browser took, including its start.
"""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BROWSERS = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]

# Attributes by which the root element of a page reports the state of its figures.
ATTRIBUTES = ["expected", "drawn", "state", "failure"]

TIMEOUT_S = 120

# Number of windows of plots over time, as in crates/core/src/metrics/series.rs.
REQUESTS_PER_WINDOW = 200
MIN_WINDOWS = 16

# Maximum number of printed faults.
SHOWN = 20

# Widths of the window in CSS pixels: a phone, a tablet, a small and a large screen.
WIDTHS = [400, 700, 1100, 1600]

# Added to a copy of the page: reports parts that do not fit into the window. Reads the width of the page after all
# figures are drawn.
FITS = """<script>
const waiting = setInterval(() => {
  if (document.documentElement.dataset.state === "drawing") return;
  clearInterval(waiting);
  const width = document.documentElement.clientWidth;
  const report = (what) => console.error(`at ${width} px, ${what}`);
  if (document.documentElement.scrollWidth > width) report("the page needs a horizontal scroll bar");
  for (const link of document.querySelectorAll("nav a")) {
    const { left, right } = link.getBoundingClientRect();
    if (left < 0 || right > width) report(`the link "${link.textContent}" of the navigation bar is cut off`);
  }
  for (const table of document.querySelectorAll("table.requests")) {
    if (table.getBoundingClientRect().right > width) report("the table of requests is cut off");
  }
  for (const text of document.querySelectorAll(".plot text")) {
    const { left, right } = text.getBoundingClientRect();
    if (left < -1 || right > width + 1) report(`the text "${text.textContent}" of a figure is cut off`);
  }
}, 10);
</script>"""

# Added to a copy of the page: reports invalid input that the plotting library would silently ignore.
VALIDATE = """<script>
const waiting = setInterval(() => {
  if (document.documentElement.dataset.state === "drawing") return;
  clearInterval(waiting);
  for (const [name, { data, layout }] of Object.entries(JSON.parse(document.getElementById("figures").textContent))) {
    for (const fault of Plotly.validate(data, layout) || []) console.error(`figure ${name}: ${fault.msg}`);
  }
}, 10);
</script>"""


def faults_of_figures(page: str) -> list[str]:
    """Return the faults in the data of the figures of a page."""
    match = re.search(r'<script id="figures" type="application/json">(.*?)</script>', page, re.DOTALL)
    figures = json.loads(match[1]) if match else {}
    faults = []
    for name, figure in figures.items():
        lengths: dict[tuple[str, str], float] = {}
        for trace in figure["data"]:
            if trace.get("type") != "bar" or trace.get("orientation") != "h":
                continue
            for label, length in zip(trace["y"], trace["x"], strict=True):
                key = (trace.get("xaxis", "x"), label)
                lengths[key] = lengths.get(key, 0) + length
        # A resource that was not used is shown as such in the figure of bounds.
        empty = [label for (_, label), length in lengths.items() if length == 0 and name != "roofline"]
        if empty:
            faults.append(f"figure {name} has empty bars: {', '.join(empty)}")
    requests = re.search(r"Measured: .*? of simulated time, ([\d,]+) requests", page, re.DOTALL)
    over_time = figures.get("throughput-over-time")
    if requests and over_time:
        count = int(requests[1].replace(",", ""))
        windows = max(len(trace["x"]) for trace in over_time["data"])
        most = max(MIN_WINDOWS, count // REQUESTS_PER_WINDOW)
        if windows > most:
            faults.append(f"{count} requests are shown in {windows} windows, not in at most {most}")
    return faults


def browser() -> str | None:
    """Return the path of a browser, or None if there is none."""
    wanted = os.environ.get("BROWSER")
    found = (shutil.which(name) for name in ([wanted] if wanted else BROWSERS))
    return next((path for path in found if path), None)


def faults_of_dom(dom: str) -> list[str]:
    """Return the faults of a page, given its DOM after all scripts have run."""
    root = re.search(r"<html\b[^>]*>", dom)
    if not root:
        return ["the browser shows no page"]
    found = {name: re.search(rf'\bdata-{name}="([^"]*)"', root[0]) for name in ATTRIBUTES}
    values = {name: html.unescape(match[1]) for name, match in found.items() if match}
    faults = []
    if values.get("state") != "ready":
        faults.append(f"its state is {values.get('state')!r}: {values.get('failure', 'not done in time')}")
    if values.get("drawn") != values.get("expected"):
        faults.append(f"{values.get('drawn')} of {values.get('expected')} figures were drawn")
    places = len(re.findall(r'<div[^>]*\bdata-figure="', dom))
    plots = len(re.findall(r'<svg class="main-svg"[^>]*style="[^"]*background', dom))
    if str(places) != values.get("expected"):
        faults.append(f"there are {places} places for {values.get('expected')} figures")
    if places == 0 or plots < places:
        faults.append(f"there are {plots} drawings in {places} places")
    return faults


def faults_of_console(log: str) -> list[str]:
    """Return the messages that the page wrote to the browser's console."""
    lines = [line for line in log.splitlines() if re.search(r":(ERROR|INFO|WARNING):CONSOLE", line)]
    return [f"console: {line.split('] ', 1)[-1]}" for line in lines]


def run(path: str, page: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Open a page in a browser with a new profile, which is deleted afterwards."""
    with tempfile.TemporaryDirectory() as profile:
        command = [path, "--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
                   f"--user-data-dir={profile}", "--virtual-time-budget=60000", "--window-size=1366,768",
                   *options, page.resolve().as_uri()]
        return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)


def check(path: str, page: Path) -> list[str]:
    """Return the faults of a page."""
    faults = []
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place) / "page.html"
        copy.write_text(page.read_text(encoding="utf-8").replace("</body>", VALIDATE + "</body>"), encoding="utf-8")
        faults += [f"figures: {fault}" for fault in faults_of_console(run(path, copy, "--dump-dom").stderr)]
        copy.write_text(page.read_text(encoding="utf-8").replace("</body>", FITS + "</body>"), encoding="utf-8")
        frame = Path(place) / "frame.html"
        for width in WIDTHS:
            # A window of the browser is at least 500 pixels wide, but a frame can be narrower.
            style = f"border: 0; width: {width}px; height: 900px"
            frame.write_text(f'<!DOCTYPE html><iframe src="page.html" style="{style}"></iframe>', encoding="utf-8")
            done = run(path, frame, "--dump-dom")
            faults += [f"layout: {fault}" for fault in faults_of_console(done.stderr)]
    faults += faults_of_figures(page.read_text(encoding="utf-8"))
    for theme, options in {"light": [], "dark": ["--blink-settings=preferredColorScheme=0"]}.items():
        start = time.monotonic()
        done = run(path, page, "--dump-dom", *options)
        seconds = time.monotonic() - start
        found = faults_of_dom(done.stdout) + faults_of_console(done.stderr)
        faults += [f"{theme}: {fault}" for fault in found]
        print(f"{page}: {theme}, {page.stat().st_size / 1024:.0f} KiB, {seconds:.1f} s including the browser's start")
    with tempfile.TemporaryDirectory() as place:
        pdf = Path(place) / "page.pdf"
        done = run(path, page, f"--print-to-pdf={pdf}", "--no-pdf-header-footer")
        pages = len(re.findall(rb"/Type\s*/Page\b", pdf.read_bytes())) if pdf.exists() else 0
        print(f"{page}: {pages} pages of A4")
        faults += [f"print: {fault}" for fault in faults_of_console(done.stderr)]
        if pages < 2:
            faults.append(f"print: {pages} pages")
    return faults


def main(pages: list[str]) -> int:
    if not pages:
        print(__doc__, file=sys.stderr)
        return 2
    path = browser()
    if not path:
        print("NOT CHECKED: no Chromium found; apt-get install -y chromium, or set BROWSER", file=sys.stderr)
        return 3
    faults = [f"{page}: {fault}" for page in pages for fault in check(path, Path(page))]
    for fault in faults[:SHOWN]:
        print(f"error: {fault}", file=sys.stderr)
    if len(faults) > SHOWN:
        print(f"error: and {len(faults) - SHOWN} more", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
