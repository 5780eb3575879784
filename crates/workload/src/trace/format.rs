//! A trace format: its name, and its parser and writer of lines or records.

use std::fmt;

use super::fields::Expected;
use super::options::TraceOptions;
use super::record::{DeviceName, Record};
use super::time_unit::TimeUnit;
use super::writer::Writer;

/// A trace format.
pub struct Format {
    /// Name in options.
    pub name: &'static str,
    /// Short description.
    pub title: &'static str,
    /// Columns of a line.
    pub columns: &'static str,
    /// Unit of the times, unless the user specifies another.
    pub unit: TimeUnit,
    /// Kind of frames.
    pub(super) framing: Framing,
    /// True if a trace contains several events per request: see [`Action`].
    pub(super) has_events: bool,
    /// Additional condition on a line for automatic detection.
    pub(super) looks: fn(&[u8]) -> bool,
    /// Creates a parser for the start of a trace.
    pub(super) parser: fn(&TraceOptions) -> Box<dyn Parser>,
    /// Writer, if the format can be written.
    pub(super) writer: Option<Writer>,
}

/// Kind of frames of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// Lines of text.
    Lines,
    /// Binary records, whose length [`Parser::cut`] determines.
    Records,
}

impl Format {
    /// Returns `true` if traces can be written in this format.
    pub const fn is_written(&self) -> bool {
        self.writer.is_some()
    }

    pub(super) fn parser(&self, options: &TraceOptions) -> Box<dyn Parser> {
        (self.parser)(options)
    }
}

impl PartialEq for Format {
    fn eq(&self, other: &Format) -> bool {
        self.name == other.name
    }
}

impl fmt::Debug for Format {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Parses the lines or records of one trace, in order.
///
/// A function is sufficient if lines are independent. A struct is needed if a format depends on earlier lines.
pub(super) trait Parser: Send {
    /// Receives the first bytes of the trace, about 64 KiB, before anything else.
    fn begin(&mut self, _head: &[u8]) {}

    /// Returns the length of the record at the start of `bytes`, as far as it can be determined. If it is larger than
    /// `bytes`, the function is called again with that many bytes, unless the file ends. Not called for formats of
    /// lines.
    fn cut(&mut self, bytes: &[u8]) -> Result<usize, Expected> {
        Ok(bytes.len())
    }

    /// Parses a line without its line ending, or a record. Returns `None` if it is valid, but contains no request.
    fn parse(&mut self, frame: &[u8]) -> Result<Option<Record>, Expected>;

    /// Returns the unit of the times, if it differs from the format's unit.
    fn unit(&self) -> Option<TimeUnit> {
        None
    }

    /// Returns the name of a device in a [`Record`].
    fn device(&self, device: u32) -> DeviceName {
        DeviceName::Number(u64::from(device))
    }

    /// Returns the default sort window: the number of later requests that may precede a request in the trace.
    fn sort_window(&self) -> u32 {
        0
    }

    /// Returns warnings about what has been read so far.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }
}

impl<F: FnMut(&[u8]) -> Result<Option<Record>, Expected> + Send> Parser for F {
    fn parse(&mut self, line: &[u8]) -> Result<Option<Record>, Expected> {
        self(line)
    }
}
