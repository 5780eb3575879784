#!/usr/bin/env python3
"""Write docs/studies/vssim.md: VSSIM's measurements of its X25-M, of SSD-A to E and of mappings, live and simulated.

    python3 scripts/study_vssim.py --floatgate target/release/floatgate      # a quarter of an hour: make study-yoo2013

Each case is measured twice: `floatgate run` simulates it, and fio's nbd engine measures it on `floatgate serve`, in
real time. Those of the X25-M are measured a third time, by fio with direct I/O in a guest of `floatgate vm`, on an IDE
disk. The simulated figures are reproducible. The live ones depend on the machine, whose load is given on the page.
Needs fio, and what `floatgate vm` needs: apt and qemu-system-x86_64.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import textwrap
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
PAGE = REPOSITORY / "docs" / "studies" / "vssim.md"


@dataclass(frozen=True)
class Case:
    """A measurement: fio options, on a device in a given state."""

    name: str
    device: str
    #: Options of fio and of `floatgate run`.
    words: str
    #: "MB/s" of 10^6 bytes, or "requests/s".
    unit: str
    changes: tuple[str, ...] = ()
    #: Value in the paper. `None` if it prints no number.
    paper: float | None = None
    #: Number of requests of the simulation.
    requests: int = 4000
    #: Preconditioning, if it is not the data that the kind of request needs.
    before: str | None = None
    #: True if the live measurement has as many requests as the simulation, and False if it has a duration.
    is_counted: bool = False

    @property
    def kind(self) -> str:
        """Return the kind of its requests, `read` or `write`."""
        return "read" if "read" in self.words else "write"

    @property
    def state(self) -> str:
        """Return the preconditioning: the data written before the measurement."""
        if self.before is not None:
            return self.before
        return "rw=write bs=128k size=512m" if self.kind == "read" or "rand" in self.words else "none"


def x25m(name: str, words: str, unit: str, paper: float, program: str = "1100us") -> Case:
    """Return a case of Section IV-B."""
    return Case(name, "x25m", words, unit, (f"nand.program={program}",), paper)


X25M = [
    x25m("sequential write, 900 us", "rw=write bs=128k size=512m iodepth=1", "MB/s", 68.9, "900us"),
    x25m("sequential write, 1100 us", "rw=write bs=128k size=512m iodepth=1", "MB/s", 63),
    x25m("sequential read", "rw=read bs=128k size=512m iodepth=1", "MB/s", 220),
    x25m("random read, 4 KiB", "rw=randread bs=4k size=512m iodepth=1", "requests/s", 4400),
    x25m("random write, 4 KiB", "rw=randwrite bs=4k size=512m iodepth=1", "requests/s", 700),
]

#: The 8 KByte pages of the text, with the 1 MByte blocks of the table.
LARGE_PAGES = ("geometry.page_size=8KiB", "geometry.mapping_unit=8KiB", "geometry.pages=128")

#: The channel switch of the X25-M, which Section IV-B does not mention for other devices.
SWITCHES = ("bus.channel_switch=30us", "bus.channel_switch_scope=controller")


#: Pages placed in the order of writes, or according to their number, so that writes collide by chance.
IN_TURN = ('allocation={ dynamic = { order = "s2" } }',)
STATIC = ('allocation={ static = { order = "s2" } }',)

#: Both pages of a request in a chip, so that it uses one channel (Figure 11), and channel switches.
PLANES_FIRST = ('allocation={ static = { order = "plane-channel-chip-die" } }', *SWITCHES)

#: The reading whose gains the text of the page names.
BY_NUMBER = "depth 8, static"

#: Possible conditions of Figure 9: name, queue depth, and changes of the device.
READINGS = [
    ("depth 1", 1, IN_TURN),
    ("depth 32", 32, IN_TURN),
    ("depth 32, switches", 32, IN_TURN + SWITCHES),
    (BY_NUMBER, 8, STATIC),
    ("depth 4, planes first, switches", 4, PLANES_FIRST),
    ("depth 1, 8 KiB pages", 1, IN_TURN + LARGE_PAGES),
]


def figure_9() -> list[Case]:
    """Return random writes of 4 KiB on SSD-A to E, with the queue depths and changes of `READINGS`."""
    cases = []
    for letter in "abcde":
        for reading, depth, changes in READINGS:
            if LARGE_PAGES[0] not in changes or letter in "de":
                words = f"rw=randwrite bs=4k size=512m iodepth={depth} norandommap=1"
                name = f"{letter.upper()}, {reading}"
                cases.append(Case(name, f"vssim-{letter}", words, "requests/s", changes, requests=8000))
    return cases


#: Revised mappings of Section IV-E, with 16 random and 4 sequential log blocks for each of the four flash chips.
MAPPINGS = {
    "page mapping": "page",
    "FAST": "{ fast = { logs = { sequential = 16, random = 64 }, stripe = { random = 8 }, "
    'free_blocks = "by-channel" } }',
    "LAST": "{ last = { logs = { sequential = 16, hot = 32, cold = 32 }, stripe = { cold = 8 }, "
    'free_blocks = "by-channel" } }',
}


def figure_12() -> list[Case]:
    """Return random writes of 4 KiB on SSD-D with each mapping, which has full log blocks at the start."""
    words = "rw=randwrite bs=4k size=512m iodepth=1 norandommap=1"
    state = f"{words} io_size=1g"
    return [
        Case(name, "vssim-d", words, "requests/s", (f"mapping.scheme={scheme}",), None, 8192, state, is_counted=True)
        for name, scheme in MAPPINGS.items()
    ]


@dataclass(frozen=True)
class Host:
    """Conditions of the live measurements."""

    floatgate: str
    #: Simulated time relative to real time.
    speed: float
    realtime: bool
    #: Accelerator of the guest, and simulated time relative to real time in it. Without a speed, it is that of `vm`.
    accel: str = "auto"
    guest_speed: float | None = None
    #: Duration of each live measurement.
    seconds: int = 4

    @property
    def before(self) -> list[str]:
        """Return the command prefix that starts server and client."""
        return ["chrt", "-f", "5"] if self.realtime else []

    @property
    def words(self) -> str:
        """Return the description of the conditions for the page."""
        said = [] if self.speed == 1 else [f"simulated time ran at {self.speed:g} of real time (`--speed`)"]
        if self.realtime:
            said.append("server and client had a real-time priority (`chrt -f 5`) and did not spin (`--no-spin`)")
        return "; " + "; ".join(said) if said else ""


@dataclass(frozen=True)
class Guest:
    """The figure of a case in a guest."""

    figure: float
    late: float
    is_emulated: bool
    speed: float


@dataclass
class Measured:
    """The figures of a case."""

    case: Case
    offline: float
    live: float
    late: float
    guest: Guest | None = None


def options(case: Case) -> list[str]:
    """Return device, changes and state as options of `run` and `serve`."""
    sets = [word for change in case.changes for word in ("--set", change)]
    return [case.device, *sets, "--precondition", case.state]


def figure(case: Case, kib_per_s: float, iops: float) -> float:
    """Return the figure in the unit of the case."""
    return kib_per_s * 1024 / 1e6 if case.unit == "MB/s" else iops


def offline(floatgate: str, case: Case) -> dict[str, Any]:
    """Return the results of the simulator."""
    words = f"{case.words} number_ios={case.requests}"
    command = [floatgate, "run", *options(case), words, "--json"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)["requests"][case.kind]


def live(host: Host, case: Case, directory: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the results of fio, and the section `live` of the server's result."""
    socket = directory / "ssd.sock"
    command = [*host.before, host.floatgate, "serve", *options(case), "--nbd", f"unix:{socket}", "--json"]
    command += ["--speed", f"{host.speed:g}"] + (["--no-spin"] if host.realtime else [])
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert server.stderr and server.stdout
    for line in server.stderr:
        if "Ctrl-C ends" in line:
            break
    else:
        sys.exit(f"error: {' '.join(command)} did not start")
    fio = [*host.before, "fio", "--name=a", "--ioengine=nbd", f"--uri=nbd+unix:///?socket={socket}"]
    fio += ["--output-format=json", *(f"--{word}" for word in case.words.split())]

    def ask(*more: str) -> str:
        return subprocess.run([*fio, *more], check=True, capture_output=True, text=True, cwd=directory).stdout

    if case.kind == "write" and "rand" not in case.words:
        # Write everything once: the server allocates the payload of a page at its first write, which takes longer.
        ask("--iodepth=32")
    timed = ["--time_based", f"--runtime={host.seconds}", "--ramp_time=1"]
    told = ask(*([f"--number_ios={case.requests}"] if case.is_counted else timed))
    server.terminate()
    result = json.loads(server.communicate()[0])
    return json.loads(told[told.index("{") :])["jobs"][0][case.kind], result["live"]


def in_guest(host: Host, case: Case, directory: Path) -> Guest:
    """Return the results of fio with direct I/O on the IDE disk of a guest, and the lateness of the device."""
    out = directory / case.name.replace(" ", "-").replace(",", "")
    # With emulation, `vm` lets simulated time pass at a tenth of real time. `auto` may choose it.
    runtime = round(host.seconds / (host.guest_speed or (1 if host.accel == "kvm" else 0.1)))
    fio = "fio --name=a --filename=$SSD --direct=1 --output-format=json --ramp_time=1 "
    fio += f"--time_based --runtime={runtime} "
    fio += " ".join(f"--{word}" for word in case.words.split())
    command = [host.floatgate, "vm", *options(case), "--interface", "ide", "--accel", host.accel, "--out", str(out)]
    command += [] if host.guest_speed is None else ["--speed", f"{host.guest_speed:g}"]
    done = subprocess.run([*command, "--run", fio], check=True, capture_output=True, text=True, cwd=directory)
    seen = json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0][case.kind]
    section = json.loads((out / "summary.json").read_text())["live"]
    is_emulated = "booting an emulated machine" in done.stderr
    speed = host.guest_speed or (0.1 if is_emulated else 1.0)
    value = figure(case, seen["bw_bytes"] / 1024, seen["iops"]) / speed
    print(f"{case.name:32} {value:10.1f} in a guest, {section['late_share']:.1%} late", flush=True)
    return Guest(value, section["late_share"], is_emulated, speed)


def measure(host: Host, case: Case, directory: Path) -> Measured:
    """Measure both figures of a case."""
    simulated = offline(host.floatgate, case)
    seen, section = live(host, case, directory)
    ours = figure(case, simulated["mib_per_s"] * 1024, simulated["iops"])
    theirs = figure(case, seen["bw_bytes"] / 1024, seen["iops"]) / host.speed
    measured = Measured(case, ours, theirs, section["late_share"])
    print(f"{case.name:32} {ours:10.1f} simulated {theirs:10.1f} live, {measured.late:.1%} late", flush=True)
    return measured


def number(value: float) -> str:
    """Format a number, without decimals from 1000 on."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.1f}"


def table(head: str, rows: list[list[str]]) -> str:
    """Return a table in Markdown: the first column on the left, and those with `:` in the header on the right."""
    names = head.split("|")
    lines = [[name.removesuffix(":") for name in names], ["--:" if name.endswith(":") else "---" for name in names]]
    return "\n".join(f"|{'|'.join(cells)}|" for cells in [*lines, *rows])


def x25m_table(rows: list[Measured]) -> str:
    """Return the table of Section IV-B."""
    cells = []
    for row in rows:
        paper = row.case.paper or 0.0
        cells.append(
            [row.case.name, row.case.unit, number(paper), number(row.offline), f"{row.offline / paper - 1:+.1%}"]
            + [number(row.live), f"{row.live / row.offline - 1:+.1%}", f"{row.late:.1%}"]
        )
    return table("case|unit|paper:|simulated:|deviation:|live, by fio:|deviation from simulated:|late:", cells)


def guest_table(rows: list[Measured]) -> str:
    """Return the table of Section IV-B in a guest. The software takes the time that the simulated device does not."""
    cells = []
    for row in rows:
        if row.guest is None:
            continue
        paper = row.case.paper or 0.0
        # MB/s of requests of 128 KiB, or requests per second.
        per_request = 0.131072 if row.case.unit == "MB/s" else 1.0
        software = 1e6 * per_request * (1 / row.guest.figure - 1 / row.offline)
        cells.append(
            [row.case.name, row.case.unit, number(paper), number(row.offline), number(row.guest.figure)]
            + [f"{row.guest.figure / paper - 1:+.1%}", f"{software:.0f} us", f"{row.guest.late:.1%}"]
        )
    return table("case|unit|paper:|simulated:|in the guest:|deviation from the paper:|software:|late:", cells)


def guest_words(rows: list[Measured]) -> str:
    """Return how the guest was executed."""
    guests = [row.guest for row in rows if row.guest is not None]
    if not guests:
        return "No guest was measured."
    speed = guests[0].speed
    if not guests[0].is_emulated:
        return f"KVM executed the guest, and simulated time ran at {speed:g} of real time."
    return (
        f"QEMU emulated the guest's processor (no KVM), and simulated time ran at {speed:g} of real time. The guest's "
        f"software therefore counts as on a processor {1 / speed:g} times as fast as the emulated one. Emulated "
        "processors are 10 to 30 times slower than real ones."
    )


def compared(what: str, rows: list[Measured]) -> str:
    """Return the table of a figure without a value in the paper."""
    cells = [
        [row.case.name, number(row.offline), number(row.live), f"{row.live / row.offline - 1:+.1%}", f"{row.late:.1%}"]
        for row in rows
    ]
    return table(f"{what}|simulated:|live, by fio:|deviation from simulated:|late:", cells)


def gains(rows: list[Measured]) -> str:
    """Return the table of the gains from more channels instead of ways, the topic of Figure 9."""
    by_name = {row.case.name: row for row in rows}
    lines = [["the paper, in words", "about +10 %", "about +10 %", "less than 3 %"]]
    for reading, _, changes in READINGS:
        for what in ("offline", "live"):
            cells = []
            for first, second in [("A", "B"), ("B", "C"), ("D", "E")]:
                if LARGE_PAGES[0] in changes and first != "D":
                    cells.append("")
                    continue
                pair = [getattr(by_name[f"{letter}, {reading}"], what) for letter in (first, second)]
                cells.append(f"{pair[0] / pair[1] - 1:+.1%}")
            name = "simulated" if what == "offline" else "live"
            lines.append([f"{reading}, {name}", *cells])
    return table("reading|A over B:|B over C:|D over E:", lines)


def numbers(x25m_rows: list[Measured], others: list[Measured]) -> dict[str, str]:
    """Return the simulated numbers in the text of the page, by their marks in the template."""
    by_name = {row.case.name: row for row in (*x25m_rows, *others)}

    def longer(name: str) -> str:
        row = by_name[name]
        return f"{1e6 / (row.case.paper or 0.0) - 1e6 / row.offline:.0f} us"

    def gain(first: str, second: str) -> str:
        pair = [by_name[f"{letter}, {BY_NUMBER}"].offline for letter in (first, second)]
        return f"{pair[0] / pair[1] - 1:+.1%}"

    return {
        "{read in the paper}": longer("random read, 4 KiB"),
        "{write in the paper}": longer("random write, 4 KiB"),
        "{A over B by number}": gain("A", "B"),
        "{B over C by number}": gain("B", "C"),
    }


def filled(template: str, marks: dict[str, str]) -> str:
    """Return the template with numbers in its text, and wrap the paragraphs that have some."""
    paragraphs = template.split("\n\n")
    for index, paragraph in enumerate(paragraphs):
        text = paragraph
        for mark, value in marks.items():
            text = text.replace(mark, value)
        if text != paragraph:
            words = " ".join(text.split())
            paragraphs[index] = textwrap.fill(words, 118, break_long_words=False, break_on_hyphens=False)
    return "\n\n".join(paragraphs)


def page(
    x25m_rows: list[Measured], others: list[Measured], mappings: list[Measured], load: str, template: str
) -> str:
    """Return the page: the template with the tables inserted."""
    template = filled(template, numbers(x25m_rows, others))
    parts = {
        "{x25m}": x25m_table(x25m_rows),
        "{guest}": guest_table(x25m_rows),
        "{guest words}": textwrap.fill(guest_words(x25m_rows), 118),
        "{figure 9}": compared("SSD", others),
        "{figure 12}": compared("mapping", mappings),
        "{gains}": gains(others),
        "Measured on {load}": textwrap.fill(f"Measured on {load}", 118),
    }
    for mark, text in parts.items():
        if mark not in template:
            sys.exit(f"error: the template has no {mark}")
        template = template.replace(mark, text)
    return template


def main() -> None:
    """Measure everything, and write the page."""
    parser = argparse.ArgumentParser(description="Write docs/studies/vssim.md.")
    parser.add_argument("--floatgate", default="floatgate", help="path of the program (default: %(default)s)")
    parser.add_argument("--output", type=Path, default=PAGE, help="path of the page (default: %(default)s)")
    parser.add_argument("--speed", type=float, default=1.0, help="simulated time relative to real time, for busy hosts")
    parser.add_argument("--realtime", action="store_true", help="use a real-time priority with chrt; needs root")
    parser.add_argument("--accel", default="auto", help="auto, kvm or tcg, for the guest (default: %(default)s)")
    parser.add_argument("--guest-speed", type=float, help="simulated time relative to real time in the guest")
    parser.add_argument("--seconds", type=int, default=4, help="duration of each measurement (default: %(default)s)")
    chosen = parser.parse_args()
    program = str(Path(chosen.floatgate).resolve())
    host = Host(program, chosen.speed, chosen.realtime, chosen.accel, chosen.guest_speed, chosen.seconds)
    template = (Path(__file__).parent / "study_vssim.md").read_text()
    before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="floatgate-") as directory:
        x25m_rows = [measure(host, case, Path(directory)) for case in X25M]
        for row in x25m_rows:
            row.guest = in_guest(host, row.case, Path(directory))
        others = [measure(host, case, Path(directory)) for case in figure_9()]
        mappings = [measure(host, case, Path(directory)) for case in figure_12()]
    load = (
        f"{os.cpu_count()} processors; the load average was {before:.1f} before and {os.getloadavg()[0]:.1f} "
        f"after the measurements of {host.seconds} s each ({time.strftime('%d %B %Y', time.gmtime())}). "
        f"Server and fio account for at most 2 of it{host.words}."
    )
    chosen.output.write_text(page(x25m_rows, others, mappings, load, template))


if __name__ == "__main__":
    main()
