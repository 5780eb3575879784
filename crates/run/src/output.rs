//! Files of a result: written under temporary names, and renamed when all of them are complete.

mod draft;
mod lock;
mod overwriting;
mod pipe;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use floatgate_core::summary::Summary;
use floatgate_report::columns::series::{Row, read_merged};
use floatgate_report::digests::{DIGESTS, Digests, run_of};
use floatgate_report::html;

pub use draft::{Draft, partials};
pub use lock::Lock;
pub use overwriting::{Named, refuse_overwrites};
pub use pipe::Wait;

/// File of the summary.
pub const SUMMARY: &str = "summary.json";
/// File of a lifetime.
pub const LIFETIME: &str = "lifetime.json";
/// File of the report.
pub const REPORT: &str = "report.html";
/// File of the windows of simulated time.
pub const SERIES: &str = "series.parquet";

/// File of the timeline: the activity of every channel, plane and request.
pub const TIMELINE: &str = "timeline.pftrace.gz";
/// File of the timing diagram: a span of the timeline.
pub const DIAGRAM: &str = "timeline.svg";

/// Optional files of a result. A run removes those that it does not write, because files of an earlier run would be
/// mistaken for its own.
const DETAILS: [&str; 5] = ["requests.csv", "requests.parquet", SERIES, TIMELINE, DIAGRAM];

/// All files of a result.
const FILES: [&str; 8] = [SUMMARY, REPORT, DIGESTS, DETAILS[0], DETAILS[1], DETAILS[2], DETAILS[3], DETAILS[4]];

/// Returns all files that a run writes to `directory` or removes from it, including optional ones.
pub fn files_of(directory: &Path) -> Vec<Named> {
    let called = |file: &str| format!("{file} of --out {}", directory.display());
    FILES.iter().map(|file| Named { called: called(file), path: directory.join(file) }).collect()
}

/// Directory for a result.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    /// Path of the summary.
    summary: PathBuf,
    /// Wait for readers of pipes.
    wait: Wait,
    _lock: Lock,
}

impl Directory {
    /// Creates the directory if it does not exist, locks it, and checks that it is writable.
    pub fn open(path: &Path, wait: &Wait) -> Result<Directory> {
        let lock = Lock::of(path)?;
        if let Some(seed) = seeds_in(path).first() {
            bail!(
                "--out {0} has results of a run with --seeds, such as {0}/seed-{seed}, which `floatgate compare` would \
                 ignore; give another directory, or remove them",
                path.display()
            );
        }
        let summary = path.join(SUMMARY);
        Draft::check(&summary)?;
        Ok(Directory { path: path.to_owned(), summary, wait: wait.clone(), _lock: lock })
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates an optional file of the result.
    pub fn draft(&self, name: &str) -> Result<Draft> {
        debug_assert!(DETAILS.contains(&name), "{name} is not among the files that a later run removes");
        Draft::new(&self.path.join(name), &self.wait)
    }

    /// Writes the result, and renames all files to their final names. `details` gets the digest of the run, and
    /// completes the optional files. Returns the paths of the files, with the report first.
    pub fn write(&self, summary: &Summary, details: impl FnOnce(&str) -> Result<Vec<Draft>>) -> Result<Vec<PathBuf>> {
        let text = summary.to_json();
        let run = run_of(&text)?;
        let whole = |place: &Path, text: &str| Draft::whole(place, text.as_bytes(), &self.wait);
        let result = whole(&self.summary, &text)?;
        let mut details = details(&run)?;
        details.iter_mut().try_for_each(Draft::complete)?;
        let series = details.iter().find(|draft| draft.place() == self.path.join(SERIES));
        let series = series.and_then(Draft::written).map(windows).transpose()?.unwrap_or_default();
        let report = html::report(summary, &html::points(&series));
        let report = whole(&self.path.join(REPORT), &report)?;
        // A file that is written in place, such as a pipe, cannot be read again.
        let files = details.iter().chain([&result]).filter(|draft| draft.written().is_some());
        let digests = Digests::new(&run, files.map(|draft| (name_of(draft), draft.content())));
        let digests = whole(&self.path.join(DIGESTS), &digests.to_json())?;
        for name in DETAILS {
            let place = self.path.join(name);
            if !details.iter().any(|draft| draft.place() == place) {
                remove(&place)?;
                // A killed run may have left them.
                partials(&place).iter().try_for_each(|left| remove(left))?;
            }
        }
        let drafts: Vec<&Draft> = [&report, &result].into_iter().chain(&details).chain([&digests]).collect();
        let written = drafts.iter().map(|draft| draft.place().to_owned()).collect();
        details.into_iter().try_for_each(Draft::publish)?;
        report.publish()?;
        result.publish()?;
        digests.publish()?;
        Ok(written)
    }
}

impl Directory {
    /// Writes the result of each member of an array to a directory of its own, `member-0` and so on. Returns the paths
    /// of the files.
    pub fn write_members(&self, summary: &Summary, wait: &Wait) -> Result<Vec<PathBuf>> {
        let mut written = Vec::new();
        for (number, member) in summary.members.iter().enumerate() {
            let directory = Directory::open(&self.path.join(format!("member-{number}")), wait)?;
            written.extend(directory.write(member, |_| Ok(Vec::new()))?);
        }
        Ok(written)
    }
}

/// Returns the name of a file in its directory.
fn name_of(draft: &Draft) -> String {
    draft.place().file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Returns the seeds that have results of a run with `--seeds` in a directory, in ascending order.
pub fn seeds_in(directory: &Path) -> Vec<u64> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let with_result = entries.filter(|entry| entry.path().join(SUMMARY).exists());
    let seed = |entry: fs::DirEntry| entry.file_name().to_str()?.strip_prefix("seed-")?.parse().ok();
    let mut seeds: Vec<u64> = with_result.filter_map(seed).collect();
    seeds.sort_unstable();
    seeds
}

/// Returns the existing files of a result, except the report and the diagram, which are derived from the others.
pub fn data_of(directory: &Path) -> Vec<Named> {
    let data = FILES.iter().filter(|file| ![REPORT, DIAGRAM].contains(file)).map(|file| directory.join(file));
    data.filter(|path| path.exists()).map(|path| Named::new("a file of the result,", path)).collect()
}

/// Reads the windows of a `series.parquet`, merged to as many as the report shows.
pub fn windows(path: &Path) -> Result<Vec<Row>> {
    read_merged(path, html::MAX_POINTS, html::merged)
}

/// Writes a file completely or not at all. If it is a pipe, waits for its reader as specified by `wait`.
pub fn write_whole(place: &Path, bytes: &[u8], wait: &Wait) -> Result<()> {
    Draft::whole(place, bytes, wait)?.publish()
}

/// Removes a regular file or a link if it exists. Device nodes and pipes stay.
fn remove(path: &Path) -> Result<()> {
    if fs::symlink_metadata(path).is_ok_and(|found| !found.is_file() && !found.is_symlink()) {
        return Ok(());
    }
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}
