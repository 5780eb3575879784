//! Parsed sections of jobs.

use std::collections::BTreeMap;

use super::engines::{DEFAULT, Kind};
use super::options::Options;
use crate::sim::source::SourceError;

/// Maximum number of jobs that run at once, including clones: the same as in fio (its `REAL_MAX_JOBS`).
pub const MAX_JOBS: usize = 4096;

/// Returns the error for more than [`MAX_JOBS`] jobs.
pub(super) fn too_many() -> String {
    format!("there are more than {MAX_JOBS} jobs, clones by numjobs included; that is the most, as in fio")
}

/// Joins the errors of all jobs. There must be at least one.
pub(super) fn all_errors(errors: Vec<String>) -> SourceError {
    match &errors[..] {
        [one] => SourceError(one.clone()),
        all => SourceError(format!("{} errors:\n  {}", all.len(), all.join("\n  "))),
    }
}

/// A parsed job.
pub(super) struct Section {
    pub(super) options: Options,
    /// Name of a job without the key `name`.
    pub(super) name: String,
    /// Position of the job, for errors.
    pub(super) place: String,
    /// Positions of the keys by name, unless the job is in one line.
    pub(super) keys: BTreeMap<&'static str, String>,
    /// True if the job is in a job file.
    pub(super) in_file: bool,
    /// Warnings that occurred during parsing.
    pub(super) warnings: Vec<String>,
}

impl Section {
    /// Returns `true` if the engine and the files of the job follow fio: the job is in a job file, or names an engine.
    pub(super) fn follows_fio(&self) -> bool {
        self.in_file || self.options.ioengine.is_some()
    }

    /// Limits the job to one outstanding request if its engine is synchronous, and adds a warning if that changes the
    /// depth. A job that does not follow fio has no engine, and keeps its depth.
    pub(super) fn limit_depth(&mut self) {
        if !self.follows_fio() {
            return;
        }
        let options = &mut self.options;
        let engine = options.ioengine.unwrap_or(DEFAULT);
        // Other threads submit the requests, one thread for each of `iodepth`.
        if options.io_submit_mode == Some(true) {
            options.iodepth.get_or_insert(1);
            return;
        }
        if engine.kind != Kind::Synchronous {
            return;
        }
        let open = options.rate.is_some() || options.rate_iops.is_some();
        let open = open || (options.read_iolog.is_some() && !options.replay_no_stall);
        let limited = match options.iodepth {
            Some(1) => None,
            Some(depth) => Some(format!("iodepth={depth} is limited to 1")),
            None if open => Some("one request is outstanding at a time".to_owned()),
            None => None,
        };
        let origin = if options.ioengine.is_none() { ", which a job without ioengine has," } else { "" };
        options.iodepth = Some(1);
        let Some(limited) = limited else { return };
        let name = options.name.as_ref().unwrap_or(&self.name);
        let engine = engine.name;
        let keep = if open { "requests that do not wait for each other" } else { "a larger depth" };
        self.warnings.push(format!(
            "{name}: {limited}, as in fio, because its engine {engine}{origin} is synchronous; for {keep}, set \
             ioengine=libaio"
        ));
    }

    /// Adds a warning if the job names a part of a file name, but no file.
    pub(super) fn warn_of_names(&mut self) {
        for key in ["directory", "filename_format"] {
            if self.options.given.contains(key) && self.options.filename.is_none() && !self.follows_fio() {
                self.warnings.push(format!("{}: {key} needs filename", self.place));
            }
        }
    }

    /// Creates an error of the job. If the text starts with a key in backticks, the error gives the position of the
    /// key.
    pub(super) fn error(&self, why: impl std::fmt::Display) -> SourceError {
        let why = why.to_string();
        let key = why.strip_prefix('`').and_then(|rest| rest.split(['=', '`']).next());
        let place = key.and_then(|key| self.keys.get(key)).unwrap_or(&self.place);
        SourceError(format!("{place}: {why}"))
    }
}

/// A log to which the requests of a job are written when they are issued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// Path of the log.
    pub path: String,
    /// Position of the job's key, for errors.
    pub place: String,
}
