//! A job that replays a trace: fio's `read_iolog`.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::SECTOR;
use super::limits::times_of;
use super::options::Options;
use super::place::Place;
use crate::file::Stop;
use crate::sim::request::Request;
use crate::sim::source::{Control, Pace, Source, SourceError};
use crate::sim::time::Time;
use crate::trace::{Devices, Replay, Trace, TraceOptions};

/// A trace to replay, and how to replay it.
#[derive(Debug)]
pub struct Recipe {
    /// Relation to the other jobs.
    pub place: Place,
    path: PathBuf,
    /// Job, key and file, for errors.
    from: String,
    options: TraceOptions,
    depth: Option<u32>,
    /// Speed in percent.
    percent: u64,
    stop_at: Option<Time>,
    measure_from: Time,
    said: Option<String>,
}

/// Keys that have an effect on a replay.
const KEYS: &[&str] = &[
    "name",
    "description",
    "iodepth",
    "ioengine",
    "startdelay",
    "runtime",
    "ramp_time",
    "stonewall",
    "wait_for",
    "numjobs",
    "number_ios",
    "write_iolog",
    "read_iolog",
    "replay_time_scale",
    "replay_no_stall",
    "replay_redirect",
    "exitall",
    "exit_what",
    "new_group",
    "kb_base",
];

impl Recipe {
    /// Returns the path of the trace.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates the recipe of a job with `read_iolog`.
    pub fn new(options: &Options, path: &str, from: String, mut place: Place) -> Result<Recipe, String> {
        let (stop_at, measure_from) = times_of(options)?;
        let idle: Vec<&str> = options.given.iter().copied().filter(|key| !KEYS.contains(key)).collect();
        if !idle.is_empty() {
            let have = if idle.len() == 1 { "has" } else { "have" };
            place.warnings.push(format!("{}: {} {have} no effect with read_iolog", place.name, idle.join(", ")));
        }
        if options.replay_no_stall && options.replay_time_scale.is_some() {
            place.warnings.push(format!("{}: replay_time_scale has no effect with replay_no_stall", place.name));
        }
        let replay = if options.replay_no_stall { Replay::Depth(options.iodepth.unwrap_or(1)) } else { Replay::Timed };
        let devices = if options.replay_redirect { Devices::Merge } else { Devices::default() };
        Ok(Recipe {
            place,
            path: PathBuf::from(path),
            from,
            options: TraceOptions { replay, devices, limit: options.number_ios, ..TraceOptions::default() },
            depth: options.iodepth,
            percent: options.replay_time_scale.unwrap_or(100),
            stop_at,
            measure_from,
            said: options.description.clone(),
        })
    }
}

/// A job that replays a trace.
pub struct Replayed {
    recipe: Recipe,
    trace: Trace,
}

impl fmt::Debug for Replayed {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.recipe.fmt(f)
    }
}

impl Replayed {
    /// Opens the trace for a device of `device_bytes`. Reading it ends when `stop` is requested.
    pub fn open(mut recipe: Recipe, device_bytes: u64, stop: &Stop) -> Result<Replayed, SourceError> {
        recipe.options.stop = stop.clone();
        let trace = Trace::open(Path::new(&recipe.path), &recipe.options, device_bytes / SECTOR)
            .map_err(|why| SourceError(format!("{}: {why}", recipe.from)))?;
        Ok(Replayed { recipe, trace })
    }
}

impl Source for Replayed {
    fn next_request(&mut self) -> Result<Option<Request>, SourceError> {
        let Some(mut request) = self.trace.next_request()? else { return Ok(None) };
        let percent = u128::from(self.recipe.percent);
        if percent != 100 {
            let scaled = (u128::from(request.arrival.ps()) * 100 + percent / 2) / percent;
            let arrival = u64::try_from(scaled).map_err(|_| {
                let name = &self.recipe.place.name;
                SourceError(format!("{name}: at this replay_time_scale, the trace is longer than 213 days"))
            })?;
            request.arrival = Time(arrival);
        }
        Ok(Some(request))
    }

    fn pace(&self) -> Pace {
        match self.trace.pace() {
            Pace::Timed { .. } => Pace::Timed { depth: self.recipe.depth },
            pace => pace,
        }
    }

    fn stop_at(&self) -> Option<Time> {
        self.recipe.stop_at
    }

    fn measure_from(&self) -> Time {
        self.recipe.measure_from
    }

    fn waits_for(&self) -> Range<usize> {
        self.recipe.place.waits_for.clone()
    }

    fn shift_positions(&mut self, others: usize) {
        self.recipe.place.shift_positions(others);
    }

    fn start_delay(&self) -> Time {
        self.recipe.place.start_delay
    }

    fn control(&self) -> Control {
        Control { ends: self.recipe.place.ends.clone(), ..Control::default() }
    }

    fn streams(&self) -> Vec<String> {
        vec![self.recipe.place.name.clone()]
    }

    fn progress(&self) -> Option<f64> {
        self.trace.progress()
    }

    fn description(&self) -> String {
        let said = self.recipe.said.as_ref().map_or(String::new(), |said| format!(" ({said})"));
        let (name, path) = (&self.recipe.place.name, self.recipe.path.display());
        format!("{name}: {path}, {}{said}", Trace::description(&self.trace))
    }

    fn digest(&self) -> Option<u64> {
        Some(Trace::digest(&self.trace))
    }

    fn warnings(&self) -> Vec<String> {
        [&self.recipe.place.warnings[..], &self.trace.warnings()].concat()
    }
}
