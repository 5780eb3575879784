//! Reads the part of a timeline that a diagram shows. Memory use is bounded for any file: phases after the earliest
//! ones that fit are counted but not kept.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use anyhow::{Context, Result, ensure};
use floatgate_core::device_file::Duration;
use floatgate_core::sim::request::Operation;
use floatgate_core::sim::time::Time;
use floatgate_core::timeline::{Kind, Phase};
use serde_json::Value;

use super::{MAX_PHASES, MAX_PLANES, MAX_REQUESTS, Sort};
use crate::number::grouped;
use crate::timeline::{FIRMWARE, operation_of, phase_of, ps, read_events, thread_of_plane};

/// Start and end, in picoseconds.
pub type Span = (u64, u64);

/// Maximum number of planes of a device in a plausible file.
const MAX_TRACKS: usize = 1 << 20;

/// Maximum number of requests in the label of an operation.
const MAX_NAMED: usize = 2;

/// Position of a plane: channel, chip, die and plane, each within the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub channel: u64,
    pub chip: u32,
    pub die: u32,
    pub plane: u32,
}

/// A phase of an operation.
#[derive(Clone, Debug)]
pub struct Step {
    pub op: u64,
    /// Name of the operation, such as `host read`.
    pub what: &'static str,
    pub phase: Phase,
    pub sort: Sort,
    /// True if the cells resume a suspended operation.
    pub resumed: bool,
    pub place: Place,
    pub span: Span,
    /// First requests that the operation serves, and the number of all.
    pub requests: Vec<u64>,
    pub of_requests: usize,
    pub block: u64,
    pub page: Option<u64>,
}

/// A request of the host.
#[derive(Clone, Debug)]
pub struct Requesting {
    pub number: u64,
    pub operation: Operation,
    pub thread: u64,
    pub span: Span,
}

/// Data to draw.
#[derive(Clone, Debug, Default)]
pub struct Gathered {
    pub device: String,
    /// Ordered by start.
    pub steps: Vec<Step>,
    /// Ordered by arrival. If there are too many, only the first ones.
    pub requests: Vec<Requesting>,
    /// Number of requests that overlap with the span.
    pub of_requests: usize,
}

/// The `max` items with the earliest start, from items in any order.
#[derive(Debug)]
struct Earliest<T> {
    kept: BTreeMap<(u64, usize), T>,
    count: usize,
    max: usize,
}

impl<T> Earliest<T> {
    fn new(max: usize) -> Earliest<T> {
        Earliest { kept: BTreeMap::new(), count: 0, max }
    }

    fn push(&mut self, start: u64, item: T) {
        self.kept.insert((start, self.count), item);
        self.count += 1;
        if self.kept.len() > self.max {
            self.kept.pop_last();
        }
    }
}

/// Progress of the operation in a plane.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    op: u64,
    cells: u32,
    /// True if data passed the channel after the last cell phase.
    moved: bool,
}

/// A plane: its position, and its current operation of each kind.
#[derive(Clone, Debug)]
struct Track {
    place: Place,
    progress: [Option<Progress>; Kind::COUNT],
}

struct Gatherer {
    span: (Time, Time),
    tracks: BTreeMap<u64, Track>,
    steps: Earliest<Step>,
    requests: Earliest<Requesting>,
}

/// Reads the events that overlap with `span` from a timeline. `name` is the name of the file, for error messages.
pub fn gather(timeline: impl Read, name: &str, span: (Time, Time)) -> Result<Gathered> {
    let mut gatherer = Gatherer {
        span,
        tracks: BTreeMap::new(),
        // Keeps one more than is drawn. Its start is the end of the narrower span in the error message.
        steps: Earliest::new(MAX_PHASES + 1),
        requests: Earliest::new(MAX_REQUESTS),
    };
    let mut first = None;
    let mut last = 0;
    let covered = read_events(timeline, name, &mut |event| {
        if event["ph"] == "X" && event["cat"] != FIRMWARE {
            let start = ps(&event["ts"]);
            first = Some(first.map_or(start, |first: u64| first.min(start)));
            last = last.max(start.saturating_add(ps(&event["dur"])));
        }
        gatherer.take(event).with_context(|| format!("{name} has an invalid event: {}", shortened(event)))
    })?;
    let Gatherer { steps, requests, .. } = gatherer;
    ensure!(steps.count > 0, "{}", nothing(name, first.map(|first| (first, last))));
    let of_requests = requests.count;
    let steps = few_enough(steps, name, span)?;
    let requests = requests.kept.into_values().collect();
    Ok(Gathered { device: covered.device, steps, requests, of_requests })
}

/// Returns the text of an event, shortened for a message.
fn shortened(event: &Value) -> String {
    let text = event.to_string();
    let mut short: String = text.chars().take(120).collect();
    if short.len() < text.len() {
        short.push_str("...");
    }
    short
}

/// Returns a time in the syntax of command-line options.
fn said(ps: u64) -> String {
    Duration(ps).to_string()
}

/// Returns the error message for a span without phases.
fn nothing(name: &str, there: Option<Span>) -> String {
    match there {
        Some((first, last)) => format!(
            "{name} has no channel or cell activity in this span; its activity is between {} and {}",
            said(first),
            said(last)
        ),
        None => format!("{name} has no channel or cell activity: nothing happened in the recorded span"),
    }
}

/// Returns the phases, or an error if there are too many for a diagram.
fn few_enough(steps: Earliest<Step>, name: &str, span: (Time, Time)) -> Result<Vec<Step>> {
    let (count, mut steps): (usize, Vec<Step>) = (steps.count, steps.kept.into_values().collect());
    let from = span.0.ps().max(steps.first().map_or(0, |step| step.span.0));
    let narrower = |to: u64| {
        if to <= from {
            "simulate a smaller device".to_owned()
        } else if from == 0 {
            format!("give a shorter span, such as ..{}", said(to))
        } else {
            format!("give a shorter span, such as {}..{}", said(from), said(to))
        }
    };
    let mut planes = BTreeSet::new();
    let too_many = steps.iter().find(|step| planes.insert(step.place) && planes.len() > MAX_PLANES);
    if let Some(step) = too_many {
        anyhow::bail!(
            "{name} has activity on more planes in this span than a diagram can show ({MAX_PLANES}); {}",
            narrower(step.span.0)
        );
    }
    ensure!(
        count <= MAX_PHASES,
        "{name} has {} phases in this span, but a diagram shows at most {MAX_PHASES}; {}",
        grouped(count as u64),
        narrower(steps.last().map_or(0, |step| step.span.0))
    );
    steps.truncate(MAX_PHASES);
    Ok(steps)
}

impl Gatherer {
    fn take(&mut self, event: &Value) -> Result<()> {
        let is_request = event["cat"] == "request";
        match event["ph"].as_str() {
            Some("M") if event["name"] == "thread_name" => self.name(event),
            Some("b") => self.grant(event),
            Some("X") if is_request => self.request(event),
            Some("X") if event["cat"] == FIRMWARE => Ok(()),
            Some("X") => self.step(event),
            _ => Ok(()),
        }
    }

    /// Stores the position of a plane, which its name contains.
    fn name(&mut self, event: &Value) -> Result<()> {
        let words: Vec<&str> = event["args"]["name"].as_str().unwrap_or_default().split(' ').collect();
        let ["chip", chip, "die", die, "plane", plane] = words[..] else { return Ok(()) };
        let place = Place {
            channel: number(&event["pid"])?.checked_sub(1).context("a plane of the host")?,
            chip: chip.parse()?,
            die: die.parse()?,
            plane: plane.parse()?,
        };
        self.tracks.insert(number(&event["tid"])?, Track { place, progress: [None; Kind::COUNT] });
        ensure!(self.tracks.len() <= MAX_TRACKS, "more planes than a device has");
        Ok(())
    }

    /// Starts to track the progress of an operation when its die is granted.
    fn grant(&mut self, event: &Value) -> Result<()> {
        let (_, kind) = operation_of(text(&event["name"]).trim_start_matches("wait: ")).context("an unknown wait")?;
        let op = number(&event["args"]["op"])?;
        let progress = &mut self.track(event)?.progress[kind as usize];
        if progress.is_none_or(|progress| progress.op != op) {
            *progress = Some(Progress { op, ..Progress::default() });
        }
        Ok(())
    }

    fn request(&mut self, event: &Value) -> Result<()> {
        let span = span_of(event);
        if self.overlaps(span) {
            let operation = Operation::ALL.into_iter().find(|operation| operation.name() == text(&event["name"]));
            let requesting = Requesting {
                number: number(&event["args"]["request"])?,
                operation: operation.context("an unknown request operation")?,
                thread: number(&event["tid"])?,
                span,
            };
            self.requests.push(span.0, requesting);
        }
        Ok(())
    }

    fn step(&mut self, event: &Value) -> Result<()> {
        let args = &event["args"];
        let (what, kind) = operation_of(text(&event["cat"])).context("an unknown operation")?;
        let phase = phase_of(text(&args["phase"])).context("an unknown phase")?;
        let op = number(&args["op"])?;
        let span = span_of(event);
        let track = self.track(event)?;
        let place = track.place;
        let progress = &mut track.progress[kind as usize];
        // If the grant was before the start of the file, the file contains only the last part of the operation.
        let unseen = Progress { op, cells: u32::from(kind == Kind::CopyBack), moved: false };
        let mut so_far = progress.filter(|progress| progress.op == op).unwrap_or(unseen);
        let second = so_far.cells > 0;
        let may_rest = matches!(kind, Kind::Program | Kind::Erase) || so_far.cells > 1;
        let resumed = phase == Phase::Cell && second && may_rest && !so_far.moved;
        match phase {
            Phase::Cell => so_far = Progress { cells: so_far.cells + 1, moved: false, ..so_far },
            Phase::Data => so_far.moved = true,
            _ => {}
        }
        *progress = Some(so_far);
        if self.overlaps(span) {
            let (requests, of_requests) = requests_of(args);
            let (block, page) = (args["block"].as_u64().unwrap_or(0), args["page"].as_u64());
            let sort = Sort::of(kind, phase, second);
            let step = Step { op, what, phase, sort, resumed, place, span, requests, of_requests, block, page };
            self.steps.push(span.0, step);
        }
        Ok(())
    }

    fn overlaps(&self, (start, end): Span) -> bool {
        start < self.span.1.ps() && end > self.span.0.ps()
    }

    /// Returns the plane of an event.
    fn track(&mut self, event: &Value) -> Result<&mut Track> {
        let thread = thread_of_plane(number(&event["args"]["plane"])?);
        self.tracks.get_mut(&thread).context("a plane without a name")
    }
}

fn number(value: &Value) -> Result<u64> {
    value.as_u64().filter(|number| *number <= u64::from(u32::MAX) << 20).context("a number is missing")
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn span_of(event: &Value) -> Span {
    let start = ps(&event["ts"]);
    (start, start.saturating_add(ps(&event["dur"])))
}

/// Returns the first requests that an event serves, and the number of all.
fn requests_of(args: &Value) -> (Vec<u64>, usize) {
    match args["requests"].as_array() {
        Some(all) => (all.iter().filter_map(Value::as_u64).take(MAX_NAMED).collect(), all.len()),
        None => (args["request"].as_u64().into_iter().collect(), usize::from(args["request"].is_u64())),
    }
}
