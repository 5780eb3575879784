//! Synthetic workloads in fio syntax: `rw=randwrite bs=4k iodepth=32 number_ios=2m`, or an fio job file.
//!
//! A text contains one or several jobs, separated by `;`. A file contains one job per section. Each job is a
//! [`Source`]. `docs/reference/synthetic.md` explains each key, and how a simulated job differs from fio. It is
//! generated from the table in `keys`. A job needs no memory for its blocks, and does not allocate while it runs.
//!
//! Jobs are built in these stages: `jobfile` or `oneline` finds the keys, `keys` and `values` parse them into
//! `options`, `plan` determines the relations between the jobs, and `stream` generates the requests of a job. The
//! requests lie in its `region`, with addresses and sizes from `draw`, at the requested `pace`, up to its `limits`.
//! `replay` is a job that reads its requests from a trace.

mod address;
mod areas;
mod arrival;
mod base;
mod catalog;
mod control;
mod describe;
mod directions;
mod draw;
mod engines;
mod files;
mod jobfile;
mod keys;
mod limits;
pub mod model;
mod oneline;
mod options;
mod pace;
mod place;
mod plan;
mod priority;
mod reference;
mod region;
mod replay;
mod section;
mod size;
mod stream;
mod targets;
mod texts;
mod values;
mod verify;

use std::path::Path;

pub use jobfile::Changes;
pub use plan::Planned;
pub use reference::reference_page;
pub use replay::Replayed;
pub use section::{Log, MAX_JOBS};
pub use stream::Synthetic;

use crate::file::Stop;
use crate::sim::request::SECTOR;
use crate::sim::source::{Source, SourceError};
use crate::sim::text::read_text;

/// A job that is ready to run.
pub struct Job {
    /// Source of its requests.
    pub source: Box<dyn Source>,
    /// Log requested by `write_iolog`.
    pub write_iolog: Option<Log>,
}

/// Parses the jobs of `text` for a device of `device_bytes`. `seed` is the seed of the run. A job with `randseed` has
/// its own.
///
/// # Errors
///
/// The error names the job, the key and its value, and states what is allowed.
pub fn parse(text: &str, device_bytes: u64, seed: u64) -> Result<Vec<Job>, SourceError> {
    parse_behind(0, text, device_bytes, seed, &Stop::default())
}

/// Parses jobs like [`parse`], after `others` jobs of other workloads, which affects the numbers of jobs without a
/// name. Reading a trace ends when `stop` is requested.
pub fn parse_behind(
    others: usize,
    text: &str,
    device_bytes: u64,
    seed: u64,
    stop: &Stop,
) -> Result<Vec<Job>, SourceError> {
    open(plan::plan(oneline::read(text, others)?, device_bytes, seed)?, device_bytes, stop)
}

/// Returns `true` if a job in the text keeps an `iodepth` above 1 that fio would limit to 1, because the job names no
/// engine.
pub fn keeps_depth(text: &str) -> bool {
    let keeps = |section: &section::Section| !section.follows_fio() && section.options.iodepth.is_some_and(|n| n > 1);
    oneline::read(text, 0).is_ok_and(|sections| sections.iter().any(keeps))
}

/// Returns the number of jobs in a text, without counting clones.
pub fn jobs_in(text: &str) -> usize {
    oneline::parts(text).count()
}

/// Reads the jobs of a job file like [`parse_behind`]. Also returns a digest of the seed and of everything that was
/// read. Errors name file and line.
pub fn read_file(
    path: &Path,
    changes: &Changes,
    device_bytes: u64,
    seed: u64,
    stop: &Stop,
) -> Result<(Vec<Job>, String), SourceError> {
    let mut all = String::new();
    let mut files = |path: &Path| {
        let text = text_of(path)?;
        all.push_str(&text);
        all.push('\0');
        Ok(text)
    };
    let planned = plan_file(path, &mut files, changes, device_bytes, seed)?;
    if *changes != Changes::default() {
        all.push_str(&format!("{changes:?}"));
    }
    Ok((open(planned, device_bytes, stop)?, digest(&all, seed)))
}

/// Maximum size of a job file.
const MAX_FILE: u64 = 1 << 20;

/// Returns the text of a job file.
pub fn text_of(path: &Path) -> Result<String, String> {
    let name = path.display();
    let cannot = |error| format!("cannot read {name}: {error}");
    let metadata = std::fs::metadata(path).map_err(cannot)?;
    if !metadata.is_file() || metadata.len() > MAX_FILE {
        return Err(format!("{name} is not a job file: expected a regular file of at most 1 MiB"));
    }
    read_text(path, MAX_FILE).map_err(|error| match error.kind() {
        std::io::ErrorKind::InvalidData => format!("{name} is not a job file: {error}"),
        _ => cannot(error),
    })
}

/// Parses jobs like [`parse`], without opening the traces of `read_iolog`.
pub fn plan_text(text: &str, device_bytes: u64, seed: u64) -> Result<Vec<Planned>, SourceError> {
    plan::plan(oneline::read(text, 0)?, device_bytes, seed)
}

/// Reads a job file like [`read_file`], without opening the traces of `read_iolog` or any other file: `files` returns
/// the text of the job file and of the files that it includes.
pub fn plan_file(
    path: &Path,
    files: &mut dyn FnMut(&Path) -> Result<String, String>,
    changes: &Changes,
    device_bytes: u64,
    seed: u64,
) -> Result<Vec<Planned>, SourceError> {
    plan::plan(jobfile::read(path, files, changes)?, device_bytes, seed)
}

/// Opens the traces that the jobs replay.
fn open(planned: Vec<Planned>, device_bytes: u64, stop: &Stop) -> Result<Vec<Job>, SourceError> {
    let open = |planned| match planned {
        Planned::Made(job) => {
            let write_iolog = job.place.write_iolog.clone();
            Ok(Job { source: job as Box<dyn Source>, write_iolog })
        }
        Planned::Replayed(recipe) => {
            let write_iolog = recipe.place.write_iolog.clone();
            Ok(Job { source: Box::new(Replayed::open(*recipe, device_bytes, stop)?), write_iolog })
        }
    };
    planned.into_iter().map(open).collect()
}

/// Returns a digest of the text of jobs and of their seed, in hexadecimal.
pub fn digest(text: &str, seed: u64) -> String {
    format!("{:032x}", xxhash_rust::xxh3::xxh3_128(format!("{seed} {text}").as_bytes()))
}

/// Returns `true` if `text` looks like a job and not like a file name: one of its words starts with `rw=`, `readwrite=`
/// or `read_iolog=`.
pub fn looks_like_job(text: &str) -> bool {
    let starts = ["rw=", "readwrite=", "read_iolog="];
    text.split(|c: char| c.is_whitespace() || c == ';').any(|word| starts.iter().any(|start| word.starts_with(start)))
}

/// Returns `true` if `path` is a job file, judged by its extension (`fio`, `job`, `ini`) or by its first line
/// (`[...]`).
pub fn is_job_file(path: &Path) -> bool {
    if !path.is_file() {
        return false;
    }
    let by_name = path.extension().and_then(|extension| extension.to_str());
    if by_name.is_some_and(|extension| ["fio", "job", "ini"].contains(&extension)) {
        return true;
    }
    let mut start = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| {
        use std::io::Read;
        file.take(4096).read_to_end(&mut start)
    });
    let text = String::from_utf8_lossy(&start);
    read.is_ok() && jobfile::looks_like(&text)
}

/// Returns `true` if `word` is a value of `rw`, such as `randread`.
pub fn is_pattern(word: &str) -> bool {
    options::PATTERNS.iter().any(|pattern| pattern.name == word)
}

#[cfg(test)]
mod tests;
