//! The time between the requests of a trace: gaps that are longer than wanted, and those that are no time in which
//! somebody waited, but a clock that was set.

use super::counted;
use crate::sim::time::Time;

/// A gap before a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Gap {
    /// How long it is, in ps.
    pub(super) ps: u128,
    /// The line of the request behind it.
    pub(super) line: u64,
    /// Requests before it.
    before: u64,
}

/// Requests below which nothing can be said of what is usual.
const FEW: u64 = 16;
/// Shorter gaps do no harm: an hour, in ps.
const SHORT: u128 = 3_600 * 10_u128.pow(12);
/// As little as that, 100 s, does harm where few requests are on one side of the gap: rates over the whole time are
/// those of a trace that is nearly all gap.
const SHORT_AT_END: u128 = 100 * 10_u128.pow(12);
/// One request in so many, or a single one, is few.
const AT_END: u64 = 100;
/// By how much a jump is longer than the mean of the other gaps.
const UNUSUAL: u128 = 1_000;

/// Watches the times of a trace go by, and shortens what lies between them.
#[derive(Clone, Debug, Default)]
pub(super) struct Gaps {
    /// The longest that a gap may be, in ps.
    most: Option<u128>,
    count: u64,
    last: u128,
    longest: Gap,
    shortened: u64,
    removed: u128,
}

impl Gaps {
    /// Gaps that become no longer than `most`, where that is given.
    pub(super) fn new(most: Option<Time>) -> Gaps {
        Gaps { most: most.map(|most| u128::from(most.ps())), ..Gaps::default() }
    }

    /// The time of a request, from its time since the first one, in ps; without what was taken out before it. Time that
    /// runs backwards has no gap.
    #[inline]
    pub(super) fn shorten(&mut self, since: u128, line: u64) -> u128 {
        let gap = since.saturating_sub(self.last);
        self.last = self.last.max(since);
        self.count += 1;
        if gap > self.longest.ps {
            self.longest = Gap { ps: gap, line, before: self.count - 1 };
        }
        if let Some(most) = self.most
            && gap > most
        {
            self.shortened += 1;
            self.removed += gap - most;
        }
        since.saturating_sub(self.removed)
    }

    /// The gap that is most of the trace, and longer than anyone waits: as a rule a clock that was set, or two
    /// recordings in one file; or a few requests far from all others. Not one that is shortened.
    pub(super) fn jump(&self) -> Option<Gap> {
        let Gap { ps, .. } = self.longest;
        let others = self.last.saturating_sub(ps);
        let short = if self.is_at_end(self.longest) { SHORT_AT_END } else { SHORT };
        let is_usual = self.count < FEW || ps < short || others >= ps;
        let unusual = !is_usual && ps / UNUSUAL >= others / u128::from(self.count - 1);
        (unusual && self.most.is_none_or(|most| ps <= most)).then_some(self.longest)
    }

    /// Whether few requests are before or behind a gap.
    fn is_at_end(&self, gap: Gap) -> bool {
        let few = gap.before.min(self.count - gap.before);
        few == 1 || few <= self.count / AT_END
    }

    /// What was done, or should be.
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

/// What to do with a jump.
pub(super) const ADVICE: &str = "if a clock was set there, `--max-gap 1s` shortens longer gaps to 1 s, and `--replay \
                                 depth=N` leaves the times out";

impl Gap {
    /// Where it is; `word` is what the trace is made of.
    pub(super) fn before(self, word: &str) -> String {
        format!("before {word} {}", self.line)
    }
}

/// A time for people, from ps.
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
        // 8 s go before 13, and 18 s before 34; what comes out of order is left where it is.
        assert_eq!(times, [0, 1, 3, 5, 6, 2, 8]);
        let said = gaps.warning("line").unwrap();
        assert!(said.contains("2 gaps between requests shortened by --max-gap, by 26.000 s in all"), "{said}");
        assert!(said.contains("the longest was 20.000 s"), "{said}");
    }

    #[test]
    fn a_clock_that_was_set_is_told_with_its_line() {
        let jump = |most: Option<Time>, count: u64, at: u64, by: u128| {
            let mut gaps = Gaps::new(most);
            for n in 0..count {
                let late = if n >= at { by } else { 0 };
                gaps.shorten(u128::from(n) * S / 100 + late, n + 1);
            }
            gaps.jump().map(|gap| gap.line)
        };
        assert_eq!(jump(None, 100, 50, 86_400 * S), Some(51));
        assert_eq!(jump(Some(Time(S as u64)), 100, 50, 86_400 * S), None);
        // Too few requests, half an hour only, and a gap as they all are.
        assert_eq!(jump(None, 10, 5, 86_400 * S), None);
        assert_eq!(jump(None, 100, 50, 1_800 * S), None);
        // The last of 100 requests comes 1,000 s late, or all but the first; not 50 s.
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
    fn a_few_requests_far_from_the_others_are_told() {
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
