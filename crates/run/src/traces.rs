//! Traces of a run: their options, and standard input as a trace.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use floatgate_core::device_file::Duration;
use floatgate_workload::file::{Stop, is_readable};
use floatgate_workload::synthetic::Changes;
use floatgate_workload::trace::words::{TraceWords, are_words};
use floatgate_workload::trace::{
    Action, Columns, Devices, Fit, FormatChoice, Replay, Table, TableOptions, TimeScale, TimeUnit, TraceOptions,
};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use crate::as_text;
use crate::failure::Failure;
use crate::output::Named;

/// Options for reading the traces of a run. A trace with options of its own may override each of them. See
/// docs/reference/traces.md.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TraceSpec {
    /// Format. `None`: detected from the content.
    #[serde(with = "as_text::optional")]
    pub format: Option<TraceFormat>,
    /// File with the columns of format `delimited`.
    #[serde(with = "as_text::optional")]
    pub columns: Option<ColumnsFile>,
    /// Event of blkparse and blktrace traces that is the request. `None`: the first of D, Q and I that occurs.
    #[serde(with = "as_text::optional")]
    pub action: Option<Action>,
    /// Unit of the times. `None`: that of the format.
    #[serde(with = "as_text::optional")]
    pub time_unit: Option<TimeUnit>,
    /// Factor on the times: 0.5 doubles the request rate. `None`: 1.
    #[serde(with = "as_text::optional")]
    pub time_scale: Option<TimeScale>,
    /// Longest gap between two requests, above 0. Longer gaps are shortened to it, before times are scaled.
    pub max_gap: Option<Duration>,
    /// Pace of the requests. `None`: at their recorded times.
    #[serde(with = "as_text::optional")]
    pub replay: Option<Replay>,
    /// Treatment of addresses beyond the end of the device. `None`: an error.
    #[serde(with = "as_text::optional")]
    pub fit: Option<Fit>,
    /// Treatment of a trace of several devices. `None`: side by side.
    #[serde(with = "as_text::optional")]
    pub devices: Option<Devices>,
    /// Number of requests after which the trace ends.
    pub limit: Option<NonZeroU64>,
    /// Number of positions by which a request may be out of timestamp order and is still sorted. `None`: 0.
    pub sort_window: Option<u32>,
    /// Maximum number of invalid lines that are skipped. `None`: 0.
    pub skip_bad_lines: Option<u64>,
    /// Keys to set in all jobs of job files, as `KEY=VALUE`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub set_job: Vec<String>,
    /// True to leave out keys of job files that are unknown or not supported.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ignore_unknown: bool,
}

/// Format of a trace, and the text that it was parsed from.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceFormat {
    text: String,
    choice: FormatChoice,
}

impl FromStr for TraceFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<TraceFormat, String> {
        Ok(TraceFormat { text: text.to_owned(), choice: text.parse()? })
    }
}

impl fmt::Display for TraceFormat {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Columns of format `delimited`, and the path of the TOML file that they were read from.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnsFile {
    path: PathBuf,
    columns: Columns,
}

impl FromStr for ColumnsFile {
    type Err = String;

    /// Reads the file at this path.
    fn from_str(path: &str) -> Result<ColumnsFile, String> {
        Ok(ColumnsFile { path: path.into(), columns: Columns::from_file(Path::new(path))? })
    }
}

impl fmt::Display for ColumnsFile {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.path.display().fmt(f)
    }
}

impl TraceSpec {
    /// Fails if options contradict each other, or would have no effect.
    pub fn check(&self) -> Result<(), Failure> {
        let in_format = self.format.as_ref().is_some_and(|format| format.choice.columns.is_some());
        if in_format && self.columns.is_some() {
            return Err(Failure::mistake(
                "columns are described twice: by `--format delimited:...` and by `--columns`; omit one of them",
            ));
        }
        if let Some(word) = self.set_job.iter().find(|word| !word.contains('=')) {
            return Err(Failure::mistake(format!("--set-job {word}: expected KEY=VALUE, such as runtime=10")));
        }
        match self.max_gap {
            Some(Duration(0)) => Err(Failure::mistake(
                "--max-gap: expected a time above 0; to issue all requests at once, use --replay asap",
            )),
            _ => Ok(()),
        }
    }

    /// Returns the options for the readers of traces. Reading ends when `stop` is requested.
    pub fn options(&self, stop: &Stop) -> TraceOptions {
        let choice = self.format.as_ref().map(|format| &format.choice);
        TraceOptions {
            called: None,
            format: choice.map(|choice| choice.format),
            columns: choice
                .and_then(|choice| choice.columns.clone())
                .or_else(|| self.columns.as_ref().map(|file| file.columns.clone())),
            action: self.action,
            time_unit: self.time_unit,
            time_scale: self.time_scale.unwrap_or_default(),
            max_gap: self.max_gap.map(Duration::time),
            replay: self.replay.unwrap_or_default(),
            fit: self.fit.unwrap_or_default(),
            devices: self.devices.clone().unwrap_or_default(),
            limit: self.limit.map(NonZeroU64::get),
            sort_window: self.sort_window.unwrap_or_default(),
            skip_bad_lines: self.skip_bad_lines.unwrap_or_default(),
            stop: stop.clone(),
        }
    }

    /// Returns the changes to the jobs of job files.
    pub fn changes(&self) -> Changes {
        let pair = |word: &String| word.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
        Changes {
            set: self.set_job.iter().filter_map(pair).collect(),
            ignore_unknown: self.ignore_unknown,
            limit: self.limit.map(NonZeroU64::get),
        }
    }

    /// Returns the given options, with their names and values on the command line.
    pub fn arguments(&self) -> Vec<(&'static str, String)> {
        fn text<T: fmt::Display>(value: &Option<T>) -> Option<String> {
            value.as_ref().map(T::to_string)
        }
        let all = [
            ("--format", text(&self.format)),
            ("--columns", text(&self.columns)),
            ("--action", text(&self.action)),
            ("--time-unit", text(&self.time_unit)),
            ("--time-scale", text(&self.time_scale)),
            ("--max-gap", text(&self.max_gap)),
            ("--replay", text(&self.replay)),
            ("--fit", text(&self.fit)),
            ("--devices", text(&self.devices)),
            ("--limit", text(&self.limit)),
            ("--sort-window", text(&self.sort_window)),
            ("--skip-bad-lines", text(&self.skip_bad_lines)),
        ];
        let sets = self.set_job.iter().map(|word| ("--set-job", word.clone()));
        let ignore = self.ignore_unknown.then(|| ("--ignore-unknown", String::new()));
        all.into_iter().filter_map(|(name, value)| Some((name, value?))).chain(sets).chain(ignore).collect()
    }

    /// Returns the names of the given options.
    pub fn given(&self) -> Vec<&'static str> {
        self.arguments().into_iter().map(|(name, _)| name).collect()
    }
}

/// Path of a trace on standard input.
pub const STDIN: &str = "-";

/// File of standard input.
pub const STDIN_FILE: &str = "/dev/stdin";

/// Standard input, kept in a file, because a trace is read more than once, and again for each seed.
#[derive(Clone, Debug, Default)]
struct StandardInput(Arc<Mutex<Option<TempDir>>>);

impl StandardInput {
    /// Returns the file. The first call reads standard input into it.
    fn file(&self, stop: &Stop) -> Result<PathBuf, Failure> {
        const NAME: &str = "standard-input";
        // The runs of other seeds wait until it is read.
        let mut place = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(directory) = place.as_ref() {
            return Ok(directory.path().join(NAME));
        }
        if io::stdin().is_terminal() {
            let what = "standard input (`-`) is a terminal: pipe a trace into it, as with `cat TRACE |`";
            return Err(Failure::mistake(what));
        }
        let kept = || -> io::Result<TempDir> {
            let directory = tempfile::tempdir()?;
            copy_standard_input(&mut File::create(directory.path().join(NAME))?, stop)?;
            Ok(directory)
        };
        let directory = kept().map_err(|error| {
            if stop.is_requested() {
                return Failure::Interrupted("standard input was not read to its end");
            }
            let temporary = std::env::temp_dir();
            let temporary = temporary.display();
            Failure::fault(format!(
                "cannot keep standard input in a file in {temporary}: {error}; set TMPDIR to use another directory"
            ))
        })?;
        Ok(place.insert(directory).path().join(NAME))
    }
}

/// Copies standard input until it ends, or a stop is requested, which is an error.
fn copy_standard_input(out: &mut File, stop: &Stop) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 17];
    let mut input = io::stdin().lock();
    loop {
        if stop.is_requested() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        if !is_readable(&input)? {
            continue;
        }
        match input.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(length) => out.write_all(&buffer[..length])?,
            // Standard input may be non-blocking, and another process may have read the data.
            Err(error) if [io::ErrorKind::Interrupted, io::ErrorKind::WouldBlock].contains(&error.kind()) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Traces of a run, with common options and a stop that ends reading. Clones share standard input.
#[derive(Clone, Debug, Default)]
pub struct Traces {
    spec: TraceSpec,
    stdin: StandardInput,
    stop: Stop,
    tables: Arc<Tables>,
}

/// Workloads in memory with their options, by the texts that stand for them.
pub type Tables = BTreeMap<String, (Arc<Table>, TableOptions)>;

impl Traces {
    /// Creates traces with these options. Reading ends when `stop` is requested.
    pub fn new(spec: TraceSpec, stop: Stop) -> Traces {
        Traces { spec, stdin: StandardInput::default(), stop, tables: Arc::default() }
    }

    /// Adds workloads in memory.
    pub fn with_tables(self, tables: Tables) -> Traces {
        Traces { tables: Arc::new(tables), ..self }
    }

    /// Returns the workload in memory that a text stands for.
    pub fn table(&self, text: &str) -> Option<&(Arc<Table>, TableOptions)> {
        self.tables.get(text)
    }

    /// Returns the common options, as given.
    pub fn spec(&self) -> &TraceSpec {
        &self.spec
    }

    /// Returns the stop that ends reading.
    pub fn stop(&self) -> &Stop {
        &self.stop
    }

    /// Returns the common options.
    pub fn options(&self) -> TraceOptions {
        self.spec.options(&self.stop)
    }

    /// Returns the file to read for the path of a trace, and its options. Standard input is kept in a file.
    pub fn source(&self, path: &Path) -> Result<(PathBuf, TraceOptions), Failure> {
        if path != Path::new(STDIN) {
            return Ok((path.to_owned(), self.options()));
        }
        Ok((self.stdin.file(&self.stop)?, TraceOptions { called: Some("standard input".to_owned()), ..self.options() }))
    }

    /// Parses a trace with options of its own, or the path of a trace.
    pub fn words(&self, text: &str) -> Result<TraceWords, Failure> {
        let mut words = if are_words(text) {
            TraceWords::read(text, &self.options()).map_err(Failure::mistake)?
        } else {
            TraceWords::plain(text, &self.options())
        };
        if words.path == Path::new(STDIN) {
            let (path, options) = self.source(&words.path)?;
            words.path = path;
            words.options.called = options.called;
        }
        Ok(words)
    }

    /// Returns the file of `--columns`, if it is given.
    pub fn columns_file(&self) -> Option<&Path> {
        self.spec.columns.as_ref().map(|file| file.path.as_path())
    }

    /// Returns the files that a trace at this path is read from.
    pub fn inputs(&self, path: &Path) -> Vec<Named> {
        let path = if path == Path::new(STDIN) { Path::new(STDIN_FILE) } else { path };
        let columns = self.columns_file().map(|columns| Named::new("--columns", columns));
        columns.into_iter().chain([Named::new("the trace", path)]).collect()
    }
}
