//! Timeline of channels, planes and requests: writes and reads `timeline.json.gz`, in the trace event format of Chrome
//! and Perfetto (<https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU>).
//!
//! Every event has its own line, so that the file is written and read without holding it in memory.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;

use anyhow::{Context, Result};
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use floatgate_core::config::DeviceConfig;
use floatgate_core::metrics::attribution::{Breakdown, Part};
use floatgate_core::nand::array::Kind;
use floatgate_core::nand::probe::{CoreWork, Lane, Phase, Slice, Task};
use floatgate_core::sim::request::Completion;
use floatgate_core::sim::time::Time;
use floatgate_core::work::{Class, Purpose};
use serde_json::Value;

use crate::columns::requests::status_name;

/// Schema of the file.
const SCHEMA: &str = "floatgate-timeline-1";

/// Category of events of the controller's cores.
pub const FIRMWARE: &str = "firmware";

/// Process of the host's requests. The process of a channel is its number plus one, and the process of the controller's
/// cores follows the last channel.
const HOST: u64 = 0;

/// First thread of a process. No thread is 0, because Perfetto treats thread 0 as the same thread in all processes.
const FIRST: u64 = 1;

/// Thread of a channel's bus. The threads of its planes follow.
pub const BUS: u64 = FIRST;

/// Returns the thread of a plane.
pub const fn thread_of_plane(plane: u64) -> u64 {
    BUS + 1 + plane
}

/// Maximum number of operations that wait for the completion of their request. Requests that completed before the
/// measured part are never reported.
const MOST_PENDING: usize = 1 << 16;

/// Returns the name of an operation, which contains its purpose.
fn cause(kind: Kind, class: Class, purpose: Purpose) -> &'static str {
    match (purpose, kind) {
        (Purpose::Wear, Kind::Read) => "wear read",
        (Purpose::Wear, Kind::Program) => "wear write",
        (Purpose::Wear, Kind::CopyBack) => "wear copy-back",
        (Purpose::Merge, Kind::Read) => "merge read",
        (Purpose::Merge, Kind::Program) => "merge write",
        (Purpose::Merge, Kind::Erase) => "merge erase",
        (Purpose::SwitchMerge, Kind::Erase) => "switch merge erase",
        (Purpose::PartialMerge, Kind::Read) => "partial merge read",
        (Purpose::PartialMerge, Kind::Program) => "partial merge write",
        (Purpose::PartialMerge, Kind::Erase) => "partial merge erase",
        (Purpose::FullMerge, Kind::Read) => "full merge read",
        (Purpose::FullMerge, Kind::Program) => "full merge write",
        (Purpose::FullMerge, Kind::Erase) => "full merge erase",
        // Erases do not depend on the class, merges do not copy back, and a switch merge copies nothing.
        _ => cause_by_class(kind, class),
    }
}

fn cause_by_class(kind: Kind, class: Class) -> &'static str {
    match (kind, class) {
        (Kind::Erase, _) => "erase",
        (_, Class::Summary) => "summary",
        (Kind::Read, Class::MapRead) => "map read",
        (Kind::Program, Class::MapProgram) => "map write",
        (Kind::Read, Class::HostRead) => "host read",
        (Kind::Read, Class::RmwRead) => "rmw read",
        (Kind::Read, Class::BackgroundGc) => "background GC read",
        (Kind::Read, _) => "GC read",
        (Kind::CopyBack, Class::BackgroundGc) => "background GC copy-back",
        (Kind::CopyBack, _) => "GC copy-back",
        (Kind::Program, Class::HostProgram) => "host write",
        (Kind::Program, Class::BackgroundGc) => "background GC write",
        (Kind::Program, _) => "GC write",
    }
}

/// Returns the name of a task of a core, and on whose behalf the core executes it.
fn task_name(task: Task) -> (&'static str, &'static str) {
    match task {
        Task::Receive => ("receive", "host"),
        Task::Write => ("take a write", "host"),
        Task::Search => ("search the buffer", "host"),
        Task::LookUp => ("look up", "host"),
        Task::Trim => ("trim", "host"),
        Task::WriteOut => ("write back", "buffer"),
        Task::Choose => ("choose a block", "gc"),
        Task::Answer => ("complete", "host"),
    }
}

/// Returns the operation with this name in a timeline: its name and kind.
pub fn operation_of(name: &str) -> Option<(&'static str, Kind)> {
    // The name of a summary does not contain its kind. `Program` is first, so that it is found.
    let kinds = [Kind::Program, Kind::Read, Kind::Erase, Kind::CopyBack];
    let all = kinds.into_iter().flat_map(|kind| {
        let of_classes = Class::ALL.map(|class| (cause_by_class(kind, class), kind));
        of_classes.into_iter().chain(Purpose::ALL.map(|purpose| (cause(kind, Class::Gc, purpose), kind)))
    });
    all.into_iter().find(|(of, _)| *of == name)
}

/// Returns the phase with this name in a timeline.
pub fn phase_of(name: &str) -> Option<Phase> {
    [Phase::Switch, Phase::Command, Phase::Data, Phase::Cell].into_iter().find(|phase| phase_name(*phase) == name)
}

fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Switch => "switch",
        Phase::Command => "command",
        Phase::Data => "data",
        Phase::Cell => "cell",
        Phase::Wait => "wait",
    }
}

/// An operation of the flash.
#[derive(Clone, Debug, Default)]
struct Operation {
    /// Number of the operation in the file.
    number: u64,
    ppn: u32,
    /// Requests that it serves; empty for garbage collection.
    requests: Vec<u64>,
    granted: Time,
    lpn: Option<u32>,
    /// True if its arrows to the bus and to the cells have been drawn.
    on_bus: bool,
    in_cells: bool,
    /// True if its data have passed the channel.
    has_moved: bool,
}

impl Operation {
    fn has_begun(&self) -> bool {
        self.on_bus || self.in_cells
    }
}

/// Maximum number of operations of one kind in flight in a plane: a running one, one that has started after it, and one
/// before them whose cells end when the next is granted.
const UNDER_WAY: usize = 3;

/// Latest operations of a plane by kind, the newest first. A read may interrupt a program, and commands may overlap.
/// Therefore a phase does not always belong to the latest grant.
#[derive(Clone, Debug, Default)]
struct UnderWay([Vec<Operation>; Kind::COUNT]);

impl UnderWay {
    /// Adds an operation that was granted.
    fn push(&mut self, kind: Kind, operation: Operation) {
        let of_kind = &mut self.0[kind as usize];
        of_kind.truncate(UNDER_WAY - 1);
        of_kind.insert(0, operation);
    }

    /// Returns the operation that a phase belongs to, or `None` if its grant is unknown.
    fn of(&mut self, slice: &Slice) -> Option<&mut Operation> {
        let of_kind = &mut self.0[slice.kind as usize];
        let here = |operation: &Operation| operation.ppn == slice.ppn;
        // If two reads follow one another, the older one transfers its data first.
        let waits = |operation: &Operation| slice.phase == Phase::Data && here(operation) && !operation.has_moved;
        let index = (of_kind.iter().rposition(waits))
            .or_else(|| of_kind.iter().position(here))
            .or_else(|| of_kind.first().is_some_and(|newest| !newest.has_begun()).then_some(0))?;
        Some(&mut of_kind[index])
    }
}

/// End of an arrow.
#[derive(Clone, Copy, Debug)]
struct Arrow {
    id: u64,
    process: u64,
    thread: u64,
    at: Time,
    last: bool,
}

/// Geometry needed to compute positions.
#[derive(Clone, Debug)]
struct Places {
    planes_per_channel: u32,
    planes_per_chip: u32,
    planes_per_die: u32,
    units_per_block: u32,
    units_per_page: u32,
    pages_per_unit: u32,
}

/// Maximum size of a timeline of a whole run, in bytes before compression.
pub const SIZE_LIMIT: u64 = 256 << 20;

/// Writes `timeline.json.gz`.
pub struct TimelineWriter<W: Write> {
    out: GzEncoder<W>,
    line: String,
    written: u64,
    limit: u64,
    full_at: Option<Time>,
    from: Time,
    to: Time,
    places: Places,
    /// Process of the controller's cores.
    controller: u64,
    luns: Vec<u32>,
    streams: Vec<String>,
    /// Indexed by plane.
    running: Vec<UnderWay>,
    operations: u64,
    waits: u64,
    /// Ends of arrows by request.
    pending: BTreeMap<u64, Vec<Arrow>>,
    pending_arrows: usize,
    /// End of the last request of each of the host's threads.
    threads: Vec<Time>,
}

impl<W: Write> TimelineWriter<W> {
    /// Creates the file. It contains events from `span.0` until before `span.1`, and little more than `limit` bytes
    /// before compression. `luns` is indexed by plane.
    pub fn new(
        out: W,
        config: &DeviceConfig,
        luns: Vec<u32>,
        streams: &[String],
        span: (Time, Time),
        limit: u64,
    ) -> io::Result<TimelineWriter<W>> {
        let g = &config.geometry;
        let planes_per_chip = g.dies * g.planes;
        let places = Places {
            planes_per_channel: config.total_planes() / config.buses(),
            planes_per_chip,
            planes_per_die: g.planes,
            units_per_block: config.units_per_block(),
            units_per_page: config.units_per_page(),
            pages_per_unit: config.pages_per_unit(),
        };
        let planes = config.total_planes() as usize;
        let mut timeline = TimelineWriter {
            out: GzEncoder::new(out, Compression::fast()),
            line: String::new(),
            written: 0,
            limit,
            full_at: None,
            from: span.0,
            to: span.1,
            places,
            controller: u64::from(config.buses()) + 1,
            luns,
            streams: streams.iter().map(|name| Value::from(name.as_str()).to_string()).collect(),
            running: vec![UnderWay::default(); planes],
            operations: 0,
            waits: 0,
            pending: BTreeMap::new(),
            pending_arrows: 0,
            threads: Vec::new(),
        };
        timeline.begin(config)?;
        Ok(timeline)
    }

    fn begin(&mut self, config: &DeviceConfig) -> io::Result<()> {
        let about = serde_json::json!({
            "schema": SCHEMA,
            "version": env!("CARGO_PKG_VERSION"),
            "device": config.name,
            "config_digest": config.digest(),
            "from_ps": self.from.ps(),
            "to_ps": (self.to < Time::NEVER).then_some(self.to.ps()),
        });
        self.put_raw(&format!("{{\"displayTimeUnit\":\"ns\",\"otherData\":{about},\"traceEvents\":[\n"))?;
        self.line = format!(r#"{{"ph":"M","pid":{HOST},"name":"process_name","args":{{"name":"host"}}}}"#);
        let first = std::mem::take(&mut self.line);
        self.put_raw(&first)?;
        for channel in 0..config.buses() {
            let process = u64::from(channel) + 1;
            self.name("process_name", process, BUS, &format!("channel {channel}"))?;
            self.sort("process_sort_index", process, BUS, process)?;
            self.name("thread_name", process, BUS, "bus")?;
            self.sort("thread_sort_index", process, BUS, BUS)?;
        }
        for plane in 0..config.total_planes() {
            let (process, thread) = self.track(Lane::Plane(plane));
            let p = &self.places;
            let (chip, rest) = (plane % p.planes_per_channel / p.planes_per_chip, plane % p.planes_per_chip);
            let (die, inner) = (rest / p.planes_per_die, rest % p.planes_per_die);
            self.name("thread_name", process, thread, &format!("chip {chip} die {die} plane {inner}"))?;
            self.sort("thread_sort_index", process, thread, thread)?;
        }
        self.begin_cores(config)
    }

    /// Names the controller's cores, if there are any.
    fn begin_cores(&mut self, config: &DeviceConfig) -> io::Result<()> {
        let Some(firmware) = &config.controller.firmware else { return Ok(()) };
        let process = self.controller;
        self.name("process_name", process, FIRST, "controller")?;
        // Sorted between the host and the channels, like the path of a request.
        self.sort("process_sort_index", process, FIRST, HOST)?;
        for core in 0..u64::from(firmware.cores) {
            self.name("thread_name", process, FIRST + core, &format!("core {core}"))?;
            self.sort("thread_sort_index", process, FIRST + core, core)?;
        }
        Ok(())
    }

    fn put_raw(&mut self, text: &str) -> io::Result<()> {
        self.written += text.len() as u64;
        self.out.write_all(text.as_bytes())
    }

    /// Writes the event in `self.line`.
    fn put(&mut self) -> io::Result<()> {
        self.written += self.line.len() as u64 + 2;
        self.out.write_all(b",\n")?;
        self.out.write_all(self.line.as_bytes())
    }

    fn name(&mut self, what: &str, process: u64, thread: u64, name: &str) -> io::Result<()> {
        self.line =
            format!(r#"{{"ph":"M","pid":{process},"tid":{thread},"name":"{what}","args":{{"name":"{name}"}}}}"#);
        self.put()
    }

    fn sort(&mut self, what: &str, process: u64, thread: u64, index: u64) -> io::Result<()> {
        self.line =
            format!(r#"{{"ph":"M","pid":{process},"tid":{thread},"name":"{what}","args":{{"sort_index":{index}}}}}"#);
        self.put()
    }

    /// Returns the process and the thread of a lane.
    fn track(&self, lane: Lane) -> (u64, u64) {
        match lane {
            Lane::Channel(channel) => (u64::from(channel) + 1, BUS),
            Lane::Plane(plane) => {
                (u64::from(plane / self.places.planes_per_channel) + 1, thread_of_plane(u64::from(plane)))
            }
        }
    }

    /// Returns the time at which the file reached its maximum size, if it did. Later events are left out.
    pub fn full_at(&self) -> Option<Time> {
        self.full_at
    }

    fn is_full(&mut self, now: Time) -> bool {
        if self.full_at.is_none() && self.written >= self.limit {
            self.full_at = Some(now);
        }
        self.full_at.is_some()
    }

    /// Adds phases, in the order of their reservation.
    pub fn slices(&mut self, slices: &[Slice]) -> io::Result<()> {
        for slice in slices {
            if self.is_full(slice.start) {
                return Ok(());
            }
            match slice.phase {
                Phase::Wait => self.wait(slice)?,
                _ => self.phase(slice)?,
            }
        }
        Ok(())
    }

    /// Adds the tasks of cores, in the order of their start.
    pub fn works(&mut self, works: &[CoreWork]) -> io::Result<()> {
        for work in works {
            if self.is_full(work.start) {
                return Ok(());
            }
            let (name, cause) = task_name(work.task);
            self.begin_line("X", self.controller, FIRST + u64::from(work.core), work.start);
            self.push(format_args!(r#","dur":{},"cat":"{FIRMWARE}","name":"{name}""#, Stamp(work.end - work.start)));
            self.push(format_args!(r#","args":{{"cause":"{cause}","wait_us":{}"#, Us(work.waited)));
            if work.units > 0 {
                self.push(format_args!(r#","units":{}"#, work.units));
            }
            if work.plane != u32::MAX {
                self.push(format_args!(r#","plane":{}"#, work.plane));
            }
            self.push_requests((work.tag != u64::MAX).then_some(work.tag).as_slice());
            self.line.push_str("}}");
            self.put()?;
        }
        Ok(())
    }

    /// Adds a grant: of a new operation of the plane, or of another request in the same program.
    fn wait(&mut self, slice: &Slice) -> io::Result<()> {
        let request = (slice.tag != u64::MAX).then_some(slice.tag);
        let units = slice.kind == Kind::Program && slice.class == Class::HostProgram;
        let newest = self.running[slice.plane as usize].0[slice.kind as usize].first_mut();
        let joined = newest.filter(|newest| units && newest.granted == slice.end && !newest.requests.is_empty());
        let number = match joined {
            Some(joined) => {
                joined.requests.extend(request.filter(|request| !joined.requests.contains(request)));
                joined.number
            }
            None => self.begin_operation(slice, request.into_iter().collect()),
        };
        let id = self.waits;
        self.waits += 1;
        let (process, thread) = self.track(Lane::Plane(slice.plane));
        for (mark, at) in [("b", slice.start), ("e", slice.end)] {
            self.begin_line(mark, process, thread, at);
            let name = cause(slice.kind, slice.class, slice.purpose);
            self.push(format_args!(r#","cat":"wait","id":{id},"name":"wait: {name}""#));
            if mark == "b" {
                self.push(format_args!(r#","args":{{"op":{number},"wait_us":{}"#, Us(slice.end.since(slice.start))));
                self.push_place(slice, slice.lpn);
                self.push_requests(request.as_slice());
                self.line.push('}');
            }
            self.line.push('}');
            self.put()?;
        }
        Ok(())
    }

    /// Adds an operation that was granted at the end of the slice or before the file starts. Returns its number.
    fn begin_operation(&mut self, slice: &Slice, requests: Vec<u64>) -> u64 {
        let lpn = (slice.lpn != u32::MAX).then_some(slice.lpn);
        let (number, ppn) = (self.operations, slice.ppn);
        self.operations += 1;
        let operation = Operation { number, ppn, requests, granted: slice.end, lpn, ..Operation::default() };
        self.running[slice.plane as usize].push(slice.kind, operation);
        number
    }

    /// Adds a phase on a channel or in a plane.
    fn phase(&mut self, slice: &Slice) -> io::Result<()> {
        let (process, thread) = self.track(slice.lane);
        if self.running[slice.plane as usize].of(slice).is_none() {
            let request = (slice.tag != u64::MAX).then_some(slice.tag);
            self.begin_operation(slice, request.into_iter().collect());
        }
        let Some(operation) = self.running[slice.plane as usize].of(slice) else { return Ok(()) };
        operation.has_moved |= slice.phase == Phase::Data;
        let (number, lpn) = (operation.number, operation.lpn.unwrap_or(u32::MAX));
        let requests = operation.requests.clone();
        let in_cells = slice.phase == Phase::Cell;
        let first = !std::mem::replace(if in_cells { &mut operation.in_cells } else { &mut operation.on_bus }, true);
        self.begin_line("X", process, thread, slice.start);
        let (name, phase) = (cause(slice.kind, slice.class, slice.purpose), phase_name(slice.phase));
        self.push(format_args!(r#","dur":{},"cat":"{name}","#, Stamp(slice.end - slice.start)));
        match slice.phase {
            Phase::Cell => self.push(format_args!(r#""name":"{name}","#)),
            _ => self.push(format_args!(r#""name":"{name}: {phase}","#)),
        }
        self.push(format_args!(r#""args":{{"op":{number},"phase":"{phase}""#));
        self.push_place(slice, lpn);
        self.push_requests(&requests);
        self.line.push_str("}}");
        self.put()?;
        if first {
            for (index, request) in requests.iter().enumerate() {
                let id = (number << 8) + (index as u64).min(255);
                self.point(*request, Arrow { id, process, thread, at: slice.start, last: in_cells });
            }
        }
        Ok(())
    }

    /// Keeps the end of an arrow of a request until its start is known.
    fn point(&mut self, request: u64, arrow: Arrow) {
        self.pending.entry(request).or_default().push(arrow);
        self.pending_arrows += 1;
        if self.pending_arrows > MOST_PENDING
            && let Some((_, oldest)) = self.pending.pop_first()
        {
            self.pending_arrows -= oldest.len();
        }
    }

    /// Adds a completed request. Its phases have been added before.
    pub fn completed(&mut self, completion: &Completion, breakdown: Option<&Breakdown>) -> io::Result<()> {
        let Completion { request, status, start, finish } = completion;
        let arrows = self.pending.remove(&request.tag).unwrap_or_default();
        self.pending_arrows -= arrows.len();
        if request.arrival >= self.to || *finish < self.from || self.is_full(*finish) {
            return Ok(());
        }
        let thread = self.thread_of(request.arrival, *finish)?;
        self.begin_line("X", HOST, thread, request.arrival);
        self.push(format_args!(r#","dur":{},"cat":"request","#, Stamp(finish.since(request.arrival))));
        self.push(format_args!(r#""name":"{}","args":{{"request":{}"#, request.operation.name(), request.tag));
        let stream = std::mem::take(&mut self.streams[usize::from(request.stream)]);
        self.push(format_args!(r#","stream":{stream},"lba":{},"sectors":{}"#, request.lba, request.sectors));
        self.streams[usize::from(request.stream)] = stream;
        self.push(format_args!(r#","status":"{}","start_us":{}"#, status_name(*status), Us(*start)));
        if let Some(breakdown) = breakdown {
            for part in Part::ALL {
                self.push(format_args!(r#","{}_us":{}"#, part.name(), Us(breakdown.of(part))));
            }
        }
        self.line.push_str("}}");
        self.put()?;
        self.arrows(request.arrival, thread, arrows)
    }

    /// Draws the arrows of a request: to the bus, and from there to the cells.
    fn arrows(&mut self, arrival: Time, thread: u64, arrows: Vec<Arrow>) -> io::Result<()> {
        let mut drawn = Vec::new();
        for arrow in arrows {
            if !drawn.contains(&arrow.id) {
                drawn.push(arrow.id);
                self.arrow("s", HOST, thread, arrival, arrow.id)?;
            }
            self.arrow(if arrow.last { "f" } else { "t" }, arrow.process, arrow.thread, arrow.at, arrow.id)?;
        }
        Ok(())
    }

    fn arrow(&mut self, mark: &str, process: u64, thread: u64, at: Time, id: u64) -> io::Result<()> {
        self.begin_line(mark, process, thread, at);
        self.push(format_args!(r#","cat":"operation","name":"operation","id":{id}"#));
        self.line.push_str(if mark == "f" { r#","bp":"e"}"# } else { "}" });
        self.put()
    }

    /// Returns a thread of the host that is free for a request. If there are several, it is the one that was busy last.
    fn thread_of(&mut self, arrival: Time, finish: Time) -> io::Result<u64> {
        let free = self.threads.iter().enumerate().filter(|(_, end)| **end <= arrival).max_by_key(|(_, end)| **end);
        let thread = match free {
            Some((thread, _)) => thread,
            None => {
                let thread = self.threads.len();
                self.threads.push(Time::ZERO);
                self.name_thread(thread)?;
                thread
            }
        };
        self.threads[thread] = finish;
        Ok(FIRST + thread as u64)
    }

    fn begin_line(&mut self, mark: &str, process: u64, thread: u64, at: Time) {
        self.line.clear();
        self.push(format_args!(r#"{{"ph":"{mark}","pid":{process},"tid":{thread},"ts":{}"#, Stamp(at)));
    }

    fn push(&mut self, text: std::fmt::Arguments) {
        // Writing to a string cannot fail.
        let _ = std::fmt::Write::write_fmt(&mut self.line, text);
    }

    /// Appends the position of an operation.
    fn push_place(&mut self, slice: &Slice, lpn: u32) {
        let (plane, lun) = (slice.plane, self.luns[slice.plane as usize]);
        self.push(format_args!(r#","plane":{plane},"lun":{lun}"#));
        if slice.kind == Kind::Erase {
            return self.push(format_args!(r#","block":{}"#, slice.ppn));
        }
        let Places { units_per_block, units_per_page, pages_per_unit, .. } = self.places;
        let (block, inner) = (slice.ppn / units_per_block, slice.ppn % units_per_block);
        let page = inner / units_per_page * pages_per_unit;
        self.push(format_args!(r#","block":{block},"page":{page},"ppn":{}"#, slice.ppn));
        if lpn != u32::MAX {
            self.push(format_args!(r#","lpn":{lpn}"#));
        }
    }

    fn push_requests(&mut self, requests: &[u64]) {
        if let Some(first) = requests.first() {
            self.push(format_args!(r#","request":{first}"#));
        }
        if requests.len() > 1 {
            self.push(format_args!(r#","requests":{requests:?}"#));
        }
    }

    /// Adds a stream. Its requests refer to it by its position.
    pub fn add_stream(&mut self, name: &str) {
        self.streams.push(Value::from(name).to_string());
    }

    /// Names the threads of the host's requests again, for a reader that does not have the start of the file.
    pub fn name_threads(&mut self) -> io::Result<()> {
        for thread in 0..self.threads.len() {
            self.name_thread(thread)?;
        }
        Ok(())
    }

    fn name_thread(&mut self, thread: usize) -> io::Result<()> {
        let number = FIRST + thread as u64;
        self.name("thread_name", HOST, number, &format!("requests {thread}"))?;
        self.sort("thread_sort_index", HOST, number, number)
    }

    /// Completes the file and returns the underlying writer. `run` is the digest of the run.
    pub fn finish(mut self, run: Option<&str>) -> io::Result<W> {
        let run = run.map(|run| format!(",\"run\":\"{run}\"")).unwrap_or_default();
        self.put_raw(&format!("\n]{run}}}\n"))?;
        self.out.finish()
    }
}

impl TimelineWriter<Vec<u8>> {
    /// Takes what was written since the last call, as a compressed member, and its size before compression. Members
    /// that follow one another are a compressed file.
    pub fn take_member(&mut self) -> io::Result<(Vec<u8>, u64)> {
        let out = std::mem::replace(&mut self.out, GzEncoder::new(Vec::new(), Compression::fast()));
        Ok((out.finish()?, std::mem::take(&mut self.written)))
    }

    /// Returns the size before compression of the next member.
    pub fn pending(&self) -> u64 {
        self.written
    }
}

/// A time in microseconds, exact to the picosecond.
struct Us(Time);

impl std::fmt::Display for Us {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let ps = self.0.ps();
        write!(f, "{}.{:06}", ps / 1_000_000, ps % 1_000_000)
    }
}

/// Start or length of a slice, in microseconds and exact to the picosecond.
///
/// Perfetto reads a double and truncates it to whole nanoseconds. If the result would be one too small, a seventh
/// decimal digit, which is less than half a picosecond, is added. Without it, adjacent slices might overlap, and
/// Perfetto drops overlapping slices.
struct Stamp(Time);

impl std::fmt::Display for Stamp {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let ps = self.0.ps();
        let whole_ns = (ps as f64 / 1e6 * 1e3) as u64;
        write!(f, "{}{}", Us(self.0), if whole_ns < ps / 1000 { "4" } else { "" })
    }
}

/// Span and origin of a timeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Covered {
    /// Start of the span.
    pub from: Time,
    /// End of the span, if it has a limit.
    pub to: Option<Time>,
    /// Name of the device.
    pub device: String,
    /// Digest of the device configuration, as in the summary.
    pub config_digest: String,
    /// Digest of the run; `None` in files of older versions.
    pub run: Option<String>,
}

/// Maximum length of an event, in bytes. Events written by [`TimelineWriter`] have a few hundred.
const LONGEST_LINE: u64 = 1 << 20;

/// Converts microseconds to picoseconds.
pub fn ps(value: &Value) -> u64 {
    (value.as_f64().unwrap_or(0.0) * 1e6).round() as u64
}

/// Calls `each` for every event of a timeline, in file order. Returns the span and origin of the timeline.
pub fn read_timeline(path: &Path, each: &mut dyn FnMut(&Value) -> Result<()>) -> Result<Covered> {
    let name = path.display().to_string();
    let file = File::open(path).with_context(|| format!("cannot read {name}"))?;
    read_events(file, &name, each)
}

/// Reads a timeline like [`read_timeline`], from any input. `name` is the name of the input, for error messages.
pub fn read_events(input: impl Read, name: &str, each: &mut dyn FnMut(&Value) -> Result<()>) -> Result<Covered> {
    let reported = || format!("cannot read {name}");
    let mut input = BufReader::with_capacity(1 << 18, MultiGzDecoder::new(BufReader::new(input)));
    let mut line = String::new();
    let head = read_line(&mut input, &mut line).and_then(|()| Ok(serde_json::from_str(&format!("{line}]}}"))?));
    let head: Value = head.with_context(|| {
        format!("{name} is not a timeline: `floatgate run ... --out DIR --timeline` writes DIR/timeline.json.gz")
    })?;
    let about = &head["otherData"];
    anyhow::ensure!(
        about["schema"] == SCHEMA,
        "{name} does not have schema {SCHEMA}, which this version of floatgate reads; run the simulation again"
    );
    let run = loop {
        read_line(&mut input, &mut line).with_context(reported)?;
        match line.trim_end_matches(',') {
            end if end.starts_with(']') => {
                // Adds the start of an object, so that the end of the event list and the keys after it can be parsed.
                let end: Value = serde_json::from_str(&format!("{{\"events\":[{end}")).with_context(reported)?;
                let run = end["run"].as_str().map(str::to_owned);
                // Compressed data are checked only when their end is read.
                read_line(&mut input, &mut line).with_context(reported)?;
                anyhow::ensure!(line.is_empty(), "{name} has data after its end: it was changed after it was written");
                break run;
            }
            "" => anyhow::bail!("{name} is truncated; run the simulation again, or see docs/live.md for a live device"),
            event => each(&serde_json::from_str(event).with_context(reported)?)?,
        }
    };
    Ok(Covered {
        from: Time(about["from_ps"].as_u64().unwrap_or(0)),
        to: about["to_ps"].as_u64().map(Time),
        device: about["device"].as_str().unwrap_or_default().to_owned(),
        config_digest: about["config_digest"].as_str().unwrap_or_default().to_owned(),
        run,
    })
}

/// Reads a line without its line break, or an empty line at the end of the file.
fn read_line(input: &mut impl BufRead, line: &mut String) -> io::Result<()> {
    line.clear();
    input.take(LONGEST_LINE).read_line(line)?;
    if line.len() as u64 == LONGEST_LINE {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a line is longer than 1 MiB"));
    }
    line.truncate(line.trim_end().len());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_exact_in_floatgate_and_in_viewers() {
        let mut nudged = 0;
        for ps in (0..200_000).map(|n: u64| n * 1_234_567).chain((0..200_000).map(|n| 8_299_000_000 + n * 1000)) {
            let text = Stamp(Time(ps)).to_string();
            let us: f64 = text.parse().unwrap();
            assert_eq!(((us * 1e6).round() as u64, (us * 1000.0) as u64), (ps, ps / 1000), "{text}");
            nudged += u64::from(text.len() > Us(Time(ps)).to_string().len());
        }
        assert!(nudged > 100, "{nudged}");
    }

    #[test]
    fn operations_are_found_by_name() {
        for kind in Kind::ALL {
            for class in Class::ALL.into_iter().filter(|class| *class != Class::Summary || kind == Kind::Program) {
                for name in Purpose::ALL.map(|purpose| cause(kind, class, purpose)) {
                    assert_eq!(operation_of(name), Some((name, kind)), "{class:?}");
                }
            }
        }
        assert_eq!((operation_of("request"), phase_of("wait"), phase_of("cell")), (None, None, Some(Phase::Cell)));
    }
}
