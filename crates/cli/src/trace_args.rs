//! Command-line options for reading traces.

use std::num::NonZeroU64;

use clap_complete::ArgValueCompleter;
use floatgate_core::device_file::Duration;
use floatgate_run::traces::{ColumnsFile, TraceFormat, TraceSpec, Traces};
use floatgate_workload::file::Stop;
use floatgate_workload::trace::words::max_gap;
use floatgate_workload::trace::{Action, Devices, Fit, Replay, TimeScale, TimeUnit};

use crate::complete;

/// Trace options of `floatgate run` and `floatgate trace`.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Options for traces")]
pub struct TraceArgs {
    /// Trace format, or delimited:COLUMNS for other columns [default: detected]
    ///
    /// Formats: alibaba, biosnoop, biotracer, blkparse, blktrace, disksim, etw, fio, fiu, flashsim, floatgate, ftrace,
    /// iosnoop, mqsim, msr, replay-log, spc, ssdsim, systor, tencent, vscsi, wpa. Any other text with columns can be
    /// described, for example with 'delimited:columns=op,offset,size;offset=bytes;size=bytes;read=R;write=W'. See
    /// docs/reference/traces.md.
    #[arg(long, add = ArgValueCompleter::new(complete::formats))]
    format: Option<TraceFormat>,
    /// Read the columns of format delimited from a TOML file
    #[arg(long, value_name = "FILE")]
    columns: Option<ColumnsFile>,
    /// Event of blkparse and blktrace traces that counts as a request: D, Q, I or C
    ///
    /// D: issued, Q: queued, I: inserted, C: completed. Default: the first of D, Q and I that occurs.
    #[arg(long)]
    action: Option<Action>,
    /// Unit of timestamps: ps, ns, 100ns, us, ms or s [default: that of the format]
    #[arg(long, value_name = "UNIT")]
    time_unit: Option<TimeUnit>,
    /// Multiply timestamps by X; 0.5 doubles the request rate
    #[arg(long, value_name = "X", allow_hyphen_values = true)]
    time_scale: Option<TimeScale>,
    /// Shorten longer gaps between requests to TIME, such as 1s
    ///
    /// A change of the system clock during the recording leaves such gaps. --time-scale applies afterwards.
    #[arg(long, value_name = "TIME", value_parser = gap)]
    max_gap: Option<Duration>,
    /// Pace: timed (as recorded), asap, or depth=N (N outstanding) [default: timed]
    #[arg(long)]
    replay: Option<Replay>,
    /// Addresses beyond the device: refuse, wrap or compact [default: refuse]
    ///
    /// wrap: modulo the size of the device. compact: the accessed pages become adjacent.
    #[arg(long)]
    fit: Option<Fit>,
    /// Traces of several devices: side-by-side, merge or select=NAME,...
    ///
    /// Default: side-by-side.
    #[arg(long)]
    devices: Option<Devices>,
    /// End the trace, or each job of a job file, after N requests
    #[arg(long, value_name = "N", value_parser = one_or_more, allow_hyphen_values = true)]
    limit: Option<NonZeroU64>,
    /// Sort requests that are up to N positions out of timestamp order
    #[arg(long, value_name = "N", value_parser = whole_32, allow_hyphen_values = true)]
    sort_window: Option<u32>,
    /// Skip up to N invalid lines
    #[arg(long, value_name = "N", value_parser = whole, allow_hyphen_values = true)]
    skip_bad_lines: Option<u64>,
}

impl TraceArgs {
    /// Returns the options for the specification of a run.
    pub fn spec(&self) -> TraceSpec {
        TraceSpec {
            format: self.format.clone(),
            columns: self.columns.clone(),
            action: self.action,
            time_unit: self.time_unit,
            time_scale: self.time_scale,
            max_gap: self.max_gap,
            replay: self.replay,
            fit: self.fit,
            devices: self.devices.clone(),
            limit: self.limit,
            sort_window: self.sort_window,
            skip_bad_lines: self.skip_bad_lines,
            ..TraceSpec::default()
        }
    }

    /// Returns traces with these options. Reading ends when `stop` is requested.
    pub fn traces(&self, stop: Stop) -> Traces {
        Traces::new(self.spec(), stop)
    }
}

/// Parses the value of `--max-gap`.
fn gap(text: &str) -> Result<Duration, String> {
    max_gap(text).map(|most| Duration(most.ps()))
}

/// Parses a whole number.
pub fn whole(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("must be a whole number from 0 to {}", u64::MAX))
}

/// Parses a whole number of 32 bits.
fn whole_32(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("must be a whole number from 0 to {}", u32::MAX))
}

/// Parses a whole number from 1 on.
pub fn one_or_more(text: &str) -> Result<NonZeroU64, String> {
    text.parse().map_err(|_| format!("must be a whole number from 1 to {}", u64::MAX))
}
