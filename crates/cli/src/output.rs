//! The files of a result: written beside their place, and moved there when all of them are whole.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use floatgate_core::metrics::summary::Summary;
use floatgate_report::columns::series::{Row, read_merged};
use floatgate_report::html;

use crate::run::detail::Detail;

/// The result.
pub const SUMMARY: &str = "summary.json";
/// The result as a page.
pub const REPORT: &str = "report.html";
/// Windows of simulated time.
pub const SERIES: &str = "series.parquet";

/// What every channel, plane and request did when.
pub const TIMELINE: &str = "timeline.json.gz";
/// A span of that as a timing diagram.
pub const DIAGRAM: &str = "timeline.svg";

/// Files beside the summary that a run may write, or that are made of those. What there is of an earlier run would be
/// taken for that of this one.
const DETAILS: [&str; 5] = ["requests.csv", "requests.parquet", SERIES, TIMELINE, DIAGRAM];

/// Where a result goes.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    /// Begun before the run, so that a directory that cannot be written to is found out then.
    summary: PathBuf,
}

impl Directory {
    /// Makes the directory where there is none, and sees whether it can be written to.
    pub fn open(path: &Path) -> Result<Directory> {
        if path.is_file() {
            bail!(
                "--out {0}: there is a file of that name, and results go into a directory: give another name, or remove \
                 the file",
                path.display()
            );
        }
        fs::create_dir_all(path).with_context(|| format!("cannot make the directory {}", path.display()))?;
        let directory = Directory { path: path.to_owned(), summary: path.join(SUMMARY) };
        Draft::new(&directory.summary)?;
        Ok(directory)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Begins a file beside the summary.
    pub fn draft(&self, name: &str) -> Result<Draft> {
        debug_assert!(DETAILS.contains(&name), "{name} is removed when it is not written again");
        Draft::new(&self.path.join(name))
    }

    /// Writes the result, and moves all files to their places.
    pub fn write(&self, summary: &Summary, detail: Detail) -> Result<()> {
        let result = Draft::whole(&self.summary, summary.to_json().as_bytes())?;
        let mut details = detail.finish()?;
        details.iter_mut().try_for_each(Draft::complete)?;
        let series = details.iter().find(|draft| draft.place == self.path.join(SERIES));
        let series = series.map(|draft| windows(&draft.partial)).transpose()?.unwrap_or_default();
        let report = html::report(summary, &html::points(&series));
        let report = Draft::whole(&self.path.join(REPORT), report.as_bytes())?;
        for name in DETAILS {
            let place = self.path.join(name);
            if !details.iter().any(|draft| draft.place == place) {
                remove(&place)?;
            }
        }
        details.into_iter().try_for_each(Draft::publish)?;
        report.publish()?;
        result.publish()
    }
}

/// The windows of a `series.parquet`, as many as the report shows.
pub fn windows(path: &Path) -> Result<Vec<Row>> {
    read_merged(path, html::MOST_POINTS, html::merged)
}

/// Writes a file: all of it, or nothing.
pub fn write_whole(place: &Path, bytes: &[u8]) -> Result<()> {
    Draft::whole(place, bytes)?.publish()
}

/// Removes a file, if there is one.
fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

/// A file in the making, beside its place and with `.partial` behind its name; goes when it is not published.
#[derive(Debug)]
pub struct Draft {
    file: BufWriter<File>,
    place: PathBuf,
    partial: PathBuf,
    /// It stays where it is when this goes.
    stays: bool,
}

/// Where a file is while it is made.
pub fn partial(place: &Path) -> PathBuf {
    let mut name = place.as_os_str().to_owned();
    name.push(".partial");
    PathBuf::from(name)
}

/// Bytes that are written at once.
const BUFFER: usize = 1 << 18;

impl Draft {
    /// Begins a file; that it can be written to is found out here, and that its place is no directory.
    pub fn new(place: &Path) -> Result<Draft> {
        anyhow::ensure!(!place.is_dir(), "cannot write {}: it is a directory", place.display());
        let partial = partial(place);
        // Told by the name that the user gave: nobody has heard of the other one.
        let file = File::create(&partial).with_context(|| format!("cannot write {}", place.display()))?;
        let file = BufWriter::with_capacity(BUFFER, file);
        Ok(Draft { file, place: place.to_owned(), partial, stays: false })
    }

    /// What was written of it stays beside its place where it is not published.
    pub fn kept(mut self) -> Draft {
        self.stays = true;
        self
    }

    /// A file that is complete with these bytes.
    fn whole(place: &Path, bytes: &[u8]) -> Result<Draft> {
        let mut draft = Draft::new(place)?;
        draft.write(bytes)?;
        draft.complete()?;
        Ok(draft)
    }

    /// Where its content goes.
    pub fn writer(&mut self) -> &mut impl Write {
        &mut self.file
    }

    /// Adds to it.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).with_context(|| format!("cannot write {}", self.place.display()))
    }

    /// Brings all of it to the disk.
    pub fn complete(&mut self) -> Result<()> {
        let done = self.file.flush().and_then(|()| self.file.get_ref().sync_all());
        done.with_context(|| format!("cannot write {}", self.place.display()))
    }

    /// Puts the file in its place; it must be complete.
    pub fn publish(mut self) -> Result<()> {
        fs::rename(&self.partial, &self.place).with_context(|| format!("cannot write {}", self.place.display()))?;
        self.stays = true;
        Ok(())
    }
}

/// Errors name the file, so that they can be told as they are.
impl Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let told = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", self.place.display()));
        self.file.write(bytes).map_err(told)
    }

    fn flush(&mut self) -> io::Result<()> {
        let told = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", self.place.display()));
        self.file.flush().map_err(told)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.stays {
            // A failure to tidy up must not hide the failure that led here.
            let _ = fs::remove_file(&self.partial);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_file_that_was_asked_for() {
        let directory = tempfile::tempdir().unwrap();
        let error = |place: &Path| format!("{:#}", write_whole(place, b"page").unwrap_err());
        let place = directory.path().join("missing/page.html");
        let said = error(&place);
        assert!(said.starts_with(&format!("cannot write {}: ", place.display())), "{said}");
        assert_eq!(error(directory.path()), format!("cannot write {}: it is a directory", directory.path().display()));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_is_not_published_goes() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("file");
        let mut draft = Draft::new(&place).unwrap();
        draft.write(b"half").unwrap();
        drop(draft);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
        let mut draft = Draft::new(&place).unwrap();
        draft.write(b"whole").unwrap();
        draft.complete().unwrap();
        assert!(!place.exists());
        draft.publish().unwrap();
        assert_eq!(fs::read(&place).unwrap(), b"whole");
    }
}
