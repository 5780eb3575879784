//! From what the user calls results to groups of them.

use std::fs;
use std::path::{Path, PathBuf};

use floatgate_core::metrics::summary::{LARGEST, ReadError, Summary};
use floatgate_core::sim::text::read_text;

use super::{Group, Run, same_but_seed};
use crate::digests::Checked;

/// Why results cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// A file cannot be read.
    #[error("cannot read {path}: {error}")]
    Unreadable {
        /// The file.
        path: String,
        /// Why not.
        error: std::io::Error,
    },
    /// A file is no result.
    #[error("{path}: {error}")]
    NoResult {
        /// The file.
        path: String,
        /// Why not.
        error: ReadError,
    },
    /// A file is not as its run wrote it.
    #[error("{0}")]
    Damaged(String),
    /// Neither a result nor a directory with one.
    #[error("{0} has no summary.json, and no seed-*/summary.json: give the directory of a result, or its summary.json")]
    Empty(String),
    /// A pattern that nothing matches, or that is none.
    #[error("{pattern}: {what}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// What is wrong.
        what: String,
    },
    /// A group has a run twice.
    #[error(
        "{first} and {second} are the same run of {label}, with seed {seed}: only runs with different seeds tell of noise"
    )]
    Twice {
        /// The group.
        label: String,
        /// One file.
        first: String,
        /// The other.
        second: String,
        /// The seed that both have.
        seed: u64,
    },
    /// Two groups have one name.
    #[error("two groups are called {0}: give each a label of its own, as in other={0}")]
    SameLabel(String),
    /// There is but one run.
    #[error("there is nothing to compare {0} with: give two results, or several seeds of one")]
    Alone(String),
}

/// The name of a result in its directory.
const SUMMARY: &str = "summary.json";

/// Reads results and puts them in groups. Each argument is a directory or a file, or a pattern of such, or a list of
/// them behind a label: `DIR`, `label=DIR1,DIR2`, `label=DIR*`. Those without a label that differ in nothing but their
/// seed become one group.
pub fn groups(arguments: &[String]) -> Result<Vec<Group>, InputError> {
    let mut groups: Vec<(bool, Group)> = Vec::new();
    for argument in arguments {
        let (label, paths) = match labelled(argument) {
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

/// A group of the results in these directories, which must be different runs.
pub fn group(label: &str, directories: &[PathBuf]) -> Result<Group, InputError> {
    let mut runs = Vec::new();
    directories.iter().try_for_each(|directory| read(directory, &mut runs))?;
    labelled_group(label, runs)
}

/// A group of these runs, which must be different ones.
pub fn labelled_group(label: &str, runs: Vec<Run>) -> Result<Group, InputError> {
    refuse_twins(label, &runs)?;
    Ok(Group { label: label.to_owned(), runs })
}

/// Runs, each with what it is called, in groups: those that differ in nothing but their seed are one, which is called
/// as the first of them; where another group is called that, by its path.
pub fn grouped(runs: Vec<(String, Run)>) -> Vec<Group> {
    let mut groups = Vec::new();
    runs.into_iter().for_each(|(label, run)| join(&mut groups, &label, run));
    groups.into_iter().map(|(_, group)| group).collect()
}

/// The label of an argument and what is behind it; none where it is a path, be it one with an equals sign.
fn labelled(argument: &str) -> Option<(&str, &str)> {
    if Path::new(argument).exists() {
        return None;
    }
    argument.split_once('=').filter(|(label, list)| !label.is_empty() && !list.is_empty())
}

/// The paths that a text stands for: itself, or what matches it as a pattern.
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

/// Reads the results at a place: a file, a directory of a result, or one of results with several seeds.
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
    let text = read_text(path, LARGEST).map_err(|error| InputError::Unreadable { path: shown.clone(), error })?;
    let summary = Summary::from_json(&text).map_err(|error| InputError::NoResult { path: shown.clone(), error })?;
    let checked = Checked::of_summary(path, &text).map_err(|error| InputError::Damaged(format!("{error:#}")))?;
    Ok(Run { path: shown, summary, note: checked.note() })
}

/// Puts a run without a label to those that it differs from in nothing but the seed, or else in a group of its own.
fn join(groups: &mut Vec<(bool, Group)>, argument: &str, run: Run) {
    let fits = |group: &Group| {
        same_but_seed(&group.runs[0].summary, &run.summary)
            && group.runs.iter().all(|other| other.summary.seed != run.summary.seed)
    };
    match groups.iter_mut().find(|(labelled, group)| !labelled && fits(group)) {
        Some((_, group)) => group.runs.push(run),
        None => {
            // Of a pattern or a directory that gave several groups, each is called by its own first file.
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
