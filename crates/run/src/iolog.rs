//! `write_iolog`: a log of the requests that a job issues, in fio's format (its HOWTO, "Trace file format v3"). The
//! HOWTO does not specify the unit of times. fio 3.33 writes microseconds.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use anyhow::{Context, Result};
use floatgate_core::sim::request::{Operation, Request, SECTOR};
use floatgate_core::sim::source::{Source, SourceError};
use floatgate_core::sim::time::Time;
use floatgate_workload::synthetic;

use crate::output::{Draft, Wait};
use crate::source_wrapper::{self, Wrapper};

/// Log that is being written.
#[derive(Debug)]
pub struct Log {
    draft: Draft,
    /// Position of the key in the job, for errors.
    asked_at: String,
    last: Time,
}

/// Picoseconds in a microsecond, the unit of the log.
const MICROSECOND: u64 = 1_000_000;

impl Log {
    fn begin(requested: &synthetic::Log, wait: &Wait) -> Result<Log> {
        let mut draft = Draft::new(Path::new(&requested.path), wait)?;
        draft.write(b"fio version 3 iolog\n0 device add\n0 device open\n")?;
        Ok(Log { draft, asked_at: requested.place.clone(), last: Time::ZERO })
    }

    fn write(&mut self, request: &Request) -> Result<(), SourceError> {
        let action = match request.operation {
            Operation::Read => "read",
            Operation::Write => "write",
            Operation::Trim => "trim",
            Operation::Flush => "sync",
            Operation::WriteZeroes => {
                let why = "fio logs cannot represent the write-zeroes requests of this trace";
                return Err(SourceError(format!("{}: {why}", self.asked_at)));
            }
        };
        self.last = request.arrival;
        let at = request.arrival.ps() / MICROSECOND;
        let line = format!("{at} device {action} {} {}\n", request.lba * SECTOR, request.bytes());
        self.draft.write(line.as_bytes()).map_err(|error| SourceError(format!("{}: {error:#}", self.asked_at)))
    }

    /// Completes the log and renames it to its final path.
    pub fn finish(mut self) -> Result<()> {
        self.draft.write(format!("{} device close\n", self.last.ps() / MICROSECOND).as_bytes())?;
        self.draft.complete()?;
        self.draft.publish()
    }
}

/// Log that a source writes to and that the workload finishes.
pub type Shared = Rc<RefCell<Option<Log>>>;

/// Creates the log that a job requests, and makes its source write issued requests to it. If the log is a pipe, waits
/// for its reader as specified by `wait`.
pub fn attach(source: &mut Box<dyn Source>, requested: &synthetic::Log, wait: &Wait) -> Result<Shared> {
    let begun = Log::begin(requested, wait).with_context(|| requested.place.clone())?;
    let log = Rc::new(RefCell::new(Some(begun)));
    source_wrapper::wrap(source, Rc::clone(&log));
    Ok(log)
}

impl Wrapper for Shared {
    fn issued(&mut self, request: &Request) -> Result<(), SourceError> {
        self.borrow_mut().as_mut().map_or(Ok(()), |log| log.write(request))
    }
}
