//! Limits of a job, and the part that is measured.

use super::SECTOR;
use super::address::Order;
use super::address::choice::Choice;
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
    /// two million requests on a device of any size. `size` is the size of the region, and `once` the number of bytes
    /// that a pass over it requests.
    pub(super) fn new(options: &Options, size: u64, once: u64) -> Result<Limits, String> {
        if options.time_based && options.runtime.is_none() {
            return Err("`time_based` needs runtime".to_owned());
        }
        let bytes = match options.io_size {
            _ if options.time_based => u64::MAX,
            Some(amount) => amount.of(size).ok_or("`io_size` is beyond 64 bits")?.max(1),
            None if options.size.is_some() || options.number_ios.is_none() => once,
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

/// Returns the number of bytes that a job requests in one pass over its region. `unit` is its smallest block.
///
/// A job that does not keep a map of used blocks, or that mixes reads and writes, requests blocks up to the size of the
/// region, rounded up, as in fio. With a map, an incomplete block at the end is never reached. The last block of a
/// sequential job may extend beyond the region, up to the end of the file. Bytes that are skipped between requests are
/// not reached either.
pub(super) fn once_over(region: &Region, unit: u64, order: &Order, directions: &[usize], fixed: bool) -> u64 {
    let Region { size, room, .. } = *region;
    if size < unit {
        return size;
    }
    match order {
        Order::Random(grids, _) if let Choice::Sprandom(order) = &grids[0].choice => {
            order.shape.physical(size / unit) * unit
        }
        Order::Random(grids, _) if grids.iter().any(|grid| matches!(grid.choice, Choice::Passes(_))) => {
            size / unit * unit
        }
        Order::Mapped { .. } => size / unit * unit,
        Order::Sequential(run) if directions.len() == 1 && run.skip >= 0 && fixed => {
            let step = (run.skip as u64).saturating_mul(SECTOR).saturating_add(unit);
            let count = size.div_ceil(step).min((room - unit) / step + 1);
            (count * unit).min(size)
        }
        Order::Sequential(_) if !fixed => size / unit * unit,
        _ => size,
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
