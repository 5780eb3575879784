//! Structure of a device file: checks the keys before the values are read.
//!
//! serde stops at the first unknown or missing key and gives no suggestions. This module finds all of them.

use std::ops::Range;

use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::did_you_mean_or_colon;
use super::error::Problem;
use super::origin::Texts;
use super::path::join;
use super::schema::{Field, Schema, Shape, Variant};
use crate::sim::text::shown;

/// Search for unknown keys, missing keys, tables in place of values, and values in place of tables.
pub(super) struct Structure<'a> {
    schema: &'a Schema,
    texts: &'a Texts,
    problems: Vec<Problem>,
    /// Number of problems that are not listed.
    more: usize,
}

/// Maximum number of problems of one kind that are listed.
pub(super) const LISTED: usize = 10;

impl<'a> Structure<'a> {
    /// Returns the first problems of the device `table`, and an entry with the number of the others.
    pub fn problems(schema: &'a Schema, texts: &'a Texts, table: &DeTable<'_>) -> Vec<Problem> {
        let mut structure = Structure { schema, texts, problems: Vec::new(), more: 0 };
        structure.table(table, schema.root(), "", None);
        if structure.more > 0 {
            structure.problems.push(Problem::of_others(structure.more));
        }
        structure.problems
    }

    /// Returns `true` if enough problems are listed, and then counts one more.
    fn is_full(&mut self) -> bool {
        let is_full = self.problems.len() == LISTED;
        self.more += usize::from(is_full);
        is_full
    }

    fn problem(&mut self, path: &str, message: &str, span: Option<Range<usize>>) {
        if self.is_full() {
            return;
        }
        self.problems.push(match span {
            Some(span) => self.texts.problem(path, message, span),
            None => Problem::new(path, message),
        });
    }

    fn value(&mut self, value: &Spanned<DeValue<'_>>, node: &'a Value, path: &str) {
        let span = Some(value.span());
        match (self.schema.shape(node), value.get_ref()) {
            (Shape::Table(_), DeValue::Table(table)) => self.table(table, node, path, span),
            (Shape::Table(fields), _) => {
                let keys = fields.iter().map(|field| field.name).collect::<Vec<_>>().join(", ");
                self.problem(path, &format!("`{path}` is a table, with the keys {keys}"), span);
            }
            (Shape::Choice(variants), given) => self.choice(given, &variants, path, value.span()),
            (Shape::Value, DeValue::Table(_)) => {
                self.problem(path, &format!("`{path}` is one value, not a table"), span)
            }
            (Shape::Map | Shape::Value, _) => {}
        }
    }

    fn table(&mut self, table: &DeTable<'_>, node: &'a Value, path: &str, span: Option<Range<usize>>) {
        let Shape::Table(fields) = self.schema.shape(node) else { return };
        let known: Vec<&str> = fields.iter().map(|field| field.name).collect();
        for (key, value) in table {
            match fields.iter().find(|field| field.name == key.get_ref()) {
                Some(field) => self.value(value, field.node, &join(path, field.name)),
                None if self.is_full() => {}
                None => {
                    let hint = self.schema.suggestion(path, key.get_ref(), &known);
                    let hint = if hint.is_empty() { ";".to_owned() } else { hint };
                    let of = if path.is_empty() { "a device".to_owned() } else { format!("`{path}`") };
                    let keys = if known.is_empty() { "no keys".to_owned() } else { known.join(", ") };
                    let full = join(path, &shown(key.get_ref()));
                    self.problem(&full, &format!("unknown key `{full}`{hint} {of} has {keys}"), Some(key.span()));
                }
            }
        }
        let lacks_pages = path == "geometry" && !table.contains_key("block_size");
        let required = |field: &Field| field.required || lacks_pages && field.name == "pages";
        for field in fields.iter().filter(|field| required(field) && !table.contains_key(field.name)) {
            let doc = self.schema.doc(field.node);
            let full = join(path, field.name);
            let message = format!("missing key `{full}`: {}", doc.lines().next().unwrap_or_default());
            self.problem(&full, &message, span.clone());
        }
    }

    fn choice(&mut self, given: &DeValue<'_>, variants: &[Variant<'a>], path: &str, span: Range<usize>) {
        let names: Vec<&str> = variants.iter().map(|variant| variant.name).collect();
        let one_of = names.join(", ");
        match given {
            DeValue::String(name) => match variants.iter().find(|variant| variant.name == name) {
                Some(Variant { bare: true, .. }) => {}
                Some(_) => {
                    self.problem(
                        path,
                        &format!("`{path}`: `{name}` needs a value: write {path}.{name} = ..."),
                        Some(span),
                    );
                }
                None => self.unknown_name(path, name, &names, path, span),
            },
            DeValue::Table(table) if table.len() == 1 => {
                for (key, value) in table {
                    let name = key.get_ref();
                    let full = join(path, &shown(name));
                    match variants.iter().find(|variant| variant.name == name).map(|variant| variant.options) {
                        Some(Some(options)) => self.value(value, options, &full),
                        Some(None) => {
                            let message = format!("`{path}`: `{name}` has no options: write {path} = \"{name}\"");
                            self.problem(&full, &message, Some(key.span()));
                        }
                        None => self.unknown_name(path, name, &names, &full, key.span()),
                    }
                }
            }
            DeValue::Table(table) => {
                let given: Vec<_> = table.keys().take(LISTED).map(|key| shown(key.get_ref())).collect();
                let more = table.len() - given.len();
                let more = if more == 0 { String::new() } else { format!(" and {more} more") };
                let given = if given.is_empty() { "an empty table".to_owned() } else { given.join(" and ") + &more };
                self.problem(path, &format!("`{path}`: {given}: name exactly one of {one_of}"), Some(span));
            }
            _ if variants.iter().any(|variant| variant.bare) => {
                let has_options = variants.iter().any(|variant| variant.options.is_some());
                let table = if has_options { ", or a table of one of them with its options" } else { "" };
                self.problem(path, &format!("`{path}`: one of {one_of}{table}"), Some(span));
            }
            _ => {
                let ways: Vec<String> = names.iter().map(|name| format!("{path}.{name} = ...")).collect();
                self.problem(path, &format!("`{path}`: write {}", ways.join(" or ")), Some(span));
            }
        }
    }

    fn unknown_name(&mut self, path: &str, name: &str, names: &[&str], at: &str, span: Range<usize>) {
        let hint = did_you_mean_or_colon(name, names);
        let message = format!("`{path}`: unknown name `{}`{hint} one of {}", shown(name), names.join(", "));
        self.problem(at, &message, Some(span));
    }
}
