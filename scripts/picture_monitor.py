#!/usr/bin/env python3
"""Record the picture of the dashboard in docs/live-dashboard.md, docs/images/monitor.png.

    python3 -B scripts/picture_monitor.py PROGRAM [FILE]

Serves a small part of `tlc-nvme` at a quarter of real time, lets fio read and write at random for a minute, and takes
a picture of the whole page in Chromium, as `check_monitor.py` does.
"""

from __future__ import annotations

import argparse
import base64
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from check_monitor import SCREEN, Browser, serve
from check_report import browser

PICTURE = Path(__file__).resolve().parent.parent / "docs/images/monitor.png"

# 64 planes of 24 blocks, so that the map has a cell for each block and garbage collection starts within seconds.
DEVICE = ["geometry.blocks=24", "geometry.pages=48", "capacity.spare=0.262", "faults.program_rate=0"]

# A mix of reads and writes that keeps all dies busy.
LOAD = ["--name=load", "--ioengine=nbd", "--rw=randrw", "--rwmixread=40", "--bs=16k", "--iodepth=16", "--norandommap",
        "--time_based", "--runtime=90"]

# Seconds under load before the picture is taken.
LOADED = 55


def record(program: str, chromium: str, place: Path) -> bytes:
    """Return a screenshot of a device under load."""
    changes = [word for change in DEVICE for word in ("--set", change)]
    server, url = serve(program, place, "--speed", "0.25", *changes, device="tlc-nvme")
    load = subprocess.Popen(["fio", *LOAD, f"--uri=nbd+unix:///?socket={place}/ssd.sock"],
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    page = None
    try:
        page = Browser(chromium, f"{place}/profile", time.monotonic() + LOADED + 60)
        page.ask("Emulation.setScrollbarsHidden", hidden=True)
        # First the height from which charts are larger, then the height of the page with these charts.
        resize(page, 900)
        page.ask("Page.navigate", url=url)
        time.sleep(LOADED)
        page.wait("document.documentElement.dataset.state === 'live' && document.documentElement.dataset.blocks > 0")
        resize(page, page.value("document.documentElement.scrollHeight"))
        # The next frames draw the charts at the new size.
        time.sleep(2)
        return base64.b64decode(page.ask("Page.captureScreenshot", format="png")["data"])
    finally:
        if page:
            page.end()
        for child in [load, server]:
            child.terminate()
            child.wait()


def resize(page: Browser, height: int) -> None:
    """Set the height of the window."""
    page.ask("Emulation.setDeviceMetricsOverride", width=SCREEN[0], height=height, deviceScaleFactor=1, mobile=False)


def main() -> int:
    """Write the screenshot to the file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("program")
    parser.add_argument("file", type=Path, nargs="?", default=PICTURE)
    arguments = parser.parse_args()
    chromium = browser()
    if not chromium or not shutil.which("fio"):
        sys.exit("Chromium or fio is missing; install both: apt-get install -y chromium fio")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        arguments.file.write_bytes(record(str(Path(arguments.program).resolve()), chromium, Path(scratch)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
