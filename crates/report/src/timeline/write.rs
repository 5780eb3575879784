//! Writer of timelines.

use std::collections::BTreeMap;
use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use floatgate_core::device_file::DeviceConfig;
use floatgate_core::policies::Class;
use floatgate_core::results::{Breakdown, Part};
use floatgate_core::sim::request::Completion;
use floatgate_core::sim::time::Time;
use floatgate_core::timeline::{CoreWork, Kind, Lane, Phase, Slice};

use super::names::Names;
use super::packets::{
    BEGIN, DebugAnnotation, END, EXPLICIT, INSTANT, NEEDS_STATE, STATE_CLEARED, TracePacket, Track, TrackDescriptor,
    TrackEvent,
};
use super::{END_OF_FILE, FIRMWARE, REQUEST, SCHEMA, WAIT, cause, phase_name, task_name};
use crate::columns::requests::status_name;

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

/// Maximum number of operations that wait for the completion of their request. Requests that completed before the
/// measured part are never reported.
const MAX_PENDING: usize = 1 << 16;

/// Maximum size of a timeline of a whole run, in bytes before compression.
pub const SIZE_LIMIT: u64 = 256 << 20;

/// Number of the only sequence of packets.
const SEQUENCE: u32 = 1;

/// Writes `timeline.pftrace.gz`.
pub struct TimelineWriter<W: Write> {
    out: GzEncoder<W>,
    packet: Vec<u8>,
    written: u64,
    limit: u64,
    full_at: Option<Time>,
    from: Time,
    to: Time,
    config: DeviceConfig,
    names: Names,
    luns: Vec<u32>,
    streams: Vec<String>,
    /// Indexed by plane.
    running: Vec<UnderWay>,
    operations: u64,
    /// Arrows by request: each leads from a request to the phases of an operation.
    pending: BTreeMap<u64, Vec<u64>>,
    pending_arrows: usize,
    /// End of the last request of each track of requests.
    requests: Vec<Time>,
    /// End of the last wait of each track of waits. Indexed by plane.
    waits: Vec<Vec<Time>>,
    /// Latest end of an event.
    latest: Time,
}

/// An event to write.
struct Event<'a> {
    track: Track,
    span: (Time, Time),
    category: &'a str,
    name: &'a str,
    arguments: Vec<DebugAnnotation>,
    flows: Vec<u64>,
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
        let planes = config.physical_planes() as usize;
        let mut timeline = TimelineWriter {
            out: GzEncoder::new(out, Compression::fast()),
            packet: Vec::new(),
            written: 0,
            limit,
            full_at: None,
            from: span.0,
            to: span.1,
            config: config.clone(),
            names: Names::default(),
            luns,
            streams: streams.to_vec(),
            running: vec![UnderWay::default(); planes],
            operations: 0,
            pending: BTreeMap::new(),
            pending_arrows: 0,
            requests: Vec::new(),
            waits: vec![Vec::new(); planes],
            latest: span.0,
        };
        timeline.begin()?;
        Ok(timeline)
    }

    /// Writes the origin, the texts, and the tracks that are known from the start.
    fn begin(&mut self) -> io::Result<()> {
        let mut about = vec![
            named_text("version", env!("CARGO_PKG_VERSION")),
            named_text("device", &self.config.name),
            named_text("config_digest", &self.config.digest()),
            named_number("planes", u64::from(self.config.physical_planes())),
            named_number("from_ps", self.from.ps()),
        ];
        if self.to < Time::NEVER {
            about.push(named_number("to_ps", self.to.ps()));
        }
        self.instant_of_device(SCHEMA, about, self.from, STATE_CLEARED)?;
        let interned_data = Some(self.names.interned());
        let (id, sequence_flags) = (Some(SEQUENCE), Some(NEEDS_STATE));
        self.put(&TracePacket { interned_data, trusted_packet_sequence_id: id, sequence_flags, ..Default::default() })?;
        let channels =
            (0..u64::from(self.config.buses())).flat_map(|channel| [Track::Channel(channel), Track::Bus(channel)]);
        let planes = (0..u64::from(self.config.physical_planes())).map(Track::Plane);
        let tracks: Vec<Track> = [Track::Device, Track::Host].into_iter().chain(channels).chain(planes).collect();
        tracks.into_iter().try_for_each(|track| self.describe(track))?;
        let Some(firmware) = &self.config.controller.firmware else { return Ok(()) };
        let cores = (0..u64::from(firmware.cores)).map(Track::Core);
        let tracks: Vec<Track> = std::iter::once(Track::Controller).chain(cores).collect();
        tracks.into_iter().try_for_each(|track| self.describe(track))
    }

    /// Writes an instant without interned texts.
    fn instant_of_device(
        &mut self,
        name: &str,
        debug_annotations: Vec<DebugAnnotation>,
        at: Time,
        flags: u32,
    ) -> io::Result<()> {
        let event = TrackEvent {
            r#type: Some(INSTANT),
            track_uuid: Some(self.uuid(Track::Device)),
            name: Some(name.to_owned()),
            debug_annotations,
            ..TrackEvent::default()
        };
        self.put(&TracePacket { sequence_flags: Some(flags), ..of_sequence(at.ps() / 1000, event) })
    }

    fn planes(&self) -> u64 {
        u64::from(self.config.physical_planes())
    }

    fn uuid(&self, track: Track) -> u64 {
        track.uuid(self.planes())
    }

    /// Writes the name and the position of a track.
    fn describe(&mut self, track: Track) -> io::Result<()> {
        let (name, rank) = track.name(&self.config);
        let parent = track.parent(self.planes() / u64::from(self.config.buses()));
        let descriptor = TrackDescriptor {
            uuid: Some(self.uuid(track)),
            name: Some(name),
            parent_uuid: parent.map(|parent| self.uuid(parent)),
            child_ordering: Some(EXPLICIT),
            sibling_order_rank: Some(rank as i32),
        };
        self.put(&TracePacket { track_descriptor: Some(descriptor), ..TracePacket::default() })
    }

    /// Writes a packet.
    fn put(&mut self, packet: &TracePacket) -> io::Result<()> {
        self.packet.clear();
        // The only field of a trace is the list of its packets.
        prost::encoding::message::encode(1, packet, &mut self.packet);
        self.written += self.packet.len() as u64;
        self.out.write_all(&self.packet)
    }

    /// Writes a slice, or an instant if its start and its end are in the same nanosecond.
    fn event(&mut self, event: Event) -> io::Result<()> {
        let Event { track, span: (start, end), category, name, mut arguments, flows } = event;
        self.latest = self.latest.max(end);
        let [from, to] = [start, end].map(|time| time.ps() / 1000);
        let is_instant = from == to;
        let of_end = if is_instant { ("length_ps", end.ps() - start.ps()) } else { ("end_ps", end.ps() % 1000) };
        for (name, ps) in [("start_ps", start.ps() % 1000), of_end] {
            if ps > 0 {
                arguments.push(self.number(name, ps));
            }
        }
        let first = TrackEvent {
            r#type: Some(if is_instant { INSTANT } else { BEGIN }),
            track_uuid: Some(self.uuid(track)),
            category_iids: self.names.categories.number(category).into_iter().collect(),
            name_iid: self.names.events.number(name),
            debug_annotations: arguments,
            flow_ids: flows,
            ..TrackEvent::default()
        };
        self.put(&of_sequence(from, first))?;
        if is_instant {
            return Ok(());
        }
        let last = TrackEvent { r#type: Some(END), track_uuid: Some(self.uuid(track)), ..TrackEvent::default() };
        self.put(&of_sequence(to, last))
    }

    /// Returns an argument with a number.
    fn number(&self, name: &str, value: u64) -> DebugAnnotation {
        DebugAnnotation { name_iid: self.names.arguments.number(name), uint_value: Some(value), ..Default::default() }
    }

    /// Returns an argument with a time in microseconds.
    fn us(&self, name: &str, time: Time) -> DebugAnnotation {
        let double_value = Some(time.as_us());
        DebugAnnotation { name_iid: self.names.arguments.number(name), double_value, ..Default::default() }
    }

    /// Returns an argument with a text, which is a number if the text is known.
    fn text(&self, name: &str, text: &str) -> DebugAnnotation {
        let name_iid = self.names.arguments.number(name);
        match self.names.values.number(text) {
            Some(iid) => DebugAnnotation { name_iid, string_value_iid: Some(iid), ..Default::default() },
            None => DebugAnnotation { name_iid, string_value: Some(text.to_owned()), ..Default::default() },
        }
    }

    /// Returns the track of a lane.
    fn track(lane: Lane) -> Track {
        match lane {
            Lane::Channel(channel) => Track::Bus(u64::from(channel)),
            Lane::Plane(plane) => Track::Plane(u64::from(plane)),
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
            let mut arguments = vec![self.text("cause", cause), self.us("wait_us", work.waited)];
            if work.units > 0 {
                arguments.push(self.number("units", u64::from(work.units)));
            }
            if work.plane != u32::MAX {
                arguments.push(self.number("plane", u64::from(work.plane)));
            }
            arguments.extend(self.requests_of((work.tag != u64::MAX).then_some(work.tag).as_slice()));
            let track = Track::Core(u64::from(work.core));
            let span = (work.start, work.end);
            self.event(Event { track, span, category: FIRMWARE, name, arguments, flows: Vec::new() })?;
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
        let mut arguments = vec![self.number("op", number)];
        arguments.extend(self.place(slice, slice.lpn));
        arguments.extend(self.requests_of(request.as_slice()));
        let name = format!("{WAIT}: {}", cause(slice.kind, slice.class, slice.purpose));
        let track = self.track_of_wait(slice)?;
        let span = (slice.start, slice.end);
        self.event(Event { track, span, category: WAIT, name: &name, arguments, flows: Vec::new() })
    }

    /// Returns a track of waits that is free for a wait.
    fn track_of_wait(&mut self, slice: &Slice) -> io::Result<Track> {
        let plane = slice.plane as usize;
        let (lane, is_new) = lane_of(&mut self.waits[plane], slice.start, slice.end);
        let track = Track::Wait { plane: plane as u64, lane };
        if is_new {
            self.describe(track)?;
        }
        Ok(track)
    }

    /// Adds an operation that was granted at the end of the slice or before the file starts. Returns its number.
    fn begin_operation(&mut self, slice: &Slice, requests: Vec<u64>) -> u64 {
        let lpn = (slice.lpn != u32::MAX).then_some(slice.lpn);
        let number = self.operations;
        let ppn = slice.ppn;
        self.operations += 1;
        let operation = Operation { number, ppn, requests, granted: slice.end, lpn, ..Operation::default() };
        self.running[slice.plane as usize].push(slice.kind, operation);
        number
    }

    /// Adds a phase on a channel or in a plane.
    fn phase(&mut self, slice: &Slice) -> io::Result<()> {
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
        let category = cause(slice.kind, slice.class, slice.purpose);
        let name = if in_cells { category.to_owned() } else { format!("{category}: {}", phase_name(slice.phase)) };
        let mut arguments = vec![self.number("op", number)];
        arguments.extend(self.place(slice, lpn));
        arguments.extend(self.requests_of(&requests));
        let mut flows = Vec::new();
        if first {
            for (index, request) in requests.iter().enumerate() {
                let flow = (number << 8) + (index as u64).min(255);
                flows.push(flow);
                self.point(*request, flow);
            }
        }
        let track = Self::track(slice.lane);
        let span = (slice.start, slice.end);
        self.event(Event { track, span, category, name: &name, arguments, flows })
    }

    /// Keeps an arrow of a request until the request is written.
    fn point(&mut self, request: u64, flow: u64) {
        let arrows = self.pending.entry(request).or_default();
        if arrows.contains(&flow) {
            return;
        }
        arrows.push(flow);
        self.pending_arrows += 1;
        if self.pending_arrows > MAX_PENDING
            && let Some((_, oldest)) = self.pending.pop_first()
        {
            self.pending_arrows -= oldest.len();
        }
    }

    /// Adds a completed request. Its phases have been added before.
    pub fn completed(&mut self, completion: &Completion, breakdown: Option<&Breakdown>) -> io::Result<()> {
        let Completion { request, status, start, finish } = completion;
        let flows = self.pending.remove(&request.tag).unwrap_or_default();
        self.pending_arrows -= flows.len();
        if request.arrival >= self.to || *finish < self.from || self.is_full(*finish) {
            return Ok(());
        }
        let track = self.track_of_request(request.arrival, *finish)?;
        let mut arguments = vec![
            self.number("request", request.tag),
            self.text("stream", &self.streams[usize::from(request.stream)]),
            self.number("lba", request.lba),
            self.number("sectors", u64::from(request.sectors)),
            self.text("status", status_name(*status)),
            self.us("start_us", *start),
        ];
        let parts = breakdown.into_iter().flat_map(|breakdown| Part::ALL.map(|part| (part, breakdown.of(part))));
        for (part, time) in parts.filter(|(_, time)| *time > Time::ZERO) {
            arguments.push(self.us(&format!("{}_us", part.name()), time));
        }
        let (name, span) = (request.operation.name(), (request.arrival, *finish));
        self.event(Event { track, span, category: REQUEST, name, arguments, flows })
    }

    /// Returns a track of requests that is free for a request. If there are several, it is the one that was busy last.
    fn track_of_request(&mut self, arrival: Time, finish: Time) -> io::Result<Track> {
        let (lane, is_new) = lane_of(&mut self.requests, arrival, finish);
        let track = Track::Requests(lane);
        if is_new {
            self.describe(track)?;
        }
        Ok(track)
    }

    /// Returns the position of an operation.
    fn place(&self, slice: &Slice, lpn: u32) -> Vec<DebugAnnotation> {
        let (plane, lun) = (slice.plane, self.luns[slice.plane as usize]);
        let mut place = vec![self.number("plane", u64::from(plane)), self.number("lun", u64::from(lun))];
        if slice.kind == Kind::Erase {
            place.push(self.number("block", u64::from(slice.ppn)));
            return place;
        }
        let (units_per_block, units_per_page) = (self.config.units_per_block(), self.config.units_per_page());
        let (block, inner) = (slice.ppn / units_per_block, slice.ppn % units_per_block);
        let page = inner / units_per_page * self.config.pages_per_unit();
        for (name, value) in [("block", block), ("page", page), ("ppn", slice.ppn)] {
            place.push(self.number(name, u64::from(value)));
        }
        if lpn != u32::MAX {
            place.push(self.number("lpn", u64::from(lpn)));
        }
        place
    }

    /// Returns the requests that an event serves: the first, and all if there are several.
    fn requests_of(&self, requests: &[u64]) -> Vec<DebugAnnotation> {
        let mut arguments: Vec<_> = requests.first().map(|first| self.number("request", *first)).into_iter().collect();
        if requests.len() > 1 {
            let one = |request: &u64| DebugAnnotation { uint_value: Some(*request), ..Default::default() };
            let array_values = requests.iter().map(one).collect();
            let name_iid = self.names.arguments.number("requests");
            arguments.push(DebugAnnotation { name_iid, array_values, ..Default::default() });
        }
        arguments
    }

    /// Adds a stream. Its requests refer to it by its position.
    pub fn add_stream(&mut self, name: &str) {
        self.streams.push(name.to_owned());
    }

    /// Writes the tracks again that were created with their first event, for a reader that does not have it.
    pub fn describe_tracks(&mut self) -> io::Result<()> {
        let requests = (0..self.requests.len() as u64).map(Track::Requests);
        let lanes = self.waits.iter().enumerate().flat_map(|(plane, lanes)| {
            (0..lanes.len() as u64).map(move |lane| Track::Wait { plane: plane as u64, lane })
        });
        let tracks: Vec<Track> = requests.chain(lanes).collect();
        tracks.into_iter().try_for_each(|track| self.describe(track))
    }

    /// Completes the file and returns the underlying writer. `run` is the digest of the run.
    pub fn finish(mut self, run: Option<&str>) -> io::Result<W> {
        let run = run.map(|run| named_text("run", run));
        self.instant_of_device(END_OF_FILE, run.into_iter().collect(), self.latest, 0)?;
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

/// Returns a lane that is free for a span, and whether it is new. `ends` has the end of the last span of each lane. If
/// several lanes are free, it is the one that was busy last.
fn lane_of(ends: &mut Vec<Time>, start: Time, end: Time) -> (u64, bool) {
    let free = ends.iter().enumerate().filter(|(_, end)| **end <= start).max_by_key(|(_, end)| **end);
    let (lane, is_new) = free.map_or((ends.len(), true), |(lane, _)| (lane, false));
    if is_new {
        ends.push(end);
    }
    ends[lane] = end;
    (lane as u64, is_new)
}

/// Returns the packet of an event with interned texts.
fn of_sequence(timestamp: u64, event: TrackEvent) -> TracePacket {
    TracePacket {
        timestamp: Some(timestamp),
        track_event: Some(event),
        trusted_packet_sequence_id: Some(SEQUENCE),
        sequence_flags: Some(NEEDS_STATE),
        ..TracePacket::default()
    }
}

/// Returns an argument whose name is not interned.
fn named_text(name: &str, text: &str) -> DebugAnnotation {
    let (name, string_value) = (Some(name.to_owned()), Some(text.to_owned()));
    DebugAnnotation { name, string_value, ..Default::default() }
}

/// Returns an argument whose name is not interned.
fn named_number(name: &str, value: u64) -> DebugAnnotation {
    DebugAnnotation { name: Some(name.to_owned()), uint_value: Some(value), ..Default::default() }
}
