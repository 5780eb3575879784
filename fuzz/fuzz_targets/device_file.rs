//! Whatever stands in a device file and its overrides, loading it gives a device, or says what is wrong.
//!
//! The input is the file, and behind a NUL for each an override. Start from the files that are there:
//! `cargo +nightly fuzz run device_file fuzz/corpus/device_file devices crates/core/tests/corpus/device`.
#![no_main]

use floatgate_core::config::from_toml;
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
