//! Reference page and commented example of device files, generated from the tree of keys.

use std::fmt::Write;

use serde_json::Value;

use super::Builtin;
use super::path::join;
use super::scale::{KEPT_BLOCKS, MIN_BLOCKS, RULES, Scaling};
use super::schema::{BASE_DOC, Schema, Shape, Variant, quantities};

const INTRODUCTION: &str = "\
# Device files

<!-- Written from the sources by `make bless`: changes made here are lost. -->

A device is a TOML file, or a built-in device given by its name. `--set path=value` changes a single key; the paths are
those of this page: `--set geometry.channels=8 --set gc.victim=fifo`. Unknown keys are errors.

* Quantities carry their unit, as in `\"25us\"`: times ps, ns, us, ms, s; sizes B, KiB, MiB, GiB, TiB, KB, MB, GB, TB;
  transfer rates T/s, kT/s, MT/s, GT/s; bandwidths B/s, KB/s, MB/s, GB/s, KiB/s, MiB/s, GiB/s; frequencies Hz, kHz, MHz,
  GHz. A share is a number from 0 to 1, or a percentage, as in `\"5%\"`, if a number has another meaning.
* An integer is not negative. A boolean is `true` or `false`.
* A choice is a name, `victim = \"greedy\"`, or a table of one name with its options,
  `victim = { d-choices = { d = 4 } }`; on the command line, `--set gc.victim.d-choices.d=4`. A new choice replaces the
  previous one with all its options.
* `[sources]` has the source of each value: a citation, or `assumed:` and a reason, for a key or a table of this page.
* A device file has at most 4 MiB. `floatgate device check` prints the memory that a simulation of the device needs. A
  device is refused if it needs more memory than the machine, the control group or the process has left.

The [JSON schema](device.schema.json) enables completion in editors. [device.example.toml](device.example.toml) is a
complete device file.

";

/// Returns `docs/reference/config.md`: every key with its type, default and meaning.
pub fn reference_page() -> String {
    let schema = Schema::new();
    let mut page = INTRODUCTION.to_owned();
    page.push_str(
        "## Built-in devices\n\n`floatgate device list` describes them. Their files have the source of each value.\n\n",
    );
    for device in Builtin::ALL {
        let _ = writeln!(page, "* [`{0}`](../../crates/core/devices/{0}.toml)", device.name);
    }
    page.push_str("\n## Keys of the top level\n\n");
    let base = format!("| `base` | name of a built-in device | | {BASE_DOC} |\n");
    write_table(&mut page, &schema, schema.root(), &base, true);
    write_sections(&mut page, &schema, schema.root(), "");
    write_scaling(&mut page);
    page.truncate(page.trim_end().len());
    page.push('\n');
    page
}

/// Writes how each option scales.
fn write_scaling(page: &mut String) {
    let _ = write!(
        page,
        "## Devices on fewer blocks\n\n`floatgate device scale`, `--scale` and `Device.scaled` take a device with a share \
         of its blocks, such as 1/16, so that a\nsteady state is reached sooner ([example](../own-drive.md#scale-the-number-of-blocks)). \
         The longest path that covers an\noption decides.\n\n| Options | Scaling | Reason |\n|---|---|---|\n"
    );
    for rule in RULES {
        let options: Vec<String> = rule.options.iter().map(|option| format!("`{option}`")).collect();
        let scaling = match rule.scaling {
            Scaling::Proportional => "in proportion".to_owned(),
            Scaling::Reserve => format!("in proportion, but the first {KEPT_BLOCKS} blocks remain"),
            Scaling::Capacity => "with the blocks that hold data".to_owned(),
            Scaling::Relative | Scaling::Kept => "none".to_owned(),
        };
        let _ = writeln!(page, "| {} | {scaling} | {} |", options.join(", "), cell(rule.why));
    }
    let _ = write!(
        page,
        "\nThe blocks that hold data are those of a plane without factory bad blocks, free blocks, the free halves of open \
         blocks,\nand the blocks of the map and of the SLC cache. At least {MIN_BLOCKS} of each plane have to remain.\n"
    );
}

/// Writes a section for each table and each choice among the keys of `node`. The description of a key with a section
/// has its first sentence in the table above, and is repeated only if it is longer.
fn write_sections(page: &mut String, schema: &Schema, node: &Value, prefix: &str) {
    let Shape::Table(fields) = schema.shape(node) else { return };
    for field in fields {
        let path = join(prefix, field.name);
        match schema.shape(field.node) {
            Shape::Table(_) => {
                write_heading(page, schema, field.node, &path);
                write_table(page, schema, field.node, "", true);
            }
            Shape::Choice(variants) if is_short(&variants) => {}
            Shape::Choice(variants) => {
                write_heading(page, schema, field.node, &path);
                write_choice(page, schema, &variants, &path);
            }
            Shape::Map | Shape::Value => {}
        }
        write_sections(page, schema, field.node, &path);
    }
}

/// Maximum number of words that describe the names of a choice in the row of its key.
const MAX_INLINED: usize = 40;

/// Returns `true` if a choice is described in the row of its key: only names, with short descriptions.
fn is_short(variants: &[Variant<'_>]) -> bool {
    let words: usize = variants.iter().map(|variant| variant.doc.split_whitespace().count()).sum();
    words <= MAX_INLINED && variants.iter().all(|variant| variant.options.is_none())
}

fn write_heading(page: &mut String, schema: &Schema, node: &Value, path: &str) {
    let _ = writeln!(page, "## `{path}`\n");
    let doc = schema.doc(node);
    if first_sentence(doc) != doc {
        let _ = writeln!(page, "{doc}\n");
    }
}

/// Returns the first sentence of a description.
fn first_sentence(doc: &str) -> &str {
    let end = doc.match_indices(['.', '\n']).find(|(at, _)| {
        let rest = &doc[at + 1..];
        rest.trim_start().starts_with(|next: char| next.is_uppercase() || next == '`') && rest.starts_with([' ', '\n'])
    });
    end.map_or(doc, |(at, _)| &doc[..=at])
}

/// Writes a table of keys after the row `first`. `has_sections` is true if choices have sections of their own.
fn write_table(page: &mut String, schema: &Schema, node: &Value, first: &str, has_sections: bool) {
    let Shape::Table(fields) = schema.shape(node) else { return };
    page.push_str("| Key | Type | Default | Meaning |\n|---|---|---|---|\n");
    page.push_str(first);
    for field in &fields {
        let default = match (&field.node["default"], schema.shape(field.node)) {
            (_, Shape::Table(_) | Shape::Map) | (Value::Null, _) if !field.required => String::new(),
            (Value::String(empty), _) if empty.is_empty() => String::new(),
            (Value::Null, _) => "*required*".to_owned(),
            (default, _) => format!("`{}`", inline(default)),
        };
        let doc = schema.doc(field.node);
        let kind = match schema.shape(field.node) {
            Shape::Choice(_) if has_sections => "choice".to_owned(),
            _ => type_of(schema, field.node),
        };
        let doc = match schema.shape(field.node) {
            Shape::Choice(variants) if is_short(&variants) => {
                let names = variants.iter().map(|variant| format!("`{}`: {}", variant.name, variant.doc));
                let names = cell(&names.collect::<Vec<_>>().join(" "));
                // Several mapping schemes have the same option.
                if page.contains(&names) && !has_sections { cell(doc) } else { format!("{} {names}", cell(doc)) }
            }
            Shape::Table(_) | Shape::Choice(_) => cell(first_sentence(doc)),
            Shape::Map | Shape::Value => cell(doc),
        };
        let _ = writeln!(page, "| `{}` | {} | {default} | {doc} |", field.name, cell(&kind));
    }
    page.push('\n');
}

fn write_choice(page: &mut String, schema: &Schema, variants: &[Variant<'_>], path: &str) {
    page.push_str("| Choice | Meaning |\n|---|---|\n");
    for variant in variants {
        let written = match (variant.options, variant.bare) {
            (Some(value), false) => format!("`{}` = {}", variant.name, type_of(schema, value)),
            _ => format!("`{}`", variant.name),
        };
        let _ = writeln!(page, "| {} | {} |", cell(&written), cell(variant.doc));
    }
    page.push('\n');
    for (name, options) in variants.iter().filter_map(|v| Some((v.name, v.options?))) {
        if matches!(schema.shape(options), Shape::Table(fields) if !fields.is_empty()) {
            let start = page.len();
            let _ = writeln!(page, "Options of `{path}.{name}`:\n");
            let table = page.len();
            write_table(page, schema, options, "", false);
            if let Some(other) = choice_with(&page[..start], &page[table..]).map(str::to_owned) {
                page.truncate(start);
                let _ = writeln!(page, "Options of `{path}.{name}`: those of `{other}`.\n");
            }
        }
    }
}

/// Returns the choice whose options are in this table, if the page has it already.
fn choice_with<'a>(page: &'a str, table: &str) -> Option<&'a str> {
    let before = &page[..page.find(table)?];
    before.rsplit_once("Options of `")?.1.split('`').next()
}

/// Returns the type of a key in words, with the range of a quantity.
fn type_of(schema: &Schema, node: &Value) -> String {
    let plain = plain_type_of(schema, node);
    let Some([least, most]) = quantities(node) else { return plain };
    let each = if plain.contains(", or ") { ", each" } else { "" };
    format!("{plain}{each} from {least} to {most}")
}

fn plain_type_of(schema: &Schema, node: &Value) -> String {
    let inner = schema.resolve(node);
    match schema.shape(node) {
        Shape::Table(_) | Shape::Map => return "table".to_owned(),
        Shape::Choice(variants) => {
            return variants.iter().map(|v| format!("`{}`", v.name)).collect::<Vec<_>>().join(", ");
        }
        Shape::Value => {}
    }
    if let Some(alternatives) = inner["anyOf"].as_array() {
        return alternatives.iter().map(|one| type_of(schema, one)).collect::<Vec<_>>().join(", or ");
    }
    // A named type has a description of its own. The description of a plain type is that of its key.
    let is_own = !std::ptr::eq(inner, node);
    if let Some(words) = inner["description"].as_str().filter(|_| is_own) {
        let words = words.split(';').next().unwrap_or(words);
        return words.split(", like ").next().unwrap_or(words).to_owned();
    }
    if let Some(names) = inner["enum"].as_array() {
        return names.iter().map(|name| format!("`{}`", inline(name))).collect::<Vec<_>>().join(", ");
    }
    // A key that may be absent has a list of types, with `null`.
    let kind = inner["type"].as_array().and_then(|kinds| kinds.iter().find(|kind| *kind != "null"));
    match kind.unwrap_or(&inner["type"]).as_str().unwrap_or_default() {
        "array" => "a list".to_owned(),
        "integer" => {
            let least = inner["minimum"].as_u64().filter(|least| *least > 0);
            least.map_or("integer".to_owned(), |least| format!("integer from {least}"))
        }
        "number" => "number".to_owned(),
        "boolean" => "boolean".to_owned(),
        _ => inner["pattern"].as_str().filter(|p| p.ends_with("%$")).map_or("text", |_| "share").to_owned(),
    }
}

/// Returns a text as a table cell: one line, with escaped `|`.
fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

/// Returns a value as TOML in one line.
fn inline(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let entries: Vec<String> = map.iter().map(|(key, value)| format!("{key} = {}", inline(value))).collect();
            format!("{{ {} }}", entries.join(", "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(inline).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

/// Returns `docs/reference/device.example.toml`: every key of the device `tiny`, with its meaning.
pub fn example() -> String {
    let schema = Schema::new();
    let device = Builtin::named("tiny").and_then(|tiny| super::from_toml(tiny.text, "tiny.toml", &[]).ok());
    let values = device.and_then(|tiny| serde_json::to_value(tiny.resolved()).ok()).unwrap_or_default();
    let mut text = "# A device file with every key. Only geometry, nand and bus are required.\n".to_owned();
    write_example(&mut text, &schema, schema.root(), &values, "");
    text
}

/// Writes the values before the tables, as TOML requires.
fn write_example(text: &mut String, schema: &Schema, node: &Value, values: &Value, prefix: &str) {
    let Shape::Table(fields) = schema.shape(node) else { return };
    let is_table = |node| matches!(schema.shape(node), Shape::Table(_) | Shape::Map);
    for field in fields.iter().filter(|field| !is_table(field.node)) {
        comment(text, schema.doc(field.node));
        if let Shape::Choice(variants) = schema.shape(field.node) {
            for variant in variants {
                comment(text, &format!("- {}: {}", variant.name, variant.doc));
            }
        }
        match &values[field.name] {
            // The default is "no limit", or the table is absent: the default or an example is shown as a comment.
            Value::Null => {
                let shown = match &field.node["default"] {
                    Value::Null => &schema.resolve(field.node)["examples"][0],
                    default => default,
                };
                let _ = writeln!(text, "# {} = {}", field.name, inline(shown));
            }
            value => {
                let _ = writeln!(text, "{} = {}", field.name, inline(value));
            }
        }
    }
    for field in fields.iter().filter(|field| is_table(field.node)) {
        let path = join(prefix, field.name);
        text.push('\n');
        comment(text, schema.doc(field.node));
        let absent = if values[field.name].is_null() { "# " } else { "" };
        let _ = writeln!(text, "{absent}[{path}]");
        if let (Shape::Map, Some(entries)) = (schema.shape(field.node), values[field.name].as_object()) {
            for (key, value) in entries {
                let _ = writeln!(text, "{key:?} = {}", inline(value));
            }
        }
        write_example(text, schema, field.node, &values[field.name], &path);
    }
}

/// Writes a comment in lines of at most 120 characters.
fn comment(text: &mut String, doc: &str) {
    for line in doc.lines() {
        let mut column = 1;
        text.push('#');
        for word in line.split_whitespace() {
            if column + 1 + word.chars().count() > 120 {
                text.push_str("\n#  ");
                column = 3;
            }
            text.push(' ');
            text.push_str(word);
            column += 1 + word.chars().count();
        }
        text.push('\n');
    }
}
