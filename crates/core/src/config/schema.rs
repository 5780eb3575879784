//! The JSON schema of a device file, and the tree of keys in it.
//!
//! Everything that has to know which keys there are reads them here: merging, unknown keys and suggestions, the
//! reference page. None of it is written down twice.

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::path::{ABOUT, join};
use super::{DeviceConfig, builtin_names, did_you_mean};
use crate::external::{EXTERNAL, Externals, Offer};

/// The JSON schema of a device file, for editors: that of [`DeviceConfig`], and `base`.
pub fn json_schema() -> Value {
    json_schema_with(&Externals::default())
}

/// Returns the JSON schema of the device files of a program with policies of its own.
pub fn json_schema_with(makers: &Externals) -> Value {
    let mut root = Schema::with(makers).root;
    let tables = tables_with_required_keys(&root);
    let Some(object) = root.as_object_mut() else { return root };
    // A table that may be left out has its required keys where it is there.
    let keys = object.remove("required").unwrap_or_default();
    object.insert("title".to_owned(), json!("Floatgate device"));
    let mut properties = Map::new();
    properties.insert("base".to_owned(), json!({ "description": BASE_DOC, "enum": builtin_names() }));
    if let Some(Value::Object(fields)) = object.get_mut("properties") {
        properties.append(fields);
    }
    object.insert("properties".to_owned(), Value::Object(properties));
    // A file with a base lists only what differs; without one, what has no default must be there.
    let mut complete = Map::new();
    for (key, definition, required) in tables {
        if let Some(table) = object.get_mut("$defs").and_then(|defs| defs[&definition].as_object_mut()) {
            table.remove("required");
        }
        let mut needs = json!({ "required": required });
        if key == "geometry" {
            // As `Structure` has it.
            needs["anyOf"] = json!(["pages", "block_size"].map(|key| json!({ "required": [key] })));
        }
        complete.insert(key, needs);
    }
    object.insert("if".to_owned(), json!({ "not": { "required": ["base"] } }));
    object.insert("then".to_owned(), json!({ "required": keys, "properties": complete }));
    root
}

/// All options of a device: the paths of the values, and of the names that can be chosen, such as `gc.victim.fifo`.
/// Without what says nothing about the device itself.
///
/// A test changes each and sees that it matters (`tests/sensitivity.rs`), so that no option can do nothing.
pub fn options() -> Vec<String> {
    let schema = Schema::new();
    let mut paths = Vec::new();
    schema.options_below(&schema.root, "", &mut paths);
    paths.retain(|path| !ABOUT.iter().any(|key| path == key));
    // What another program brings along does what it does there.
    paths.retain(|path| !path.split('.').any(|key| key == EXTERNAL));
    paths
}

/// What `base` means, which is no field of [`DeviceConfig`] because loading resolves it.
pub(super) const BASE_DOC: &str = "A built-in device that this one starts from. The file then lists only what differs.";

/// The tables of the top level with keys that must be there: key, name of the definition, required keys.
fn tables_with_required_keys(root: &Value) -> Vec<(String, String, Value)> {
    let fields = root["properties"].as_object().into_iter().flatten();
    fields
        .filter_map(|(key, field)| {
            let definition = field["$ref"].as_str()?.strip_prefix("#/$defs/")?;
            let required = root["$defs"][definition].get("required")?;
            Some((key.clone(), definition.to_owned(), required.clone()))
        })
        .collect()
}

/// The schema of [`DeviceConfig`] as a tree of keys.
pub(super) struct Schema {
    root: Value,
    /// Policies of the program that loads the device, as far as their names are free.
    pub offers: Vec<Offer>,
}

/// What may stand at a key.
pub(super) enum Shape<'a> {
    /// A table with these keys.
    Table(Vec<Field<'a>>),
    /// One of several: a name, or a table of one name with its options.
    Choice(Vec<Variant<'a>>),
    /// A table with any keys.
    Map,
    /// One value, or a list.
    Value,
}

/// A key of a table.
#[derive(Clone, Copy)]
pub(super) struct Field<'a> {
    pub name: &'a str,
    pub required: bool,
    pub node: &'a Value,
}

/// One of several.
#[derive(Clone, Copy)]
pub(super) struct Variant<'a> {
    pub name: &'a str,
    pub doc: &'a str,
    /// Whether its name alone will do.
    pub bare: bool,
    /// The schema of its options or value; `None` when it is but a name.
    pub options: Option<&'a Value>,
}

impl Schema {
    pub fn new() -> Schema {
        let generator = SchemaSettings::draft2020_12().into_generator();
        let mut root: Value = generator.into_root_schema_for::<DeviceConfig>().into();
        // Its default is no number of pages, but that it follows from the size of a block.
        if let Some(pages) = root["$defs"]["Geometry"]["properties"]["pages"].as_object_mut() {
            pages.remove("default");
        }
        Schema { root, offers: Vec::new() }
    }

    /// The schema with policies of the program that loads the device.
    pub fn with(makers: &Externals) -> Schema {
        let mut schema = Schema::new();
        schema.offers = makers.offers();
        schema.offers.retain(|offer| extend(&mut schema.root, offer));
        schema
    }

    /// The node of the whole file.
    pub fn root(&self) -> &Value {
        &self.root
    }

    /// The node behind references, and behind "or nothing".
    pub fn resolve<'a>(&'a self, node: &'a Value) -> &'a Value {
        if let Some(name) = node["$ref"].as_str().and_then(|r| r.strip_prefix("#/$defs/")) {
            return self.resolve(&self.root["$defs"][name]);
        }
        match node["anyOf"].as_array().map(Vec::as_slice) {
            Some([some, none]) if none["type"] == "null" => self.resolve(some),
            _ => node,
        }
    }

    /// What may stand at a node.
    pub fn shape<'a>(&'a self, node: &'a Value) -> Shape<'a> {
        let node = self.resolve(node);
        if let Some(fields) = node["properties"].as_object() {
            let required = node["required"].as_array().map(Vec::as_slice).unwrap_or_default();
            let field = |(name, node): (&'a String, &'a Value)| Field {
                name,
                required: required.iter().any(|r| r == name),
                node,
            };
            return Shape::Table(fields.iter().map(field).collect());
        }
        if node["type"] == "object" {
            return if node["additionalProperties"] == false { Shape::Table(Vec::new()) } else { Shape::Map };
        }
        match node["oneOf"].as_array().or(node["anyOf"].as_array()) {
            Some(alternatives) => choice(alternatives).map_or(Shape::Value, Shape::Choice),
            None => Shape::Value,
        }
    }

    /// The node of `key` in a table or a choice.
    pub fn child<'a>(&'a self, node: &'a Value, key: &str) -> Option<&'a Value> {
        match self.shape(node) {
            Shape::Table(fields) => fields.iter().find(|field| field.name == key).map(|field| field.node),
            Shape::Choice(variants) => variants.iter().find(|variant| variant.name == key)?.options,
            Shape::Map | Shape::Value => None,
        }
    }

    /// What a node says about itself: the text of the field, or of what it refers to.
    pub fn doc<'a>(&'a self, node: &'a Value) -> &'a str {
        node["description"].as_str().or(self.resolve(node)["description"].as_str()).unwrap_or_default()
    }

    /// The paths of all keys, tables before what is in them.
    pub fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        self.paths_below(&self.root, "", &mut paths);
        paths
    }

    fn paths_below(&self, node: &Value, prefix: &str, paths: &mut Vec<String>) {
        let children: Vec<(&str, Option<&Value>)> = match self.shape(node) {
            Shape::Table(fields) => fields.iter().map(|f| (f.name, Some(f.node))).collect(),
            Shape::Choice(variants) => {
                variants.iter().filter(|v| v.options.is_some()).map(|v| (v.name, v.options)).collect()
            }
            Shape::Map | Shape::Value => Vec::new(),
        };
        for (name, node) in children {
            let path = join(prefix, name);
            paths.push(path.clone());
            if let Some(node) = node {
                self.paths_below(node, &path, paths);
            }
        }
    }

    fn options_below(&self, node: &Value, prefix: &str, paths: &mut Vec<String>) {
        match self.shape(node) {
            Shape::Table(fields) => {
                fields.iter().for_each(|f| self.options_below(f.node, &join(prefix, f.name), paths));
            }
            Shape::Choice(variants) => {
                for variant in variants {
                    let path = join(prefix, variant.name);
                    // The value of a choice like `capacity.spare` has the path of its name.
                    if variant.options.is_none_or(|options| matches!(self.shape(options), Shape::Table(_))) {
                        paths.push(path.clone());
                    }
                    variant.options.iter().for_each(|options| self.options_below(options, &path, paths));
                }
            }
            Shape::Map | Shape::Value => paths.push(prefix.to_owned()),
        }
    }

    /// The suggestion for an unknown `key` of the table at `prefix` that has the keys `known`: the same key elsewhere,
    /// or a similar one here.
    pub fn suggestion(&self, prefix: &str, key: &str, known: &[&str]) -> String {
        let full = join(prefix, key);
        if let Some((_, new)) = RENAMED.iter().find(|(old, _)| *old == full) {
            return format!(", which is now `{new}`;");
        }
        let elsewhere = self.paths().into_iter().find(|path| path.rsplit('.').next() == Some(key));
        match elsewhere {
            Some(path) if path != full => format!(", did you mean `{path}`?"),
            _ => did_you_mean(key, known),
        }
    }
}

/// Keys that were renamed before the first release: old and new.
const RENAMED: [(&str, &str); 4] = [
    ("controller.slots", "controller.write_slots"),
    ("controller.firmware.cleaning", "controller.firmware.gc"),
    ("faults.places", "faults.inject"),
    ("gc.trigger.lazy.stale", "gc.trigger.lazy.invalid"),
];

/// Adds a policy to the schema. Returns `false` if its key names no family of policies, or its name is taken.
fn extend(root: &mut Value, offer: &Offer) -> bool {
    let Some(choices) = choices_at(root, offer.path()) else { return false };
    let has = |choice: &Value, name: &str| choice["properties"].get(name).is_some();
    if !choices.iter().any(|choice| has(choice, EXTERNAL)) || choices.iter().any(|choice| has(choice, offer.name())) {
        return false;
    }
    let doc = offer.doc();
    choices.push(json!({ "description": doc, "const": offer.name() }));
    choices.push(json!({
        "description": doc,
        "type": "object", "properties": { offer.name(): offer.options() },
        "required": [offer.name()], "additionalProperties": false,
    }));
    true
}

/// The alternatives of the choice at a path.
fn choices_at<'a>(root: &'a mut Value, path: &str) -> Option<&'a mut Vec<Value>> {
    let mut definition: Option<String> = None;
    for key in path.split('.') {
        let node = definition.as_ref().map_or(&*root, |name| &root["$defs"][name]);
        let field = &node["properties"][key];
        definition = Some(field["$ref"].as_str()?.strip_prefix("#/$defs/")?.to_owned());
    }
    root["$defs"].get_mut(definition?)?["anyOf"].as_array_mut()
}

/// The variants, when all alternatives are names, or tables of one name.
fn choice(alternatives: &[Value]) -> Option<Vec<Variant<'_>>> {
    let mut variants: Vec<Variant<'_>> = Vec::new();
    for alternative in alternatives {
        let doc = alternative["description"].as_str().unwrap_or("");
        let (name, options) = match (alternative["const"].as_str(), alternative["properties"].as_object()) {
            (Some(name), _) => (name, None),
            (None, Some(properties)) => {
                let (name, options) = properties.iter().next()?;
                (name.as_str(), Some(options))
            }
            (None, None) => return None,
        };
        match variants.iter_mut().find(|variant| variant.name == name) {
            Some(variant) => {
                variant.options = variant.options.or(options);
                variant.bare |= options.is_none();
            }
            None => variants.push(Variant { name, doc, bare: options.is_none(), options }),
        }
    }
    Some(variants)
}
