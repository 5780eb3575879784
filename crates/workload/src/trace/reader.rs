//! The requests of a trace as they stand in the file: for looking at a trace rather than replaying it.

use std::path::Path;

use super::records::Records;
use super::{Detected, Replay, TimeUnit, TraceOptions};
use crate::sim::request::Operation;
use crate::sim::source::SourceError;

/// A request as a trace tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// Picoseconds since the trace's first request; negative where a request stands behind one that came later.
    pub ps: i128,
    /// Which of the trace's devices; [`Reader::device`] has its name.
    pub device: u32,
    /// What is done.
    pub operation: Operation,
    /// First sector on that device.
    pub lba: u64,
    /// Length in sectors; 0 only for a flush.
    pub sectors: u32,
    /// The line it stands in, counted from 1.
    pub line: u64,
}

/// Reads the requests of a trace, one at a time and in constant memory.
pub struct Reader {
    records: Records,
    /// The stamp of the first request.
    base: Option<u128>,
}

impl Reader {
    /// Opens a trace file, packed or not. Of `options`, those matter that say how the file is read; time scale, replay
    /// and fit do not.
    ///
    /// Requests come in the order of the file, whatever their times, unless a sort window is asked for.
    pub fn open(path: &Path, options: &TraceOptions) -> Result<Reader, SourceError> {
        // Only a timed replay insists on the order of time.
        let options = TraceOptions { replay: Replay::Asap, ..options.clone() };
        Ok(Reader { records: Records::open(path, &options)?, base: None })
    }

    /// The next request, `None` at the end or at the limit. An error names the file and the line.
    pub fn next_item(&mut self) -> Result<Option<Item>, SourceError> {
        let Some(entry) = self.records.next()? else { return Ok(None) };
        let base = *self.base.get_or_insert(entry.ps);
        let record = entry.record;
        Ok(Some(Item {
            // Stamps are below 2^104 ps.
            ps: entry.ps as i128 - base as i128,
            device: record.device,
            operation: record.operation,
            lba: record.lba,
            sectors: record.sectors,
            line: entry.line,
        }))
    }

    /// The format, and how it was found.
    pub fn detected(&self) -> Detected {
        self.records.detected()
    }

    /// The unit in which the trace's times are read.
    pub fn unit(&self) -> TimeUnit {
        self.records.unit()
    }

    /// The name of a device that occurred.
    pub fn device(&self, device: u32) -> String {
        self.records.device(device).to_string()
    }

    /// The share of the file that has been read, where its length is known.
    pub fn progress(&self) -> Option<f64> {
        self.records.input().progress()
    }

    /// What was noticed on the way.
    pub fn warnings(&self) -> Vec<String> {
        self.records.warnings()
    }
}
