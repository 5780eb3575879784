//! Recorded workloads, with one file per trace format.
//!
//! A trace passes through these stages, each in its own file, one request at a time and in constant memory:
//!
//! 1. `input`: bytes of a file, decompressed if its first bytes identify a compression format
//! 2. `frames`: lines or binary records of these bytes, in place
//! 3. `format`: the `Parser` of a format converts a frame to a `record`, with the times and devices of the trace
//! 4. `records`: bad lines, selection of devices, order in time, limit. `units` checks addresses and lengths.
//! 5. `place`, `footprint`: the address of the record on the simulated device
//! 6. `replay`: the [`Trace`], a [`Source`] of requests in simulated time. `rate` and `gaps` check it.
//!
//! To inspect a trace, `reader` returns its requests from `records`, and `profile` summarizes them.
//!
//! A format is one file with a `FORMAT`, and an entry in the list below. `convert` writes a trace in another format
//! with that format's `writer`, compressed by `output`.
//!
//! [`Source`]: crate::sim::source::Source

mod blank;
mod columns;
mod convert;
mod detect;
mod digest;
mod events;
mod fields;
mod footprint;
mod format;
mod frames;
mod gaps;
pub(crate) mod input;
mod merged;
mod names;
mod options;
mod output;
mod place;
pub mod profile;
mod rate;
mod reader;
mod record;
mod records;
mod replay;
mod table;
mod time_unit;
mod units;
pub mod words;
mod writer;

pub use columns::Columns;
pub use convert::{ConvertError, Converted, convert};
pub use detect::{Confidence, Detected};
pub use events::Action;
pub use floatgate::{RecordedRequest, RequestDigest};
pub use format::Format;
pub use input::Packing;
pub use options::{Devices, Fit, FormatChoice, Replay, TimeScale, TraceOptions};
pub use output::Packed;
pub use reader::{Item, Reader};
pub use replay::Trace;
pub use table::{Table, TableOptions, TableSource};
pub use time_unit::TimeUnit;

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
    wpa,
    biosnoop,
    iosnoop,
    ftrace,
    biotracer,
    floatgate,
    delimited,
}

impl Format {
    /// Returns the format with a name.
    pub fn named(name: &str) -> Result<&'static Format, String> {
        FORMATS.iter().copied().find(|format| format.name == name).ok_or_else(|| {
            let names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
            format!("unknown trace format `{name}`; choose one of {}", names.join(", "))
        })
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
}
