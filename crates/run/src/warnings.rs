//! Warnings of a run.

use floatgate_core::device_file::DeviceConfig;
use floatgate_core::results::{Counters, ProgramCause};
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Backlog, Device};
use floatgate_core::summary::{Precondition, Summary};
use floatgate_report::number::grouped;

use crate::frontend::Frontend;
use crate::workload::Workload;

/// Warning of a run that the user ended.
pub const INTERRUPTED: &str = "interrupted: the workload did not run to its end";

/// Returns a warning if a run ended before its outstanding requests completed.
pub fn unfinished(count: u64) -> Option<String> {
    (count > 0)
        .then(|| format!("{} requests were outstanding when the run had to end, and have no result", grouped(count)))
}

/// Returns a warning if no steady state was reached.
pub fn not_steady(precondition: &Precondition) -> Option<String> {
    (precondition.reached.converged == Some(false)).then(|| {
        format!(
            "no steady state was reached: after {:.0} drive writes, write amplification still changed by more than 1 % \
             per drive write",
            precondition.reached.drive_writes
        )
    })
}

/// Returns a warning if the steady state depends on the load.
pub fn depends_on_load(precondition: &Precondition, config: &DeviceConfig) -> Option<String> {
    let reached = &precondition.reached;
    let (soft, hard) = (reached.write_amplification?, reached.write_amplification_at_hard?);
    Some(format!(
        "the steady state depends on the load: --precondition steady keeps more than {} blocks of each plane free \
         (gc.soft_threshold), with a write amplification of {soft:.2}; under a load that outpaces garbage collection, \
         only {} stay free (gc.hard_threshold), and write amplification is {hard:.2}; to measure a job in its own \
         steady state, set its ramp_time (docs/model/preconditioning.md)",
        config.soft_threshold(),
        config.hard_threshold(),
    ))
}

/// Returns a warning if host writes leave much space in their programs empty. It names the cause, and how to
/// precondition for such writes.
pub fn partial_pages(precondition: &Precondition, device: &Device, counters: &Counters) -> Option<String> {
    /// Empty share of the programmed space that needs no warning. The end of every run leaves some space empty.
    const NEGLIGIBLE: f64 = 0.1;
    let config = device.config();
    let pages = counters.pages_programmed[ProgramCause::Host as usize];
    let padding = counters.pages_programmed[ProgramCause::Padding as usize];
    let space = ((pages + padding) * u64::from(config.units_per_page())) as f64;
    let empty = counters.units_padded as f64 / space.max(1.0);
    let (flushes, timeouts) = (counters.units_cut_by_flush, counters.units_cut_by_timeout);
    let is_steady = precondition.reached.converged.is_some();
    if empty <= NEGLIGIBLE || counters.host_units == 0 || !(is_steady || flushes + timeouts > 0) {
        return None;
    }
    let cause = if flushes + timeouts > 0 {
        format!(
            "{flushes} programs were cut short by flushes or FUA, and {timeouts} by controller.fill_timeout ({})",
            config.controller.fill_timeout
        )
    } else {
        format!("the writes are smaller than a program of {} pages", config.pages_per_program())
    };
    let state = if is_steady {
        "; --precondition steady fills all programs, so use the job itself as --precondition instead \
             (docs/model/preconditioning.md)"
    } else {
        ""
    };
    Some(format!("{:.0} % of the space programmed for the host stayed empty: {cause}{state}", empty * 100.0))
}

/// Returns the share of the programs that filled free blocks that garbage collection did not replace, if it is not
/// negligible. Then write amplification is lower than in a longer run, unless no page was moved: a longer run may find
/// invalid blocks only, too.
pub fn used_up_share(summary: &Summary) -> Option<f64> {
    /// Share of the programs that needs no mention.
    const NEGLIGIBLE: f64 = 0.01;
    let (gc, config) = (&summary.gc, &summary.config);
    let blocks = u64::try_from(-gc.free_blocks_gained).ok().filter(|_| gc.pages_moved > 0.0)?;
    if blocks <= config.total_planes().into() {
        return None; // Each plane has opened a block since its last collection, and may not have filled it yet.
    }
    let space = blocks as f64 * f64::from(config.data_units_per_block());
    let share = space / (summary.flash.units.programmed.max(1)) as f64;
    (share > NEGLIGIBLE).then_some(share)
}

/// Returns the warning about write amplification that is lower than in a longer run, because the run has used up free
/// blocks. A device that was only filled starts with free blocks, which are a part of that state: its result has the
/// share without a warning.
pub fn used_up_space(summary: &Summary) -> Option<String> {
    let state = &summary.precondition.requested;
    let is_aged = !["none", "fill"].iter().any(|fresh| state.starts_with(fresh));
    let share = used_up_share(summary).filter(|_| is_aged)?;
    Some(format!(
        "write amplification is lower than in a longer run: {:.1} % of the programs filled {} free blocks that garbage \
         collection did not replace; run longer, or precondition with the job itself",
        share * 100.0,
        -summary.gc.free_blocks_gained
    ))
}

/// Returns the warning about a run in which no request was measured.
pub fn nothing_measured(workload: &Workload) -> String {
    let ramp = workload.sources.iter().map(|source| source.measure_from()).max().unwrap_or(Time::ZERO);
    let why = if ramp > Time::ZERO {
        format!("the workload ended within its ramp_time of {} s", ramp.as_s())
    } else {
        "the workload has no requests".to_owned()
    };
    format!("no request completed in the measured part: {why}")
}

/// Returns a warning if the arrivals of a source outran the completions.
pub fn arrivals_outran(backlog: &Backlog) -> String {
    let Backlog { streams, requests, rate, waited } = backlog;
    let waited = if *waited > Time::ZERO {
        format!("; the next one had waited for {:.3} s", waited.as_s())
    } else {
        String::new()
    };
    format!(
        "{}: arrivals outran completions: when the {} arrivals per second ended, about {} requests had arrived but not \
         completed{waited}; the results show the limit of the device, and latencies that grow with the length of the run",
        streams.join(", "),
        grouped(rate.round() as u64),
        grouped(*requests),
    )
}

/// Returns a warning if requests failed.
pub fn not_served(served: u64, refused: u64, read_only_since: Option<Time>) -> Option<String> {
    let all = grouped(served + refused);
    let why = match read_only_since {
        Some(at) => {
            format!("the device became read-only at {:.3} s, because too many of its blocks were bad", at.as_s())
        }
        None => "they were beyond the end of the device, or their data was uncorrectable".to_owned(),
    };
    (refused > 0).then(|| {
        format!("{} of {all} requests were not served: {why}; throughput and latencies exclude them", grouped(refused))
    })
}

/// Warnings that were reported, without duplicates.
#[derive(Debug, Default)]
pub struct Warnings {
    said: Vec<String>,
}

impl Warnings {
    /// Adds a warning without reporting it, because the user knows.
    pub fn add_silently(&mut self, warning: &str) {
        self.said.push(warning.to_owned());
    }

    /// Returns all warnings, in order.
    pub fn into_texts(self) -> Vec<String> {
        self.said
    }

    /// Reports and keeps the warnings that are new.
    pub fn add(&mut self, warnings: impl IntoIterator<Item = String>, frontend: &dyn Frontend) {
        for warning in warnings {
            if !self.said.contains(&warning) {
                frontend.warn(&warning);
                self.said.push(warning);
            }
        }
    }
}
