//! Limits of a job, and the part that is measured.

use super::SECTOR;
use super::options::Options;
use super::region::Region;
use crate::sim::time::Time;

/// Limits of a job.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Maximum number of requests, or of trim and write pairs. `u64::MAX` for no limit.
    pub(super) requests: u64,
    /// Number of requested bytes after which the job ends. `u64::MAX` for no limit.
    pub(super) bytes: u64,
    pub(super) stop_at: Option<Time>,
    pub(super) measure_from: Time,
}

impl Limits {
    /// Computes the limits. As in fio, a job ends after `io_size` bytes, or else after `size`, unless `time_based` is
    /// set. Unlike in fio, the size of the device limits a job only if there is no other limit: `number_ios=2m` issues
    /// two million requests on a device of any size.
    pub(super) fn new(options: &Options, region: &Region, unit: u64, skip: i64) -> Result<Limits, String> {
        if options.time_based && options.runtime.is_none() {
            return Err("`time_based` needs runtime".to_owned());
        }
        let bytes = match options.io_size {
            _ if options.time_based => u64::MAX,
            Some(amount) => amount.of(region.size).ok_or("`io_size` is beyond 64 bits")?.max(1),
            None if options.size.is_some() || options.number_ios.is_none() => once_over(region.size, unit, skip),
            None => u64::MAX,
        };
        let loops = u64::from(options.loops.unwrap_or(1));
        let times = |limit: u64| match limit {
            u64::MAX => Some(limit),
            limit => limit.checked_mul(loops).filter(|limit| *limit < u64::MAX),
        };
        let requests =
            times(options.number_ios.unwrap_or(u64::MAX)).ok_or("`number_ios` times `loops` is too large")?;
        let bytes = times(bytes).ok_or("what `loops` repeats is beyond 64 bits")?;
        let (stop_at, measure_from) = times_of(options)?;
        Ok(Limits { requests, bytes, stop_at, measure_from })
    }
}

/// Returns the number of bytes that a job requests in one pass over its region. An incomplete block at the end is never
/// reached. As in fio, neither are the bytes that are skipped between requests.
fn once_over(size: u64, unit: u64, skip: i64) -> u64 {
    match u64::try_from(skip).unwrap_or(0).checked_mul(SECTOR).and_then(|skip| skip.checked_add(unit)) {
        Some(step) if size >= unit => ((size - unit) / step + 1) * unit,
        _ => unit.min(size),
    }
}

/// Returns the time at which a job stops, and the start of its measurement. As in fio, `ramp_time` precedes `runtime`.
pub(super) fn times_of(options: &Options) -> Result<(Option<Time>, Time), String> {
    let ramp = options.ramp_time.unwrap_or(0);
    let stop = match options.runtime {
        None => None,
        Some(runtime) => Some(runtime.checked_add(ramp).ok_or("`runtime` and `ramp_time` exceed 213 days")?),
    };
    let last = stop.unwrap_or(ramp);
    last.checked_add(options.startdelay.unwrap_or(0))
        .ok_or("`startdelay`, `ramp_time` and `runtime` together exceed 213 days")?;
    Ok((stop.map(Time), Time(ramp)))
}
