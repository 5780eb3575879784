//! Layers of a device: merging of tables, and overrides.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::Problem;
use super::origin::{Origin, Texts, moved_table};
use super::path::{ABOUT, join};
use super::schema::{Schema, Shape};
use crate::sim::text::{shortened, shown};

/// Merges `over` into `under`: tables are merged, and other values are replaced. A choice has one value, so another
/// choice replaces it as a whole: `gc.victim.d-choices.d=4` replaces `gc.victim = "greedy"`, and `capacity.logical`
/// replaces `capacity.spare`.
pub(super) fn merge<'t>(schema: &Schema, node: Option<&Value>, under: &mut DeTable<'t>, over: DeTable<'t>) {
    if let Some(Shape::Choice(_)) = node.map(|node| schema.shape(node)) {
        keep(under, |key| over.contains_key(key));
    }
    for (key, mut value) in over {
        let child = node.and_then(|node| schema.child(node, key.get_ref()));
        // The key is removed and inserted again, because the span of the key changes, too.
        if let Some(mut old) = under.remove(key.get_ref().as_ref())
            && let (DeValue::Table(below), DeValue::Table(above)) = (old.get_mut(), value.get_mut())
        {
            merge(schema, child, below, std::mem::take(above));
            *above = std::mem::take(below);
        }
        under.insert(key, value);
    }
}

/// Removes the keys for which `wanted` returns `false`.
pub(super) fn keep(table: &mut DeTable<'_>, wanted: impl Fn(&str) -> bool) {
    // The table is rebuilt, because removing a single key takes time in proportion to the keys after it.
    if !table.keys().all(|key| wanted(key.get_ref())) {
        *table = std::mem::take(table).into_iter().filter(|(key, _)| wanted(key.get_ref())).collect();
    }
}

/// Override: `path=value`.
///
/// A value is TOML: a number, `true`, `"text"`, `[1, 2]`, `{ key = 1 }`. A value that is not TOML and does not start
/// like it is a text without quotes, such as `greedy`, `25us` or `5%`.
pub(super) struct Override<'t> {
    text: &'t str,
    /// TOML of the override. If the value is a text without quotes, its path with an empty text.
    toml: Cow<'t, str>,
    /// Range of a text without quotes.
    bare: Option<Range<usize>>,
}

impl<'t> Override<'t> {
    /// Splits an override into path and value.
    pub fn new(text: &'t str) -> Result<Override<'t>, Problem> {
        let usage = |what: &str| Err(usage(text, what));
        let Some((path, value)) = text.split_once('=') else { return usage("no `=`") };
        let bare = value.trim();
        if text.contains(['\n', '\r']) {
            return usage("more than one line");
        }
        if path.trim().is_empty() {
            return usage("no path before the `=`");
        }
        if bare.is_empty() {
            return usage("no value after the `=`");
        }
        let is_toml = matches!(
            DeValue::parse(bare).map(Spanned::into_inner),
            Ok(DeValue::Integer(_) | DeValue::Float(_) | DeValue::Boolean(_) | DeValue::String(_))
        );
        if is_toml || bare.starts_with(['"', '\'', '[', '{']) {
            return Ok(Override { text, toml: Cow::Borrowed(text), bare: None });
        }
        let start = text.len() - value.trim_start().len();
        let toml = Cow::Owned(format!("{path}=''"));
        Ok(Override { text, toml, bare: Some(start..start + bare.len()) })
    }

    /// Parses the override into a table.
    pub fn parse(&'t self, texts: &mut Texts) -> Result<DeTable<'t>, Problem> {
        let Some(bare) = self.bare.clone() else { return texts.parse(Origin::Override, self.text) };
        let table = DeTable::parse(&self.toml).map_err(|error| usage(self.text, &shortened(error.message())))?;
        let start = texts.add(Origin::Override, self.text);
        let mut table = moved_table(table.into_inner(), start);
        set_leaf(&mut table, &self.text[bare.clone()], start + bare.start..start + bare.end);
        Ok(table)
    }
}

fn usage(text: &str, what: &str) -> Problem {
    Problem::new("", format!("--set {}: {what}; write it like gc.victim=fifo", shown(text)))
}

/// Sets the only leaf of a table to a text.
fn set_leaf<'t>(table: &mut DeTable<'t>, text: &'t str, span: Range<usize>) {
    for (_, value) in table.iter_mut() {
        match value.get_mut() {
            DeValue::Table(below) => set_leaf(below, text, span.clone()),
            _ => *value = Spanned::new(span.clone(), DeValue::String(Cow::Borrowed(text))),
        }
    }
}

/// Returns the paths of all values in a table, except the keys about the file itself.
pub(super) fn leaf_paths(table: &DeTable<'_>) -> Vec<String> {
    let mut paths = Vec::new();
    for (key, value) in table {
        if !ABOUT.contains(&key.get_ref().as_ref()) {
            collect_leaves(value.get_ref(), key.get_ref(), &mut paths);
        }
    }
    paths
}

fn collect_leaves(value: &DeValue<'_>, path: &str, paths: &mut Vec<String>) {
    match value {
        DeValue::Table(table) if !table.is_empty() => {
            table.iter().for_each(|(key, value)| collect_leaves(value.get_ref(), &join(path, key.get_ref()), paths));
        }
        _ => paths.push(path.to_owned()),
    }
}

/// Returns the table at a key of the top level.
pub(super) fn table_of<'a, 't>(table: &'a mut DeTable<'t>, key: &str) -> Option<&'a mut DeTable<'t>> {
    match table.get_mut(key)?.get_mut() {
        DeValue::Table(below) => Some(below),
        _ => None,
    }
}

/// Returns the value at `path`.
pub(super) fn value_at<'a, 't>(table: &'a mut DeTable<'t>, path: &str) -> Option<&'a mut Spanned<DeValue<'t>>> {
    let Some((first, rest)) = path.split_once('.') else { return table.get_mut(path) };
    match table.get_mut(first)?.get_mut() {
        DeValue::Table(below) => value_at(below, rest),
        _ => None,
    }
}

/// Returns the span of the value at `path`.
pub(super) fn span_of(table: &DeTable<'_>, path: &str) -> Option<Range<usize>> {
    let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
    let value = table.get(first)?;
    match (rest, value.get_ref()) {
        (None, _) => Some(value.span()),
        (Some(rest), DeValue::Table(below)) => span_of(below, rest),
        (Some(_), _) => None,
    }
}

/// Returns the path of the innermost key whose value covers `span`.
pub(super) fn path_at(table: &DeTable<'_>, span: &Range<usize>) -> Option<String> {
    table.iter().find_map(|(key, value)| {
        let inner = match value.get_ref() {
            DeValue::Table(below) => path_at(below, span),
            _ => None,
        };
        let here = value.span().start <= span.start && span.end <= value.span().end || key.span() == *span;
        match inner {
            Some(below) => Some(join(key.get_ref(), &below)),
            None => here.then(|| key.get_ref().to_string()),
        }
    })
}
