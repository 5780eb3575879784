//! Reader of timelines. Events are returned in the form of Chrome's trace events, which has a duration for each event.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use flate2::read::MultiGzDecoder;
use floatgate_core::sim::time::Time;
use prost::Message;
use serde_json::{Map, Value, json};

use super::packets::{
    BEGIN, DebugAnnotation, END, INSTANT, Interned, InternedData, TracePacket, Track, TrackDescriptor, TrackEvent,
};
use super::{BUS, END_OF_FILE, FIRST, HOST, SCHEMA, WAIT, thread_of_plane};

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
    /// Digest of the run; `None` if the timeline is not part of a result.
    pub run: Option<String>,
}

/// Maximum length of a packet, in bytes. Packets written by a [`TimelineWriter`](super::TimelineWriter) have a few
/// hundred, and the one with all texts has a few thousand.
const LONGEST: u64 = 1 << 20;

/// Converts microseconds to picoseconds.
pub fn ps(value: &Value) -> u64 {
    (value.as_f64().unwrap_or(0.0) * 1e6).round() as u64
}

/// Converts picoseconds to microseconds.
fn us(ps: u64) -> f64 {
    ps as f64 / 1e6
}

/// Calls `each` for every event of a timeline, in file order. Returns the span and origin of the timeline.
pub fn read_timeline(path: &Path, each: &mut dyn FnMut(&Value) -> Result<()>) -> Result<Covered> {
    read_timeline_in(path, (0, u64::MAX), each)
}

/// Reads a timeline like [`read_timeline`], but skips most events that end before `span.0` or start after `span.1`, in
/// picoseconds. Skipping an event takes a tenth of the time of reading it.
pub(crate) fn read_timeline_in(
    path: &Path,
    span: (u64, u64),
    each: &mut dyn FnMut(&Value) -> Result<()>,
) -> Result<Covered> {
    let name = path.display().to_string();
    let file = File::open(path).with_context(|| format!("cannot read {name}"))?;
    read_events_in(file, &name, span, each)
}

/// Reads a timeline like [`read_timeline`], from any input. `name` is the name of the input, for error messages.
///
/// Slices are `X` events with `ts` and `dur` in microseconds, exact to the picosecond. A wait is a pair of events `b`
/// and `e`, and a name of a track is an event `M`. `mod.rs` has the processes and threads. Arrows are in `flows`.
pub fn read_events(input: impl Read, name: &str, each: &mut dyn FnMut(&Value) -> Result<()>) -> Result<Covered> {
    read_events_in(input, name, (0, u64::MAX), each)
}

fn read_events_in(
    input: impl Read,
    name: &str,
    span: (u64, u64),
    each: &mut dyn FnMut(&Value) -> Result<()>,
) -> Result<Covered> {
    let reported = || format!("cannot read {name}");
    let mut packets = Packets::new(BufReader::with_capacity(1 << 18, MultiGzDecoder::new(BufReader::new(input))), span);
    let first = packets.next().and_then(|first| first.context("it is empty")).with_context(|| {
        format!("{name} is not a timeline: `floatgate run ... --out DIR --timeline` writes DIR/timeline.pftrace.gz")
    })?;
    let about = first.track_event.unwrap_or_default();
    ensure!(
        about.name.as_deref() == Some(SCHEMA),
        "{name} does not have schema {SCHEMA}, which this version of floatgate reads; run the simulation again"
    );
    let mut reader = Reader { texts: InternedData::default(), planes: 0, channels: BTreeMap::new(), open: None };
    let about = Value::Object(reader.arguments(&about.debug_annotations));
    reader.planes = about["planes"].as_u64().unwrap_or(0);
    let run = loop {
        let packet = packets.next().with_context(reported)?.with_context(|| {
            format!("{name} is truncated; run the simulation again, or see docs/live-dashboard.md for a live device")
        })?;
        let is_last = |event: &TrackEvent| event.name.as_deref() == Some(END_OF_FILE);
        if let Some(last) = packet.track_event.as_ref().filter(|event| is_last(event)) {
            // Compressed data are checked only when their end is read.
            let more = packets.next().with_context(reported)?;
            ensure!(more.is_none(), "{name} has data after its end: it was changed after it was written");
            break reader.arguments(&last.debug_annotations).get("run").and_then(Value::as_str).map(str::to_owned);
        }
        reader.take(packet, each).with_context(reported)?;
    };
    Ok(Covered {
        from: Time(about["from_ps"].as_u64().unwrap_or(0)),
        to: about["to_ps"].as_u64().map(Time),
        device: about["device"].as_str().unwrap_or_default().to_owned(),
        config_digest: about["config_digest"].as_str().unwrap_or_default().to_owned(),
        run,
    })
}

/// Packets of an input.
struct Packets<R> {
    input: R,
    /// Span of the events that are not skipped, in nanoseconds.
    span: (u64, u64),
    /// Bytes of the current packet.
    bytes: Vec<u8>,
    /// Bytes of a packet that begins a slice, and its time. It is skipped or not when its end is known.
    begun: (Vec<u8>, Option<u64>),
    /// Packet that follows the one that was returned last.
    following: Option<TracePacket>,
}

impl<R: BufRead> Packets<R> {
    fn new(input: R, span: (u64, u64)) -> Packets<R> {
        let span = (span.0 / 1000, span.1.div_ceil(1000));
        Packets { input, span, bytes: Vec::new(), begun: (Vec::new(), None), following: None }
    }

    /// Returns the next packet that is not skipped, or `None` at the end.
    fn next(&mut self) -> Result<Option<TracePacket>> {
        if let Some(following) = self.following.take() {
            return Ok(Some(following));
        }
        loop {
            if !self.fill()? {
                let (bytes, begun) = &mut self.begun;
                return Ok(begun.take().map(|_| TracePacket::decode(&bytes[..])).transpose()?);
            }
            let event = event_in(&self.bytes);
            match (self.begun.1.take(), event) {
                (None, Some((BEGIN, at))) => {
                    std::mem::swap(&mut self.begun.0, &mut self.bytes);
                    self.begun.1 = Some(at);
                }
                (Some(from), Some((END, to))) if self.is_outside(from, to) => {}
                // An instant has a length below a nanosecond.
                (None, Some((INSTANT, at))) if self.is_outside(at, at.saturating_add(1)) => {}
                (Some(_), _) => {
                    self.following = Some(TracePacket::decode(&self.bytes[..])?);
                    return Ok(Some(TracePacket::decode(&self.begun.0[..])?));
                }
                (None, _) => return Ok(Some(TracePacket::decode(&self.bytes[..])?)),
            }
        }
    }

    fn is_outside(&self, from: u64, to: u64) -> bool {
        to < self.span.0 || from > self.span.1
    }

    /// Reads the bytes of the next packet. Returns `false` at the end.
    fn fill(&mut self) -> Result<bool> {
        let Some(tag) = self.byte()? else { return Ok(false) };
        // Field 1 of a trace, of a length that follows.
        ensure!(tag == 0x0a, "it is not a trace of Perfetto");
        let length = self.length()?;
        ensure!(length <= LONGEST, "a packet is longer than 1 MiB");
        self.bytes.resize(length as usize, 0);
        self.input.read_exact(&mut self.bytes).map_err(truncated)?;
        Ok(true)
    }

    fn byte(&mut self) -> io::Result<Option<u8>> {
        let mut byte = [0];
        Ok((self.input.read(&mut byte)? == 1).then_some(byte[0]))
    }

    /// Reads a number of up to nine bytes with seven bits each.
    fn length(&mut self) -> Result<u64> {
        let mut length = 0;
        for shift in (0..63).step_by(7) {
            let byte = self.byte()?.context("it is truncated")?;
            length |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(length);
            }
        }
        bail!("a length is invalid")
    }
}

/// Returns the type and the time of a packet that is an event with interned texts, without decoding it. `None` for all
/// other packets, which have to be decoded.
fn event_in(packet: &[u8]) -> Option<(i32, u64)> {
    const TIMESTAMP: u64 = 8;
    const TRACK_EVENT: u64 = 11;
    /// Fields that do not matter here: `trusted_packet_sequence_id` and `sequence_flags`.
    const OTHERS: [u64; 2] = [10, 13];
    const TYPE: u64 = 9;
    const NAME: u64 = 23;
    let (mut at, mut event) = (None, None);
    let mut fields = Fields(packet);
    while let Some((field, value)) = fields.next()? {
        match (field, value) {
            (TIMESTAMP, Field::Number(time)) => at = Some(time),
            (TRACK_EVENT, Field::Bytes(bytes)) => event = Some(bytes),
            (other, Field::Number(_)) if OTHERS.contains(&other) => {}
            _ => return None,
        }
    }
    let mut kind = None;
    let mut fields = Fields(event?);
    while let Some((field, value)) = fields.next()? {
        match (field, value) {
            (TYPE, Field::Number(number)) => kind = i32::try_from(number).ok(),
            (NAME, _) => return None,
            _ => {}
        }
    }
    Some((kind?, at?))
}

/// Fields of an encoded message.
struct Fields<'a>(&'a [u8]);

/// Value of a field.
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    Fixed,
}

impl<'a> Fields<'a> {
    /// Returns the number and the value of the next field, or `Some(None)` at the end. `None` if the message is
    /// invalid.
    fn next(&mut self) -> Option<Option<(u64, Field<'a>)>> {
        if self.0.is_empty() {
            return Some(None);
        }
        let key = self.number()?;
        let value = match key & 7 {
            0 => Field::Number(self.number()?),
            1 => self.take(8).map(|_| Field::Fixed)?,
            2 => {
                let length = self.number()?;
                Field::Bytes(self.take(usize::try_from(length).ok()?)?)
            }
            5 => self.take(4).map(|_| Field::Fixed)?,
            _ => return None,
        };
        Some(Some((key >> 3, value)))
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, left) = self.0.split_at_checked(length)?;
        self.0 = left;
        Some(taken)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..63).step_by(7) {
            let (&byte, left) = self.0.split_first()?;
            self.0 = left;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }
}

fn truncated(error: io::Error) -> anyhow::Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => anyhow::anyhow!("it is truncated"),
        _ => error.into(),
    }
}

/// State of a reader.
struct Reader {
    texts: InternedData,
    planes: u64,
    /// Channel of each plane.
    channels: BTreeMap<u64, u64>,
    /// Slice that has begun: its packet, and its track. Its end is in the next packet.
    open: Option<(u64, TrackEvent)>,
}

impl Reader {
    fn take(&mut self, packet: TracePacket, each: &mut dyn FnMut(&Value) -> Result<()>) -> Result<()> {
        if let Some(texts) = packet.interned_data {
            self.texts = texts;
        }
        if let Some(track) = packet.track_descriptor {
            self.track(&track, each)?;
        }
        let Some(event) = packet.track_event else { return Ok(()) };
        let at = packet.timestamp.context("an event without a time")?;
        match event.r#type {
            Some(BEGIN) => {
                ensure!(self.open.is_none(), "a slice begins before the last one has ended");
                self.open = Some((at, event));
                Ok(())
            }
            Some(END) => {
                let (from, begun) = self.open.take().context("a slice ends that has not begun")?;
                ensure!(begun.track_uuid == event.track_uuid && from < at, "a slice has an invalid end");
                self.event(&begun, from, Some(at), each)
            }
            Some(INSTANT) => self.event(&event, at, None, each),
            _ => bail!("an event of an unknown type"),
        }
    }

    /// Returns the name of a track as an event.
    fn track(&mut self, track: &TrackDescriptor, each: &mut dyn FnMut(&Value) -> Result<()>) -> Result<()> {
        let of = |uuid: Option<u64>| Track::of(uuid.unwrap_or(0), self.planes);
        let found = of(track.uuid).context("an unknown track")?;
        let parent = of(track.parent_uuid);
        if let (Track::Plane(plane), Some(Track::Channel(channel))) = (found, parent) {
            ensure!(self.channels.len() as u64 <= self.planes, "more planes than the device has");
            self.channels.insert(plane, channel);
        }
        let (what, (process, thread)) = match found {
            Track::Device | Track::Wait { .. } => return Ok(()),
            Track::Host => ("process_name", (HOST, FIRST)),
            Track::Channel(channel) => ("process_name", (channel.saturating_add(1), FIRST)),
            Track::Controller => ("process_name", (self.controller(), FIRST)),
            track => ("thread_name", self.place(track)?),
        };
        each(&json!({ "ph": "M", "pid": process, "tid": thread, "name": what, "args": { "name": track.name } }))
    }

    /// Returns the process of the controller, which follows the last channel.
    fn controller(&self) -> u64 {
        self.channels.values().max().map_or(1, |last| last.saturating_add(2))
    }

    /// Returns the process and the thread of a track.
    fn place(&self, track: Track) -> Result<(u64, u64)> {
        Ok(match track {
            Track::Bus(channel) => (channel.saturating_add(1), BUS),
            Track::Plane(plane) | Track::Wait { plane, .. } => {
                let channel = self.channels.get(&plane).context("a plane without a name")?;
                (channel.saturating_add(1), thread_of_plane(plane))
            }
            Track::Requests(lane) => (HOST, FIRST.saturating_add(lane)),
            Track::Core(core) => (self.controller(), FIRST.saturating_add(core)),
            Track::Device | Track::Host | Track::Controller | Track::Channel(_) => {
                bail!("an event of a group of tracks")
            }
        })
    }

    fn event(
        &self,
        event: &TrackEvent,
        from: u64,
        to: Option<u64>,
        each: &mut dyn FnMut(&Value) -> Result<()>,
    ) -> Result<()> {
        let track = Track::of(event.track_uuid.unwrap_or(0), self.planes).context("an unknown track")?;
        let (process, thread) = self.place(track)?;
        let mut args = self.arguments(&event.debug_annotations);
        let mut taken = |name: &str| args.remove(name).and_then(|value| value.as_u64()).unwrap_or(0);
        let [start_ps, end_ps, length_ps] = ["start_ps", "end_ps", "length_ps"].map(&mut taken);
        let at = |ns: u64, ps: u64| ns.saturating_mul(1000).saturating_add(ps);
        let start = at(from, start_ps);
        let end = to.map_or(start.saturating_add(length_ps), |to| at(to, end_ps));
        let name = text(&self.texts.event_names, event.name_iid);
        let category = text(&self.texts.event_categories, event.category_iids.first().copied());
        if category == WAIT {
            args.insert("wait_us".to_owned(), us(end.saturating_sub(start)).into());
            each(
                &json!({ "ph": "b", "pid": process, "tid": thread, "ts": us(start), "cat": category, "id": event.track_uuid,
                "name": name, "args": args }),
            )?;
            return each(&json!({ "ph": "e", "pid": process, "tid": thread, "ts": us(end), "cat": category,
                "id": event.track_uuid, "name": name }));
        }
        if matches!(track, Track::Bus(_) | Track::Plane(_)) {
            let phase = name.strip_prefix(category).and_then(|rest| rest.strip_prefix(": ")).unwrap_or("cell");
            args.insert("phase".to_owned(), phase.into());
        }
        each(&json!({ "ph": "X", "pid": process, "tid": thread, "ts": us(start), "dur": us(end.saturating_sub(start)),
            "cat": category, "name": name, "flows": event.flow_ids, "args": args }))
    }

    fn arguments(&self, arguments: &[DebugAnnotation]) -> Map<String, Value> {
        arguments.iter().map(|argument| (self.name_of(argument).to_owned(), self.value_of(argument))).collect()
    }

    fn name_of<'a>(&'a self, argument: &'a DebugAnnotation) -> &'a str {
        match &argument.name {
            Some(name) => name,
            None => text(&self.texts.debug_annotation_names, argument.name_iid),
        }
    }

    fn value_of(&self, argument: &DebugAnnotation) -> Value {
        if let Some(number) = argument.uint_value {
            number.into()
        } else if let Some(number) = argument.double_value {
            number.into()
        } else if let Some(text) = &argument.string_value {
            text.as_str().into()
        } else if argument.string_value_iid.is_some() {
            text(&self.texts.debug_annotation_string_values, argument.string_value_iid).into()
        } else {
            argument.array_values.iter().map(|one| one.uint_value).collect()
        }
    }
}

/// Returns a text by its number. Numbers are positions, counted from 1.
fn text(texts: &[Interned], number: Option<u64>) -> &str {
    let index = number.and_then(|number| usize::try_from(number).ok()?.checked_sub(1));
    index.and_then(|index| texts.get(index)?.name.as_deref()).unwrap_or_default()
}
