//! Input of a comparison: reads results and assigns them to groups.

use std::fs;
use std::path::{Path, PathBuf};

use floatgate_core::sim::text::read_text;
use floatgate_core::summary::{ReadError, Summary};

use super::{Group, Run, same_but_seed};
use crate::digests::Checked;

/// An error in the results to compare.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// A file cannot be read.
    #[error("cannot read {path}: {error}")]
    Unreadable {
        /// The file.
        path: String,
        /// The cause.
        error: std::io::Error,
    },
    /// A file is not a result.
    #[error("{path}: {error}")]
    NoResult {
        /// The file.
        path: String,
        /// The cause.
        error: ReadError,
    },
    /// A file was changed after its run.
    #[error("{0}")]
    Damaged(String),
    /// Neither a result nor a directory with one.
    #[error("{0} has no summary.json and no seed-*/summary.json; give the directory of a result, or its summary.json")]
    Empty(String),
    /// A pattern that is invalid or matches no path.
    #[error("{pattern}: {what}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// The cause.
        what: String,
    },
    /// A group contains the same run twice.
    #[error("{first} and {second} are the same run of {label}, with seed {seed}; give runs with different seeds")]
    Twice {
        /// The group.
        label: String,
        /// Name of one file.
        first: String,
        /// Name of the other file.
        second: String,
        /// Seed of both runs.
        seed: u64,
    },
    /// Two groups have the same label.
    #[error("two groups have the label {0}; give one of them another label, such as other={0}")]
    SameLabel(String),
    /// There is only one run.
    #[error("nothing to compare {0} with; give two results, or several seeds of one")]
    Alone(String),
}

/// Name of a result in its directory.
const SUMMARY: &str = "summary.json";

/// Reads results and assigns them to groups. Each argument is a directory, a file or a pattern (`DIR`, `DIR*`), or a
/// label and a list of them (`label=DIR1,DIR2`). Results without a label that differ only in their seed form one
/// group.
pub fn groups(arguments: &[String]) -> Result<Vec<Group>, InputError> {
    let mut groups: Vec<(bool, Group)> = Vec::new();
    for argument in arguments {
        let (label, paths) = match labeled(argument) {
            Some((label, list)) => (Some(label), list.split(',').collect::<Vec<_>>()),
            None => (None, vec![argument.as_str()]),
        };
        let mut runs = Vec::new();
        for path in paths {
            for place in places(path)? {
                read(&place, &mut runs)?;
            }
        }
        match label {
            Some(label) => {
                refuse_twins(label, &runs)?;
                groups.push((true, Group { label: label.to_owned(), runs }));
            }
            None => runs.into_iter().for_each(|run| join(&mut groups, argument, run)),
        }
    }
    let groups: Vec<Group> = groups.into_iter().map(|(_, group)| group).collect();
    for (index, group) in groups.iter().enumerate() {
        if groups[..index].iter().any(|other| other.label == group.label) {
            return Err(InputError::SameLabel(group.label.clone()));
        }
    }
    match groups.as_slice() {
        [only] if only.runs.len() == 1 => Err(InputError::Alone(only.runs[0].path.clone())),
        _ => Ok(groups),
    }
}

/// Returns a group of these runs, which must be different.
pub fn labeled_group(label: &str, runs: Vec<Run>) -> Result<Group, InputError> {
    refuse_twins(label, &runs)?;
    Ok(Group { label: label.to_owned(), runs })
}

/// Returns the runs in groups: runs that differ only in their seed form one group. A group has the name of its first
/// run, or its path if another group already has this name.
pub fn grouped(runs: Vec<(String, Run)>) -> Vec<Group> {
    let mut groups = Vec::new();
    runs.into_iter().for_each(|(label, run)| join(&mut groups, &label, run));
    groups.into_iter().map(|(_, group)| group).collect()
}

/// Splits an argument into label and list. Returns `None` if it is a path, even one with an equals sign.
fn labeled(argument: &str) -> Option<(&str, &str)> {
    if Path::new(argument).exists() {
        return None;
    }
    argument.split_once('=').filter(|(label, list)| !label.is_empty() && !list.is_empty())
}

/// Returns the paths that a text denotes: the path itself, or the matches of a pattern.
fn places(text: &str) -> Result<Vec<PathBuf>, InputError> {
    let path = Path::new(text);
    if path.exists() || !text.contains(['*', '?', '[']) {
        return Ok(vec![path.to_owned()]);
    }
    let fault = |what: String| InputError::Pattern { pattern: text.to_owned(), what };
    let found = glob::glob(text).map_err(|error| fault(error.to_string()))?;
    let found = found.collect::<Result<Vec<_>, _>>().map_err(|error| fault(error.to_string()))?;
    if found.is_empty() { Err(fault("no path matches".to_owned())) } else { Ok(found) }
}

/// Reads the results at a path: a file, the directory of a result, or a directory of results with several seeds.
fn read(place: &Path, runs: &mut Vec<Run>) -> Result<(), InputError> {
    if !place.is_dir() {
        runs.push(read_file(place)?);
        return Ok(());
    }
    if place.join(SUMMARY).is_file() {
        runs.push(read_file(&place.join(SUMMARY))?);
        return Ok(());
    }
    let shown = || place.display().to_string();
    let unreadable = |error| InputError::Unreadable { path: shown(), error };
    let mut seeds = Vec::new();
    for entry in fs::read_dir(place).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if let Some(seed) = name.strip_prefix("seed-").and_then(|seed| seed.parse::<u64>().ok())
            && path.join(SUMMARY).is_file()
        {
            seeds.push((seed, path.join(SUMMARY)));
        }
    }
    seeds.sort();
    if seeds.is_empty() {
        return Err(InputError::Empty(shown()));
    }
    seeds.iter().try_for_each(|(_, path)| read_file(path).map(|run| runs.push(run)))
}

fn read_file(path: &Path) -> Result<Run, InputError> {
    let shown = path.display().to_string();
    let text =
        read_text(path, Summary::LARGEST).map_err(|error| InputError::Unreadable { path: shown.clone(), error })?;
    let summary = Summary::from_json(&text).map_err(|error| InputError::NoResult { path: shown.clone(), error })?;
    let checked = Checked::of_summary(path, &text).map_err(|error| InputError::Damaged(format!("{error:#}")))?;
    Ok(Run { path: shown, summary, note: checked.note() })
}

/// Adds a run without a label to a group that differs only in the seed, or to a new group.
fn join(groups: &mut Vec<(bool, Group)>, argument: &str, run: Run) {
    let fits = |group: &Group| {
        same_but_seed(&group.runs[0].summary, &run.summary)
            && group.runs.iter().all(|other| other.summary.seed != run.summary.seed)
    };
    match groups.iter_mut().find(|(labeled, group)| !labeled && fits(group)) {
        Some((_, group)) => group.runs.push(run),
        None => {
            // If a pattern or a directory yields several groups, later groups are named by their own first file.
            let taken = groups.iter().any(|(_, group)| group.label == argument);
            let label = if taken { run.path.clone() } else { argument.trim_end_matches('/').to_owned() };
            groups.push((false, Group { label, runs: vec![run] }));
        }
    }
}

fn refuse_twins(label: &str, runs: &[Run]) -> Result<(), InputError> {
    for (index, run) in runs.iter().enumerate() {
        let twin = |other: &&Run| other.summary.seed == run.summary.seed && same_but_seed(&other.summary, &run.summary);
        if let Some(other) = runs[..index].iter().find(twin) {
            let (first, second) = (other.path.clone(), run.path.clone());
            return Err(InputError::Twice { label: label.to_owned(), first, second, seed: run.summary.seed });
        }
    }
    Ok(())
}
