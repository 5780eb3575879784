//! Options of traces, as the command line has them.

use std::num::NonZeroU64;

use floatgate_core::config::units::Duration;
use floatgate_run::traces::{ColumnsFile, TraceFormat, TraceSpec, Traces};
use floatgate_workload::file::Stop;
use floatgate_workload::trace::words::max_gap;
use floatgate_workload::trace::{Action, Devices, Fit, Replay, TimeScale, TimeUnit};

/// Options of `floatgate run` and `floatgate trace` for traces.
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
    format: Option<TraceFormat>,
    /// Read the columns of format delimited from a TOML file
    #[arg(long, value_name = "FILE")]
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
    #[arg(long, value_name = "TIME", value_parser = gap)]
    max_gap: Option<Duration>,
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
    limit: Option<NonZeroU64>,
    /// Put requests in order of time that come up to N requests too late
    #[arg(long, value_name = "N", value_parser = whole_32, allow_hyphen_values = true)]
    sort_window: Option<u32>,
    /// Leave out up to N lines that cannot be read
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
        }
    }

    /// Opens traces with these options. Reading ends when `stop` is requested.
    pub fn traces(&self, stop: Stop) -> Traces {
        Traces::new(self.spec(), stop)
    }
}

/// Reads the value of `--max-gap`.
fn gap(text: &str) -> Result<Duration, String> {
    max_gap(text).map(|most| Duration(most.ps()))
}

/// Reads a whole number.
pub fn whole(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("must be a whole number from 0 to {}", u64::MAX))
}

/// Reads a whole number of 32 bits.
fn whole_32(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("must be a whole number from 0 to {}", u32::MAX))
}

/// Reads a whole number from 1.
pub fn one_or_more(text: &str) -> Result<NonZeroU64, String> {
    text.parse().map_err(|_| format!("must be a whole number from 1 to {}", u64::MAX))
}
