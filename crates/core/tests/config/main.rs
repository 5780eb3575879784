//! Device files: which ones are accepted or refused, and the error messages.

mod builtin;
mod errors;
mod layers;
mod reference;
mod rules;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use floatgate_core::device_file::{Builtin, ConfigError, DeviceConfig, from_toml, load};
use floatgate_core::internals::{example, reference_page};
use proptest::prelude::*;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn set(overrides: &[&str]) -> Vec<String> {
    overrides.iter().map(|text| (*text).to_owned()).collect()
}

fn tiny(overrides: &[&str]) -> Result<DeviceConfig, ConfigError> {
    load("tiny", &set(overrides))
}

/// Returns the error of a load that must fail.
fn error(result: Result<DeviceConfig, ConfigError>) -> String {
    match result {
        Ok(device) => panic!("{} was accepted", device.name),
        Err(error) => error.to_string(),
    }
}

/// Collects the paths of all values in a file.
fn leaves(value: &toml::Value, path: &str, paths: &mut Vec<String>) {
    match value {
        toml::Value::Table(table) if !table.is_empty() => {
            for (key, value) in table {
                leaves(value, &if path.is_empty() { key.clone() } else { format!("{path}.{key}") }, paths);
            }
        }
        _ => paths.push(path.to_owned()),
    }
}

fn covers(key: &str, path: &str) -> bool {
    path == key || path.strip_prefix(key).is_some_and(|rest| rest.starts_with('.'))
}
