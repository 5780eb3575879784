//! Options of traces.

use std::cell::OnceCell;
use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use floatgate_core::sim::time::Time;
use floatgate_workload::file::{Stop, is_readable};
use floatgate_workload::trace::words::{TraceWords, are_words, max_gap};
use floatgate_workload::trace::{
    Action, Columns, Devices, Fit, FormatChoice, Replay, TimeScale, TimeUnit, TraceOptions,
};
use tempfile::TempDir;

use crate::failure::Failure;
use crate::output::Named;

/// How a trace is read: see docs/reference/traces.md.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Options for traces")]
pub struct TraceArgs {
    /// Format, found out where not given: alibaba, biotracer, blkparse, blktrace, disksim, fio, fiu, flashsim,
    /// floatgate, mqsim, msr, replay-log, spc, ssdsim, systor, tencent, vscsi, or delimited:COLUMNS for any other with
    /// columns
    ///
    /// Columns are described like 'delimited:columns=op,offset,size;offset=bytes;size=bytes;read=R;write=W': see
    /// docs/reference/traces.md.
    #[arg(long)]
    format: Option<FormatChoice>,
    /// Read the columns of format delimited from a TOML file
    #[arg(long, value_name = "FILE", value_parser = columns)]
    columns: Option<ColumnsFile>,
    /// Event of blkparse and blktrace traces that is the request: D (issued), Q (queued), I (inserted) or C (completed)
    /// [default: the first of D, Q, I that there is]
    #[arg(long)]
    action: Option<Action>,
    /// Unit of the times: ps, ns, 100ns, us, ms or s, where it is not the format's
    #[arg(long, value_name = "UNIT")]
    time_unit: Option<TimeUnit>,
    /// Multiply times by X: 0.5 offers the same requests twice as fast
    #[arg(long, value_name = "X", allow_hyphen_values = true)]
    time_scale: Option<TimeScale>,
    /// Shorten gaps between two requests that are longer than this, like 1s, as a clock that was set leaves them
    ///
    /// Times are scaled after that.
    #[arg(long, value_name = "TIME", value_parser = max_gap)]
    max_gap: Option<Time>,
    /// When requests are issued: timed (as recorded), asap, or depth=N (N outstanding) [default: timed]
    #[arg(long)]
    replay: Option<Replay>,
    /// Addresses that the device does not have: refuse, wrap (modulo its size), or compact (the touched pages are laid
    /// side by side) [default: refuse]
    #[arg(long)]
    fit: Option<Fit>,
    /// A trace of several devices: side-by-side, merge, or select=NAME,... [default: side-by-side]
    #[arg(long)]
    devices: Option<Devices>,
    /// Stop after N requests
    #[arg(long, value_name = "N", value_parser = one_or_more, allow_hyphen_values = true)]
    limit: Option<u64>,
    /// Put requests in order of time that come up to N requests too late
    #[arg(long, value_name = "N", value_parser = whole_32, allow_hyphen_values = true)]
    sort_window: Option<u32>,
    /// Leave out up to N lines that cannot be read
    #[arg(long, value_name = "N", value_parser = whole, allow_hyphen_values = true)]
    skip_bad_lines: Option<u64>,
    #[arg(skip)]
    stdin: StandardInput,
    /// Flag that stops reading before the end of the trace.
    #[arg(skip)]
    stop: Stop,
}

/// Columns that were read from a file.
#[derive(Clone, Debug)]
struct ColumnsFile {
    path: PathBuf,
    columns: Columns,
}

fn columns(path: &str) -> Result<ColumnsFile, String> {
    Ok(ColumnsFile { path: path.into(), columns: Columns::from_file(Path::new(path))? })
}

/// A whole number.
pub fn whole(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("must be a whole number from 0 to {}", u64::MAX))
}

fn whole_32(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("must be a whole number from 0 to {}", u32::MAX))
}

/// A whole number from 1.
pub fn one_or_more(text: &str) -> Result<u64, String> {
    text.parse().ok().filter(|n| *n > 0).ok_or_else(|| format!("must be a whole number from 1 to {}", u64::MAX))
}

/// What stands for standard input in the place of a trace's path.
pub const STDIN: &str = "-";

/// File name of standard input.
pub const STDIN_FILE: &str = "/dev/stdin";

/// Standard input, kept in a file: a trace is read more than once, and by each seed of a run.
#[derive(Clone, Debug, Default)]
struct StandardInput(Rc<OnceCell<TempDir>>);

impl StandardInput {
    /// The file, which is written here when it is first asked for.
    fn file(&self, stop: &Stop) -> Result<PathBuf, Failure> {
        const NAME: &str = "standard-input";
        if let Some(directory) = self.0.get() {
            return Ok(directory.path().join(NAME));
        }
        if io::stdin().is_terminal() {
            let what = "`-` is standard input, and that is a terminal: pipe a trace into it, as with `cat TRACE |`";
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
            let place = std::env::temp_dir();
            let place = place.display();
            Failure::fault(format!("cannot keep standard input in a file of {place} (TMPDIR says where): {error}"))
        })?;
        Ok(self.0.get_or_init(|| directory).path().join(NAME))
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
            // Somebody has made it non-blocking, and another process took what there was to read.
            Err(error) if [io::ErrorKind::Interrupted, io::ErrorKind::WouldBlock].contains(&error.kind()) => {}
            Err(error) => return Err(error),
        }
    }
}

impl TraceArgs {
    /// With what ends the reading of a trace.
    pub fn stopped_by(self, stop: Stop) -> TraceArgs {
        TraceArgs { stop, ..self }
    }

    /// Flag that stops reading the trace.
    pub fn stop(&self) -> &Stop {
        &self.stop
    }

    /// The file to read for the path of a trace, and what is said of it: standard input is kept in one.
    pub fn source(&self, path: &Path) -> Result<(PathBuf, TraceOptions), Failure> {
        if path != Path::new(STDIN) {
            return Ok((path.to_owned(), self.options()));
        }
        Ok((self.stdin.file(&self.stop)?, TraceOptions { called: Some("standard input".to_owned()), ..self.options() }))
    }

    /// A trace by its words, or by its path alone.
    pub fn words(&self, text: &str) -> Result<TraceWords, Failure> {
        let mut words = match are_words(text) {
            true => TraceWords::read(text, &self.options()).map_err(Failure::mistake)?,
            false => TraceWords::plain(text, &self.options()),
        };
        if words.path == Path::new(STDIN) {
            let (path, options) = self.source(&words.path)?;
            words.path = path;
            words.options.called = options.called;
        }
        Ok(words)
    }

    /// Returns the path of the file that `--columns` was read from.
    pub fn columns_file(&self) -> Option<&Path> {
        self.columns.as_ref().map(|file| file.path.as_path())
    }

    /// Returns the files that a trace at this path is read from.
    pub fn inputs(&self, path: &Path) -> Vec<Named> {
        let path = if path == Path::new(STDIN) { Path::new(STDIN_FILE) } else { path };
        let columns = self.columns_file().map(|columns| Named::new("--columns", columns));
        columns.into_iter().chain([Named::new("the trace", path)]).collect()
    }

    /// Options that contradict each other are mistakes.
    pub fn check(&self) -> Result<(), Failure> {
        let in_format = self.format.as_ref().is_some_and(|choice| choice.columns.is_some());
        if in_format && self.columns.is_some() {
            return Err(Failure::mistake("columns are described twice: by --format delimited:... and by --columns"));
        }
        Ok(())
    }

    /// What they say of a trace.
    pub fn options(&self) -> TraceOptions {
        let choice = self.format.as_ref();
        TraceOptions {
            called: None,
            format: choice.map(|choice| choice.format),
            columns: choice
                .and_then(|choice| choice.columns.clone())
                .or_else(|| self.columns.as_ref().map(|file| file.columns.clone())),
            action: self.action,
            time_unit: self.time_unit,
            time_scale: self.time_scale.unwrap_or_default(),
            max_gap: self.max_gap,
            replay: self.replay.unwrap_or_default(),
            fit: self.fit.unwrap_or_default(),
            devices: self.devices.clone().unwrap_or_default(),
            limit: self.limit,
            sort_window: self.sort_window.unwrap_or_default(),
            skip_bad_lines: self.skip_bad_lines.unwrap_or_default(),
            stop: self.stop.clone(),
        }
    }

    /// Those that are given.
    pub fn given(&self) -> Vec<&'static str> {
        let all = [
            ("--format", self.format.is_some()),
            ("--columns", self.columns.is_some()),
            ("--action", self.action.is_some()),
            ("--time-unit", self.time_unit.is_some()),
            ("--time-scale", self.time_scale.is_some()),
            ("--max-gap", self.max_gap.is_some()),
            ("--replay", self.replay.is_some()),
            ("--fit", self.fit.is_some()),
            ("--devices", self.devices.is_some()),
            ("--limit", self.limit.is_some()),
            ("--sort-window", self.sort_window.is_some()),
            ("--skip-bad-lines", self.skip_bad_lines.is_some()),
        ];
        all.into_iter().filter(|(_, given)| *given).map(|(name, _)| name).collect()
    }
}
