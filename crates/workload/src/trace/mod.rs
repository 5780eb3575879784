//! Recorded workloads, with one file per trace format.
//!
//! A trace passes through these stages, each in its own file, one request at a time and in constant memory:
//!
//! 1. `input`: bytes of a file, decompressed if its first bytes identify a compression format
//! 2. `frames`: lines or binary records of these bytes, in place
//! 3. the `Parser` of a format: converts a frame to a `Record`, with the times and devices of the trace
//! 4. `records`: bad lines, selection of devices, order in time, limit. `units` checks addresses and lengths.
//! 5. `place`, `footprint`: the address of the record on the simulated device
//! 6. `replay`: the [`Trace`], a [`Source`] of requests in simulated time. `rate` and `gaps` check it.
//!
//! To inspect a trace, `reader` returns its requests from `records`, and `profile` summarizes them.
//!
//! A format is one file with a `FORMAT`, and an entry in the list below. `convert` writes a trace in another format
//! with that format's `Writer`, compressed by `output`.
//!
//! [`Source`]: crate::sim::source::Source

mod convert;
mod detect;
mod events;
mod fields;
mod footprint;
mod frames;
mod gaps;
mod input;
mod names;
mod options;
mod output;
mod place;
pub mod profile;
mod rate;
mod reader;
mod records;
mod replay;
mod units;
pub mod words;

pub use convert::{ConvertError, Converted, convert};
pub use delimited::Columns;
pub use detect::{Confidence, Detected};
pub use events::Action;
pub use floatgate::{RecordedRequest, RequestDigest};
pub use input::Packing;
pub use options::{Devices, Fit, FormatChoice, Replay, TimeScale, TimeUnit, TraceOptions};
pub use output::Packed;
pub use reader::{Item, Reader};
pub use replay::Trace;

use crate::sim::request::{Operation, SECTOR};
use convert::Writer;
use fields::Decimal;
use std::fmt;

/// Declares the formats. Each is a file with a `FORMAT`.
macro_rules! formats {
    ($($format:ident),+ $(,)?) => {
        $(mod $format;)+

        /// All formats. If several match a trace equally well, detection selects the first one in this list.
        pub static FORMATS: &[&Format] = &[$(&$format::FORMAT),+];
    };
}

// `ssdsim` precedes `mqsim`: if both match, the stricter one is selected, so that a later line that they would read
// differently is an error and not a guess.
formats! {
    spc,
    msr,
    ssdsim,
    mqsim,
    disksim,
    flashsim,
    blkparse,
    blktrace,
    fio,
    vscsi,
    fiu,
    alibaba,
    replay_log,
    tencent,
    systor,
    etw,
    biotracer,
    floatgate,
    delimited,
}

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
    framing: Framing,
    /// True if a trace contains several events per request: see [`Action`].
    has_events: bool,
    /// Additional condition on a line for automatic detection.
    looks: fn(&[u8]) -> bool,
    /// Creates a parser for the start of a trace.
    parser: fn(&TraceOptions) -> Box<dyn Parser>,
    /// Writer, if the format can be written.
    writer: Option<Writer>,
}

/// Kind of frames of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    /// Lines of text.
    Lines,
    /// Binary records, whose length [`Parser::cut`] determines.
    Records,
}

impl Format {
    /// Returns the format with a name.
    pub fn named(name: &str) -> Result<&'static Format, String> {
        FORMATS.iter().copied().find(|format| format.name == name).ok_or_else(|| {
            let names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
            format!("`{name}` is no trace format; choose one of {}", names.join(", "))
        })
    }

    /// Returns `true` if traces can be written in this format.
    pub const fn is_written(&self) -> bool {
        self.writer.is_some()
    }

    /// Returns the format with a name, for writing traces.
    pub fn written(name: &str) -> Result<&'static Format, String> {
        let format = Format::named(name)?;
        if format.is_written() {
            return Ok(format);
        }
        let names: Vec<&str> = FORMATS.iter().filter(|format| format.is_written()).map(|format| format.name).collect();
        Err(format!("traces are not written as `{name}`; choose one of {}", names.join(", ")))
    }

    fn parser(&self, options: &TraceOptions) -> Box<dyn Parser> {
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
trait Parser: Send {
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

/// Error: the expected content of a line that could not be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Expected(&'static str);

/// A request of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Record {
    /// Time in the unit of the trace.
    stamp: Decimal,
    /// Device of the trace. [`Parser::device`] returns its name.
    device: u32,
    /// Operation.
    operation: Operation,
    /// First sector, on that device.
    lba: u64,
    /// Length in sectors. 0 only for a flush.
    sectors: u32,
    /// True if the range in the trace was not in whole sectors, and was widened.
    widened: bool,
    /// True if the request may complete only when it is durable.
    fua: bool,
}

impl Record {
    /// Creates a request with a range in sectors.
    fn in_sectors(
        stamp: Decimal,
        device: u32,
        operation: Operation,
        lba: u64,
        sectors: u64,
    ) -> Result<Record, Expected> {
        /// 2^64 bytes: no host can address more, and sums of a few such ends cannot overflow.
        const END: u64 = u64::MAX / SECTOR + 1;
        let end = lba.checked_add(sectors).filter(|end| *end <= END);
        let sectors = u32::try_from(sectors).map_err(|_| Expected("a length below 2 TiB"))?;
        if end.is_none() {
            return Err(Expected("an address range that ends below 16 EiB"));
        }
        if sectors == 0 && operation != Operation::Flush {
            return Err(Expected("a length of at least one byte"));
        }
        Ok(Record { stamp, device, operation, lba, sectors, widened: false, fua: false })
    }

    /// Creates a request with a range in bytes, which covers all sectors that it touches.
    fn in_bytes(
        stamp: Decimal,
        device: u32,
        operation: Operation,
        offset: u64,
        bytes: u64,
    ) -> Result<Record, Expected> {
        let Some(end) = offset.checked_add(bytes) else {
            return Err(Expected("an address range that ends below 16 EiB"));
        };
        let lba = offset / SECTOR;
        let sectors = if bytes == 0 { 0 } else { end.div_ceil(SECTOR) - lba };
        let widened = !offset.is_multiple_of(SECTOR) || !end.is_multiple_of(SECTOR);
        Ok(Record { widened, ..Record::in_sectors(stamp, device, operation, lba, sectors)? })
    }
}

/// Name of a device in a trace. Devices are placed side by side in the order of their names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum DeviceName {
    /// A number.
    Number(u64),
    /// Major and minor number of a Linux device.
    MajorMinor(u32, u32),
    /// Host, and number of its disk.
    Disk(String, u64),
    /// File or other name.
    Named(String),
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            DeviceName::Number(number) => write!(f, "{number}"),
            DeviceName::MajorMinor(major, minor) => write!(f, "{major}:{minor}"),
            DeviceName::Disk(host, disk) => write!(f, "{host}_{disk}"),
            DeviceName::Named(name) => f.write_str(name),
        }
    }
}

/// Formats a number of things.
fn counted(count: u64, thing: &str) -> String {
    if count == 1 { format!("1 {thing}") } else { format!("{count} {thing}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_have_names_of_their_own() {
        for format in FORMATS {
            assert_eq!(Format::named(format.name), Ok(*format));
        }
        let error = Format::named("scp").unwrap_err();
        assert!(error.contains("`scp`") && error.contains("spc, msr, ssdsim, mqsim, disksim, flashsim"), "{error}");
    }

    #[test]
    fn byte_ranges_are_widened_to_sectors() {
        let record = |offset, bytes| {
            let record = Record::in_bytes(Decimal::whole(0), 0, Operation::Read, offset, bytes)?;
            Ok::<_, Expected>((record.lba, record.sectors, record.widened))
        };
        assert_eq!(record(1024, 512), Ok((2, 1, false)));
        assert_eq!(record(1023, 2), Ok((1, 2, true)));
        assert_eq!(record(512, 1), Ok((1, 1, true)));
        assert_eq!(record(u64::MAX - 511, 511), Ok((u64::MAX / 512, 1, true)));
        assert!(record(u64::MAX, 512).is_err());
        assert!(record(0, 0).is_err());
        assert!(record(0, 1 << 42).is_err());
    }
}
