//! Choice of a request: by number, or by position in the latency distribution.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use anyhow::{Result, bail};
use floatgate_core::sim::request::Operation;
use floatgate_core::sim::time::Time;

use crate::columns::requests::read_latencies;
use crate::number::grouped;

/// Choice of a request of a result.
#[derive(Clone, Debug, PartialEq)]
pub enum Choice {
    /// The number of the request.
    Number(u64),
    /// The latency of the request, among the requests of an operation or all requests.
    Place(Option<Operation>, Place),
}

/// A position in a latency distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Place {
    /// Percentile of the latency, in parts of 10,000.
    Percentile(u64),
    /// Rank from the slowest request, which has rank 1.
    Slowest(u64),
}

const FORM: &str = "expected a number, or p99, p99.9, max or slowest:3; to count only some requests, write read:, \
                    write:, trim:, write_zeroes: or flush: first, such as write:p99";

/// Formats the choice in the syntax of the command line.
impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let (operation, place) = match self {
            Choice::Number(number) => return write!(f, "{number}"),
            Choice::Place(operation, place) => (operation, place),
        };
        if let Some(operation) = operation {
            write!(f, "{}:", operation.name())?;
        }
        match place {
            Place::Percentile(share) => write!(f, "p{}", *share as f64 / 100.0),
            Place::Slowest(1) => f.write_str("max"),
            Place::Slowest(rank) => write!(f, "slowest:{rank}"),
        }
    }
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Choice, String> {
        if let Ok(number) = text.parse() {
            return Ok(Choice::Number(number));
        }
        let named = |name: &str| Operation::ALL.into_iter().find(|operation| operation.name() == name);
        let (operation, place) = match text.split_once(':').map(|(name, rest)| (named(name), rest)) {
            Some((Some(operation), rest)) => (Some(operation), rest),
            _ => (None, text),
        };
        let place = match place.strip_prefix("slowest:") {
            Some(rank) => rank.parse().ok().filter(|rank| *rank > 0).map(Place::Slowest),
            None if place == "max" => Some(Place::Slowest(1)),
            None => place.strip_prefix('p').and_then(percentile).map(Place::Percentile),
        };
        match place {
            Some(place) => Ok(Choice::Place(operation, place)),
            None => Err(format!("invalid request `{text}`: {FORM}")),
        }
    }
}

/// Parses a percentage with up to two decimal places, in parts of 10,000.
fn percentile(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if fraction.len() > 2 || whole.is_empty() || !digits(whole) || !digits(fraction) {
        return None;
    }
    let value = format!("{whole}{fraction:0<2}").parse().ok()?;
    (1..=10_000).contains(&value).then_some(value)
}

/// Number of latency bits that one pass over the requests determines.
const DIGIT: u32 = 16;

/// Number of requests of each operation in a file.
#[derive(Default)]
pub struct There {
    of: [u64; Operation::ALL.len()],
    /// Smallest and greatest request number.
    numbers: Option<(u64, u64)>,
}

impl There {
    /// Counts the requests of a file.
    pub fn of(requests: &Path) -> Result<There> {
        let mut there = There::default();
        read_latencies(requests, &mut |number, operation, _| {
            there.of[operation.index()] += 1;
            let (least, most) = there.numbers.unwrap_or((number, number));
            there.numbers = Some((least.min(number), most.max(number)));
        })?;
        Ok(there)
    }

    fn all(&self) -> u64 {
        self.of.iter().sum()
    }

    /// Returns a text that follows the name of the file: `has 20 read and 7 trim requests, numbered from 0 to 26`.
    pub fn said(&self) -> String {
        let Some((least, most)) = self.numbers else { return "holds no request".to_owned() };
        let there = Operation::ALL.into_iter().filter(|operation| self.of[operation.index()] > 0);
        let counts = there.map(|operation| format!("{} {}", grouped(self.of[operation.index()]), operation.name()));
        let counts = counts.collect::<Vec<_>>().join(" and ");
        let plural = if self.all() == 1 { "" } else { "s" };
        format!("has {counts} request{plural}, numbered from {least} to {most}")
    }
}

impl Choice {
    /// Returns the operation whose requests are ranked, or `Some(None)` for all requests. Returns `None` for a number.
    pub fn among(&self) -> Option<Option<Operation>> {
        match self {
            Choice::Number(_) => None,
            Choice::Place(operation, _) => Some(*operation),
        }
    }

    /// Returns the number of the request. If several have the same latency, it is the smallest number.
    pub fn find(&self, requests: &Path) -> Result<u64> {
        let (operation, place) = match self {
            Choice::Number(number) => return Ok(*number),
            Choice::Place(operation, place) => (*operation, *place),
        };
        let counts = |of: Operation| operation.is_none_or(|only| only == of);
        let there = There::of(requests)?;
        let count = operation.map_or(there.all(), |operation| there.of[operation.index()]);
        let rank = match place {
            Place::Percentile(share) => (u128::from(count) * u128::from(share)).div_ceil(10_000) as u64,
            Place::Slowest(rank) => (count + 1).saturating_sub(rank),
        };
        match (rank, count) {
            (_, 0) => bail!("no request {self}: {} {}", requests.display(), there.said()),
            (0, _) => {
                let last = Choice::Place(operation, Place::Slowest(count));
                bail!("no request {self}: {} {}; the fastest is {last}", requests.display(), there.said())
            }
            _ => {}
        }
        let latency = self.at_rank(requests, rank, &counts)?;
        let mut found = None;
        read_latencies(requests, &mut |number, of, other| {
            if counts(of) && other == latency {
                found = Some(found.map_or(number, |least: u64| least.min(number)));
            }
        })?;
        found.ok_or_else(|| anyhow::anyhow!("{} changed while it was read", requests.display()))
    }

    /// Returns the latency of this rank; the lowest latency has rank 1. The latency is determined digit by digit, so
    /// that memory use does not depend on the number of requests.
    fn at_rank(&self, requests: &Path, rank: u64, counts: &dyn Fn(Operation) -> bool) -> Result<Time> {
        let mut prefix = 0u64;
        let mut rank = rank;
        for shift in (0..u64::BITS).step_by(DIGIT as usize).rev() {
            let mut of_digit = vec![0u64; 1 << DIGIT];
            read_latencies(requests, &mut |_, of, latency| {
                let above = latency.ps().checked_shr(shift + DIGIT).unwrap_or(0);
                if counts(of) && above == prefix {
                    of_digit[(latency.ps() >> shift) as usize % (1 << DIGIT)] += 1;
                }
            })?;
            let digit = of_digit.iter().position(|count| {
                let here = rank <= *count;
                if !here {
                    rank -= count;
                }
                here
            });
            prefix = (prefix << DIGIT) + digit.unwrap_or(0) as u64;
        }
        Ok(Time(prefix))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_parsed() {
        let parsed = |text: &str| text.parse::<Choice>().ok();
        let place = |operation, place| Some(Choice::Place(operation, place));
        assert_eq!(parsed("17"), Some(Choice::Number(17)));
        assert_eq!(parsed("max"), place(None, Place::Slowest(1)));
        assert_eq!(parsed("p99.9"), place(None, Place::Percentile(9990)));
        assert_eq!(parsed("write:p50"), place(Some(Operation::Write), Place::Percentile(5000)));
        assert_eq!(parsed("read:slowest:3"), place(Some(Operation::Read), Place::Slowest(3)));
        for wrong in ["", "p", "p101", "p0", "p99.999", "slowest:0", "slowest", "erase:p99", "-1", "read:7"] {
            assert_eq!(parsed(wrong), None, "{wrong}");
        }
        for text in ["17", "max", "p99.9", "write:p50", "trim:p0.01", "read:slowest:3", "write_zeroes:p100"] {
            assert_eq!(parsed(text).unwrap().to_string(), text);
        }
    }
}
