//! Parts of preconditioning that report how far it has come.

use crate::ftl::Ftl;
use crate::metrics::counters::Counters;
use crate::sim::id::Lpn;

/// Told how far preconditioning has come, in parts of one; whether to go on.
pub type OnProgress<'a> = &'a mut dyn FnMut(f64) -> bool;

/// Units between two calls for progress.
pub(super) const PROGRESS_EVERY: u64 = 1 << 18;

pub(super) const STOPPED: &str = "preconditioning was stopped";

/// Tells how far it has come; fails when that is the end, or a policy has failed.
pub(super) fn go_on(ftl: &Ftl, share: f64, on_progress: OnProgress) -> Result<(), String> {
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
            go_on(ftl, f64::from(lpn) / f64::from(units), on_progress)?;
        }
        ftl.write_whole(Lpn(lpn));
    }
    Ok(())
}

/// Units programmed, padding included, for each unit that the host wrote.
pub(super) fn amplification(counted: &Counters) -> f64 {
    (counted.units_programmed + counted.units_padded) as f64 / counted.host_units as f64
}
