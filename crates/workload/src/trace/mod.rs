//! Recorded workloads: one file per trace format.
//!
//! A trace goes through these stages, each a file here, one request at a time and in constant memory:
//!
//! 1. `input`: bytes of a file, decompressed as its first bytes say;
//! 2. `frames`: lines or binary records of those bytes, in place;
//! 3. a format's `Parser`: a frame becomes a `Record`, in the trace's own time and devices;
//! 4. `records`: bad lines, selection of devices, order in time, limit; `units` watches over addresses and lengths;
//! 5. `place`, `footprint`: the record's address on the simulated device;
//! 6. `replay`: the [`Trace`], a [`Source`] of requests in simulated time; `rate` and `gaps` watch over it.
//!
//! To look at a trace there is `reader`, which stands on `records`, and `profile`, which says what it read.
//!
//! A format is one file with a `FORMAT` in it, and its name in the list below. `convert` writes a trace in another
//! format, by that format's `Writer`, packed by `output`.
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

/// Declares the formats: each is a file with a `FORMAT`.
macro_rules! formats {
    ($($format:ident),+ $(,)?) => {
        $(mod $format;)+

        /// All formats. Of those that fit a trace equally well, detection takes the first in this list.
        pub static FORMATS: &[&Format] = &[$(&$format::FORMAT),+];
    };
}

// `ssdsim` stands before `mqsim`: of two that read a file alike, the stricter one is taken, so that a later line
// which they would read differently is an error and not a guess.
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
    /// Its name in options.
    pub name: &'static str,
    /// What it is, in a few words.
    pub title: &'static str,
    /// The columns of a line.
    pub columns: &'static str,
    /// The unit of its times, unless the user says otherwise.
    pub unit: TimeUnit,
    /// What it is made of.
    framing: Framing,
    /// It holds several events of each request: see [`Action`].
    has_events: bool,
    /// What a line must look like, besides being readable, to be taken for this format unasked.
    looks: fn(&[u8]) -> bool,
    /// A parser at the start of a trace.
    parser: fn(&TraceOptions) -> Box<dyn Parser>,
    /// How it is written, where it is.
    writer: Option<Writer>,
}

/// What a format is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    /// Lines of text.
    Lines,
    /// Binary records, which [`Parser::cut`] cuts.
    Records,
}

impl Format {
    /// The format of that name.
    pub fn named(name: &str) -> Result<&'static Format, String> {
        FORMATS.iter().copied().find(|format| format.name == name).ok_or_else(|| {
            let names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
            format!("`{name}` is no trace format; choose one of {}", names.join(", "))
        })
    }

    /// Whether traces can be written in it.
    pub const fn is_written(&self) -> bool {
        self.writer.is_some()
    }

    /// The format of that name, to write traces in.
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

/// Reads the lines or records of one trace, in order.
///
/// A function does for a format whose lines stand alone; a struct for one that remembers earlier lines.
trait Parser: Send {
    /// Looks at the first bytes of the trace, some 64 KiB of them, before anything else.
    fn begin(&mut self, _head: &[u8]) {}

    /// The length of the record at the start of `bytes`, as far as they tell: where it is more than there are, the
    /// question comes again with so many (or the file ends). Formats of lines are not asked.
    fn cut(&mut self, bytes: &[u8]) -> Result<usize, Expected> {
        Ok(bytes.len())
    }

    /// What a line (without its end) or record says; `None` for one of the format that holds no request.
    fn parse(&mut self, frame: &[u8]) -> Result<Option<Record>, Expected>;

    /// The unit of the times, where it is not the format's.
    fn unit(&self) -> Option<TimeUnit> {
        None
    }

    /// The name of a device that occurred in a [`Record`].
    fn device(&self, device: u32) -> DeviceName {
        DeviceName::Number(u64::from(device))
    }

    /// Requests by which one may stand behind those that were issued later, unless the user says otherwise.
    fn sort_window(&self) -> u32 {
        0
    }

    /// What the user should know of what has been read so far.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }
}

impl<F: FnMut(&[u8]) -> Result<Option<Record>, Expected> + Send> Parser for F {
    fn parse(&mut self, line: &[u8]) -> Result<Option<Record>, Expected> {
        self(line)
    }
}

/// What a line should have held where it did not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Expected(&'static str);

/// One request as a trace tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Record {
    /// When, in the trace's unit.
    stamp: Decimal,
    /// Which of the trace's devices; [`Parser::device`] has its name.
    device: u32,
    /// What to do.
    operation: Operation,
    /// First sector, on that device.
    lba: u64,
    /// Length in sectors; 0 only for a flush.
    sectors: u32,
    /// The trace's range was not one of whole sectors, and was widened to them.
    widened: bool,
    /// Complete only when durable.
    fua: bool,
}

impl Record {
    /// A request whose range is given in sectors.
    fn in_sectors(
        stamp: Decimal,
        device: u32,
        operation: Operation,
        lba: u64,
        sectors: u64,
    ) -> Result<Record, Expected> {
        /// 2^64 bytes: no host can address more, and sums of a few such ends stay far from overflow.
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

    /// A request whose range is given in bytes: the sectors that it touches.
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

/// The name of a device in a trace; its order is the order in which devices are laid side by side.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum DeviceName {
    /// A number.
    Number(u64),
    /// The major and minor number of a device of Linux.
    MajorMinor(u32, u32),
    /// A host, and the number of its disk.
    Disk(String, u64),
    /// A file, or another name.
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

/// How many of something there are.
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
