//! Options of traces.

use floatgate_core::workload::trace::{Devices, Fit, Format, Replay, TimeScale, TimeUnit, TraceOptions};

/// How a trace is read: see docs/reference/traces.md.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Options for traces")]
pub struct TraceArgs {
    /// Format: spc, msr, ssdsim, mqsim or disksim; found out where not given
    #[arg(long, value_parser = Format::named)]
    format: Option<&'static Format>,
    /// Unit of the times: ps, ns, 100ns, us, ms or s, where it is not the format's
    #[arg(long, value_name = "UNIT")]
    time_unit: Option<TimeUnit>,
    /// Multiply times by X: 0.5 offers the same requests twice as fast
    #[arg(long, value_name = "X", allow_hyphen_values = true)]
    time_scale: Option<TimeScale>,
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
    limit: Option<u64>,
    /// Put requests in order of time that come up to N requests too late
    #[arg(long, value_name = "N", value_parser = whole_32, allow_hyphen_values = true)]
    sort_window: Option<u32>,
    /// Leave out up to N lines that cannot be read
    #[arg(long, value_name = "N", value_parser = whole, allow_hyphen_values = true)]
    skip_bad_lines: Option<u64>,
}

/// A whole number.
pub fn whole(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("must be a whole number from 0 to {}", u64::MAX))
}

fn whole_32(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("must be a whole number from 0 to {}", u32::MAX))
}

fn one_or_more(text: &str) -> Result<u64, String> {
    text.parse().ok().filter(|n| *n > 0).ok_or_else(|| format!("must be a whole number from 1 to {}", u64::MAX))
}

impl TraceArgs {
    /// What they say of a trace.
    pub fn options(&self) -> TraceOptions {
        TraceOptions {
            format: self.format,
            time_unit: self.time_unit,
            time_scale: self.time_scale.unwrap_or_default(),
            replay: self.replay.unwrap_or_default(),
            fit: self.fit.unwrap_or_default(),
            devices: self.devices.clone().unwrap_or_default(),
            limit: self.limit,
            sort_window: self.sort_window.unwrap_or_default(),
            skip_bad_lines: self.skip_bad_lines.unwrap_or_default(),
        }
    }

    /// Those that are given.
    pub fn given(&self) -> Vec<&'static str> {
        let all = [
            ("--format", self.format.is_some()),
            ("--time-unit", self.time_unit.is_some()),
            ("--time-scale", self.time_scale.is_some()),
            ("--replay", self.replay.is_some()),
            ("--fit", self.fit.is_some()),
            ("--devices", self.devices.is_some()),
            ("--limit", self.limit.is_some()),
            ("--sort-window", self.sort_window.is_some()),
            ("--skip-bad-lines", self.skip_bad_lines.is_some()),
        ];
        all.into_iter().filter(|(_, given)| *given).map(|(name, _)| name).collect()
    }
}
