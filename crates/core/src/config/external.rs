//! External policies in device files: references to policies of the program that runs the device, and the policies that
//! a program offers under names like those of built-in ones.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Key of an external policy in device files, where built-in policies have their names.
pub const EXTERNAL: &str = "external";

/// Reference to an external policy in a device file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExternalConfig {
    /// Name under which the program registers the policy.
    pub name: String,
    /// Digest of the policy's source, filled in by the program, so that devices with other sources differ.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// Options of the policy.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(with = "std::collections::BTreeMap<String, Value>")]
    pub options: Map<String, Value>,
}

/// Returns options of a policy. Fails with the name of the invalid option and the cause.
pub fn read_options<O: DeserializeOwned>(options: &Map<String, Value>) -> Result<O, String> {
    serde_json::from_value(Value::Object(options.clone())).map_err(|error| error.to_string())
}

/// Policy of a provider that device files name like a built-in policy.
#[derive(Clone, Debug)]
pub struct Offer {
    path: &'static str,
    name: &'static str,
    doc: &'static str,
    source: &'static str,
    /// JSON schema of the options.
    options: Value,
    check: fn(&Map<String, Value>) -> Result<(), String>,
}

impl Offer {
    /// Offers the policy `name` for the key `path`, such as `gc.victim`. `doc` is a sentence for the schema, and `O` is
    /// the type of the options.
    ///
    /// All options need a default, as with `#[serde(default, deny_unknown_fields)]`, because the name alone means the
    /// policy with its default options.
    pub fn new<O: DeserializeOwned + schemars::JsonSchema>(
        path: &'static str,
        name: &'static str,
        doc: &'static str,
    ) -> Offer {
        let settings = schemars::generate::SchemaSettings::draft2020_12().with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        });
        let options = settings.into_generator().into_root_schema_for::<O>().into();
        let check = |options: &Map<String, Value>| read_options::<O>(options).map(drop);
        Offer { path, name, doc, source: "", options, check }
    }

    /// Sets the identification of this implementation, such as the version of its crate, to distinguish devices and
    /// results from those with other implementations.
    pub fn with_source(self, source: &'static str) -> Offer {
        Offer { source, ..self }
    }

    /// Returns the key that names the policy.
    pub fn path(&self) -> &'static str {
        self.path
    }

    /// Returns the name of the policy.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the description of the policy.
    pub fn doc(&self) -> &'static str {
        self.doc
    }

    /// Returns the identification of the implementation.
    pub fn source(&self) -> &'static str {
        self.source
    }

    /// Returns the JSON schema of the options.
    pub fn options(&self) -> &Value {
        &self.options
    }

    /// Checks options.
    ///
    /// # Errors
    ///
    /// Fails with the name of the invalid option and the cause.
    pub fn check(&self, options: &Map<String, Value>) -> Result<(), String> {
        (self.check)(options)
    }
}
