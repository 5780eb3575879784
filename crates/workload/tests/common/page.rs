//! Pages of `docs/reference` that are generated from JSON schemas.

use std::fmt::Write;
use std::path::Path;

use serde_json::Value;

/// Compares a generated document with the stored one, or writes it.
pub fn check(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference").join(name);
    if std::env::var_os("FLOATGATE_BLESS").is_some_and(|value| value == "1") {
        std::fs::write(&path, text).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == text, "docs/reference/{name} is out of date: `make bless` writes it again");
}

/// Largest number of keys of a struct that has no section of its own.
const MAX_INLINED: usize = 6;

/// Largest number of words of a description that is omitted for a struct without a section, because the descriptions of
/// its fields are enough.
const MAX_OMITTED: usize = 9;

/// Returns a page with one section per struct, each with a table of its fields. A small struct that is the type of only
/// one field is shown in the table that has the field, with dotted keys. A type with `?` may be null.
pub fn page(introduction: &str, schema: &Value) -> String {
    let mut page = introduction.to_owned();
    page += &paragraphs(schema);
    page += &table(schema, schema);
    for (name, definition) in schema["$defs"].as_object().into_iter().flatten() {
        if inlined(schema, name).is_none() {
            write!(page, "\n## {name}\n\n{}{}", paragraphs(definition), table(schema, definition)).unwrap();
        }
    }
    page
}

/// Returns the definition of a struct that is shown in the table of the field that has it.
fn inlined<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    let definition = &schema["$defs"][name];
    let is_small = definition["properties"].as_object()?.len() <= MAX_INLINED;
    let uses = schema.to_string().matches(&format!("\"#/$defs/{name}\"")).count();
    (is_small && uses == 1).then_some(definition)
}

/// Returns the name of a field's struct, the mark of a list, and the type.
fn struct_of(field: &Value) -> Option<(&str, &'static str, &'static str)> {
    fn name(of: &Value) -> Option<&str> {
        of["$ref"].as_str().and_then(|path| path.strip_prefix("#/$defs/"))
    }
    let optional = || field["anyOf"].as_array()?.iter().find_map(name);
    name(field)
        .map(|name| (name, "", "object"))
        .or_else(|| optional().map(|name| (name, "", "object?")))
        .or_else(|| name(&field["items"]).map(|name| (name, "[]", "list of objects")))
}

/// Returns the description, wrapped to the maximum line length.
fn paragraphs(of: &Value) -> String {
    let mut text = String::new();
    for paragraph in of["description"].as_str().unwrap_or_default().split("\n\n") {
        let mut width = 0;
        for word in paragraph.split_whitespace() {
            let separator = match width {
                0 => "",
                _ if width + 1 + word.chars().count() > 120 => "\n",
                _ => " ",
            };
            width = if separator == " " { width + 1 } else { 0 } + word.chars().count();
            text += separator;
            text += word;
        }
        text += "\n\n";
    }
    text
}

fn table(schema: &Value, of: &Value) -> String {
    let mut table = "| key | type | meaning |\n|---|---|---|\n".to_owned();
    rows(&mut table, schema, of, "");
    table
}

/// Adds the rows of a struct's fields, whose keys follow `prefix`.
fn rows(table: &mut String, schema: &Value, of: &Value, prefix: &str) {
    for (key, field) in of["properties"].as_object().into_iter().flatten() {
        let meaning = description(field);
        let inner = struct_of(field).and_then(|(name, list, kind)| Some((inlined(schema, name)?, list, kind)));
        let Some((definition, list, object)) = inner else {
            writeln!(table, "| `{prefix}{key}` | {} | {meaning} |", kind(field)).unwrap();
            continue;
        };
        // The field and its struct are described alike. The longer text has the details, if there are any.
        let longer = Some(description(definition)).filter(|text| text.len() > meaning.len()).unwrap_or(meaning);
        if object != "object" || longer.split(' ').count() > MAX_OMITTED {
            writeln!(table, "| `{prefix}{key}` | {object} | {longer} |").unwrap();
        }
        rows(table, schema, definition, &format!("{prefix}{key}{list}."));
    }
}

/// Returns the description on one line.
fn description(of: &Value) -> String {
    of["description"].as_str().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the type of a field, with a link if the type has a section.
fn kind(field: &Value) -> String {
    if let Some(name) = field["$ref"].as_str().and_then(|path| path.strip_prefix("#/$defs/")) {
        return format!("[{name}](#{})", name.to_lowercase());
    }
    if field["$ref"] == "#" {
        return "object".to_owned();
    }
    if let Some(choices) = field["anyOf"].as_array() {
        return or_null(choices.iter().map(kind).collect());
    }
    if let Some(parts) = field["prefixItems"].as_array() {
        return format!("({})", parts.iter().map(kind).collect::<Vec<_>>().join(", "));
    }
    match &field["type"] {
        Value::String(name) if name == "array" => format!("list of {}", kind(&field["items"])),
        Value::String(name) => name.clone(),
        Value::Array(names) => or_null(names.iter().filter_map(Value::as_str).map(str::to_owned).collect()),
        _ => String::new(),
    }
}

/// Returns a choice of types. If one of them is null, the others have a `?`.
fn or_null(mut kinds: Vec<String>) -> String {
    let all = kinds.len();
    kinds.retain(|kind| kind != "null");
    format!("{}{}", kinds.join(" or "), if kinds.len() < all { "?" } else { "" })
}
