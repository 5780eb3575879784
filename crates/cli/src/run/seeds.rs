//! Several runs that differ in their seed.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use floatgate_core::metrics::summary::Summary;
use floatgate_report::compare::{Comparison, group};

use super::chosen::Chosen;
use super::files;
use super::spec::RunSpec;
use super::traces::Traces;
use crate::failure::Failure;
use crate::output::{Lock, SUMMARY, seeds_in};

/// Seeds, from the first to the last. Written as `A..B`, or as `N` for 1 to N.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seeds {
    first: u64,
    last: u64,
}

/// The most seeds of one command.
const MOST: u64 = 1000;

impl FromStr for Seeds {
    type Err = String;

    fn from_str(text: &str) -> Result<Seeds, String> {
        let (first, last) = text.split_once("..").unwrap_or(("1", text));
        let number = |text: &str| text.parse::<u64>().ok();
        let seeds = number(first).zip(number(last)).map(|(first, last)| Seeds { first, last });
        let seeds = seeds.filter(|seeds| seeds.first < seeds.last && seeds.last - seeds.first < MOST);
        seeds.ok_or_else(|| format!("give a number from 2 to {MOST}, or the first and the last of 2 to {MOST} as A..B"))
    }
}

impl fmt::Display for Seeds {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}..{}", self.first, self.last)
    }
}

impl Seeds {
    /// Returns all seeds, in order.
    fn all(self) -> Vec<u64> {
        (self.first..=self.last).collect()
    }
}

/// Runs of one specification with several seeds: one after the other, each into a directory of its own.
#[derive(Debug)]
pub struct SeedRuns {
    seeds: Seeds,
    specs: Vec<RunSpec>,
    out: PathBuf,
    _lock: Lock,
}

impl SeedRuns {
    /// Checks and locks the directory of a specification that has seeds.
    pub fn open(spec: &RunSpec, traces: &Traces, chosen: &Chosen) -> Result<SeedRuns, Failure> {
        spec.check()?;
        let (Some(seeds), Some(out)) = (spec.seeds, &spec.out) else {
            return Err(Failure::mistake("--seeds needs a directory for the results: give --out DIR"));
        };
        let all = seeds.all();
        files::check(spec, traces, chosen, Some(&all))?;
        let lock = Lock::of(out)?;
        refuse_others(spec, chosen, out, &all)?;
        let one = |seed| RunSpec { seed, seeds: None, out: Some(place(out, seed)), ..spec.clone() };
        Ok(SeedRuns { seeds, specs: all.into_iter().map(one).collect(), out: out.clone(), _lock: lock })
    }

    /// Returns the first and the last seed.
    pub fn range(&self) -> (u64, u64) {
        (self.seeds.first, self.seeds.last)
    }

    /// Returns the runs, a specification for each seed.
    pub fn specs(&self) -> &[RunSpec] {
        &self.specs
    }

    /// Compares the results, after all runs: mean values with their confidence intervals.
    pub fn comparison(&self) -> Result<Comparison, Failure> {
        let places: Vec<PathBuf> = self.specs.iter().map(|spec| place(&self.out, spec.seed)).collect();
        let group = group(&self.out.display().to_string(), &places).map_err(Failure::fault)?;
        Ok(Comparison::new(&[group]))
    }
}

/// Returns the directory for the result of a seed.
fn place(out: &Path, seed: u64) -> PathBuf {
    out.join(format!("seed-{seed}"))
}

/// Refuses a directory with results that `floatgate compare` would mix with those of this run: that of a run without
/// `--seeds`, and those of seeds that this run does not write, if they are of another device, workload or version.
fn refuse_others(spec: &RunSpec, chosen: &Chosen, out: &Path, seeds: &[u64]) -> Result<(), Failure> {
    let name = out.display();
    if out.join(SUMMARY).exists() {
        return Err(Failure::mistake(format!(
            "--out {name} has the result of a run without --seeds, which `floatgate compare` would read instead of these: \
             give another directory, or remove it"
        )));
    }
    let digest = chosen.config.digest();
    let is_other = |seed: &u64| {
        let text = fs::read_to_string(place(out, *seed).join(SUMMARY)).unwrap_or_default();
        let same = |summary: Summary| {
            let again = RunSpec { seed: *seed, ..spec.clone() }.arguments();
            summary.config_digest == digest
                && summary.version == env!("CARGO_PKG_VERSION")
                && summary.arguments == again
        };
        !Summary::from_json(&text).is_ok_and(same)
    };
    let others = seeds_in(out).into_iter().filter(|seed| !seeds.contains(seed));
    let others: Vec<String> = others.filter(is_other).map(|seed| format!("{name}/seed-{seed}")).collect();
    let (Some(first), more) = (others.first(), others.len().saturating_sub(1)) else { return Ok(()) };
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    Err(Failure::mistake(format!(
        "--out {name} has {first}{more} of another run, which this one would not replace and `floatgate compare` would \
         read with it: remove what is stale, or give another directory"
    )))
}

/// Returns a command line without the places of results and the way in which they are printed, and with this seed.
pub fn without_places(given: impl Iterator<Item = String>, seed: u64) -> Vec<String> {
    const WITH_VALUE: [&str; 5] = ["--out", "--requests", "--save-state", "--seed", "--seeds"];
    // Their values, if any, stand behind `=`.
    const WITHOUT_VALUE: [&str; 3] = ["--json", "--series", "--timeline"];
    let mut kept = Vec::new();
    let mut value_follows = false;
    for argument in given {
        let name = argument.split('=').next().unwrap_or_default();
        if std::mem::take(&mut value_follows) || WITHOUT_VALUE.contains(&name) {
            continue;
        }
        match WITH_VALUE.contains(&name) {
            true => value_follows = name == argument,
            false => kept.push(argument),
        }
    }
    kept.extend(["--seed".to_owned(), seed.to_string()]);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_a_number_or_a_range() {
        assert_eq!("3".parse(), Ok(Seeds { first: 1, last: 3 }));
        assert_eq!("7..9".parse(), Ok(Seeds { first: 7, last: 9 }));
        for wrong in ["0", "1", "x", "5..5", "9..7", "1..1001", "-1", ""] {
            assert!(wrong.parse::<Seeds>().is_err(), "{wrong}");
        }
        assert!("1000".parse::<Seeds>().is_ok());
        assert_eq!("3".parse::<Seeds>().unwrap().to_string(), "1..3");
    }

    #[test]
    fn a_command_is_told_without_its_places() {
        let given = "run tiny --out=a rw=read --out b --set gc.victim=fifo --json --requests csv --timeline=1ms..2ms --series --seeds 3";
        let arguments = without_places(given.split(' ').map(str::to_owned), 2).join(" ");
        assert_eq!(arguments, "run tiny rw=read --set gc.victim=fifo --seed 2");
    }
}
