//! Requests of a trace in the order of the file, for inspecting a trace without replaying it.

use std::path::Path;

use super::detect::Detected;
use super::options::{Replay, TraceOptions};
use super::records::Records;
use super::time_unit::TimeUnit;
use crate::sim::request::Operation;
use crate::sim::source::SourceError;

/// A request of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// Picoseconds since the trace's first request. Negative if the request is earlier than the first one in the file.
    pub ps: i128,
    /// Device of the trace. [`Reader::device`] returns its name.
    pub device: u32,
    /// Operation.
    pub operation: Operation,
    /// First sector on that device.
    pub lba: u64,
    /// Length in sectors. 0 only for a flush.
    pub sectors: u32,
    /// Line number, starting at 1.
    pub line: u64,
}

/// Reads the requests of a trace, one at a time and in constant memory.
pub struct Reader {
    records: Records,
    /// Time of the first request.
    base: Option<u128>,
}

impl Reader {
    /// Opens a trace file, compressed or not. Uses only the `options` that affect how the file is read, which excludes
    /// time scale, replay and fit.
    ///
    /// Requests are returned in the order of the file, regardless of their times, unless a sort window is set.
    pub fn open(path: &Path, options: &TraceOptions) -> Result<Reader, SourceError> {
        // Only a timed replay requires requests in the order of time.
        let options = TraceOptions { replay: Replay::Asap, ..options.clone() };
        Ok(Reader { records: Records::open(path, &options)?, base: None })
    }

    /// Returns the next request, or `None` at the end or at the limit. Errors name the file and the line.
    pub fn next_item(&mut self) -> Result<Option<Item>, SourceError> {
        let Some(entry) = self.records.next()? else { return Ok(None) };
        let base = *self.base.get_or_insert(entry.ps);
        let record = entry.record;
        Ok(Some(Item {
            // Times are below 2^104 ps.
            ps: entry.ps as i128 - base as i128,
            device: record.device,
            operation: record.operation,
            lba: record.lba,
            sectors: record.sectors,
            line: entry.line,
        }))
    }

    /// Returns the format, and how it was detected.
    pub fn detected(&self) -> Detected {
        self.records.detected()
    }

    /// Returns the unit of the trace's times.
    pub fn unit(&self) -> TimeUnit {
        self.records.unit()
    }

    /// Returns the name of a device that has occurred.
    pub fn device(&self, device: u32) -> String {
        self.records.device(device).to_string()
    }

    /// Returns the share of the file that has been read, if its length is known.
    pub fn progress(&self) -> Option<f64> {
        self.records.input().progress()
    }

    /// Returns the warnings so far.
    pub fn warnings(&self) -> Vec<String> {
        self.records.warnings()
    }
}
