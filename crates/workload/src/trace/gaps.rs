//! Gaps between the requests of a trace: shortens long gaps, and detects jumps of the clock.

use super::record::counted;
use crate::sim::time::Time;

/// Gap before a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Gap {
    /// Length in ps.
    pub(super) ps: u128,
    /// Line of the request after the gap.
    pub(super) line: u64,
    /// Number of requests before the gap.
    before: u64,
}

/// Number of requests below which the usual gap is unknown.
const FEW: u64 = 16;
/// Length below which a gap is harmless: one hour, in ps.
const SHORT: u128 = 3_600 * 10_u128.pow(12);
/// Length below which a gap is harmless if only few requests are on one side of it: 100 s, in ps. Such a gap can be
/// nearly the whole length of the trace, which would make mean rates too low.
const SHORT_AT_END: u128 = 100 * 10_u128.pow(12);
/// The requests on one side of a gap are few if they are at most one in this many, or a single one.
const AT_END: u64 = 100;
/// Ratio of a jump to the mean of the other gaps.
const UNUSUAL: u128 = 1_000;

/// Checks the times of a trace, and shortens its gaps.
#[derive(Clone, Debug, Default)]
pub(super) struct Gaps {
    /// Maximum length of a gap in ps.
    max: Option<u128>,
    count: u64,
    last: u128,
    longest: Gap,
    shortened: u64,
    removed: u128,
}

impl Gaps {
    /// Creates a check that shortens gaps to `max`, if given.
    pub(super) fn new(max: Option<Time>) -> Gaps {
        Gaps { max: max.map(|max| u128::from(max.ps())), ..Gaps::default() }
    }

    /// Returns the shortened time of a request since the first one, in ps. `since` is the original time. If time runs
    /// backwards, there is no gap.
    #[inline]
    pub(super) fn shorten(&mut self, since: u128, line: u64) -> u128 {
        let gap = since.saturating_sub(self.last);
        self.last = self.last.max(since);
        self.count += 1;
        if gap > self.longest.ps {
            self.longest = Gap { ps: gap, line, before: self.count - 1 };
        }
        if let Some(max) = self.max
            && gap > max
        {
            self.shortened += 1;
            self.removed += gap - max;
        }
        since.saturating_sub(self.removed)
    }

    /// Returns the gap that takes most of the trace's time and is too long for a real wait. It is usually caused by a
    /// change of the clock, by two recordings in one file, or by a few requests far from all others. Shortened gaps do
    /// not count.
    pub(super) fn jump(&self) -> Option<Gap> {
        let Gap { ps, .. } = self.longest;
        let others = self.last.saturating_sub(ps);
        let short = if self.is_at_end(self.longest) { SHORT_AT_END } else { SHORT };
        let is_usual = self.count < FEW || ps < short || others >= ps;
        let unusual = !is_usual && ps / UNUSUAL >= others / u128::from(self.count - 1);
        (unusual && self.max.is_none_or(|max| ps <= max)).then_some(self.longest)
    }

    /// Returns `true` if only few requests are before or after a gap.
    fn is_at_end(&self, gap: Gap) -> bool {
        let few = gap.before.min(self.count - gap.before);
        few == 1 || few <= self.count / AT_END
    }

    /// Returns a warning about shortened gaps, or about a gap that should be shortened.
    pub(super) fn warning(&self, word: &str) -> Option<String> {
        if self.shortened > 0 {
            let (gaps, removed) = (counted(self.shortened, "gap"), span(self.removed));
            let longest = span(self.longest.ps);
            return Some(format!(
                "{gaps} between requests shortened by --max-gap, by {removed} in all; the longest was {longest}"
            ));
        }
        let jump = self.jump()?;
        let share = jump.ps as f64 / self.last as f64 * 100.0;
        let gap = format!("a gap of {} {}, {share:.4} % of the trace's time", span(jump.ps), jump.before(word));
        if !self.is_at_end(jump) {
            return Some(format!("{gap}: {ADVICE}"));
        }
        let (few, side, leave_out) = if jump.before < self.count - jump.before {
            (jump.before, "before", String::new())
        } else {
            let limit = format!("`--limit {}` leaves what is behind it out, ", jump.before);
            (self.count - jump.before, "behind", limit)
        };
        let only = counted(few, "request");
        Some(format!(
            "{gap}, with only {only} {side} it: rates over the whole time are too low; {leave_out}`--max-gap 1s` \
             shortens longer gaps to 1 s"
        ))
    }
}

/// Advice for jumps.
pub(super) const ADVICE: &str = "if a clock was set there, `--max-gap 1s` shortens longer gaps to 1 s, and `--replay \
                                 depth=N` leaves the times out";

impl Gap {
    /// Describes the position of the gap. `word` is the name of a frame of the trace.
    pub(super) fn before(self, word: &str) -> String {
        format!("before {word} {}", self.line)
    }
}

/// Formats a time in ps.
pub(super) fn span(ps: u128) -> String {
    let s = ps as f64 / 1e12;
    match s {
        s if s >= 2.0 * 86_400.0 => format!("{:.1} days", s / 86_400.0),
        s if s >= 2.0 * 3_600.0 => format!("{:.1} h", s / 3_600.0),
        s if s >= 1.0 => format!("{s:.3} s"),
        s if s >= 1e-3 => format!("{:.3} ms", s * 1e3),
        s => format!("{:.3} us", s * 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u128 = 1_000_000_000_000;

    #[test]
    fn longer_gaps_are_shortened_and_shorter_ones_are_not() {
        let mut gaps = Gaps::new(Some(Time(2 * S as u64)));
        let times = [0, 1, 3, 13, 14, 10, 34].map(|s| gaps.shorten(s * S, 1) / S);
        // 8 s are removed before 13, and 18 s before 34. Requests that are out of order keep their time.
        assert_eq!(times, [0, 1, 3, 5, 6, 2, 8]);
        let said = gaps.warning("line").unwrap();
        assert!(said.contains("2 gaps between requests shortened by --max-gap, by 26.000 s in all"), "{said}");
        assert!(said.contains("the longest was 20.000 s"), "{said}");
    }

    #[test]
    fn a_changed_clock_is_reported_with_its_line() {
        let jump = |max: Option<Time>, count: u64, at: u64, by: u128| {
            let mut gaps = Gaps::new(max);
            for n in 0..count {
                let late = if n >= at { by } else { 0 };
                gaps.shorten(u128::from(n) * S / 100 + late, n + 1);
            }
            gaps.jump().map(|gap| gap.line)
        };
        assert_eq!(jump(None, 100, 50, 86_400 * S), Some(51));
        assert_eq!(jump(Some(Time(S as u64)), 100, 50, 86_400 * S), None);
        // Too few requests, only half an hour, and a gap like all others.
        assert_eq!(jump(None, 10, 5, 86_400 * S), None);
        assert_eq!(jump(None, 100, 50, 1_800 * S), None);
        // The last of 100 requests is 1,000 s late, or all but the first are. 50 s are not reported.
        assert_eq!(jump(None, 100, 99, 1_000 * S), Some(100));
        assert_eq!(jump(None, 100, 1, 1_000 * S), Some(2));
        assert_eq!(jump(None, 100, 99, 50 * S), None);
        assert_eq!(jump(None, 1000, 990, 1_000 * S), Some(991));
        assert_eq!(jump(None, 1000, 989, 1_000 * S), None);
        let mut daily = Gaps::new(None);
        (0..100).for_each(|n| assert!(daily.shorten(n * 86_400 * S, 1) == n * 86_400 * S));
        assert_eq!(daily.jump(), None);
        let mut gaps = Gaps::new(None);
        for n in 0..100_u64 {
            gaps.shorten(u128::from(n / 50) * 10 * 86_400 * S + u128::from(n), n + 1);
        }
        let said = gaps.warning("line").unwrap();
        assert!(said.contains("10.0 days before line 51") && said.contains("--max-gap 1s"), "{said}");
    }

    #[test]
    fn distant_requests_are_reported() {
        let said = |before: u64, after: u64| {
            let mut gaps = Gaps::new(None);
            for n in 0..before + after {
                let late = if n >= before { 1_000 * S } else { 0 };
                gaps.shorten(u128::from(n) * S / 100 + late, n + 1);
            }
            gaps.warning("line").unwrap()
        };
        let last = said(99, 1);
        assert!(last.contains("a gap of 1000.010 s before line 100, 99.90"), "{last}");
        assert!(last.contains("only 1 request behind it: rates over the whole time are too low"), "{last}");
        assert!(last.contains("`--limit 99`") && last.contains("`--max-gap 1s`"), "{last}");
        let first = said(2, 500);
        assert!(first.contains("before line 3") && first.contains("only 2 requests before it"), "{first}");
        assert!(!first.contains("--limit"), "{first}");
    }
}
