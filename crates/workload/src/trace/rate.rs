//! Plausibility check of a trace's request rate. It detects wrong time units, which are the most common mistake with
//! traces.

use super::time_unit::TimeUnit;
use crate::sim::time::Time;

/// Number of requests over which a burst is measured. Times may be coarse, so a burst at a single time is not
/// considered.
const BURST: usize = 1024;
/// Number of requests below which a mean is not meaningful.
const FEW: u64 = 16;
/// Maximum bandwidth of a burst on the link of one drive: 16 lanes of PCIe 5.0, in bytes per second.
const BURST_BANDWIDTH: f64 = 64e9;
/// Maximum mean bandwidth of a host, in bytes per second.
const MEAN_BANDWIDTH: f64 = 100e9;
/// Maximum request rate of a host, in requests per second.
const MAX_REQUESTS: f64 = 100e6;
/// Minimum request rate of a trace, in requests per second: one per hour.
const FEWEST_REQUESTS: f64 = 1.0 / 3600.0;
/// Limits that another unit must satisfy to be suggested.
const ORDINARY_BANDWIDTH: f64 = 10e9;
const ORDINARY_REQUESTS: f64 = 2e6;

/// Rate of a number of requests over a span.
#[derive(Clone, Copy)]
struct Rate {
    requests: f64,
    bandwidth: f64,
}

impl Rate {
    fn over(requests: u64, bytes: u64, span: Time) -> Rate {
        Rate { requests: requests as f64 / span.as_s(), bandwidth: bytes as f64 / span.as_s() }
    }

    fn times(self, factor: f64) -> Rate {
        Rate { requests: self.requests * factor, bandwidth: self.bandwidth * factor }
    }

    fn is_above(self, requests: f64, bandwidth: f64) -> bool {
        self.requests > requests || self.bandwidth > bandwidth
    }
}

/// Checks the requests of a trace one by one.
pub(super) struct RateCheck {
    count: u64,
    bytes: u64,
    first: Time,
    last: Time,
    /// Arrivals of the last requests, and number of bytes before each.
    recent: Box<[(Time, u64); BURST]>,
    /// First impossible burst: the line at its end, and its rate.
    burst: Option<(u64, Rate)>,
}

impl RateCheck {
    pub(super) fn new() -> RateCheck {
        let recent = Box::new([(Time::ZERO, 0); BURST]);
        RateCheck { count: 0, bytes: 0, first: Time::ZERO, last: Time::ZERO, recent, burst: None }
    }

    /// Checks a request of `bytes` bytes.
    #[inline]
    pub(super) fn note(&mut self, line: u64, arrival: Time, bytes: u64) {
        if self.count == 0 {
            self.first = arrival;
        }
        let place = &mut self.recent[(self.count % BURST as u64) as usize];
        let (earlier, bytes_before) = std::mem::replace(place, (arrival, self.bytes));
        if self.count >= BURST as u64 && self.burst.is_none() {
            let span = arrival.since(earlier);
            let moved = self.bytes - bytes_before;
            // Fast integer check, because it runs for every request: a burst can be impossible only if it is shorter
            // than 1 us per request or 1 us per 64 KB.
            let at_least_ps = (moved / 64_000).max(BURST as u64).saturating_mul(1_000_000);
            if span > Time::ZERO && span.ps() < at_least_ps {
                self.note_burst(line, Rate::over(BURST as u64, moved, span));
            }
        }
        self.count += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        self.last = arrival;
    }

    #[cold]
    fn note_burst(&mut self, line: u64, rate: Rate) {
        if rate.is_above(MAX_REQUESTS, BURST_BANDWIDTH) {
            self.burst = Some((line, rate));
        }
    }

    /// Returns a warning about an implausible rate. `unit` is the unit of the trace's times. After a jump of the clock,
    /// a low mean does not indicate a wrong unit.
    pub(super) fn warning(&self, unit: TimeUnit, has_jump: bool) -> Option<String> {
        let span = self.last.since(self.first);
        if self.count < FEW || span == Time::ZERO {
            return None;
        }
        let mean = Rate::over(self.count - 1, self.bytes, span);
        let (what, rate) = if mean.is_above(MAX_REQUESTS, MEAN_BANDWIDTH) {
            (format!("the trace offers {} on average, more than a host can", said(mean)), mean)
        } else if let Some((line, rate)) = self.burst {
            (format!("{BURST} requests up to line {line} are offered at {}, more than a host can", said(rate)), rate)
        } else if mean.requests < FEWEST_REQUESTS && !has_jump {
            (format!("the trace offers less than one request an hour ({} on average)", said(mean)), mean)
        } else {
            return None;
        };
        let advice = match plausible(unit, mean, rate) {
            Some(other) => {
                let offered = mean.times(factor(unit, other)).requests;
                let digits = if offered < 10.0 { 3 } else { 0 };
                format!(
                    "were its times in {other} instead of {unit}, it would be plausible ({offered:.digits$} \
                     requests/s): --time-unit {other}"
                )
            }
            None => format!("its times are taken to be in {unit}; --time-unit and --time-scale change that"),
        };
        Some(format!("{what}; {advice}"))
    }
}

/// Returns the unit nearest to `unit` with which both rates are ordinary.
fn plausible(unit: TimeUnit, mean: Rate, peak: Rate) -> Option<TimeUnit> {
    // Only Windows file times use 100 ns, so it is not confused with other units.
    let mut others = [TimeUnit::Ps, TimeUnit::Ns, TimeUnit::Us, TimeUnit::Ms, TimeUnit::S];
    others.sort_by_key(|other| other.exponent().abs_diff(unit.exponent()));
    others.into_iter().find(|other| {
        let factor = factor(unit, *other);
        *other != unit
            && !mean.times(factor).is_above(ORDINARY_REQUESTS, ORDINARY_BANDWIDTH)
            && !peak.times(factor).is_above(ORDINARY_REQUESTS, ORDINARY_BANDWIDTH)
            && mean.times(factor).requests >= FEWEST_REQUESTS
    })
}

/// Returns the factor by which rates grow if times in `unit` are read as `other`.
fn factor(unit: TimeUnit, other: TimeUnit) -> f64 {
    libm::exp10(f64::from(unit.exponent()) - f64::from(other.exponent()))
}

fn said(rate: Rate) -> String {
    format!("{:.3e} requests/s and {:.3e} B/s", rate.requests, rate.bandwidth)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warning(unit: TimeUnit, count: u64, bytes: u64, arrival: impl Fn(u64) -> u64) -> Option<String> {
        let mut check = RateCheck::new();
        for n in 0..count {
            check.note(n + 1, Time(arrival(n)), bytes);
        }
        check.warning(unit, false)
    }

    #[test]
    fn ordinary_rates_pass() {
        assert_eq!(warning(TimeUnit::Us, 5000, 4096, |n| n * 1_000_000), None);
        assert_eq!(warning(TimeUnit::S, 5000, 131_072, |n| n * 10_000_000), None);
        // Requests one minute apart; two requests one day apart; all at the same time; times in whole seconds.
        assert_eq!(warning(TimeUnit::S, 5000, 4096, |n| n * 60_000_000_000_000), None);
        assert_eq!(warning(TimeUnit::S, 2, 4096, |n| n * 86_400_000_000_000_000), None);
        assert_eq!(warning(TimeUnit::S, 5000, 4096, |_| 0), None);
        assert_eq!(warning(TimeUnit::S, 50_000, 65_536, |n| n / 20_000 * 1_000_000_000_000), None);
    }

    #[test]
    fn impossible_rates_give_a_warning() {
        let text = warning(TimeUnit::Ps, 5000, 4096, |n| n * 1_000).unwrap();
        assert!(text.contains("on average") && text.contains("--time-unit ns"), "{text}");
        let text = warning(TimeUnit::S, 100, 4096, |n| n * 7_200_000_000_000_000).unwrap();
        assert!(text.contains("less than one request an hour") && text.contains("--time-unit ms"), "{text}");
    }

    #[test]
    fn an_impossible_burst_gives_a_warning() {
        // 64 KiB every 0.7 us are 94 GB/s, for 2000 requests after one second without load.
        let arrival = |n| if n < 100 { n * 10_000_000_000 } else { 1_000_000_000_000 + n * 700_000 };
        let text = warning(TimeUnit::Ns, 2000, 65_536, arrival).unwrap();
        assert!(text.starts_with("1024 requests up to line 1125 "), "{text}");
        assert!(text.contains("--time-unit us"), "{text}");
    }
}
