#!/usr/bin/env python3
"""Check a timeline with Perfetto's own definitions of its format.

    scripts/check_timeline.py target/release/floatgate

Runs simulations with the program, and decodes their timelines with the protobuf definitions of Perfetto's Python
package (`make columns` installs it). Events are processed like in Perfetto's trace_processor: sorted by time, and each
end ends the last slice of its track that has begun. Every slice must then end itself, no slice may have a length of 0,
and each must have a name. The numbers and lengths of requests must be those of requests.parquet, and the numbers of
erases that of the summary.

With TRACE_PROCESSOR=PATH, the program trace_processor_shell loads the timelines as well, and must find the same slices.
The package would download that program, which is not part of it.
"""

from __future__ import annotations

import gzip
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from collections import defaultdict
from typing import NamedTuple

import pyarrow.parquet as pq
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as perfetto

JOBS = "rw=randrw bs=4k iodepth=16 norandommap=1 number_ios=20k"

# Options of devices whose operations overlap in different ways.
DEVICES = {
    "plain": [],
    "suspended": [
        "nand.advanced.suspend={ program = true, erase = true, latency = \"5us\", resume = \"3us\" }",
        "nand.concurrency=die",
        "scheduler=read-first",
    ],
    "firmware": ["controller.firmware={ cores = 2, interrupt = 100, lookup = 200, allocation = 400, gc = 900 }"],
    "merges": ["mapping.scheme={ fast = { logs = { sequential = 2, random = 6 } } }"],
}


class Slice(NamedTuple):
    """A slice, or an instant, whose length is 0."""

    track: int
    name: str
    category: str
    start: int
    length: int
    arguments: dict[str, object]
    flows: tuple[int, ...]


class Texts:
    """Interned texts of a trace."""

    def __init__(self) -> None:
        self.kinds: dict[str, dict[int, str]] = defaultdict(dict)

    def add(self, data: perfetto.InternedData) -> None:
        for kind in ("event_categories", "event_names", "debug_annotation_names"):
            self.kinds[kind].update({entry.iid: entry.name for entry in getattr(data, kind)})
        strings = data.debug_annotation_string_values
        self.kinds["values"].update({entry.iid: entry.str.decode() for entry in strings})

    def arguments(self, annotations) -> dict[str, object]:
        """Return the arguments of an event."""
        found = {}
        for one in annotations:
            name = one.name or self.kinds["debug_annotation_names"][one.name_iid]
            if one.HasField("string_value_iid"):
                found[name] = self.kinds["values"][one.string_value_iid]
            elif one.array_values:
                found[name] = [value.uint_value for value in one.array_values]
            else:
                found[name] = getattr(one, one.WhichOneof("value"))
        return found


def slices_of(path: pathlib.Path) -> tuple[list[Slice], dict[int, perfetto.TrackDescriptor]]:
    """Return the slices of a timeline, and its tracks. Fail if they are not nested."""
    trace = perfetto.Trace()
    with gzip.open(path) as file:
        trace.ParseFromString(file.read())
    texts = Texts()
    tracks = {}
    events = []
    for packet in trace.packet:
        if packet.HasField("interned_data"):
            texts.add(packet.interned_data)
        if packet.HasField("track_descriptor"):
            tracks[packet.track_descriptor.uuid] = packet.track_descriptor
        if packet.HasField("track_event"):
            events.append((packet.timestamp, packet.track_event))
    # Stable, like in trace_processor: events of one time are in the order of the file.
    events.sort(key=lambda event: event[0])
    open_slices, slices = defaultdict(list), []
    for time, event in events:
        if event.type == perfetto.TrackEvent.TYPE_SLICE_END:
            start, begun = open_slices[event.track_uuid].pop()
            expect(time > start, f"a slice of length {time - start}: {begun}")
        else:
            start = time
            begun = event
        if event.type == perfetto.TrackEvent.TYPE_SLICE_BEGIN:
            expect(not open_slices[event.track_uuid], f"slices of a track overlap at {time}: {event}")
            open_slices[event.track_uuid].append((time, event))
            continue
        name = begun.name or texts.kinds["event_names"].get(begun.name_iid, "")
        categories = [texts.kinds["event_categories"][iid] for iid in begun.category_iids]
        arguments = texts.arguments(begun.debug_annotations)
        expect(name, f"an event without a name: {begun}")
        category = categories[0] if categories else ""
        slices.append(
            Slice(begun.track_uuid, name, category, start, time - start, arguments, tuple(begun.flow_ids))
        )
    expect(not any(open_slices.values()), "slices that do not end")
    expect(all(each.track in tracks for each in slices), "events of tracks without a description")
    return slices, tracks


def expect(condition: object, what: str) -> None:
    if not condition:
        sys.exit(f"error: {what}")


def ps(each: Slice, which: str) -> int:
    """Return the start or the end of a slice in picoseconds."""
    start = each.start * 1000 + each.arguments.get("start_ps", 0)
    if which == "start":
        return start
    if each.length == 0:
        return start + each.arguments.get("length_ps", 0)
    return (each.start + each.length) * 1000 + each.arguments.get("end_ps", 0)


def check(directory: pathlib.Path) -> list[Slice]:
    """Check the timeline of a result, and return its slices."""
    path = directory / "timeline.pftrace.gz"
    slices, tracks = slices_of(path)
    summary = json.loads((directory / "summary.json").read_text())
    requests = [each for each in slices if each.category == "request"]
    table = pq.read_table(directory / "requests.parquet", columns=["number", "arrival_ps", "finish_ps"]).to_pylist()
    expected = sorted((row["number"], row["arrival_ps"], row["finish_ps"]) for row in table)
    found = sorted((each.arguments["request"], ps(each, "start"), ps(each, "end")) for each in requests)
    expect(found == expected, "the requests are not those of requests.parquet")
    last = max(ps(each, "end") for each in requests)
    # A suspended erase has several slices.
    erases: dict[object, int] = defaultdict(int)
    for each in slices:
        if each.category.endswith("erase") and each.name == each.category:
            erases[each.arguments["op"]] = max(erases[each.arguments["op"]], ps(each, "end"))
    count = sum(end <= last for end in erases.values())
    expect(count == summary["flash"]["blocks_erased"], f"{count} erases, not {summary['flash']['blocks_erased']}")
    # Each track leads to the device, and tracks that are drawn one below the other have different positions.
    roots = [track for track in tracks.values() if not track.HasField("parent_uuid")]
    expect(len(roots) == 1 and all(t.parent_uuid in tracks for t in tracks.values() if t not in roots), "lost tracks")
    arrows = defaultdict(set)
    for each in slices:
        for flow in each.flows:
            arrows[flow].add(each.category == "request")
    expect(sum(len(kinds) == 2 for kinds in arrows.values()) > 0.9 * len(arrows), "arrows without a request")
    return slices


def load(shell: str, path: pathlib.Path, slices: list[Slice]) -> None:
    """Load a timeline into trace_processor, and compare the slices."""
    from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig

    processor = TraceProcessor(trace=str(path), config=TraceProcessorConfig(bin_path=shell))
    rows = processor.query("select ts, dur, name from slice order by ts, dur, name")
    found = sorted((row.ts, row.dur, row.name) for row in rows)
    expect(found == sorted((each.start, each.length, each.name) for each in slices), "trace_processor differs")
    processor.close()


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for name, overrides in DEVICES.items():
        with tempfile.TemporaryDirectory() as scratch:
            options = [option for override in overrides for option in ("--set", override)]
            command = [sys.argv[1], "run", "tiny", JOBS, *options, "--requests=parquet", "--timeline", "--out", scratch]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            directory = pathlib.Path(scratch)
            slices = check(directory)
            path = directory / "timeline.pftrace.gz"
            if shell := os.environ.get("TRACE_PROCESSOR"):
                load(shell, path, slices)
            size = path.stat().st_size / 2**20
            with gzip.open(path) as file:
                plain = len(file.read()) / 2**20
            print(f"{name}: {len(slices)} events, {size:.1f} MiB, {plain:.1f} MiB before compression")
    print("All timelines agree.")


if __name__ == "__main__":
    main()
