//! Fuzzes the loader of device files: it must return a device or an error with its problems.
//!
//! The input is the file, followed by overrides, each after a NUL. Use the existing files as seeds: `cargo +nightly
//! fuzz run device_file fuzz/corpus/device_file devices crates/core/tests/corpus/device`.
#![no_main]

use floatgate_core::device_file::from_toml;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &str| {
    let mut parts = input.split('\0').map(str::to_owned);
    let text = parts.next().unwrap_or_default();
    let overrides: Vec<String> = parts.take(8).collect();
    match from_toml(&text, "fuzzed.toml", &overrides) {
        Ok(device) => assert_eq!(device.digest().len(), 32),
        Err(error) => assert!(!error.problems().is_empty() && !error.to_string().is_empty()),
    }
});
