//! Specification of a run: the device, the workloads, the state before the run, the seeds and the outputs.
//!
//! The command line, Python and other programs fill in a [`RunSpec`]. Its fields have the types of the library, with
//! the same parsers for all callers. A specification can be stored, and [`RunSpec::arguments`] returns the command that
//! repeats the run.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use floatgate_core::device_file::Duration;
use floatgate_core::endurance::Until;
use floatgate_core::preparation::{Precondition, Prewrite};
use floatgate_core::results::Width;
use floatgate_workload::file::Stop;
use serde::{Deserialize, Serialize};

use crate::command::without_places;
use crate::device::{DeviceSource, DeviceSpec};
use crate::failure::Failure;
use crate::span::Span;
use crate::traces::TraceSpec;
use crate::{as_text, workload};

/// Specification of a run and its outputs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSpec {
    /// Device to simulate.
    pub device: DeviceSpec,
    /// Workloads, which run concurrently, each with results of its own: jobs in fio syntax, paths of job files, models
    /// or traces, or traces with options (`trace=PATH limit=100`). See docs/reference/traces.md.
    pub workloads: Vec<String>,
    /// Options for reading traces.
    #[serde(default)]
    pub traces: TraceSpec,
    /// State of the device before the run.
    #[serde(default)]
    pub state: StateSpec,
    /// Placement of the data that the workloads read before they write it. This data is written before the run.
    #[serde(default, with = "as_text")]
    pub prewrite: Prewrite,
    /// File that the state before the run is saved to.
    #[serde(default)]
    pub save_state: Option<PathBuf>,
    /// Seed of all random numbers.
    #[serde(default = "first_seed")]
    pub seed: u64,
    /// Event that ends a lifetime, which repeats the workloads without simulated time. `None` for a run in simulated
    /// time.
    #[serde(default, with = "as_text::optional")]
    pub until: Option<Until>,
    /// Factor of `nand.endurance` in a lifetime, which shortens it.
    #[serde(default = "whole")]
    pub endurance_scale: f64,
    /// Seeds of several runs, which replace `seed`.
    #[serde(default, with = "as_text::optional")]
    pub seeds: Option<Seeds>,
    /// True if the latency of each request is broken down into its parts. A run without is up to 20% faster.
    #[serde(default = "yes")]
    pub attribution: bool,
    /// Directory for the result.
    #[serde(default)]
    pub out: Option<PathBuf>,
    /// Files that are written to `out` in addition to the summary.
    #[serde(default)]
    pub detail: DetailSpec,
    /// Command line that specified the run, without the name of the program. `None`: built by [`RunSpec::arguments`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
}

fn first_seed() -> u64 {
    1
}

fn whole() -> f64 {
    1.0
}

fn yes() -> bool {
    true
}

/// State of the device before a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StateSpec {
    /// Preconditioning: `none`, `fill`, `aged=V`, `invalid=V`, `steady`, or a workload, which is served without
    /// simulated time.
    Precondition(String),
    /// Saved state in this file.
    Saved(PathBuf),
}

impl Default for StateSpec {
    fn default() -> StateSpec {
        StateSpec::Precondition("fill".to_owned())
    }
}

impl StateSpec {
    /// Returns the preconditioning. `None` for a saved state.
    pub fn precondition(&self) -> Option<&str> {
        match self {
            StateSpec::Precondition(text) => Some(text),
            StateSpec::Saved(_) => None,
        }
    }
}

/// Files that a run writes to its directory in addition to the summary.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DetailSpec {
    /// Format of the requests, in the order of completion.
    pub requests: Option<RequestFormat>,
    /// Windows of simulated time in `series.parquet`. `None`: [`Windows::Adaptive`].
    #[serde(with = "as_text::optional")]
    pub series: Option<Windows>,
    /// Part of the run in `timeline.pftrace.gz`.
    #[serde(with = "as_text::optional")]
    pub timeline: Option<Extent>,
}

/// Format of the requests of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestFormat {
    /// Compressed columns with types: `requests.parquet`.
    Parquet,
    /// A line for each request: `requests.csv`.
    Csv,
}

/// Text of values that are chosen during the run.
const AUTO: &str = "auto";

/// Windows of simulated time. Written as `auto` or as a length, such as `10ms`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Windows {
    /// At most 1024 windows for the whole run, with 200 requests or more on average.
    #[default]
    Adaptive,
    /// Windows of this length, above 0.
    Fixed(Duration),
}

impl Windows {
    /// Returns the width. Fails if the length is 0.
    pub fn width(self) -> Result<Width, String> {
        match self {
            Windows::Adaptive => Ok(Width::Adaptive),
            Windows::Fixed(Duration(0)) => Err("the window must be longer than 0".to_owned()),
            Windows::Fixed(width) => Ok(Width::Fixed(width.time())),
        }
    }
}

impl FromStr for Windows {
    type Err = String;

    fn from_str(text: &str) -> Result<Windows, String> {
        if text == AUTO { Ok(Windows::Adaptive) } else { text.parse().map(Windows::Fixed) }
    }
}

impl fmt::Display for Windows {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Windows::Adaptive => f.write_str(AUTO),
            Windows::Fixed(width) => width.fmt(f),
        }
    }
}

/// Part of a run in its timeline. Written as `auto` or as a span, such as `10ms..12ms`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Extent {
    /// The start of the run, until the timeline has 256 MiB before compression.
    #[default]
    Limited,
    /// All of this span.
    Within(Span),
}

impl FromStr for Extent {
    type Err = String;

    fn from_str(text: &str) -> Result<Extent, String> {
        if text == AUTO { Ok(Extent::Limited) } else { text.parse().map(Extent::Within) }
    }
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Extent::Limited => f.write_str(AUTO),
            Extent::Within(span) => span.fmt(f),
        }
    }
}

/// Seeds of several runs, in order. Written as `N` for 1 to N, as a range `A..B`, or as a list such as `1,4,7..9`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seeds(Vec<u64>);

/// Maximum number of seeds of a command.
const MAX_SEEDS: u64 = 1000;

impl FromStr for Seeds {
    type Err = String;

    fn from_str(text: &str) -> Result<Seeds, String> {
        let is_list = text.contains(',');
        let mut seeds = Vec::new();
        for part in text.split(',') {
            let (first, last) = part.split_once("..").unwrap_or((if is_list { part } else { "1" }, part));
            let number = |text: &str| text.trim().parse::<u64>().ok();
            let range = number(first).zip(number(last));
            let Some((first, last)) = range.filter(|(first, last)| first <= last && last - first < MAX_SEEDS) else {
                return Err(Seeds::EXPECTED.to_owned());
            };
            seeds.extend(first..=last);
        }
        let mut different = seeds.clone();
        different.sort_unstable();
        different.dedup();
        match seeds.len() as u64 {
            count if count > MAX_SEEDS => Err(Seeds::EXPECTED.to_owned()),
            _ if different.len() < seeds.len() => Err("a seed occurs twice, whose runs would be equal".to_owned()),
            _ => Ok(Seeds(seeds)),
        }
    }
}

impl fmt::Display for Seeds {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let is_range = self.0.windows(2).all(|pair| pair[1].checked_sub(pair[0]) == Some(1));
        match self.0.as_slice() {
            [first, .., last] if is_range => write!(f, "{first}..{last}"),
            [only] => write!(f, "{only}..{only}"),
            all => f.write_str(&all.iter().map(u64::to_string).collect::<Vec<_>>().join(",")),
        }
    }
}

impl Seeds {
    const EXPECTED: &'static str =
        "expected a number of seeds from 1 to 1000, a range such as 5..9, or a list such as 1,4,7..9";

    /// Returns all seeds, in order.
    pub fn all(&self) -> &[u64] {
        &self.0
    }
}

/// Options for job files alone.
const OF_JOB_FILES: [&str; 2] = ["--set-job", "--ignore-unknown"];

/// Option for traces and job files.
const LIMIT: &str = "--limit";

impl RunSpec {
    /// Creates the specification of a run with these workloads and default options.
    pub fn new(device: DeviceSpec, workloads: Vec<String>) -> RunSpec {
        RunSpec {
            device,
            workloads,
            traces: TraceSpec::default(),
            state: StateSpec::default(),
            prewrite: Prewrite::default(),
            save_state: None,
            seed: first_seed(),
            until: None,
            endurance_scale: whole(),
            seeds: None,
            attribution: true,
            out: None,
            detail: DetailSpec::default(),
            command: None,
        }
    }

    /// Fails if options contradict each other, or would have no effect.
    pub fn check(&self) -> Result<(), Failure> {
        if self.workloads.is_empty() {
            return Err(Failure::mistake("no workload: give at least one"));
        }
        self.check_places()?;
        self.detail.check(self.out.is_some())?;
        self.traces.check()?;
        self.check_pipes()?;
        self.check_prewrite()?;
        self.check_until()?;
        self.check_kinds()
    }

    /// Fails if options are for traces or job files, and there are none.
    fn check_kinds(&self) -> Result<(), Failure> {
        let texts = || self.workloads.iter().map(String::as_str).chain(self.state.precondition());
        let (traces, files) = (texts().any(workload::is_trace), texts().any(workload::is_job_file));
        let (of_files, of_traces): (Vec<_>, Vec<_>) =
            self.traces.given().into_iter().partition(|name| OF_JOB_FILES.contains(name));
        let of_traces: Vec<_> = of_traces.into_iter().filter(|name| !(files && *name == LIMIT)).collect();
        let (given, kind) = match () {
            () if !traces && !of_traces.is_empty() => (of_traces, "traces"),
            () if !files && !of_files.is_empty() => (of_files, "job files"),
            () => return Ok(()),
        };
        let verb = if given.len() == 1 { "is" } else { "are" };
        let (options, jobs) = (given.join(", "), self.workloads.join("`, `"));
        let what = if files || !traces { "job" } else { "trace" };
        Err(Failure::mistake(format!("{options} {verb} for {kind}, and the workload is a {what}: `{jobs}`")))
    }

    /// Refuses to save a state that was loaded, or one for each seed.
    fn check_places(&self) -> Result<(), Failure> {
        let saves = self.save_state.is_some();
        if saves && matches!(self.state, StateSpec::Saved(_)) {
            return Err(Failure::mistake("--save-state would only copy the file of --load-state; omit one of them"));
        }
        if saves && self.seeds.is_some() {
            return Err(Failure::mistake("--save-state saves one state, but --seeds creates several; give one --seed"));
        }
        Ok(())
    }

    /// Refuses options of simulated time for a lifetime, which has none.
    fn check_until(&self) -> Result<(), Failure> {
        let Some(until) = self.until else {
            return match self.endurance_scale {
                1.0 => Ok(()),
                _ => Err(Failure::mistake("--endurance-scale shortens a lifetime; give --until, too")),
            };
        };
        if !(self.endurance_scale > 0.0 && self.endurance_scale <= 1e6) {
            let scale = self.endurance_scale;
            return Err(Failure::mistake(format!(
                "--endurance-scale {scale}: expected a number above 0, such as 0.01"
            )));
        }
        let DetailSpec { requests, series, timeline } = &self.detail;
        let given = [
            ("--prewrite", self.prewrite != Prewrite::None),
            ("--save-state", self.save_state.is_some()),
            ("--requests", requests.is_some()),
            ("--series", series.is_some()),
            ("--timeline", timeline.is_some()),
        ];
        match given.iter().find(|(_, given)| *given) {
            Some((option, _)) => Err(Failure::mistake(format!(
                "{option} has no effect with --until {until}, which repeats the workload without simulated time; omit \
                 one of them"
            ))),
            None => Ok(()),
        }
    }

    /// Refuses a layout that would have nothing to place.
    fn check_prewrite(&self) -> Result<(), Failure> {
        let (true, Some(state)) = (self.prewrite != Prewrite::None, self.state.precondition()) else { return Ok(()) };
        match state.parse() {
            Ok(Precondition::Fill | Precondition::Aged(_) | Precondition::Steady) => Err(Failure::mistake(format!(
                "--prewrite is for data that was not written yet, but --precondition {state} writes all data; give \
                 --precondition none for a new device, or invalid=V for a used one"
            ))),
            _ => Ok(()),
        }
    }

    /// Refuses a pipe that would have to be read more than once, because it would be empty, or would not open again.
    fn check_pipes(&self) -> Result<(), Failure> {
        let prewrite = (self.prewrite != Prewrite::None).then_some(&self.workloads).into_iter().flatten();
        let texts = self.workloads.iter().chain(prewrite).map(String::as_str).chain(self.state.precondition());
        let options = self.traces.options(&Stop::default());
        let mut pipes: Vec<PathBuf> = texts.filter_map(|text| workload::pipe(text, &options)).collect();
        let all = pipes.len();
        pipes.sort();
        let twice = pipes.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| &pair[0]);
        let (path, why) = match (twice, &self.seeds) {
            (Some(path), _) => (path, "more than once"),
            (None, Some(_)) if all > 0 => (&pipes[0], "once for each of --seeds"),
            _ => return Ok(()),
        };
        Err(Failure::mistake(format!(
            "{}: must be read {why}, but is not a regular file; write it into a file first, or pass it as standard \
             input, `-`, which is kept in a file",
            path.display()
        )))
    }

    /// Returns the arguments of the command that repeats the run, without the name of the program. They are empty if
    /// there is no such command, because the device is a text.
    pub fn arguments(&self) -> Vec<String> {
        if let Some(command) = &self.command {
            return without_places(command.iter().cloned(), self.seed);
        }
        let DeviceSource::Named(device) = &self.device.source else { return Vec::new() };
        let mut arguments = vec!["run".to_owned(), device.clone()];
        arguments.extend(self.workloads.iter().cloned());
        let mut add = |name: &str, value: String| {
            // A switch has no value.
            arguments.extend([name.to_owned(), value].into_iter().filter(|word| !word.is_empty()));
        };
        self.device.overrides.iter().for_each(|text| add("--set", text.clone()));
        self.device.scale.iter().for_each(|scale| add("--scale", scale.to_string()));
        self.traces.arguments().into_iter().for_each(|(name, value)| add(name, value));
        match &self.state {
            state if *state == StateSpec::default() => {}
            StateSpec::Precondition(text) => add("--precondition", text.clone()),
            StateSpec::Saved(path) => arguments.push(format!("--load-state={}", path.display())),
        }
        if self.prewrite != Prewrite::None {
            arguments.extend(["--prewrite".to_owned(), self.prewrite.to_string()]);
        }
        if let Some(until) = self.until {
            arguments.extend(["--until".to_owned(), until.to_string()]);
            if self.endurance_scale != whole() {
                arguments.extend(["--endurance-scale".to_owned(), self.endurance_scale.to_string()]);
            }
        }
        if !self.attribution {
            arguments.push("--no-attribution".to_owned());
        }
        arguments.extend(["--seed".to_owned(), self.seed.to_string()]);
        arguments
    }
}

impl DetailSpec {
    /// Fails if an option would have no effect. `has_directory` is `true` if the run has a directory for its result.
    fn check(&self, has_directory: bool) -> Result<(), Failure> {
        let given = [
            ("--requests", self.requests.is_some()),
            ("--series", self.series.is_some()),
            ("--timeline", self.timeline.is_some()),
        ];
        if let Some((option, _)) = given.iter().find(|(_, given)| *given && !has_directory) {
            return Err(Failure::mistake(format!("{option} needs a directory to write to; give --out DIR")));
        }
        let width = self.series.unwrap_or_default().width();
        width.map(|_| ()).map_err(|error| Failure::mistake(format!("--series: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_a_number_a_range_or_a_list() {
        for (text, seeds, shown) in [
            ("3", &[1, 2, 3][..], "1..3"),
            ("7..9", &[7, 8, 9], "7..9"),
            ("1", &[1], "1..1"),
            ("4,2,7..8", &[4, 2, 7, 8], "4,2,7,8"),
        ] {
            let parsed: Seeds = text.parse().unwrap();
            assert_eq!((parsed.all(), parsed.to_string().as_str()), (seeds, shown));
            assert_eq!(parsed.to_string().parse(), Ok(parsed));
        }
        for wrong in ["0", "x", "9..7", "1..1001", "-1", "", "1,1", "1,", "1..600,1000..1600"] {
            assert!(wrong.parse::<Seeds>().is_err(), "{wrong}");
        }
        assert!("1000".parse::<Seeds>().is_ok());
    }
}
