//! Histories of random devices, operation by operation. `tests/history` has a digest for each device, so that a test
//! notices a change of the structure that moves a single nanosecond. `FLOATGATE_BLESS=1` records the digests again.
//!
//! `FLOATGATE_TELL=DIR` writes the digests of this build to `DIR` instead. `FLOATGATE_SEED=n` also writes all lines
//! that they are made of. `scripts/first_difference.py` compares two builds by these files.

use std::fmt::{Debug, Write as _};
use std::path::PathBuf;

use floatgate_core::device_file::DeviceConfig;
use floatgate_core::flash::{Before, FlashEvent, FlashImage, Outbox, Record, Source, UnitState};
use floatgate_core::internals::MemoryFlash;
use floatgate_core::results::{Breakdown, Results, Sample};
use floatgate_core::saved_state::Head;
use floatgate_core::sim::id::{BlockId, Ppn};
use floatgate_core::sim::request::Completion;
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Device, Outcome, Ssd};
use floatgate_core::summary::{About, Named, Precondition, Reached, Summary};
use floatgate_core::timeline::{CoreWork, Lane, Probe, Slice};
use serde_json::Value;
use xxhash_rust::xxh3::Xxh3;

/// Subject of a line of a history. Each part has its own digest.
#[derive(Clone, Copy, Debug)]
pub enum Part {
    /// Phases of operations on channels and in planes, and the work of cores, in the order in which they were recorded.
    Operations,
    /// Completions in their order, and the summary.
    Answers,
    /// The sections of a saved state.
    State,
    /// Events of the flash log of a durable device.
    Flash,
}

const PARTS: [Part; 4] = [Part::Operations, Part::Answers, Part::State, Part::Flash];

/// Returns the summary of a run, without the names of its inputs.
pub fn summary_of(outcome: &Outcome, device: &Device) -> Summary {
    let name = |name: &str| Named { name: name.to_owned(), digest: String::new() };
    let about = About {
        seed: 0,
        device: name("device"),
        workload: name("workload"),
        precondition: Precondition { requested: String::new(), reached: Reached::default() },
        warnings: Vec::new(),
        base: None,
        arguments: Vec::new(),
    };
    Summary::new(about, &outcome.measurement(device))
}

/// The history of one device.
pub struct History {
    digests: [Xxh3; PARTS.len()],
    /// Lines that the digests are made of, with `FLOATGATE_TELL` and `FLOATGATE_SEED`.
    lines: Option<[String; PARTS.len()]>,
    results: Results,
    first: Sample,
}

impl History {
    /// Starts to record an idle device.
    pub fn begin(device: &mut Device) -> History {
        let mut first = Sample::default();
        device.array_mut().reset_times();
        device.sample(device.now(), &mut first);
        device.array_mut().set_probe(Some(Probe::new(Time::ZERO, Time::NEVER)));
        let lines = told_seed().is_some().then(Default::default);
        History { digests: Default::default(), lines, results: Results::new(vec!["all".to_owned()]), first }
    }

    /// Continues with a device that was recovered after a power cut. The summary will be that of the last device.
    pub fn continue_with(&mut self, device: &mut Device) {
        let History { first, results, .. } = History::begin(device);
        (self.first, self.results) = (first, results);
    }

    /// Adds a line to a part: the numbers for the digest, and a text to show.
    fn note(&mut self, part: Part, numbers: &[u64], shown: &dyn Debug) {
        let digest = &mut self.digests[part as usize];
        numbers.iter().for_each(|number| digest.update(&number.to_le_bytes()));
        if let Some(lines) = &mut self.lines {
            let line = &mut lines[part as usize];
            numbers.iter().for_each(|number| write!(line, "{number} ").expect("it is a string"));
            writeln!(line, "\t{shown:?}").expect("it is a string");
        }
    }

    /// Adds the operations that a probe has recorded.
    pub fn operations(&mut self, probe: &Probe) {
        probe.slices().iter().for_each(|slice| self.note(Part::Operations, &slice_numbers(slice), slice));
        probe.works().iter().for_each(|work| self.note(Part::Operations, &work_numbers(work), work));
    }

    pub fn answer(&mut self, completion: &Completion, breakdown: Option<&Breakdown>) {
        let Completion { request, status, start, finish } = completion;
        let numbers = [request.tag, request.lba, *status as u64, start.0, finish.0];
        self.note(Part::Answers, &numbers, completion);
        self.results.record(completion, breakdown);
    }

    /// Adds the summary of a device that has completed all requests.
    pub fn summary(&mut self, device: &Device) {
        let mut last = Sample::default();
        device.sample(device.now(), &mut last);
        let outcome = Outcome::between(&self.first, last, self.results.clone(), None, true);
        let summary = summary_of(&outcome, device);
        let mut summary = serde_json::to_value(summary).expect("a summary is JSON");
        let fields = summary.as_object_mut().expect("a summary has fields");
        ["schema", "version", "config", "config_digest"].iter().for_each(|name| drop(fields.remove(*name)));
        // Recorded digests are older than this field.
        fields["gc"].as_object_mut().and_then(|gc| gc.shift_remove("free_blocks_gained"));
        self.value("summary", &summary);
    }

    /// Adds a value without empty and zero fields, so that a new field that is 0 changes nothing.
    fn value(&mut self, path: &str, value: &Value) {
        match value {
            Value::Object(fields) => {
                fields.iter().for_each(|(name, value)| self.value(&format!("{path}.{name}"), value))
            }
            Value::Array(values) => {
                values.iter().enumerate().for_each(|(index, value)| self.value(&format!("{path}[{index}]"), value));
            }
            Value::Null | Value::Bool(false) => {}
            value if value.as_f64() == Some(0.0) || value.as_str() == Some("") => {}
            value => {
                let text = format!("{path} = {value}");
                self.note(Part::Answers, &[xxhash_rust::xxh3::xxh3_64(text.as_bytes())], &text);
            }
        }
    }

    /// Adds the sections of a saved state. The header contains the version and the device file, and is left out.
    pub fn state(&mut self, bytes: &[u8]) {
        let (_, sections) = Head::inspect_state(bytes).expect("a state that was just saved");
        for section in sections {
            let numbers = [xxhash_rust::xxh3::xxh3_64(section.name.as_bytes()), section.digest];
            self.note(Part::State, &numbers, &section);
        }
    }

    /// Takes and adds the events of the flash log.
    pub fn reported(&mut self, device: &mut Device) {
        let mut outbox = Outbox::default();
        device.take_flash(&mut outbox);
        for event in &outbox.events {
            self.note(Part::Flash, &event_numbers(event), event);
        }
        if !outbox.own.is_empty() {
            self.note(Part::Flash, &[xxhash_rust::xxh3::xxh3_64(&outbox.own)], &"contents of the device's own units");
        }
    }

    /// Adds the contents of flash after a power cut.
    pub fn flash(&mut self, device: &DeviceConfig, flash: &mut MemoryFlash) {
        for block in 0..device.total_blocks() {
            let erases = flash.erases(BlockId(block)).expect("it is in memory");
            let bad = flash.bad(BlockId(block)).expect("it is in memory");
            self.note(
                Part::Flash,
                &[u64::from(erases), bad.map_or(0, |bad| bad as u64 + 1)],
                &("block", block, erases, bad),
            );
        }
        for ppn in (0..device.total_blocks() * device.units_per_block()).map(Ppn) {
            let unit = flash.unit(ppn).expect("it is in memory");
            let versions = flash.versions(ppn).unwrap_or_default();
            let mut numbers = match unit {
                UnitState::Erased => continue,
                UnitState::Torn => [u64::from(ppn.0), 1, 0, 0, 0, 0, 0],
                UnitState::Holds(record) => joined([u64::from(ppn.0), 2], record_numbers(&record)),
            }
            .to_vec();
            numbers.extend(versions.iter().map(|version| u64::from(*version)));
            self.note(Part::Flash, &numbers, &(ppn, unit));
        }
    }

    /// Returns the digests in hexadecimal.
    fn digest(&self) -> String {
        self.digests.iter().map(|digest| format!(" {:08x}", digest.digest() as u32)).collect()
    }
}

fn slice_numbers(slice: &Slice) -> [u64; 9] {
    let Slice { lane, phase, start, end, kind, class, tag, ppn, plane, .. } = *slice;
    let lane = match lane {
        Lane::Channel(channel) => u64::from(channel) << 1,
        Lane::Plane(plane) => u64::from(plane) << 1 | 1,
    };
    [start.0, end.0, lane, phase as u64, kind as u64, class as u64, tag, u64::from(ppn), u64::from(plane)]
}

fn work_numbers(work: &CoreWork) -> [u64; 7] {
    let CoreWork { core, task, start, end, units, tag, plane, .. } = *work;
    [start.0, end.0, u64::from(core), task as u64, u64::from(units), tag, u64::from(plane)]
}

fn record_numbers(record: &Record) -> [u64; 5] {
    let Record { kind, lpn, sequence, sectors, opened } = *record;
    [kind as u64, u64::from(lpn), sequence, sectors, opened]
}

fn joined<const A: usize, const B: usize, const C: usize>(first: [u64; A], rest: [u64; B]) -> [u64; C] {
    let mut all = first.into_iter().chain(rest).chain(std::iter::repeat(0));
    std::array::from_fn(|_| all.next().unwrap_or_default())
}

fn event_numbers(event: &FlashEvent) -> [u64; 10] {
    let wide = |number: u32| u64::from(number);
    match *event {
        FlashEvent::Accepted { tag, lpn, first, end, offset, zeroes, sequence, before } => {
            let (how, of) = match before {
                Before::Nothing => (0, 0),
                Before::Flash(ppn) => (1, wide(ppn.0)),
                Before::Pending(sequence) => (2, sequence),
                Before::Merged(sequence) => (3, sequence),
            };
            let part = [wide(first), wide(end), wide(offset), u64::from(zeroes)];
            joined([0, tag, wide(lpn.0), sequence, how, of], part)
        }
        FlashEvent::Trimmed { lpn, sequence } => joined([1, wide(lpn.0)], [sequence]),
        FlashEvent::Journalled { sequence } => joined([2], [sequence]),
        FlashEvent::Anchored { part, ppn } => joined([3], [part, ppn.0].map(wide)),
        FlashEvent::ProgramBegun { ppn, units, cause } => joined([4, cause as u64], [ppn.0, units].map(wide)),
        FlashEvent::Unit { ppn, record, source } => {
            let source = match source {
                Source::Write { lpn, sequence } => [0, wide(lpn.0), sequence],
                Source::Copy(from) => [1, wide(from.0), 0],
                Source::Own { start, len } => [2, start as u64, len as u64],
                Source::Nothing => [3, 0, 0],
            };
            joined([5, wide(ppn.0), source[0], source[1], source[2]], record_numbers(&record))
        }
        FlashEvent::ProgramEnded { ppn, units } => joined([6], [ppn.0, units].map(wide)),
        FlashEvent::ProgramFailed { ppn, units } => joined([7], [ppn.0, units].map(wide)),
        FlashEvent::EraseFailed { block } => joined([8], [wide(block.0)]),
        FlashEvent::FactoryBad { block } => joined([9], [wide(block.0)]),
        FlashEvent::EraseBegun { block } => joined([10], [wide(block.0)]),
        FlashEvent::EraseEnded { block, erases } => joined([11], [block.0, erases].map(wide)),
        FlashEvent::Retired { block } => joined([12], [wide(block.0)]),
    }
}

/// Returns `true` if all devices with a recorded digest are compared, and no others: `FLOATGATE_DIGESTS=all`.
pub fn all_digests() -> bool {
    std::env::var_os("FLOATGATE_DIGESTS").is_some_and(|value| value == "all")
}

/// Returns the directory to which this build writes its history, from `FLOATGATE_TELL`.
fn told_directory() -> Option<PathBuf> {
    std::env::var_os("FLOATGATE_TELL").map(PathBuf::from)
}

/// Returns the seed of the device whose lines are written, from `FLOATGATE_SEED`.
fn told_seed() -> Option<String> {
    told_directory().and_then(|_| std::env::var("FLOATGATE_SEED").ok())
}

/// The digests of devices of one kind, by seed.
pub struct Digests {
    kind: &'static str,
    /// Number of devices with a recorded digest, from seed 0 on.
    count: u64,
    recorded: Vec<String>,
    found: Vec<String>,
    /// True if the digests are written instead of compared.
    writes: bool,
}

impl Digests {
    /// Returns the digests of the first `count` devices of a kind, to compare, or to write if requested.
    pub fn of(kind: &'static str, count: u64) -> Digests {
        let writes =
            told_directory().is_some() || std::env::var_os("FLOATGATE_BLESS").is_some_and(|value| value == "1");
        Digests { writes, ..Digests::recorded(kind, count) }
    }

    /// Returns the digests of the first `count` devices of a kind, to compare only.
    pub fn recorded(kind: &'static str, count: u64) -> Digests {
        let recorded = std::fs::read_to_string(Digests::file(kind)).unwrap_or_default();
        let recorded = recorded.lines().map(str::to_owned).collect();
        Digests { kind, count, recorded, found: Vec::new(), writes: false }
    }

    fn file(kind: &str) -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/history/{kind}.txt"))
    }

    /// Returns the number of devices with a recorded digest.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Starts the history of a device if its digest is recorded.
    pub fn begin(&self, seed: u64, device: &mut Device) -> Option<History> {
        (seed < self.count).then(|| History::begin(device))
    }

    /// Compares the digest of a device with the recorded one, and writes its lines if requested.
    pub fn end(&mut self, seed: u64, history: Option<History>) {
        let Some(history) = history else { return };
        let line = format!("{seed}{}", history.digest());
        if let (Some(directory), Some(parts)) = (told_directory(), &history.lines) {
            for (part, lines) in PARTS.iter().zip(parts) {
                let name = format!("{}-{seed}-{part:?}.txt", self.kind).to_lowercase();
                std::fs::write(directory.join(name), lines).expect("the directory exists");
            }
        }
        if !self.writes {
            let kind = self.kind;
            let recorded = self.recorded.get(seed as usize).map(String::as_str);
            assert_eq!(
                Some(line.as_str()),
                recorded,
                "device {seed} of {kind}.txt has another history (seed, operations, answers, state, flash); \
                 scripts/first_difference.py shows the first operation that differs"
            );
        }
        self.found.push(line);
    }

    /// Writes the digests if requested.
    pub fn finish(self) {
        if !self.writes {
            return;
        }
        let file = match told_directory() {
            Some(directory) => directory.join(format!("{}.txt", self.kind)),
            None => Digests::file(self.kind),
        };
        std::fs::write(file, self.found.join("\n") + "\n").expect("the directory exists");
    }
}
