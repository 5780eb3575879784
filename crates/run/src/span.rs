//! Spans of simulated time, as values of options.

use std::fmt;
use std::str::FromStr;

use floatgate_core::device_file::Duration;
use floatgate_core::sim::time::Time;

/// Span of simulated time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Start.
    pub from: Time,
    /// End.
    pub to: Time,
}

impl Span {
    /// All of simulated time.
    pub const WHOLE: Span = Span { from: Time::ZERO, to: Time::NEVER };
}

impl FromStr for Span {
    type Err = String;

    /// Parses `FROM..TO`. Either end may be omitted.
    fn from_str(text: &str) -> Result<Span, String> {
        let (from, to) = text.split_once("..").ok_or("expected a span of simulated time, such as 10ms..12ms")?;
        let time = |text: &str| text.trim().parse::<Duration>().map(Duration::time);
        let from = if from.trim().is_empty() { Time::ZERO } else { time(from)? };
        let to = if to.trim().is_empty() { Time::NEVER } else { time(to)? };
        if from < to { Ok(Span { from, to }) } else { Err("the span must end after its start".to_owned()) }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let text = |at: Time, open| if at == open { String::new() } else { Duration(at.ps()).to_string() };
        write!(f, "{}..{}", text(self.from, Time::ZERO), text(self.to, Time::NEVER))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_may_omit_an_end() {
        let span = |text: &str| text.parse::<Span>();
        let parsed = |text| span(text).map(|span| (span.from, span.to));
        assert_eq!(parsed("10ms..12ms"), Ok((Time::from_us(10_000), Time::from_us(12_000))));
        assert_eq!(parsed("..5us"), Ok((Time::ZERO, Time::from_us(5))));
        assert_eq!(parsed("5us.."), Ok((Time::from_us(5), Time::NEVER)));
        assert!(parsed("5us..5us").is_err() && parsed("5us").is_err() && parsed("1..2").is_err());
    }
}
