//! Ends and depths of sources that depend on their completions, as in fio: steady states, searches for a depth, flows,
//! and sources that end others.

use std::collections::VecDeque;

use crate::sim::request::Completion;
use crate::sim::source::{Control, DepthSearch, Measure, SteadyState};
use crate::sim::time::Time;

/// State of the control of a source.
pub(super) struct Controller {
    pub(super) control: Control,
    meter: Option<Meter>,
    search: Option<Search>,
    /// True after the depth was reached, until few enough requests are outstanding.
    draining: bool,
    /// Number of issued requests, which the flow counts.
    pub(super) issued: u64,
    /// True if the control has ended the source.
    has_ended: bool,
}

/// Consequence of a completion.
#[derive(Debug, PartialEq)]
pub(super) enum Verdict {
    /// The source continues.
    Continue,
    /// The source ends. Gives the outcome.
    End(String),
    /// The depth was found, and the measured part starts.
    Measure,
    /// The run fails.
    Fail(String),
}

impl Controller {
    /// Creates the state of the source at a position. `None` if the source needs no control.
    pub(super) fn new(control: Control, index: usize) -> Option<Box<Controller>> {
        if control == Control::default() {
            return None;
        }
        let judges = control.together.is_empty() || control.together.start == index;
        let meter = control.steady.filter(|_| judges).map(Meter::new);
        let search = control.search.map(Search::new);
        Some(Box::new(Controller { control, meter, search, draining: false, issued: 0, has_ended: false }))
    }

    /// Starts the control at `now`.
    pub(super) fn start(&mut self, now: Time) {
        if let Some(meter) = &mut self.meter {
            meter.end = now.later(meter.of.ramp).later(meter.of.interval);
            meter.begin = now.later(meter.of.ramp);
        }
        if let Some(search) = &mut self.search {
            search.since = now;
        }
    }

    /// Returns `true` if only completions of a depth that is yet to be found are excluded from the results.
    pub(super) fn measures_later(&self) -> bool {
        self.search.as_ref().is_some_and(|search| !search.of.continues)
    }

    /// Returns the number of requests that may be outstanding, given the depth of the source.
    pub(super) fn depth(&self, depth: u32) -> u32 {
        if self.draining || self.search.as_ref().is_some_and(|search| search.quiesces) {
            return 0;
        }
        self.search.as_ref().map_or(depth, |search| search.depth.min(depth))
    }

    /// Notes that a request was issued.
    pub(super) fn issued(&mut self, depth: u32, outstanding: u32) {
        self.issued += 1;
        self.draining = self.control.refill_at.is_some() && outstanding >= depth;
    }

    /// Notes a completion after which `outstanding` requests are left.
    pub(super) fn completed(&mut self, completion: &Completion, outstanding: u32, now: Time) -> Verdict {
        self.draining &= self.control.refill_at.is_some_and(|refill| outstanding > refill);
        if self.has_ended || completion.request.bytes() == 0 {
            return Verdict::Continue;
        }
        let Some(search) = &mut self.search else { return Verdict::Continue };
        let latency = completion.finish.since(completion.request.arrival);
        let verdict = search.completed(latency, now);
        let verdict = if verdict == Verdict::Continue { search.quiesced(outstanding, now) } else { verdict };
        self.has_ended = matches!(verdict, Verdict::End(_));
        verdict
    }

    /// Notes a completion of a source that this control judges. Returns the outcome when the state is steady.
    pub(super) fn judge(&mut self, completion: &Completion, now: Time) -> Option<String> {
        let bytes = completion.request.bytes();
        let meter = self.meter.as_mut().filter(|_| !self.has_ended && bytes > 0)?;
        meter.completed(bytes, completion.finish.since(completion.request.arrival), now)
    }

    /// Notes that the source has ended, because the state is steady.
    pub(super) fn end(&mut self) {
        self.has_ended = true;
    }

    /// Returns the outcome if the source ends before its control has ended it.
    pub(super) fn unfinished(&self) -> Option<String> {
        if self.has_ended {
            return None;
        }
        if let Some(meter) = &self.meter {
            let last = meter.criterion.map_or_else(String::new, |value| format!(" (the last criterion is {value:.4})"));
            return Some(format!("the steady state was not reached{last}: give the job more time, or a higher limit"));
        }
        let search = self.search.as_ref()?;
        let depth = search.depth;
        Some(if search.of.continues || search.is_last {
            format!("latency_target ended at a depth of {depth}")
        } else {
            format!("the search of latency_target ended at a depth of {depth}, before it had found one")
        })
    }
}

/// Meter of rates or latencies for a steady state.
struct Meter {
    of: SteadyState,
    begin: Time,
    /// End of the current interval.
    end: Time,
    requests: u64,
    bytes: u64,
    /// Sum of latencies, in picoseconds.
    latency: u128,
    /// Measurements of the latest intervals.
    rates: VecDeque<f64>,
    /// Latest value of the criterion.
    criterion: Option<f64>,
}

impl Meter {
    fn new(of: SteadyState) -> Meter {
        let rates = VecDeque::with_capacity(of.intervals as usize);
        Meter { of, begin: Time::ZERO, end: Time::NEVER, requests: 0, bytes: 0, latency: 0, rates, criterion: None }
    }

    /// Notes a completion. Returns the outcome when the state is steady.
    fn completed(&mut self, bytes: u64, latency: Time, now: Time) -> Option<String> {
        while now >= self.end {
            if self.close() {
                let [rate, unit] = match self.of.measure {
                    Measure::Requests => ["iops", "requests/s"],
                    Measure::Bytes => ["bw", "B/s"],
                    Measure::Latency => ["lat", "ns"],
                };
                let mean = self.rates.iter().sum::<f64>() / self.rates.len() as f64;
                let after = self.end.since(self.begin.min(self.end)).as_s();
                return Some(format!("the steady state ({rate}) was reached after {after:.3} s at {mean:.0} {unit}"));
            }
            self.end = self.end.later(self.of.interval);
        }
        if now >= self.begin {
            self.requests += 1;
            self.bytes += bytes;
            self.latency += u128::from(latency.0);
        }
        None
    }

    /// Ends an interval. Returns `true` if the state is steady.
    fn close(&mut self) -> bool {
        let seconds = self.of.interval.as_s();
        self.rates.push_back(match self.of.measure {
            Measure::Requests => self.requests as f64 / seconds,
            Measure::Bytes => self.bytes as f64 / seconds,
            Measure::Latency => self.latency as f64 / 1000.0 / self.requests.max(1) as f64,
        });
        (self.requests, self.bytes, self.latency) = (0, 0, 0);
        if self.rates.len() < self.of.intervals as usize {
            return false;
        }
        let criterion = criterion(&self.rates, &self.of);
        self.criterion = Some(criterion);
        let is_steady = criterion < self.of.limit;
        if !is_steady {
            self.rates.pop_front();
        }
        is_steady
    }
}

/// Returns the criterion of fio's `steadystate`: the absolute slope for each interval, or the largest deviation.
fn criterion(rates: &VecDeque<f64>, of: &SteadyState) -> f64 {
    let count = rates.len() as f64;
    let mean = rates.iter().sum::<f64>() / count;
    let value = if of.is_slope {
        let middle = (count - 1.0) / 2.0;
        let offsets = || (0..rates.len()).map(|index| index as f64 - middle);
        let squares: f64 = offsets().map(|offset| offset * offset).sum();
        let products: f64 = offsets().zip(rates).map(|(offset, rate)| offset * rate).sum();
        if squares > 0.0 { (products / squares).abs() } else { 0.0 }
    } else {
        rates.iter().map(|rate| (rate - mean).abs()).fold(0.0, f64::max)
    };
    if of.is_percent { 100.0 * value / mean } else { value }
}

/// Search for a depth, as in fio's `lat_target_check`.
struct Search {
    of: DepthSearch,
    depth: u32,
    low: u32,
    high: u32,
    /// Number of successes in a row at the depth below `high`.
    stable: u32,
    /// Start of the current trial, its requests, and those that missed the target.
    since: Time,
    requests: u64,
    missed: u64,
    /// True until the outstanding requests have completed.
    quiesces: bool,
    /// True in the measured trial.
    is_last: bool,
}

impl Search {
    fn new(of: DepthSearch) -> Search {
        Search {
            of,
            depth: 1,
            low: 1,
            high: of.depth,
            stable: 0,
            since: Time::ZERO,
            requests: 0,
            missed: 0,
            quiesces: false,
            is_last: false,
        }
    }

    /// Notes a completion. Those of a higher depth, which has failed, do not count.
    fn completed(&mut self, latency: Time, now: Time) -> Verdict {
        if self.quiesces {
            return Verdict::Continue;
        }
        self.requests += 1;
        if latency > self.of.target {
            if self.of.percentile >= 100.0 {
                return self.fail(now);
            }
            self.missed += 1;
        }
        if now.since(self.since) < self.of.window {
            return Verdict::Continue;
        }
        let met = 100.0 * (self.requests - self.missed) as f64 / self.requests as f64;
        if met >= self.of.percentile { self.succeed(now) } else { self.fail(now) }
    }

    /// Starts a trial, after the requests before it have completed.
    fn quiesced(&mut self, outstanding: u32, now: Time) -> Verdict {
        if !self.quiesces || outstanding > 0 {
            return Verdict::Continue;
        }
        self.quiesces = false;
        self.renew(now);
        if self.is_last { Verdict::Measure } else { Verdict::Continue }
    }

    /// Starts the next trial.
    fn renew(&mut self, now: Time) {
        (self.since, self.requests, self.missed) = (now, 0, 0);
    }

    fn fail(&mut self, now: Time) -> Verdict {
        if self.depth == 1 {
            return Verdict::Fail(
                "`latency_target` is not met with one outstanding request; raise it, or lower latency_percentile"
                    .to_owned(),
            );
        }
        self.high = self.depth;
        if self.depth == self.low {
            self.low -= 1;
        }
        self.depth = (self.depth + self.low) / 2;
        self.stable = 0;
        self.quiesces = true;
        self.renew(now);
        Verdict::Continue
    }

    fn succeed(&mut self, now: Time) -> Verdict {
        let before = self.depth;
        self.low = before;
        if before + 1 == self.high {
            self.stable += 1;
            if self.stable >= 3 {
                self.high += 1;
                self.stable = 0;
            }
        }
        let next = if self.high != self.of.depth { (before + self.high) / 2 } else { before.saturating_mul(2) };
        self.depth = next.min(self.of.depth);
        self.renew(now);
        if self.of.continues || self.depth != before {
            return Verdict::Continue;
        }
        if self.is_last {
            return Verdict::End(format!("latency_target is met up to a depth of {before}"));
        }
        (self.is_last, self.quiesces) = (true, true);
        Verdict::Continue
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steady(is_slope: bool, is_percent: bool) -> SteadyState {
        let interval = Time::from_ns(1_000_000_000);
        let (measure, limit, intervals, ramp) = (Measure::Requests, 1.0, 4, Time::ZERO);
        SteadyState { measure, is_slope, is_percent, limit, interval, intervals, ramp }
    }

    /// Values by the formulas of fio's documentation, worked out by hand.
    #[test]
    fn criteria_are_those_of_fio() {
        let rates = VecDeque::from([100.0, 110.0, 120.0, 130.0]);
        assert_eq!(criterion(&rates, &steady(true, false)), 10.0);
        assert_eq!(criterion(&rates, &steady(true, true)), 1000.0 / 115.0);
        assert_eq!(criterion(&rates, &steady(false, false)), 15.0);
        let falling = VecDeque::from([130.0, 120.0, 110.0, 100.0]);
        assert_eq!(criterion(&falling, &steady(true, false)), 10.0);
        assert_eq!(criterion(&VecDeque::from([5.0; 4]), &steady(false, true)), 0.0);
    }

    /// Depths of fio's algorithm for a device that meets the target up to a depth of 11.
    #[test]
    fn a_search_doubles_and_then_bisects() {
        let us = |us: u64| Time::from_ns(us * 1000);
        let of = DepthSearch { target: us(100), window: us(1000), percentile: 99.0, depth: 64, continues: false };
        let mut search = Search::new(of);
        let (mut depths, mut now, mut measured) = (vec![search.depth], Time::ZERO, 0);
        let outcome = loop {
            now = now.later(us(1000));
            let latency = if search.depth > 11 { us(101) } else { us(99) };
            match search.completed(latency, now) {
                Verdict::Continue => measured += u32::from(search.quiesced(0, now) == Verdict::Measure),
                end => break end,
            }
            depths.push(search.depth);
            assert!(depths.len() < 100, "{depths:?}");
        };
        assert_eq!(depths[..8], [1, 2, 4, 8, 16, 12, 10, 11]);
        assert_eq!((measured, outcome), (1, Verdict::End("latency_target is met up to a depth of 11".to_owned())));
    }
}
