//! Texts of a device, and the place in a text that belongs to a span.
//!
//! A device has layers: built-in devices, a file, overrides. All texts share one sequence of offsets, in which each
//! text has its own range. The spans of parsed values are moved into the range of their text. A value thus keeps its
//! place through all merging, and an error points to the file or the override that gave the value.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{Place, Problem};
use crate::sim::text::{shortened, shown};

/// Origin of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// Built-in device, by its name.
    Builtin(String),
    /// File, by its path.
    File(String),
    /// Override, `--set path=value`.
    Override,
}

impl Origin {
    /// Returns the source of a value if the text does not give one.
    pub fn as_source(&self) -> String {
        match self {
            Origin::Builtin(name) => format!("built-in device {name}"),
            Origin::File(path) => path.clone(),
            Origin::Override => "--set".to_owned(),
        }
    }
}

/// All texts of a device.
#[derive(Debug, Default)]
pub(super) struct Texts {
    texts: Vec<Text>,
    end: usize,
}

#[derive(Debug)]
struct Text {
    origin: Origin,
    text: String,
    start: usize,
}

impl Texts {
    /// Adds a text, and returns the offset by which its spans have to be moved.
    pub fn add(&mut self, origin: Origin, text: &str) -> usize {
        let start = self.end;
        self.end += text.len() + 1; // A span may lie just after the last character.
        self.texts.push(Text { origin, text: text.to_owned(), start });
        start
    }

    /// Returns the name of the device in messages: the file or name of the first text.
    pub fn name(&self) -> String {
        self.texts.first().map(|text| text.origin.as_source()).unwrap_or_default()
    }

    /// Parses a text. The spans of the result are already moved.
    pub fn parse<'t>(&mut self, origin: Origin, text: &'t str) -> Result<DeTable<'t>, Problem> {
        let start = self.add(origin, text);
        match DeTable::parse(text) {
            Ok(table) => {
                let table = moved_table(table.into_inner(), start);
                match too_deep(&table, 0) {
                    None => Ok(table),
                    Some(span) => Err(self.problem("", &format!("keys are nested more than {MAX_DEPTH} deep"), span)),
                }
            }
            Err(error) => {
                let span = error.span().unwrap_or(0..0);
                Err(self.problem("", &shortened(error.message()), span.start + start..span.end + start))
            }
        }
    }

    /// Creates a problem at a span.
    pub fn problem(&self, path: &str, message: &str, span: Range<usize>) -> Problem {
        Problem { path: path.to_owned(), message: message.to_owned(), place: self.place(span) }
    }

    /// Returns the place of a span.
    pub fn place(&self, span: Range<usize>) -> Option<Place> {
        let text = self.texts.iter().rfind(|text| text.start <= span.start)?;
        let (start, end) = (span.start - text.start, span.end.saturating_sub(text.start));
        // Spans beyond the text are cut.
        let before = text.text.get(..start).unwrap_or(&text.text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = text.text[line_start..].lines().next().unwrap_or("");
        let column = text.text[line_start..before.len()].chars().count();
        let marked = line.get(before.len() - line_start..end.saturating_sub(line_start).min(line.len()));
        let marked = marked.map_or(1, |m| m.chars().count().max(1));
        let number = before.matches('\n').count() + 1;
        let (origin, position, label) = match &text.origin {
            Origin::Builtin(name) => {
                (format!("built-in device {name}"), Some((number, column + 1)), number.to_string())
            }
            Origin::File(path) => (path.clone(), Some((number, column + 1)), number.to_string()),
            Origin::Override => (format!("--set {}", shown(&text.text)), None, String::new()),
        };
        Some(Place { origin, position, snippet: snippet(&label, line, column, marked) })
    }
}

/// Maximum depth of nested keys, more than that of any device.
const MAX_DEPTH: usize = 32;

/// Returns the span of a key that is nested too deep. Its path would be too long.
fn too_deep(table: &DeTable<'_>, depth: usize) -> Option<Range<usize>> {
    table.iter().find_map(|(key, value)| match value.get_ref() {
        DeValue::Table(_) if depth == MAX_DEPTH => Some(key.span()),
        DeValue::Table(below) => too_deep(below, depth + 1),
        _ => None,
    })
}

/// Returns a line with carets under the `marked` characters from `column` on. Of a long line, only the part around them
/// is shown.
fn snippet(label: &str, line: &str, column: usize, marked: usize) -> String {
    /// Number of characters shown before the column, and in total.
    const BEFORE: usize = 40;
    const MAX_CHARS: usize = 140;
    let is_long = line.chars().nth(MAX_CHARS).is_some();
    let start = if is_long { column.saturating_sub(BEFORE) } else { 0 };
    let part: String = line.chars().skip(start).take(MAX_CHARS).collect();
    let [before, after] =
        [start > 0, line.chars().nth(start + MAX_CHARS).is_some()].map(|cut| if cut { "..." } else { "" });
    // Tabs are kept, so that the caret is under its character whatever the tab width.
    let indent: String = part.chars().take(column - start).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
    let carets = "^".repeat(marked.min(MAX_CHARS.saturating_sub(column - start)).max(1));
    let (margin, dots) = (" ".repeat(label.len()), " ".repeat(before.len()));
    format!("{label} | {before}{part}{after}\n{margin} | {dots}{indent}{carets}")
}

/// Returns a table with its spans moved by `by`.
pub(super) fn moved_table(table: DeTable<'_>, by: usize) -> DeTable<'_> {
    table.into_iter().map(|(key, value)| (moved(key, by), moved_value(value, by))).collect()
}

fn moved<T>(value: Spanned<T>, by: usize) -> Spanned<T> {
    let span = value.span();
    Spanned::new(span.start + by..span.end + by, value.into_inner())
}

fn moved_value(value: Spanned<DeValue<'_>>, by: usize) -> Spanned<DeValue<'_>> {
    let span = value.span();
    let inner = match value.into_inner() {
        DeValue::Table(table) => DeValue::Table(moved_table(table, by)),
        DeValue::Array(array) => DeValue::Array(array.into_iter().map(|item| moved_value(item, by)).collect()),
        other => other,
    };
    moved(Spanned::new(span, inner), by)
}
