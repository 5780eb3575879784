//! Which request: a number, or a place in the distribution.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use anyhow::{Result, bail};
use floatgate_core::sim::request::Operation;
use floatgate_core::sim::time::Time;

use crate::columns::requests::read_latencies;
use crate::number::grouped;

/// Which request of a result.
#[derive(Clone, Debug, PartialEq)]
pub enum Choice {
    /// By its number.
    Number(u64),
    /// By its latency, among those of an operation or all.
    Place(Option<Operation>, Place),
}

/// A place in a distribution of latencies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Place {
    /// The request whose latency this many in 10,000 do not exceed.
    Percentile(u64),
    /// This one from the slowest, which is 1.
    Slowest(u64),
}

const FORM: &str = "write a request's number, or p99, p99.9, max or slowest:3, after read:, write:, trim:, \
                    write_zeroes: or flush: where only those count, like write:p99";

/// As it is written.
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
            None => Err(format!("`{text}` is no request: {FORM}")),
        }
    }
}

/// A percentage with up to two digits behind the point, in parts of 10,000.
fn percentile(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if fraction.len() > 2 || whole.is_empty() || !digits(whole) || !digits(fraction) {
        return None;
    }
    let value = format!("{whole}{fraction:0<2}").parse().ok()?;
    (1..=10_000).contains(&value).then_some(value)
}

/// Bits of a latency that one pass over the requests decides.
const DIGIT: u32 = 16;

/// How many requests of each operation a file holds.
#[derive(Default)]
pub struct There {
    of: [u64; Operation::ALL.len()],
    /// The least number and the greatest.
    numbers: Option<(u64, u64)>,
}

impl There {
    /// Counts.
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

    /// In words, after the name of the file: `has 20 read and 7 trim requests, numbered from 0 to 26`.
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
    /// Those that it is chosen from: of one operation, or all; none for a number, which is chosen from nobody.
    pub fn among(&self) -> Option<Option<Operation>> {
        match self {
            Choice::Number(_) => None,
            Choice::Place(operation, _) => Some(*operation),
        }
    }

    /// The number of the request. Of several with the same latency it is the least.
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
            (_, 0) => bail!("there is no {self}: {} {}", requests.display(), there.said()),
            (0, _) => {
                let last = Choice::Place(operation, Place::Slowest(count));
                bail!("there is no {self}: {} {}; the fastest is {last}", requests.display(), there.said())
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

    /// The latency of this rank, from the least, which is 1. Decided digit by digit, so that memory does not depend on
    /// how many requests there are.
    fn at_rank(&self, requests: &Path, rank: u64, counts: &dyn Fn(Operation) -> bool) -> Result<Time> {
        let (mut prefix, mut rank) = (0u64, rank);
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
    fn choices_are_read() {
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
