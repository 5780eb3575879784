//! fio job files: sections of keys, as in INI files.
//!
//! The syntax follows fio (HOWTO, "Job file format", and `init.c`). `[global]` applies to the jobs after it. `;` and
//! `#` start a comment anywhere in a line. A line is a key, with or without a value. `include FILE` inserts the lines
//! of a file without sections. Lines cannot be continued. Unlike in fio, nothing is taken from the environment, so that
//! a file has the same meaning everywhere.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::keys::{self, Set};
use super::options::Options;
use super::section::{MAX_JOBS, Section, too_many};
use crate::sim::source::SourceError;
use crate::sim::text::shown;

/// Returns the text of a file.
pub type Files<'a> = &'a mut dyn FnMut(&Path) -> Result<String, String>;

/// Limits on the depth and the number of included files, and on the total lines and bytes. They are far beyond
/// practical use, and end recursive includes.
const MAX_DEPTH: usize = 16;
const MAX_INCLUDES: usize = 1000;
const MAX_LINES: usize = 100_000;
const MAX_BYTES: usize = 16 << 20;

/// Maximum length of a section name, as in fio.
const MAX_NAME: usize = 255;

/// A line without its comment, if it is not empty.
struct Line {
    /// `file:line`.
    place: String,
    text: String,
}

impl Line {
    fn error(&self, why: impl std::fmt::Display) -> SourceError {
        SourceError(format!("{}: {why}", self.place))
    }
}

/// Reads the jobs of the file at `path`.
pub fn read(path: &Path, files: Files) -> Result<Vec<Section>, SourceError> {
    let mut read = Read { files, lines: Vec::new(), includes: 0, bytes: 0 };
    let text = (read.files)(path).map_err(SourceError)?;
    read.collect(path, &text, 0)?;
    sections(&path.display().to_string(), &read.lines)
}

/// Returns `true` if a text looks like a job file: its first line other than comments is a section header.
pub fn looks_like(text: &str) -> bool {
    let first = text.trim_start_matches('\u{feff}').lines().map(without_comment).find(|line| !line.is_empty());
    first.is_some_and(|line| line.starts_with('[') && line.ends_with(']') && !line.contains(','))
}

/// Removes the comment of a line, and surrounding blanks.
fn without_comment(line: &str) -> &str {
    line.split([';', '#']).next().unwrap_or("").trim()
}

/// Lines read so far, and counts for the limits.
struct Read<'a> {
    files: Files<'a>,
    lines: Vec<Line>,
    includes: usize,
    bytes: usize,
}

impl Read<'_> {
    /// Adds the lines of a text and of the files that it includes.
    fn collect(&mut self, path: &Path, text: &str, depth: usize) -> Result<(), SourceError> {
        let name = path.display().to_string();
        for (index, text) in text.trim_start_matches('\u{feff}').lines().enumerate() {
            let text = without_comment(text);
            if text.is_empty() {
                continue;
            }
            let line = Line { place: format!("{name}:{}", index + 1), text: text.to_owned() };
            if self.lines.len() >= MAX_LINES {
                return Err(line.error(format!("the jobs have more than {MAX_LINES} lines, with what is included")));
            }
            if depth > 0 && text.starts_with('[') {
                return Err(line.error("an included file has no sections; move them to the file that includes it"));
            }
            match text.strip_prefix("include").filter(|rest| rest.starts_with([' ', '\t'])) {
                Some(file) => self.include(&line, &included(path, file.trim()), depth)?,
                None => self.lines.push(line),
            }
        }
        Ok(())
    }

    /// Adds the lines of the file that a line includes.
    fn include(&mut self, line: &Line, file: &Path, depth: usize) -> Result<(), SourceError> {
        if depth == MAX_DEPTH {
            return Err(line.error(format!("files include each other more than {MAX_DEPTH} deep")));
        }
        self.includes += 1;
        if self.includes > MAX_INCLUDES {
            return Err(
                line.error(format!("there are more than {MAX_INCLUDES} includes, with those of included files"))
            );
        }
        let text = (self.files)(file).map_err(|why| line.error(format!("include: {why}")))?;
        self.bytes += text.len();
        if self.bytes > MAX_BYTES {
            return Err(line.error(format!("the included files have more than {} MiB in all", MAX_BYTES >> 20)));
        }
        self.collect(file, &text, depth + 1)
    }
}

/// Resolves the path of an included file. As in fio, it is relative to the directory of the including file.
fn included(path: &Path, file: &str) -> PathBuf {
    path.parent().unwrap_or(Path::new("")).join(file)
}

/// Parses the jobs of the lines.
fn sections(file: &str, lines: &[Line]) -> Result<Vec<Section>, SourceError> {
    let mut global = Options::default();
    let mut global_keys = BTreeMap::new();
    let mut global_warnings = Vec::new();
    let mut jobs: Vec<Section> = Vec::new();
    let mut rest = lines;
    while let Some((head, after)) = rest.split_first() {
        let name = head_of(head)?;
        let end = after.iter().position(|line| line.text.starts_with('[')).unwrap_or(after.len());
        let (body, next) = after.split_at(end);
        rest = next;
        let mut warnings = Vec::new();
        if name == "global" {
            apply(&mut global, name, body, &mut global_keys, &mut global_warnings)?;
            continue;
        }
        let (mut options, mut keys) = (global.clone(), global_keys.clone());
        apply(&mut options, name, body, &mut keys, &mut warnings)?;
        warnings.splice(0..0, global_warnings.drain(..));
        if jobs.len() == MAX_JOBS {
            return Err(head.error(too_many()));
        }
        let at = |place: &String| format!("{place}: [{}]", shown(name));
        let keys = keys.into_iter().map(|(key, place)| (key, at(&place))).collect();
        jobs.push(Section { options, name: name.to_owned(), place: at(&head.place), keys, in_file: true, warnings });
    }
    if jobs.is_empty() {
        return Err(SourceError(format!("{file}: no jobs; a job is a section such as [reads] with its keys")));
    }
    Ok(jobs)
}

/// Returns the name of the section that starts at a line.
fn head_of(line: &Line) -> Result<&str, SourceError> {
    let Some(rest) = line.text.strip_prefix('[') else {
        return Err(line.error(format!(
            "`{}` is outside of a section; start one before it, such as [global] or [reads]",
            shown(&line.text)
        )));
    };
    let name = rest.strip_suffix(']').map(str::trim).ok_or_else(|| line.error("a section's name ends with `]`"))?;
    if name.is_empty() || name.len() > MAX_NAME {
        return Err(line.error(format!("a section's name has 1 to {MAX_NAME} bytes")));
    }
    if name != "global" && name.starts_with("global") {
        return Err(line.error(format!(
            "fio takes every section whose name begins with `global` for [global]; give [{}] another name",
            shown(name)
        )));
    }
    Ok(name)
}

/// Sets the keys of a section, and records their positions.
fn apply(
    options: &mut Options,
    section: &str,
    lines: &[Line],
    places: &mut BTreeMap<&'static str, String>,
    warnings: &mut Vec<String>,
) -> Result<(), SourceError> {
    let entry = |line: &'_ Line| -> Result<(String, Option<String>), SourceError> {
        let (name, value) = match line.text.split_once('=') {
            Some((name, value)) => (name.trim(), Some(value.trim().to_owned())),
            None => (line.text.as_str(), None),
        };
        in_line(value.as_deref())
            .map_err(|why| line.error(format!("[{}] `{}`: {why}", shown(section), shown(name))))?;
        Ok((name.to_owned(), value))
    };
    let mut seen: BTreeMap<usize, &Line> = BTreeMap::new();
    // The base of suffixes applies to the whole section, as in fio, so it is parsed first.
    for base in [true, false] {
        for line in lines {
            let (name, value) = entry(line)?;
            if (name == "kb_base") != base {
                continue;
            }
            let set = keys::set(options, &name, value.as_deref());
            match set.map_err(|why| line.error(format!("[{}] {why}", shown(section))))? {
                Set::WithoutMeaning => {}
                Set::Key(index) => {
                    places.insert(keys::KEYS[index].names[0], line.place.clone());
                    if let Some(earlier) = seen.insert(index, line) {
                        let place = &earlier.place;
                        let key = keys::KEYS[index].names[0];
                        warnings.push(format!("{}: [{section}] `{key}` replaces that of {place}", line.place));
                    }
                }
            }
        }
    }
    Ok(())
}

/// Rejects values that are not supported.
fn in_line(value: Option<&str>) -> Result<(), String> {
    let Some(value) = value else { return Ok(()) };
    if value.contains("${") {
        return Err("variables of the environment are not read, so that a file means the same everywhere; write the \
                    value, or put it in with `envsubst`"
            .to_owned());
    }
    if let Some(word) = ["$pagesize", "$mb_memory", "$ncpus"].into_iter().find(|word| value.contains(word)) {
        return Err(format!("`{word}` is a figure of the machine; write the number"));
    }
    if value.ends_with('\\') {
        return Err("lines are not continued in fio; write it in one line".to_owned());
    }
    Ok(())
}
