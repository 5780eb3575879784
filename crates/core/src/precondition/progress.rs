//! Steps of preconditioning that report progress.

use crate::ftl::{Ftl, Shape};
use crate::metrics::counters::{Counters, ProgramCause};
use crate::sim::id::Lpn;

/// Callback with the progress of preconditioning from 0 to 1. Returns `false` to stop it.
pub type OnProgress<'a> = &'a mut dyn FnMut(f64) -> bool;

/// Number of units between two progress reports.
pub const PROGRESS_EVERY: u64 = 1 << 18;

/// Error of a step that the callback has stopped.
pub const STOPPED: &str = "preconditioning was stopped";

/// Reports progress. Fails if the callback stops preconditioning, or if a policy has failed.
pub(super) fn report_progress(ftl: &Ftl, share: f64, on_progress: OnProgress) -> Result<(), String> {
    match ftl.fault() {
        Some(fault) => Err(fault.to_string()),
        None if on_progress(share) => Ok(()),
        None => Err(STOPPED.to_owned()),
    }
}

pub(super) fn fill(ftl: &mut Ftl, on_progress: OnProgress) -> Result<(), String> {
    let units = ftl.map.len();
    for lpn in 0..units {
        if u64::from(lpn).is_multiple_of(PROGRESS_EVERY) {
            report_progress(ftl, f64::from(lpn) / f64::from(units), on_progress)?;
        }
        ftl.write_whole(Lpn(lpn));
    }
    Ok(())
}

/// Returns the number of units programmed, including padding and parity, per unit that the host wrote.
pub(super) fn amplification(counted: &Counters, shape: &Shape) -> f64 {
    let parity = counted.units_of(ProgramCause::Parity, shape.units_per_page.divisor(), shape.pages_per_unit);
    (counted.units_programmed + counted.units_padded + parity) as f64 / counted.host_units as f64
}
