//! Fuzzes the parser of the columns of the format `delimited`.
#![no_main]

use floatgate_workload::trace::Columns;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = text.parse::<Columns>();
});
