//! fio job files: sections of keys, as in INI files.
//!
//! The syntax follows fio (HOWTO, "Job file format", and `init.c`). `[global]` applies to the jobs after it. `;` and
//! `#` start a comment anywhere in a line. A line is a key, with or without a value. `include FILE` inserts the lines
//! of a file without sections. Lines cannot be continued. Unlike in fio, nothing is taken from the environment, so that
//! a file has the same meaning everywhere.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::catalog::{self, Effect};
use super::keys::{self, Refusal, Set};
use super::options::Options;
use super::section::{MAX_JOBS, Section, all_errors, too_many};
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

/// Changes to the jobs of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Keys to set in all jobs, with their values.
    pub set: Vec<(String, String)>,
    /// True to leave out keys that are unknown or not supported.
    pub ignore_unknown: bool,
    /// Number of requests after which each job ends.
    pub limit: Option<u64>,
}

/// Reads the jobs of the file at `path`.
pub fn read(path: &Path, files: Files, changes: &Changes) -> Result<Vec<Section>, SourceError> {
    let mut read = Read { files, lines: Vec::new(), includes: 0, bytes: 0 };
    let text = (read.files)(path).map_err(SourceError)?;
    read.collect(path, &text, 0)?;
    sections(&path.display().to_string(), &read.lines, changes)
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

/// Parses the jobs of the lines. The error contains all errors of all sections.
fn sections(file: &str, lines: &[Line], changes: &Changes) -> Result<Vec<Section>, SourceError> {
    let mut global = Options::default();
    let mut global_keys = BTreeMap::new();
    let mut global_notes = Notes::default();
    let mut errors = Vec::new();
    let mut jobs: Vec<Section> = Vec::new();
    let mut rest = lines;
    while let Some((head, after)) = rest.split_first() {
        let name = head_of(head)?;
        let end = after.iter().position(|line| line.text.starts_with('[')).unwrap_or(after.len());
        let (body, next) = after.split_at(end);
        rest = next;
        if name == "global" {
            apply(&mut global, name, body, changes, &mut global_keys, &mut global_notes);
            continue;
        }
        let (mut options, mut keys, mut notes) = (global.clone(), global_keys.clone(), Notes::default());
        apply(&mut options, name, body, changes, &mut keys, &mut notes);
        errors.append(&mut global_notes.errors);
        errors.append(&mut notes.errors);
        override_keys(&mut options, changes).map_err(SourceError)?;
        notes.warnings.splice(0..0, global_notes.warnings.drain(..));
        if jobs.len() == MAX_JOBS {
            return Err(head.error(too_many()));
        }
        let at = |place: &String| format!("{place}: [{}]", shown(name));
        let keys = keys.into_iter().map(|(key, place)| (key, at(&place))).collect();
        let warnings = notes.warnings;
        jobs.push(Section { options, name: name.to_owned(), place: at(&head.place), keys, in_file: true, warnings });
    }
    errors.append(&mut global_notes.errors);
    if !errors.is_empty() {
        return Err(all_errors(errors));
    }
    if jobs.is_empty() {
        return Err(SourceError(format!("{file}: no jobs; a job is a section such as [reads] with its keys")));
    }
    Ok(jobs)
}

/// Sets the keys that are changed in all jobs, and limits the number of requests.
fn override_keys(options: &mut Options, changes: &Changes) -> Result<(), String> {
    for (name, value) in &changes.set {
        keys::set(options, name, Some(value)).map_err(|why| format!("--set-job: {}", why.text()))?;
    }
    if let Some(limit) = changes.limit {
        options.number_ios = Some(options.number_ios.map_or(limit, |count| count.min(limit)));
    }
    Ok(())
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

/// Warnings and errors of a section.
#[derive(Default)]
struct Notes {
    warnings: Vec<String>,
    errors: Vec<String>,
}

/// Sets the keys of a section, and records their positions.
fn apply(
    options: &mut Options,
    section: &str,
    lines: &[Line],
    changes: &Changes,
    places: &mut BTreeMap<&'static str, String>,
    notes: &mut Notes,
) {
    let mut seen: BTreeMap<usize, &Line> = BTreeMap::new();
    // The base of suffixes applies to the whole section, as in fio, so it is parsed first.
    for base in [true, false] {
        for line in lines {
            let (name, value) = match line.text.split_once('=') {
                Some((name, value)) => (name.trim(), Some(value.trim())),
                None => (line.text.as_str(), None),
            };
            if (name == "kb_base") != base {
                continue;
            }
            let set = match in_line(name, value) {
                Ok(()) => keys::set(options, name, value),
                Err(why) => Err(Refusal::Value(format!("`{}`: {why}", shown(name)))),
            };
            match set {
                Err(Refusal::Key(_)) if changes.ignore_unknown => {
                    options.ignored.insert(shown(name).to_string());
                }
                Err(why) => notes.errors.push(line.error(format!("[{}] {}", shown(section), why.text())).0),
                Ok(Set::WithoutEffect) => {}
                Ok(Set::Key(index)) => {
                    let key = keys::KEYS[index].names[0];
                    places.insert(key, line.place.clone());
                    if let Some(earlier) = seen.insert(index, line) {
                        let place = &earlier.place;
                        notes.warnings.push(format!("{}: [{section}] `{key}` replaces that of {place}", line.place));
                    }
                }
            }
        }
    }
}

/// Keys whose values are names, which may contain variables.
const NAMES: &[&str] = &["filename", "directory", "filename_format", "description", "name"];

/// Rejects values that are not supported. Names, and values without effect, may contain variables of the environment.
fn in_line(name: &str, value: Option<&str>) -> Result<(), String> {
    let Some(value) = value else { return Ok(()) };
    let any = NAMES.contains(&name) || catalog::find(name).is_some_and(|other| other.effect == Effect::None);
    if any {
        return Ok(());
    }
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
