//! Plausibility checks of a trace, with likely explanations.

use super::super::format::{Format, Framing};
use super::super::gaps::Gaps;
use super::super::rate::RateCheck;
use super::super::reader::Item;
use super::super::time_unit::TimeUnit;
use super::report::Profile;
use crate::quantity::readable;
use crate::sim::request::SECTOR;
use crate::sim::time::Time;

/// Number of requests below which regularities are not meaningful.
const FEW: u64 = 16;
/// Capacity that no drive has: 1 PiB.
const LARGEST_DRIVE: u64 = 1 << 50;

/// Checks the requests of a trace one by one.
pub struct Doubts {
    rate: RateCheck,
    gaps: Gaps,
    /// Greatest common divisor of all times.
    ps: u128,
}

impl Doubts {
    pub fn new() -> Doubts {
        Doubts { rate: RateCheck::new(), gaps: Gaps::default(), ps: 0 }
    }

    /// Adds a request. `since_start` is the time since the earliest request, and does not decrease.
    pub fn add(&mut self, item: &Item, since_start: u128) {
        let arrival = Time(u64::try_from(since_start).unwrap_or(u64::MAX));
        self.gaps.shorten(since_start, item.line);
        self.rate.note(item.line, arrival, u64::from(item.sectors) * SECTOR);
        let ps = item.ps.unsigned_abs();
        if self.ps == 0 || !is_multiple(ps, self.ps) {
            self.ps = gcd_128(self.ps, ps);
        }
    }

    /// Returns the greatest common divisor of all times in ps. 0 if all are equal.
    pub fn resolution_ps(&self) -> u128 {
        self.ps
    }

    /// Returns all warnings. `profile` is complete except for the warnings.
    pub fn warnings(&self, profile: &Profile, format: &Format, unit: TimeUnit) -> Vec<String> {
        let mut warnings: Vec<String> = self.rate(unit).into_iter().collect();
        let word = if format.framing == Framing::Lines { "line" } else { "record" };
        warnings.extend(self.gaps.warning(word));
        warnings.extend(self.too_long(profile, unit));
        warnings.extend(order(profile));
        if profile.requests >= FEW {
            warnings.extend(self.coarse(profile));
            warnings.extend(one_operation(profile, format));
        }
        warnings.extend(too_large(profile, format));
        warnings
    }

    /// Returns a warning about an implausible rate.
    pub fn rate(&self, unit: TimeUnit) -> Option<String> {
        self.rate.warning(unit, self.gaps.jump().is_some())
    }

    /// Returns a warning if the trace is longer than the range of simulated time.
    fn too_long(&self, profile: &Profile, unit: TimeUnit) -> Option<String> {
        let days = profile.duration_s / 86_400.0;
        (profile.duration_s > u64::MAX as f64 / 1e12 && self.gaps.jump().is_none()).then(|| {
            format!(
                "with times in {unit} the trace is {days:.0} days long, more than the 213 days that simulated time \
                 holds; --time-unit changes the unit, --time-scale the speed"
            )
        })
    }

    /// Returns a warning if many requests have the same time.
    fn coarse(&self, profile: &Profile) -> Option<String> {
        let zero = profile.arrivals.zero.filter(|share| *share >= 0.25)?;
        let resolution = self.ps as f64 / 1e12;
        let coarse = match self.ps {
            0 => "all times are the same".to_owned(),
            _ if resolution >= 1e-4 => format!("times are multiples of {resolution} s"),
            // The requests were issued together.
            _ if zero < 0.5 => return None,
            _ => format!("times are multiples of {} us", resolution * 1e6),
        };
        Some(format!(
            "{:.0} % of the requests arrive at the same time as the previous one ({coarse}): their gaps within that time \
             are not recorded",
            zero * 100.0
        ))
    }
}

/// Returns a warning if requests are out of order.
fn order(profile: &Profile) -> Option<String> {
    let order = profile.order;
    (order.late > 0).then(|| {
        let at_least = if order.beyond { "more than " } else { "" };
        format!(
            "{} of {} requests follow one with a later time, and their gaps are left out; to sort them, use \
             --sort-window {at_least}{}",
            order.late, profile.requests, order.sort_window
        )
    })
}

/// Returns a warning for formats that differ only in the number that stands for a read.
fn one_operation(profile: &Profile, format: &Format) -> Option<String> {
    let by_number = ["ssdsim", "mqsim", "disksim", "flashsim", "tencent", "replay-log"].contains(&format.name);
    let [only] = &profile.operations[..] else { return None };
    by_number.then(|| {
        format!(
            "all requests are {}s. Format {} distinguishes reads and writes by a number, and in some traces its meaning \
             is the opposite",
            only.operation.replace('_', " "),
            format.name
        )
    })
}

/// Returns a warning about addresses that no drive has.
fn too_large(profile: &Profile, format: &Format) -> Option<String> {
    let device = profile.devices.iter().max_by_key(|device| device.end_sector)?;
    let end = device.end_sector.saturating_mul(SECTOR);
    (end > LARGEST_DRIVE).then(|| {
        format!(
            "device {} ends at {}, which no drive has; format {} may be the wrong one, or its addresses are not what \
             they are taken for",
            device.name,
            readable(u128::from(end)),
            format.name
        )
    })
}

fn is_multiple(value: u128, of: u128) -> bool {
    // 64-bit division is much faster than 128-bit division, and usually sufficient.
    match (u64::try_from(value), u64::try_from(of)) {
        (Ok(value), Ok(of)) => value.is_multiple_of(of),
        _ => value.is_multiple_of(of),
    }
}

fn gcd_128(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
