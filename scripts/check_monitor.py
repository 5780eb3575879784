#!/usr/bin/env python3
"""Open the dashboard of a live device in a headless browser, and fail if it does not work as expected.

    python3 scripts/check_monitor.py PROGRAM [--screenshots DIRECTORY] [--seconds N]

Serves a small device with PROGRAM, lets a client write to it, and opens the page light, dark, narrow, paused, and after
the server has ended. Values must change, all charts and the block map must be drawn, keys and buttons must work, and
the values must be saved as CSV. The page must show that a device is being filled, or has become read-only, the members
of an array, and the kinds of log blocks. Nothing may be wider than a laptop's screen, and the browser's console must
stay empty. All of this must finish within N seconds (default: 60). The browser is Chromium, or $BROWSER. Without a
browser, nothing is checked and the exit status is 3.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import json
import os
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from check_report import browser

if TYPE_CHECKING:
    from collections.abc import Iterator

TOKEN = "a-token-of-the-check"

# Screen size of a small laptop.
SCREEN = (1366, 768)

# Seconds after which the browser is considered hung if it has not answered a command.
PATIENCE = 60


class Hung(TimeoutError):
    """The browser does not respond and uses no processor time. This is a bug in Chromium."""


class Browser:
    """Chromium, controlled over a pair of pipes with its DevTools protocol."""

    def __init__(self, path: str, profile: str, deadline: float) -> None:
        self.deadline = deadline
        commands, self.output = os.pipe()
        self.input, answers = os.pipe()
        # Chromium can block everything, even our commands, until the frame that shows the effect of a key press.
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run",
                   "--disable-features=DeferRendererTasksAfterInput", "--disable-renderer-backgrounding",
                   "--disable-backgrounding-occluded-windows", "--disable-background-timer-throttling",
                   f"--user-data-dir={profile}", f"--window-size={SCREEN[0]},{SCREEN[1]}", "about:blank"]

        def place() -> None:
            # The browser reads commands from descriptor 3 and writes replies to 4.
            low, high = os.dup(commands), os.dup(answers)
            os.dup2(low, 3)
            os.dup2(high, 4)

        self.child = subprocess.Popen([path, *options], preexec_fn=place, close_fds=False,
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(commands)
        os.close(answers)
        self.rest = b""
        self.number = 0
        self.faults: list[str] = []
        targets = self.ask("Target.getTargets")["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")
        attached = self.ask("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self.session: str | None = attached["sessionId"]
        for domain in ["Page", "Runtime", "Log"]:
            self.ask(f"{domain}.enable")

    session: str | None = None

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command, and return the browser's reply."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.output, json.dumps(message).encode() + b"\0")
        latest = time.monotonic() + PATIENCE
        while True:
            try:
                answer = self.next(latest)
            except TimeoutError:
                raise Hung(f"the browser did not reply in time: {method} {json.dumps(parameters)}") from None
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def next(self, latest: float) -> dict[str, Any]:
        """Return the next message, and record the page's errors and warnings. Raises TimeoutError at `latest`."""
        while b"\0" not in self.rest:
            left = latest - time.monotonic()
            if left <= 0 or not select.select([self.input], [], [], left)[0]:
                raise TimeoutError
            piece = os.read(self.input, 1 << 20)
            if not piece:
                raise RuntimeError("the browser has ended")
            self.rest += piece
        text, self.rest = self.rest.split(b"\0", 1)
        message = json.loads(text)
        parameters = message.get("params", {})
        if message.get("method") == "Runtime.exceptionThrown":
            self.faults.append(f"exception: {parameters['exceptionDetails'].get('text')}")
        elif message.get("method") == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning"):
            self.faults.append(f"console: {[value.get('value') for value in parameters['args']]}")
        elif message.get("method") == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            self.faults.append(f"log: {parameters['entry']['text']} {parameters['entry'].get('url', '')}")
        return message

    def value(self, expression: str) -> Any:
        """Return the value of an expression in the page."""
        result = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait(self, expression: str) -> None:
        """Wait until an expression is true. An exception counts as false: elements are missing while a page loads."""
        while not self.value(f"(() => {{ try {{ return Boolean({expression}); }} catch {{ return false; }} }})()"):
            if time.monotonic() > self.deadline:
                state = self.value("JSON.stringify(document.documentElement.dataset)")
                done = self.value("document.getElementById('done')?.value")
                raise TimeoutError(f"timed out waiting for {expression}: the page's state is {state}, "
                                   f"and its last command ended with {done!r}")
            time.sleep(0.1)

    def key(self, name: str, code: int) -> None:
        """Press a key."""
        for kind in ["keyDown", "keyUp"]:
            text = {"text": "\r"} if name == "Enter" and kind == "keyDown" else {}
            self.ask("Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=code, **text)

    def screenshot(self, directory: Path | None, name: str) -> None:
        """Save a screenshot."""
        if directory:
            shot = self.ask("Page.captureScreenshot", format="png")["data"]
            (directory / f"{name}.png").write_bytes(base64.b64decode(shot))

    def end(self) -> None:
        """Kill the browser."""
        self.child.kill()
        self.child.wait()


class Writer(threading.Thread):
    """A client that writes and reads over NBD, one request at a time, until it is stopped."""

    def __init__(self, path: Path) -> None:
        super().__init__(daemon=True)
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(path))
        self.stopped = False

    def take(self, count: int) -> bytes:
        """Receive `count` bytes."""
        data = b""
        while len(data) < count:
            piece = self.socket.recv(count - len(data))
            if not piece:
                raise EOFError
            data += piece
        return data

    def run(self) -> None:
        """Send requests with a minimal subset of the protocol: NBD_OPT_EXPORT_NAME and simple replies."""
        try:
            self.take(18)
            self.socket.sendall(struct.pack(">I", 3) + b"IHAVEOPT" + struct.pack(">II", 1, 0))
            size = struct.unpack(">QH", self.take(10))[0]
            for number in range(1 << 40):
                if self.stopped:
                    return
                offset = number * 2654435761 % (size // 16384 - 1) * 16384
                kind = 0 if number % 4 == 3 else 1
                length = 4096 if kind == 0 else 16384
                head = struct.pack(">IHHQQI", 0x25609513, 0, kind, number, offset, length)
                self.socket.sendall(head + (b"" if kind == 0 else bytes(length)))
                self.take(16 + (length if kind == 0 else 0))
        except (OSError, EOFError):
            return


def serve(program: str, place: Path, *options: str, device: str = "tiny") -> tuple[subprocess.Popen[str], str]:
    """Serve a device, and return the server and the address of its page."""
    command = [program, "serve", device, "--nbd", "unix:ssd.sock", "--dashboard", *options]
    server = subprocess.Popen(command, cwd=place, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
                              env={**os.environ, "FLOATGATE_DASHBOARD_TOKEN": TOKEN})
    said = ""
    assert server.stderr
    for line in server.stderr:
        said += line
        if "Ctrl-C ends" in line:
            found = re.search(r"Dashboard at (\S+),", said)
            if found:
                return server, found[1]
    raise RuntimeError(f"the server did not print the address of its page: {said}")


@contextlib.contextmanager
def busy(program: str, place: Path, *options: str, device: str = "tiny") -> Iterator[str]:
    """Serve a device to a client that writes and reads. Gives the address of its page."""
    server, url = serve(program, place, *options, device=device)
    writer = Writer(place / "ssd.sock")
    writer.start()
    try:
        yield url
    finally:
        writer.stopped = True
        server.kill()
        server.wait()


def check_page(page: Browser, url: str, shots: Path | None) -> None:
    """Check the page of a working device."""
    page.ask("Page.navigate", url=url)
    page.wait("document.documentElement.dataset.state === 'live' && document.documentElement.dataset.frames > 6")
    page.wait("document.documentElement.dataset.blocks > 0")
    faults = page.faults
    charts = page.value("[...document.querySelectorAll('.plot')].filter(p => p.querySelector('svg.main-svg')).length")
    if charts != 8:
        faults.append(f"{charts} of 8 charts were drawn")
    if page.value("document.documentElement.scrollWidth > document.documentElement.clientWidth"):
        faults.append("the page is wider than the screen")
    bottom = page.value("document.querySelector('main').getBoundingClientRect().bottom")
    if bottom > SCREEN[1]:
        faults.append(f"charts and blocks end at {bottom} of {SCREEN[1]} pixels: they do not fit on a laptop's screen")
    unnamed = page.value("""
        [...document.querySelectorAll('[role=img], [role=application], input, select, button')].filter(
        e => !e.getAttribute('aria-label') && !e.labels?.length && !e.textContent.trim()).map(e => e.id).join()""")
    if unnamed:
        faults.append(f"these elements have no accessible name: {unnamed}")
    if page.value("!document.getElementById('merges').hidden || !document.querySelector('[value=kind]').disabled"):
        faults.append("merges or kinds of blocks are shown for a device without log blocks")
    for tile in [r"\d+ : \d+ %reads : writes", r"KiBmean request"]:
        page.wait(f"/{tile}/.test([...document.querySelectorAll('#tiles div')].map("
                  "t => t.children[1].textContent + t.children[0].textContent).join(' '))")
    colors = page.value("""(() => { const c = document.getElementById('map');
        const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
        const s = new Set(); for (let i = 0; i < d.length; i += 4)
        s.add(d[i] << 16 | d[i+1] << 8 | d[i+2]); return s.size; })()""")
    if colors < 3:
        faults.append(f"the block map has {colors} colors")
    before = page.value("document.querySelector('#tiles dd:nth-of-type(1)').textContent + "
                        "document.getElementById('state').textContent")
    page.wait("document.querySelector('#tiles dd:nth-of-type(1)').textContent + "
              f"document.getElementById('state').textContent !== {json.dumps(before)}")
    page.screenshot(shots, "light")
    check_keys(page)
    check_view(page, shots)
    page.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    page.wait("getComputedStyle(document.documentElement).backgroundColor === 'rgb(20, 23, 28)'")
    time.sleep(1)
    page.screenshot(shots, "dark")
    check_buttons(page, shots)
    page.ask("Emulation.setDeviceMetricsOverride", width=400, height=800, deviceScaleFactor=1, mobile=False)
    page.value("window.scrollTo(0, 0)")
    time.sleep(1)
    if page.value("document.documentElement.scrollWidth > document.documentElement.clientWidth"):
        faults.append("the page is wider than a narrow screen")
    page.screenshot(shots, "narrow")
    page.ask("Emulation.clearDeviceMetricsOverride")


def check_keys(page: Browser) -> None:
    """Check the keyboard control of the block map."""
    page.value("document.getElementById('map').focus()")
    for _ in range(3):
        page.key("ArrowRight", 39)
    page.wait("/plane .*block.*3:/.test(document.getElementById('cell').textContent)")
    for mode in ["erases", "writes", "age", "valid"]:
        page.value(f"(() => {{ const s = document.getElementById('color'); s.value = '{mode}'; "
                   "s.dispatchEvent(new Event('change')); })()")


STATE = "document.getElementById('state').textContent"


def check_view(page: Browser, shots: Path | None) -> None:
    """Check the table of clients, the pause, the time axis and the CSV file."""
    if page.value("document.getElementById('operation').value") != "write":
        page.faults.append("the latency chart does not start with the operation of the client, which writes")
    if not page.value("/python.*nbd/.test(document.getElementById('clients').textContent)"):
        page.faults.append("the client is not shown")
    press = "document.getElementById('pause').click()"
    page.value(press)
    page.wait(f"{STATE}.startsWith('paused at ')")
    page.wait("document.getElementById('pause').textContent === 'Continue'")
    figures = "document.getElementById('tiles').textContent + document.getElementById('requests').textContent"
    before = page.value(figures)
    page.screenshot(shots, "paused")
    time.sleep(1.5)
    if page.value(figures) != before:
        page.faults.append("values change while the page is paused")
    page.value(press)
    page.wait(f"{figures} !== {json.dumps(before)} && {STATE}.startsWith('live')")
    for axis, kind in [("clock", "date"), ("ago", "linear")]:
        page.value(f"(() => {{ const s = document.getElementById('axis'); s.value = '{axis}'; "
                   "s.dispatchEvent(new Event('change')); })()")
        page.wait(f"document.getElementById('plot-iops').layout.xaxis.type === '{kind}'")
        page.screenshot(shots, f"axis-{axis}")
    with tempfile.TemporaryDirectory() as place:
        page.ask("Page.setDownloadBehavior", behavior="allow", downloadPath=place)
        page.value("document.getElementById('csv').click()")
        file = Path(place) / "tiny.csv"
        while not file.exists() and time.monotonic() < page.deadline:
            time.sleep(0.1)
        rows = [line.split(",") for line in file.read_text().splitlines()]
    widths = {len(row) for row in rows}
    if len(rows) < 7 or len(widths) != 1 or rows[0][0] != "time" or "write_errors" not in rows[0]:
        page.faults.append(f"the CSV file has {len(rows)} rows of {widths} fields: {rows[0]}")


def check_buttons(page: Browser, shots: Path | None) -> None:
    """Check the controls: they must need the token, and ask before they destroy data."""
    done = "document.getElementById('done').value"

    def press(value: str) -> None:
        page.value(f"document.querySelector('#control button[value={value}]').click()")

    def forgive() -> None:
        # The browser itself logs a response with an error status.
        page.faults[:] = [fault for fault in page.faults if "Failed to load resource" not in fault]

    def type_speed(text: str) -> None:
        page.value("document.getElementById('speed').focus()")
        page.value("document.getElementById('speed').select()")
        page.ask("Input.insertText", text=text)

    speed = "document.getElementById('speed').value"
    page.wait(f"{speed} === '2'")
    type_speed("0.5")
    page.value("document.getElementById('token').focus()")
    time.sleep(1.2)
    if page.value(speed) != "0.5":
        page.faults.append("a typed speed is overwritten")
    press("speed")
    page.wait(f"{done}.includes('wrong token')")
    page.value(f"document.getElementById('token').value = '{TOKEN}'")
    press("speed")
    page.wait(f"{done}.includes('speed 0.5')")
    page.wait("document.getElementById('state').textContent.includes('speed 0.5')")
    if page.value("document.querySelector('#control [value=power-cut]').offsetParent !== null"):
        page.faults.append("a power cut is offered for a device without an image")
    page.value("document.getElementById('fault').value = 'program'")
    press("fail")
    page.wait(f"{done}.includes('the next program fails')")
    press("trim-all")
    page.wait("document.getElementById('sure').open")
    page.screenshot(shots, "question")
    page.key("Escape", 27)
    page.wait("!document.getElementById('sure').open")
    press("trim-all")
    page.wait("document.getElementById('sure').open")
    # Ask again before the browser has notified the page that the dialog was closed.
    page.value("document.getElementById('sure').close(), "
               "document.querySelector('#control button[value=trim-all]').click()")
    page.value("document.getElementById('sure-yes').click()")
    page.wait(f"{done}.includes('trimmed all')")
    forgive()


def check_loss(page: Browser, server: subprocess.Popen[str], shots: Path | None) -> None:
    """Check that the page does not look live while the server is stopped, or after it has ended."""
    gray = "getComputedStyle(document.getElementById('tiles')).opacity < 1"
    server.send_signal(signal.SIGSTOP)
    page.wait(f"{STATE}.startsWith('no data received; last seen at') && {gray}")
    server.send_signal(signal.SIGCONT)
    page.wait(f"document.documentElement.dataset.state === 'live' && !({gray})")
    server.send_signal(signal.SIGTERM)
    server.wait(timeout=60)
    page.wait(f"document.documentElement.dataset.state === 'lost' && {STATE}.includes('last seen at') && {gray}")
    page.screenshot(shots, "lost")


def check_read_only(page: Browser, program: str, place: Path, shots: Path | None) -> None:
    """Check the page of a read-only device."""
    with busy(program, place, "--no-delay", "--image", "memory", "--set", "faults.erase_rate=1") as url:
        page.ask("Page.navigate", url=url)
        page.wait("!document.getElementById('alarm').hidden")
        if not page.value("/read-only.*[1-9].* bad blocks/.test(document.getElementById('alarm').textContent)"):
            page.faults.append("the banner does not say what is wrong")
        page.value("window.scrollTo(0, 0)")
        if page.value("document.querySelector('#control [value=power-cut]').offsetParent === null"):
            page.faults.append("no power cut is offered for a device with an image")
        if not page.value("document.getElementById('speed').disabled"):
            page.faults.append("the speed can be set although the server ignores the clock")
        page.screenshot(shots, "read-only")


def check_array(page: Browser, program: str, place: Path, shots: Path | None) -> None:
    """Check the page of an array: a row for each member."""
    (place / "raid5.toml").write_text('[array]\nlevel = 5\ndevice = "tiny"\ncount = 4\nfailed = [2]\n')
    with busy(program, place, "--image", "memory", device="raid5.toml") as url:
        page.ask("Page.navigate", url=url)
        rows = "[...document.querySelectorAll('#members tbody tr')].map(r => [...r.cells].map(c => c.textContent))"
        page.wait(f"({rows}).length === 4 && ({rows}).filter(r => parseFloat(r[5]) > 0).length === 3")
        if page.value(f"({rows}).map(r => r[1]).join()") != "in sync,in sync,failed,in sync":
            page.faults.append(f"the states of the members are {page.value(f'({rows}).map(r => r[1]).join()')}")
        page.wait("document.documentElement.dataset.blocks > 0")
        page.value("document.getElementById('members').scrollIntoView()")
        page.screenshot(shots, "array")


def check_log_blocks(page: Browser, program: str, place: Path, shots: Path | None) -> None:
    """Check the page of a device with log blocks: kinds of blocks, merges and associativity."""
    (place / "fast.toml").write_text('base = "tiny"\nname = "fast"\nmapping.scheme.fast.logs = { sequential = 2, '
                                     'random = 6 }\n')
    with busy(program, place, "--no-delay", device="fast.toml") as url:
        page.ask("Page.navigate", url=url)
        cell = "document.getElementById('cell').textContent"
        page.wait("document.getElementById('color').value === 'kind' && !document.getElementById('kinds').hidden")
        page.wait("/random log .R. [1-6]/.test(document.getElementById('kinds').textContent)")
        page.wait("/full merges[1-9]/.test(document.getElementById('flash').textContent)")
        for plot in ["merges", "associativity"]:
            page.wait(f"document.querySelector('#plot-{plot} svg.main-svg')")
            page.wait(f"!document.getElementById('{plot}').hidden")
        page.wait("document.getElementById('plot-associativity').data[0].y.some(value => value > 1)")
        page.value("document.getElementById('map').focus()")
        page.key("Home", 36)
        page.wait(f"/plane 0, block 0: [a-z ]+, .*units written, .*erases/.test({cell})")
        page.value("window.scrollTo(0, 0)")
        time.sleep(2)
        page.screenshot(shots, "log-blocks")
        page.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
        time.sleep(1)
        page.value("document.getElementById('merges').scrollIntoView()")
        page.screenshot(shots, "log-blocks-dark")


def check_filling(page: Browser, program: str, place: Path, shots: Path | None) -> None:
    """Check the page of a device that is not ready yet."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [program, "serve", "bench-32g", "--precondition", "steady", "--nbd", "unix:slow.sock", "--dashboard",
               address]
    server = subprocess.Popen(command, cwd=place, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        while socket.socket().connect_ex(("127.0.0.1", int(address.rsplit(":", 1)[1]))):
            time.sleep(0.1)
        page.ask("Page.navigate", url=f"http://{address}/")
        page.wait("document.documentElement.dataset.state === 'preparing'")
        page.wait("/preconditioning the device .steady., \\d+ %/.test("
                  "document.getElementById('preparing').textContent)")
        page.screenshot(shots, "filling")
    finally:
        server.kill()
        server.wait()


def check(program: str, path: str, screenshots: Path | None, seconds: float) -> list[str]:
    """Check the dashboard in a new browser, and return the faults. Raises `Hung` if the browser hangs."""
    deadline = time.monotonic() + seconds
    faults: list[str] = []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        server, url = serve(program, Path(scratch), "--speed", "2", "--set", "faults.program_rate=0")
        writer = Writer(Path(scratch) / "ssd.sock")
        writer.start()
        page = None
        try:
            page = Browser(path, f"{scratch}/profile", deadline)
            check_page(page, url, screenshots)
            faults += page.faults
            check_loss(page, server, screenshots)
            # The browser logs requests that failed because the server had ended.
            page.faults.clear()
            check_read_only(page, program, Path(scratch), screenshots)
            check_array(page, program, Path(scratch), screenshots)
            check_log_blocks(page, program, Path(scratch), screenshots)
            check_filling(page, program, Path(scratch), screenshots)
            faults += [fault for fault in page.faults if "Failed to load resource" not in fault]
        except Hung:
            raise
        except (RuntimeError, TimeoutError) as error:
            faults += [str(error), *(page.faults if page else [])]
        finally:
            writer.stopped = True
            server.kill()
            server.wait()
            if page:
                page.end()
    return faults


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("program")
    parser.add_argument("--screenshots", type=Path)
    parser.add_argument("--seconds", type=float, default=60)
    arguments = parser.parse_args()
    path = browser()
    if not path:
        print("NOT CHECKED: no Chromium found; apt-get install -y chromium, or set BROWSER", file=sys.stderr)
        return 3
    if arguments.screenshots:
        arguments.screenshots.mkdir(parents=True, exist_ok=True)
    program = str(Path(arguments.program).resolve())
    began = time.monotonic()
    try:
        faults = check(program, path, arguments.screenshots, arguments.seconds)
    except Hung as hung:
        print(f"{hung}; checking once more in a new browser", file=sys.stderr)
        try:
            faults = check(program, path, arguments.screenshots, arguments.seconds)
        except Hung as again:
            faults = [str(again)]
    what = "light, dark, narrow, keys, buttons, filling, read-only and the server's end"
    print(f"dashboard checked ({what}) in {time.monotonic() - began:.1f} s")
    for fault in faults:
        print(f"error: {fault}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
