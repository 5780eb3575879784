//! JSON schema of a device file, and the tree of keys in it.
//!
//! Merging, the checks of keys, suggestions and the reference page read the keys from here, so that no key is written
//! down twice.

use std::fmt::{self, Display, Formatter};
use std::ops::Bound::{self, Excluded, Included, Unbounded};
use std::ops::RangeBounds;

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::external::{EXTERNAL, Offer};
use super::limits::RANGE;
use super::path::{ABOUT, join};
use super::units::in_base_unit;
use super::{Builtin, DeviceConfig, did_you_mean};

impl DeviceConfig {
    /// Returns the JSON schema of a device file, for editors: the schema of [`DeviceConfig`], and `base`. `offers` are
    /// the policies of the program, which device files name like built-in ones.
    pub fn json_schema(offers: &[Offer]) -> Value {
        let mut root = Schema::with(offers).root;
        let tables = tables_with_required_keys(&root);
        let Some(object) = root.as_object_mut() else { return root };
        // The required keys of an optional table are required only if the table is present.
        let keys = object.remove("required").unwrap_or_default();
        object.insert("title".to_owned(), json!("Floatgate device"));
        let mut properties = Map::new();
        properties.insert("base".to_owned(), json!({ "description": BASE_DOC, "enum": Builtin::names() }));
        if let Some(Value::Object(fields)) = object.get_mut("properties") {
            properties.append(fields);
        }
        object.insert("properties".to_owned(), Value::Object(properties));
        // A file with a base lists only the differences. Without a base, all keys without a default are required.
        let mut complete = Map::new();
        for (key, definition, required) in tables {
            if let Some(table) = object.get_mut("$defs").and_then(|defs| defs[&definition].as_object_mut()) {
                table.remove("required");
            }
            let mut needs = json!({ "required": required });
            if key == "geometry" {
                // `Structure` has the same rule.
                needs["anyOf"] = json!(["pages", "block_size"].map(|key| json!({ "required": [key] })));
            }
            complete.insert(key, needs);
        }
        object.insert("if".to_owned(), json!({ "not": { "required": ["base"] } }));
        object.insert("then".to_owned(), json!({ "required": keys, "properties": complete }));
        root
    }
}

/// Returns all options of a device: the paths of values, and of names that can be chosen, such as `gc.victim.fifo`.
/// Keys about the file itself and external policies are left out.
///
/// A test changes each option and checks that it has an effect (`tests/sensitivity.rs`).
pub fn options() -> Vec<String> {
    let schema = Schema::new();
    let mut paths = Vec::new();
    schema.options_below(&schema.root, "", &mut paths);
    paths.retain(|path| !ABOUT.iter().any(|key| path == key));
    // The effect of an external policy depends on the program that supplies it.
    paths.retain(|path| !path.split('.').any(|key| key == EXTERNAL));
    paths
}

/// Description of `base`, which is not a field of [`DeviceConfig`] because loading resolves it.
pub(super) const BASE_DOC: &str =
    "Built-in device that this one is based on. The file then lists only the differences.";

/// Returns the tables of the top level that have required keys: key, name of the definition, required keys.
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

/// Schema of [`DeviceConfig`], as a tree of keys.
pub(super) struct Schema {
    root: Value,
    /// Policies of the program that loads the device, except those whose names are taken.
    pub offers: Vec<Offer>,
}

/// Range of a number, or of a quantity in its base unit.
pub(super) struct Range {
    least: Bound<f64>,
    most: Bound<f64>,
    /// The least and the greatest value of a quantity, with their units.
    shown: Option<[String; 2]>,
    /// Advice for a value beyond them.
    instead: Option<String>,
}

impl Range {
    /// Returns the range of the values of a key, alone or in a list.
    fn of(schema: &Schema, node: &Value) -> Range {
        if let Some([least, most]) = quantities(node) {
            let limit = |text: &str| in_base_unit(text).map_or(Unbounded, |(limit, _)| Included(limit as f64));
            let shown = Some([least.to_owned(), most.to_owned()]);
            let instead = node[RANGE][2].as_str().map(str::to_owned);
            return Range { least: limit(least), most: limit(most), shown, instead };
        }
        let node = schema.resolve(node);
        let limit = |included: &str, excluded: &str| match (node[included].as_f64(), node[excluded].as_f64()) {
            (_, Some(limit)) => Excluded(limit),
            (Some(limit), None) => Included(limit),
            (None, None) => Unbounded,
        };
        let (least, most) = (limit("minimum", "exclusiveMinimum"), limit("maximum", "exclusiveMaximum"));
        Range { least, most, shown: None, instead: None }
    }

    fn contains(&self, value: f64) -> bool {
        (self.least, self.most).contains(&value)
    }
}

impl Display for Range {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some([least, most]) = &self.shown {
            let instead = self.instead.iter().map(|instead| format!(": {instead}")).collect::<String>();
            return write!(f, "from {least} to {most}{instead}");
        }
        let least = match self.least {
            Included(least) => Some(format!("at least {least}")),
            Excluded(least) => Some(format!("above {least}")),
            Unbounded => None,
        };
        let most = match self.most {
            Included(most) => Some(format!("at most {most}")),
            Excluded(most) => Some(format!("below {most}")),
            Unbounded => None,
        };
        match (self.least, self.most) {
            (Included(least), Included(most)) => write!(f, "from {least} to {most}"),
            (Included(least), Excluded(most)) => write!(f, "from {least} to below {most}"),
            _ => f.write_str(&least.into_iter().chain(most).collect::<Vec<_>>().join(" and ")),
        }
    }
}

/// Returns the range of a quantity with a unit, if the node has one.
pub(super) fn quantities(node: &Value) -> Option<[&str; 2]> {
    Some([node[RANGE][0].as_str()?, node[RANGE][1].as_str()?])
}

/// Kind of value of a key.
pub(super) enum Shape<'a> {
    /// Table with these keys.
    Table(Vec<Field<'a>>),
    /// Choice: a name, or a table of one name with its options.
    Choice(Vec<Variant<'a>>),
    /// Table with arbitrary keys.
    Map,
    /// Single value, or a list.
    Value,
}

/// Key of a table.
#[derive(Clone, Copy)]
pub(super) struct Field<'a> {
    pub name: &'a str,
    pub required: bool,
    pub node: &'a Value,
}

/// Alternative of a choice.
#[derive(Clone, Copy)]
pub(super) struct Variant<'a> {
    pub name: &'a str,
    pub doc: &'a str,
    /// True if the name alone is a value.
    pub bare: bool,
    /// Schema of the options or the value; `None` if the alternative is only a name.
    pub options: Option<&'a Value>,
}

impl Schema {
    pub fn new() -> Schema {
        let generator = SchemaSettings::draft2020_12().into_generator();
        let mut root: Value = generator.into_root_schema_for::<DeviceConfig>().into();
        // The default is not a number of pages: the number follows from the block size.
        if let Some(pages) = root["$defs"]["Geometry"]["properties"]["pages"].as_object_mut() {
            pages.remove("default");
        }
        Schema { root, offers: Vec::new() }
    }

    /// Creates the schema, with the policies of the program that loads the device.
    pub fn with(offers: &[Offer]) -> Schema {
        let mut schema = Schema::new();
        schema.offers = offers.to_vec();
        schema.offers.retain(|offer| extend(&mut schema.root, offer));
        schema
    }

    /// Returns the node of the whole file.
    pub fn root(&self) -> &Value {
        &self.root
    }

    /// Returns the node that a reference or an optional node leads to.
    pub fn resolve<'a>(&'a self, node: &'a Value) -> &'a Value {
        if let Some(name) = node["$ref"].as_str().and_then(|r| r.strip_prefix("#/$defs/")) {
            return self.resolve(&self.root["$defs"][name]);
        }
        match node["anyOf"].as_array().map(Vec::as_slice) {
            Some([some, none]) if none["type"] == "null" => self.resolve(some),
            _ => node,
        }
    }

    /// Returns the kind of value of a node.
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

    /// Returns the node of `key` in a table or a choice.
    pub fn child<'a>(&'a self, node: &'a Value, key: &str) -> Option<&'a Value> {
        match self.shape(node) {
            Shape::Table(fields) => fields.iter().find(|field| field.name == key).map(|field| field.node),
            Shape::Choice(variants) => variants.iter().find(|variant| variant.name == key)?.options,
            Shape::Map | Shape::Value => None,
        }
    }

    /// Calls `refuse` with the path, the value and the range of each number or quantity that is outside its range.
    pub fn out_of_range(&self, value: &Value, refuse: &mut dyn FnMut(&str, &str, Range)) {
        self.out_of_range_below(&self.root, value, "", refuse);
    }

    fn out_of_range_below(&self, node: &Value, value: &Value, path: &str, refuse: &mut dyn FnMut(&str, &str, Range)) {
        if let Some(fields) = value.as_object() {
            for (key, value) in fields {
                if let Some(node) = self.child(node, key) {
                    self.out_of_range_below(node, value, &join(path, key), refuse);
                }
            }
            return;
        }
        if let Some(values) = value.as_array() {
            // The range of a quantity is that of each, at the key. That of a number is at the items.
            let of_items = Some(&self.resolve(node)["items"]).filter(|items| !items.is_null());
            let node = if quantities(node).is_some() { node } else { of_items.unwrap_or(node) };
            return values.iter().for_each(|value| self.out_of_range_below(node, value, path, refuse));
        }
        let range = Range::of(self, node);
        let number = match value {
            Value::String(text) => range.shown.as_ref().and_then(|_| in_base_unit(text)).map(|(value, _)| value as f64),
            // A number that JSON does not have becomes null.
            Value::Null => (self.resolve(node)["type"] == "number").then_some(f64::NAN),
            _ => value.as_f64(),
        };
        if let Some(number) = number.filter(|number| !range.contains(*number)) {
            let shown = value.as_str().map_or(number.to_string(), str::to_owned);
            refuse(path, &shown, range);
        }
    }

    /// Returns the description of a node: that of the field, or else that of its type.
    pub fn doc<'a>(&'a self, node: &'a Value) -> &'a str {
        node["description"].as_str().or(self.resolve(node)["description"].as_str()).unwrap_or_default()
    }

    /// Returns the paths of all keys, each table before its keys.
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
                    // The value of a choice such as `capacity.spare` has the path of the name.
                    if variant.options.is_none_or(|options| matches!(self.shape(options), Shape::Table(_))) {
                        paths.push(path.clone());
                    }
                    variant.options.iter().for_each(|options| self.options_below(options, &path, paths));
                }
            }
            Shape::Map | Shape::Value => paths.push(prefix.to_owned()),
        }
    }

    /// Returns the suggestion for an unknown `key` of the table at `prefix`, whose keys are `known`: the same key in
    /// another table, or a similar one in this table.
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

/// Options with a name instead of `true` and `false` before the first release.
const NOW_BOOLEAN: [&str; 2] = ["nand.advanced.multi_plane_read", "nand.advanced.multi_plane_erase"];

/// Returns the present value of an option at `path` that had another one before the first release, from the error about
/// it.
pub fn new_value(path: &str, error: &str) -> Option<bool> {
    let old = error.strip_prefix("invalid type: string ")?;
    (NOW_BOOLEAN.contains(&path)).then(|| !old.starts_with("\"off\""))
}

/// Adds a policy to the schema. Returns `false` if its key names no policy family, or if its name is taken.
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

/// Returns the alternatives of the choice at a path.
fn choices_at<'a>(root: &'a mut Value, path: &str) -> Option<&'a mut Vec<Value>> {
    let mut definition: Option<String> = None;
    for key in path.split('.') {
        let node = definition.as_ref().map_or(&*root, |name| &root["$defs"][name]);
        let field = &node["properties"][key];
        definition = Some(field["$ref"].as_str()?.strip_prefix("#/$defs/")?.to_owned());
    }
    root["$defs"].get_mut(definition?)?["anyOf"].as_array_mut()
}

/// Returns the variants, if all alternatives are names or tables of one name.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the values directly beyond both ends of a range.
    fn beyond(range: &Range) -> Vec<Value> {
        if let Some([least, most]) = &range.shown {
            let at = |text: &str, step: i64| {
                let (limit, unit) = in_base_unit(text).unwrap();
                limit.checked_add_signed(step).map(|value| json!(format!("{value}{unit}")))
            };
            return at(least, -1).into_iter().chain(at(most, 1)).collect();
        }
        let below = match range.least {
            Included(least) => Some(least - 1e-3),
            Excluded(least) => Some(least),
            Unbounded => None,
        };
        let above = match range.most {
            Included(most) => Some(most + 1e-3),
            Excluded(most) => Some(most),
            Unbounded => None,
        };
        below.into_iter().chain(above).map(|value| json!(value)).collect()
    }

    fn refused(schema: &Schema, path: &str, value: &Value) -> Vec<String> {
        let device = path.rsplit('.').fold(value.clone(), |value, key| json!({ key: value }));
        let mut refused = Vec::new();
        schema.out_of_range(&device, &mut |path, value, _| refused.push(format!("{path} = {value}")));
        refused
    }

    /// Each option with a range is refused by its path, directly beyond both ends, alone and in a list.
    #[test]
    fn all_ranges_are_checked() {
        let schema = Schema::new();
        let mut paths = Vec::new();
        schema.options_below(&schema.root, "", &mut paths);
        let (mut limits, mut of_quantities) = (0, 0);
        for path in paths {
            let node = path.split('.').try_fold(&schema.root, |node, key| schema.child(node, key));
            let range = Range::of(&schema, node.unwrap_or(&Value::Null));
            for beyond in beyond(&range) {
                let value = beyond.as_str().map_or_else(|| beyond.as_f64().unwrap().to_string(), str::to_owned);
                let expected = format!("{path} = {value}");
                assert_eq!(refused(&schema, &path, &beyond), std::slice::from_ref(&expected));
                if range.shown.is_some() {
                    assert_eq!(refused(&schema, &path, &json!([beyond, beyond])), [expected.clone(), expected]);
                }
                limits += 1;
                of_quantities += usize::from(range.shown.is_some());
            }
        }
        assert!(limits > 80 && of_quantities > 25, "{limits}, {of_quantities}");
    }

    #[test]
    fn numbers_in_lists_are_checked() {
        let items = json!({ "type": "integer", "minimum": 1, "maximum": 3 });
        let root = json!({ "properties": { "counts": { "type": "array", "items": items } } });
        let schema = Schema { root, offers: Vec::new() };
        assert_eq!(refused(&schema, "counts", &json!([1, 0, 3, 4])), ["counts = 0", "counts = 4"]);
    }

    #[test]
    fn ranges_of_quantities_are_quantities() {
        fn check(node: &Value, found: &mut usize) {
            if let Some(range) = node.get(RANGE) {
                let [least, most] = quantities(node).unwrap_or_else(|| panic!("{range}")).map(in_base_unit);
                assert!(least.unwrap().0 < most.unwrap().0 && least.unwrap().1 == most.unwrap().1, "{range}");
                *found += 1;
            }
            let children = node.as_object().into_iter().flat_map(|fields| fields.values());
            children.chain(node.as_array().into_iter().flatten()).for_each(|child| check(child, found));
        }
        let mut found = 0;
        check(&Schema::new().root, &mut found);
        assert!(found > 20, "{found}");
    }
}
