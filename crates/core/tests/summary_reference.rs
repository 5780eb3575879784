//! The reference of results and of profiles, in `docs/reference`, is what the code says. `FLOATGATE_BLESS=1` writes it
//! again.

use std::fmt::Write;
use std::path::Path;

use floatgate_core::metrics::summary::Summary;
use floatgate_core::workload::trace::profile::Profile;
use serde_json::Value;

#[test]
fn the_schema_of_results_is_up_to_date() {
    let schema = serde_json::to_string_pretty(&Summary::json_schema()).unwrap() + "\n";
    check("summary.schema.json", &schema);
}

#[test]
fn the_page_on_results_is_up_to_date() {
    check("summary.md", &page(SUMMARY, &Summary::json_schema()));
}

#[test]
fn the_schema_of_profiles_is_up_to_date() {
    let schema = serde_json::to_string_pretty(&Profile::json_schema()).unwrap() + "\n";
    check("profile.schema.json", &schema);
}

#[test]
fn the_page_on_profiles_is_up_to_date() {
    check("profile.md", &page(PROFILE, &Profile::json_schema()));
}

const SUMMARY: &str = "# Results\n\n\
    `floatgate run ... --json` prints this, and `--out DIR` writes it to `DIR/summary.json`. The JSON schema is\n\
    [summary.schema.json](summary.schema.json). With `--requests csv` every request is written down beside it:\n\
    [requests.md](requests.md).\n\n";

const PROFILE: &str = "# Profiles of traces\n\n\
    `floatgate trace info FILE... --json` prints this, as a list where there are several files. The JSON schema is\n\
    [profile.schema.json](profile.schema.json). How a trace is read: [traces.md](traces.md).\n\n\
    A trace is read once, and memory does not grow with its requests. Pages are counted one by one as long as those\n\
    touched lie in at most 524288 regions of 256 KiB (128 GiB where they are used densely). Beyond that, regions are\n\
    sampled by a hash of their address (as C. A. Waldspurger et al. do for blocks in \"Efficient MRC construction with\n\
    SHARDS\", FAST 2015): `footprint.sampled` says how many, `footprint.relative_error` how far the numbers of pages are\n\
    off, and hot shares and overwrites are those of the sample.\n\n";

/// Compares a generated document with the one that is kept, or writes it.
fn check(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference").join(name);
    if std::env::var_os("FLOATGATE_BLESS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == text, "docs/reference/{name} is stale: `make bless` writes it again");
}

/// A section for each struct, with a table of its fields.
fn page(introduction: &str, schema: &Value) -> String {
    let mut page = introduction.to_owned();
    page += &paragraphs(schema);
    page += &table(schema);
    for (name, definition) in schema["$defs"].as_object().into_iter().flatten() {
        write!(page, "\n## {name}\n\n{}{}", paragraphs(definition), table(definition)).unwrap();
    }
    page
}

/// The description, in lines that are not too long.
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

/// What a field holds, with a link where that has a section.
fn kind(field: &Value) -> String {
    if let Some(name) = field["$ref"].as_str().and_then(|path| path.strip_prefix("#/$defs/")) {
        return format!("[{name}](#{})", name.to_lowercase());
    }
    if let Some(choices) = field["anyOf"].as_array() {
        return choices.iter().map(kind).collect::<Vec<_>>().join(" or ");
    }
    match &field["type"] {
        Value::String(name) if name == "array" => format!("list of {}", kind(&field["items"])),
        Value::String(name) => name.clone(),
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        _ => String::new(),
    }
}
