//! Arrays for tests.

use floatgate_array::config::{ArrayConfig, from_toml};
use floatgate_array::{Options, SsdArray};
use floatgate_core::external::Externals;
use floatgate_core::sim::request::{Completion, Operation, Request};
use floatgate_core::sim::time::Time;
use floatgate_core::ssd::Ssd;

/// Loads an array of the built-in device `tiny`. `options` are lines of the table `[array]`.
pub fn config(options: &str, overrides: &[&str]) -> ArrayConfig {
    let overrides: Vec<String> = overrides.iter().map(|text| text.to_string()).collect();
    let text = format!("[array]\n{options}\n");
    from_toml(&Externals::default(), &text, "test.toml", &overrides).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Builds an array of the built-in device `tiny`.
#[allow(dead_code, reason = "not every test file builds an array without options")]
pub fn array(options: &str, overrides: &[&str]) -> SsdArray {
    SsdArray::new(config(options, overrides), Options::default()).unwrap()
}

/// Submits a request and processes all events. Returns its completion, without others.
#[allow(dead_code, reason = "not every test file serves single requests")]
pub fn serve(array: &mut SsdArray, operation: Operation, lba: u64, sectors: u32) -> Completion {
    let now = array.now();
    array.submit(now, Request::new(now, operation, lba, sectors));
    let mut completions = Vec::new();
    while array.outstanding() > 0 {
        let at = array.next_event().unwrap_or_else(|| panic!("{}", array.explain_stall()));
        array.advance(at);
    }
    array.take_completions(&mut completions);
    completions.pop().unwrap()
}

/// Returns the time that a request takes.
#[allow(dead_code, reason = "not every test file measures latencies")]
pub fn latency(array: &mut SsdArray, operation: Operation, lba: u64, sectors: u32) -> Time {
    let completion = serve(array, operation, lba, sectors);
    completion.finish - completion.request.arrival
}
