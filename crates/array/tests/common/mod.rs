//! Arrays for tests.

use floatgate_array::config::{ArrayConfig, from_toml};

/// Loads an array of the built-in device `tiny`. `options` are lines of the table `[array]`.
pub fn config(options: &str, overrides: &[&str]) -> ArrayConfig {
    let overrides: Vec<String> = overrides.iter().map(|text| text.to_string()).collect();
    let text = format!("[array]\n{options}\n");
    from_toml(&[], &text, "test.toml", &overrides).unwrap_or_else(|error| panic!("{error}\n{text}"))
}
