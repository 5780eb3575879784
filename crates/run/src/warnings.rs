//! Warnings of a run, for the user and for its result.

use floatgate_core::config::DeviceConfig;
use floatgate_core::device::Device;
use floatgate_core::metrics::counters::{Counters, ProgramCause};
use floatgate_core::metrics::summary::Precondition;
use floatgate_core::sim::time::Time;
use floatgate_report::number::grouped;

use crate::frontend::Frontend;
use crate::workload::Workload;

/// Warning of a run that the user ended.
pub const INTERRUPTED: &str = "interrupted: the workload did not come to its end";

/// Returns the warning that no steady state was reached, if so.
pub fn not_steady(precondition: &Precondition) -> Option<String> {
    (precondition.reached.converged == Some(false)).then(|| {
        format!(
            "preconditioning to a steady state gave up: after {:.0} drive writes, write amplification still moved by \
             more than 1 % from one to the next",
            precondition.reached.drive_writes
        )
    })
}

/// Returns the warning that the steady state depends on the load, if it does.
pub fn depends_on_load(precondition: &Precondition, config: &DeviceConfig) -> Option<String> {
    let reached = &precondition.reached;
    let (soft, hard) = (reached.write_amplification?, reached.write_amplification_at_hard?);
    Some(format!(
        "the steady state depends on the load: --precondition steady keeps more than {} blocks of each plane free \
         (gc.soft_threshold), with a write amplification of {soft:.2}; under a load that outpaces garbage collection they \
         fall to {} (gc.hard_threshold), where it is {hard:.2}; for the state of a job, give it a ramp_time until its \
         write amplification stands still (docs/model/preconditioning.md)",
        config.soft_threshold(),
        config.hard_threshold(),
    ))
}

/// Returns the warning that writes leave space in their programs empty, if they do: why, and how to get the state that
/// they make.
pub fn partial_pages(precondition: &Precondition, device: &Device, counters: &Counters) -> Option<String> {
    /// The share of the space in the pages written that may be empty, as some is at the end of every run.
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
            "{flushes} of its programs were cut short by FLUSH or FUA, and {timeouts} by controller.fill_timeout ({})",
            config.controller.fill_timeout
        )
    } else {
        format!("its writes are smaller than a program of {} pages", config.geometry.pages_per_program)
    };
    let state = match is_steady {
        true => {
            "; --precondition steady fills programs, so start from the state of this job instead: give the job itself \
                    as --precondition (docs/model/preconditioning.md)"
        }
        false => "",
    };
    Some(format!("{:.0} % of the space that the host programmed stayed empty: {cause}{state}", empty * 100.0))
}

/// Returns the warning that no request was measured.
pub fn nothing_measured(workload: &Workload) -> String {
    let ramp = workload.sources.iter().map(|source| source.measure_from()).max().unwrap_or(Time::ZERO);
    let why = match ramp > Time::ZERO {
        true => format!("the workload ended within its ramp_time of {} s", ramp.as_s()),
        false => "the workload has no requests".to_owned(),
    };
    format!("nothing arrived in the measured part: {why}")
}

/// Returns a warning if requests failed.
pub fn not_served(served: u64, refused: u64, read_only_since: Option<Time>) -> Option<String> {
    let all = grouped(served + refused);
    let why = match read_only_since {
        Some(at) => {
            format!("the device became read-only at {:.3} s, because too many of its blocks were bad", at.as_s())
        }
        None => "they were beyond the end of the device, or their data were uncorrectable".to_owned(),
    };
    (refused > 0).then(|| {
        format!("{} of {all} requests were not served: {why}; throughput and latencies exclude them", grouped(refused))
    })
}

/// Warnings that were reported, each of them once.
#[derive(Debug, Default)]
pub struct Warnings {
    said: Vec<String>,
}

impl Warnings {
    /// Adds a warning that is not reported, because the user knows.
    pub fn add_silently(&mut self, warning: &str) {
        self.said.push(warning.to_owned());
    }

    /// Returns all warnings, in order.
    pub fn into_texts(self) -> Vec<String> {
        self.said
    }

    /// Reports the warnings that are new, and keeps them.
    pub fn add(&mut self, warnings: impl IntoIterator<Item = String>, frontend: &dyn Frontend) {
        for warning in warnings {
            if !self.said.contains(&warning) {
                frontend.warn(&warning);
                self.said.push(warning);
            }
        }
    }
}
