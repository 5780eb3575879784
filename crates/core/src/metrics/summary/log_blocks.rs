//! Log blocks in a summary.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Measurement;

section! {
    /// Log blocks (`config.mapping.scheme`).
    pub struct LogBlocks, of of: &Measurement {
        /// Host writes, by kind of log block.
        writes: Vec<LogWrites> = LogWrites::of_kinds(of.config.log_kinds(), &of.counters.log_blocks.units);
        /// Log blocks that merges reclaimed.
        reclaimed: u64 = of.counters.log_blocks.reclaimed;
        /// Mean number of logical blocks with valid units in a log block when it was reclaimed; null if none was.
        associativity: Option<f64> = of.counters.log_blocks.associativity();
        /// Length of the list of trimmed units at the end: in flash, and not yet skipped by a merge.
        trim_list: u64 = of.trim_list;
        /// Units that merges did not copy because they were trimmed.
        copies_saved: u64 = of.counters.log_blocks.copies_saved;
    }
}

section! {
    /// Host writes to log blocks of a kind.
    pub struct LogWrites, of name: &str, count: u64 {
        /// Kind of log block.
        kind: String = name.to_owned();
        /// Mapping units written.
        units: u64 = count;
    }
}

impl LogWrites {
    fn of_kinds(kinds: &[&str], units: &[u64]) -> Vec<LogWrites> {
        kinds.iter().zip(units).map(|(kind, units)| LogWrites::new(kind, *units)).collect()
    }
}

impl LogBlocks {
    /// Returns the values of a mapping scheme with log blocks, or `None` for another scheme.
    pub(super) fn of(measurement: &Measurement) -> Option<LogBlocks> {
        (!measurement.config.log_kinds().is_empty()).then(|| LogBlocks::new(measurement))
    }
}
