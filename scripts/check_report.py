#!/usr/bin/env python3
"""Open reports in a headless browser, and fail if they do not work as expected.

    python3 scripts/check_report.py FILE.html...

A page must draw each of its figures: assets/report.js of the report crate counts them in the page. The plotting library
must accept all its input, and the browser's console must stay empty. Each page is opened light and dark, and printed:
the PDF must have more than one page. The browser is Chromium, or $BROWSER. Without a browser, nothing is checked and
the exit status is 3. Prints the size of each page, and how long the browser took, including its start.
"""

from __future__ import annotations

import html
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

# Maximum number of printed faults.
SHOWN = 20

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
