//! The same run with several seeds.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use floatgate_core::metrics::summary::Summary;
use floatgate_core::sim::text::escaped_lines;
use floatgate_report::compare::{Comparison, group};

use super::progress::Terminal;
use super::session::Chosen;
use super::{RunArgs, files, run_one};
use crate::failure::{Failure, say};
use crate::output::{Lock, SUMMARY, seeds_in};

/// Seeds, from the first to the last.
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

/// Runs with each seed, and prints the figures with their confidence intervals.
pub fn run(args: &RunArgs, seeds: &Seeds, chosen: &Chosen, terminal: &Terminal) -> Result<(), Failure> {
    let Some(out) = &args.out else {
        return Err(Failure::mistake("--seeds needs a directory for the results: give --out DIR"));
    };
    let place = |seed: u64| out.join(format!("seed-{seed}"));
    let all: Vec<u64> = (seeds.first..=seeds.last).collect();
    files::check(args, chosen, Some(&all))?;
    let _lock = Lock::of(out)?;
    refuse_others(args, chosen, out, &all)?;
    for seed in seeds.first..=seeds.last {
        say(&format!("seed {seed} of {} to {}: {}", seeds.first, seeds.last, place(seed).display()));
        run_one(&RunArgs { seed, out: Some(place(seed)), ..args.clone() }, chosen.clone(), terminal)?;
    }
    let places: Vec<PathBuf> = (seeds.first..=seeds.last).map(place).collect();
    let group = group(&out.display().to_string(), &places).map_err(Failure::fault)?;
    let text = escaped_lines(&Comparison::new(&[group]).text()).into_owned();
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(Failure::of_stdout)
}

/// Refuses a directory with results that `floatgate compare` would mix with those of this run: that of a run without
/// `--seeds`, and those of seeds that this run does not write, if they are of another device, workload or version.
fn refuse_others(args: &RunArgs, chosen: &Chosen, out: &Path, seeds: &[u64]) -> Result<(), Failure> {
    let name = out.display();
    if out.join(SUMMARY).exists() {
        return Err(Failure::mistake(format!(
            "--out {name} has the result of a run without --seeds, which `floatgate compare` would read instead of these: \
             give another directory, or remove it"
        )));
    }
    let digest = chosen.config.digest();
    let is_other = |seed: &u64| {
        let text = fs::read_to_string(out.join(format!("seed-{seed}")).join(SUMMARY)).unwrap_or_default();
        let same = |summary: Summary| {
            let again = without_places(args.given.iter().cloned(), *seed);
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

/// What this program was called with, without where results go and how they are printed, and with this seed.
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
    }

    #[test]
    fn a_command_is_told_without_its_places() {
        let given = "run tiny --out=a rw=read --out b --set gc.victim=fifo --json --requests csv --timeline=1ms..2ms --series --seeds 3";
        let arguments = without_places(given.split(' ').map(str::to_owned), 2).join(" ");
        assert_eq!(arguments, "run tiny rw=read --set gc.victim=fifo --seed 2");
    }
}
