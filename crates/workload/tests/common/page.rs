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

/// Returns a page with one section per struct, each with a table of its fields.
pub fn page(introduction: &str, schema: &Value) -> String {
    let mut page = introduction.to_owned();
    page += &paragraphs(schema);
    page += &table(schema);
    for (name, definition) in schema["$defs"].as_object().into_iter().flatten() {
        write!(page, "\n## {name}\n\n{}{}", paragraphs(definition), table(definition)).unwrap();
    }
    page
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

fn table(of: &Value) -> String {
    let mut table = "| key | type | meaning |\n|---|---|---|\n".to_owned();
    for (key, field) in of["properties"].as_object().into_iter().flatten() {
        let meaning = field["description"].as_str().unwrap_or_default().replace('\n', " ");
        writeln!(table, "| `{key}` | {} | {meaning} |", kind(field)).unwrap();
    }
    table
}

/// Returns the type of a field, with a link if the type has a section.
fn kind(field: &Value) -> String {
    if let Some(name) = field["$ref"].as_str().and_then(|path| path.strip_prefix("#/$defs/")) {
        return format!("[{name}](#{})", name.to_lowercase());
    }
    if let Some(choices) = field["anyOf"].as_array() {
        return choices.iter().map(kind).collect::<Vec<_>>().join(" or ");
    }
    if let Some(parts) = field["prefixItems"].as_array() {
        return format!("({})", parts.iter().map(kind).collect::<Vec<_>>().join(", "));
    }
    match &field["type"] {
        Value::String(name) if name == "array" => format!("list of {}", kind(&field["items"])),
        Value::String(name) => name.clone(),
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        _ => String::new(),
    }
}
