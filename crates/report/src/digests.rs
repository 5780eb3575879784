//! Digests of a result: detect damaged files, and files of different runs in one directory.
//!
//! `digests.json` contains a digest of each file, and one that identifies the run. The other files contain the digest
//! of the run, too. All digests are checked when a result is read.
//!
//! The digest of the run is the digest of its summary without `run`, which holds the cost of the simulation.
//! Repeating the run on any machine yields the same digest.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail, ensure};
use floatgate_core::sim::text::read_text;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

/// Name of the file.
pub const DIGESTS: &str = "digests.json";

/// Value of `schema` in files of this version.
const SCHEMA: &str = "floatgate-digests-1";

/// Files that have a digest, in addition to the summary. Other files are generated from these.
const DATA: [&str; 4] = ["requests.csv", "requests.parquet", "series.parquet", "timeline.pftrace.gz"];

/// Name of the summary.
const SUMMARY: &str = "summary.json";

/// Maximum size of `digests.json`, in bytes.
const LARGEST: u64 = 1 << 20;

/// Size of the read buffer, in bytes.
const BUFFER: usize = 1 << 18;

/// Size and digest of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    /// Number of bytes.
    pub bytes: u64,
    /// XXH3 digest of the bytes with 128 bits, in hexadecimal digits.
    pub xxh3: String,
}

/// Computes a [`Content`] incrementally.
#[derive(Clone, Default)]
pub struct Hasher {
    state: Box<Xxh3>,
    bytes: u64,
}

impl std::fmt::Debug for Hasher {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "Hasher of {} bytes", self.bytes)
    }
}

impl Hasher {
    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.state.update(bytes);
        self.bytes += bytes.len() as u64;
    }

    /// Returns the size and digest of the bytes that were added.
    pub fn content(&self) -> Content {
        Content { bytes: self.bytes, xxh3: format!("{:032x}", self.state.digest128()) }
    }
}

/// Returns the size and digest of a file. At most `max_bytes` bytes are read, because the file may be endless.
fn content_of(path: &Path, max_bytes: u64) -> io::Result<Content> {
    let mut file = File::open(path)?.take(max_bytes);
    let mut hasher = Hasher::default();
    let mut buffer = vec![0; BUFFER];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.content()),
            count => hasher.update(&buffer[..count]),
        }
    }
}

/// Returns the digest that identifies the run of a summary.
///
/// # Errors
///
/// Fails if the text is not a JSON object.
pub fn run_of(summary: &str) -> Result<String> {
    let mut json: Value = serde_json::from_str(summary)?;
    json.as_object_mut().context("not a JSON object")?.shift_remove("run");
    Ok(format!("{:032x}", xxh3_128(json.to_string().as_bytes())))
}

/// Contents of `digests.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Digests {
    schema: String,
    /// Digest that identifies the run.
    run: String,
    /// Size and digest of each file, by name.
    files: BTreeMap<String, Content>,
}

impl Digests {
    /// Creates the digests of a run and its files.
    pub fn new(run: &str, files: impl IntoIterator<Item = (String, Content)>) -> Digests {
        Digests { schema: SCHEMA.to_owned(), run: run.to_owned(), files: files.into_iter().collect() }
    }

    /// Returns the digests as JSON, with a trailing newline.
    pub fn to_json(&self) -> String {
        let json = serde_json::to_string_pretty(self);
        json.unwrap_or_else(|error| unreachable!("strings and numbers always serialize: {error}")) + "\n"
    }

    /// Reads the digests of a directory. Returns `None` if it has none.
    fn read(directory: &Path) -> Result<Option<Digests>> {
        let path = directory.join(DIGESTS);
        let text = match read_text(&path, LARGEST) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read.with_context(|| format!("cannot read {}", path.display()))?,
        };
        let damaged = |why: String| anyhow!("{} is damaged ({why}); run the simulation again", path.display());
        let digests: Digests = serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
        ensure!(digests.schema == SCHEMA, damaged(format!("its schema is not {SCHEMA}")));
        Ok(Some(digests))
    }
}

/// A result whose files are checked when they are read.
#[derive(Clone, Debug)]
pub struct Checked {
    directory: PathBuf,
    run: String,
    /// Digests, or `None` if the directory has no `digests.json` because it was created by hand or by an older version.
    digests: Option<Digests>,
}

impl Checked {
    /// Checks the summary at `path`. `text` is its content.
    ///
    /// # Errors
    ///
    /// Fails if the summary was changed after the run, or if `digests.json` is damaged.
    pub fn of_summary(path: &Path, text: &str) -> Result<Checked> {
        let directory = path.parent().unwrap_or(Path::new("")).to_owned();
        let run = run_of(text).with_context(|| path.display().to_string())?;
        let of_result = path.file_name().is_some_and(|name| name == SUMMARY);
        let digests = if of_result { Digests::read(&directory)? } else { None };
        let checked = Checked { directory, run, digests };
        if let Some(digests) = &checked.digests {
            checked.compare(path, |_| {
                let mut hasher = Hasher::default();
                hasher.update(text.as_bytes());
                Ok(hasher.content())
            })?;
            if digests.run != checked.run {
                bail!(
                    "{} is damaged, or belongs to another run than {}; run the simulation again",
                    checked.place(),
                    path.display()
                );
            }
        }
        Ok(checked)
    }

    /// Checks a file of the directory against its digest.
    ///
    /// # Errors
    ///
    /// Fails if the file is damaged, is not listed, or belongs to another run.
    pub fn file(&self, path: &Path) -> Result<()> {
        let read = |known: &Content| content_of(path, known.bytes.saturating_add(1));
        self.compare(path, |known| read(known).with_context(|| format!("cannot read {}", path.display())))
    }

    fn compare(&self, path: &Path, content: impl FnOnce(&Content) -> Result<Content>) -> Result<()> {
        let Some(digests) = &self.digests else { return Ok(()) };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let place = self.place();
        let Some(known) = digests.files.get(name.as_ref()) else {
            bail!("{} is not listed as a file of this result in {place}; run the simulation again", path.display())
        };
        if content(known)? != *known {
            bail!(
                "{} is changed, damaged, or belongs to another run than {place}; run the simulation again",
                path.display()
            );
        }
        Ok(())
    }

    /// Checks the run digest that a file contains. `None` is accepted, because files of older versions have no digest.
    ///
    /// # Errors
    ///
    /// Fails if the file belongs to another run.
    pub fn run(&self, path: &Path, run: Option<&str>) -> Result<()> {
        match run {
            Some(run) if run != self.run => {
                let summary = self.directory.join(SUMMARY);
                bail!("{} belongs to another run than {}; run the simulation again", path.display(), summary.display())
            }
            _ => Ok(()),
        }
    }

    /// Returns a note for the user if the files cannot be checked.
    pub fn note(&self) -> Option<String> {
        self.digests
            .is_none()
            .then(|| format!("{} is missing, so damaged files and files of other runs may go unnoticed", self.place()))
    }

    fn place(&self) -> String {
        self.directory.join(DIGESTS).display().to_string()
    }
}

/// Checks a data file against the digests of its directory, if there are any. The summary is not needed.
///
/// # Errors
///
/// Fails if the file is damaged or does not belong to the result.
pub fn check_alone(path: &Path) -> Result<()> {
    let directory = path.parent().unwrap_or(Path::new("")).to_owned();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let digests = if DATA.contains(&name.as_ref()) { Digests::read(&directory)? } else { None };
    Checked { directory, run: String::new(), digests }.file(path)
}

/// Builds `digests.json` for a directory. `summary` and the files `written` have just been written to it. Removes data
/// files of other runs.
///
/// # Errors
///
/// Fails if a file cannot be read or removed.
pub fn seal(directory: &Path, summary: &str, written: &[String]) -> Result<Digests> {
    let run = run_of(summary)?;
    let before = Digests::read(directory).ok().flatten().filter(|digests| digests.run == run);
    let mut files = BTreeMap::new();
    for name in DATA {
        let path = directory.join(name);
        let kept = before.as_ref().and_then(|digests| digests.files.get(name));
        match (written.iter().any(|written| written == name), kept) {
            (false, None) => match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(error).with_context(|| format!("cannot remove {}", path.display()));
                }
                _ => continue,
            },
            (false, Some(known)) => files.insert(name.to_owned(), known.clone()),
            (true, _) => {
                let content = content_of(&path, u64::MAX).with_context(|| format!("cannot read {}", path.display()))?;
                files.insert(name.to_owned(), content)
            }
        };
    }
    let mut hasher = Hasher::default();
    hasher.update(summary.as_bytes());
    files.insert(SUMMARY.to_owned(), hasher.content());
    Ok(Digests::new(&run, files))
}
