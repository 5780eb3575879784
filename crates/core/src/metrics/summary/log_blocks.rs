//! Log blocks in a summary.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Measurement;

/// Log blocks (`config.mapping.scheme`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LogBlocks {
    /// Host writes, by kind of log block.
    pub writes: Vec<LogWrites>,
    /// Log blocks that merges reclaimed.
    pub reclaimed: u64,
    /// Mean number of logical blocks with valid units in a log block when it was reclaimed; null if none was.
    pub associativity: Option<f64>,
    /// Length of the list of trimmed units at the end: in flash, and not yet skipped by a merge.
    pub trim_list: u64,
    /// Units that merges did not copy because they were trimmed.
    pub copies_saved: u64,
}

/// Host writes to log blocks of a kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LogWrites {
    /// Kind of log block.
    pub kind: String,
    /// Mapping units written.
    pub units: u64,
}

impl LogBlocks {
    /// Creates the values of a mapping scheme with log blocks.
    pub(super) fn of(measurement: &Measurement) -> Option<LogBlocks> {
        let Measurement { config, counters, trim_list, .. } = *measurement;
        let kinds = config.log_kinds();
        let counts = &counters.log_blocks;
        let writes = |(kind, &units): (&&str, &u64)| LogWrites { kind: (*kind).to_owned(), units };
        (!kinds.is_empty()).then(|| LogBlocks {
            writes: kinds.iter().zip(&counts.units).map(writes).collect(),
            reclaimed: counts.reclaimed,
            associativity: counts.associativity(),
            trim_list,
            copies_saved: counts.copies_saved,
        })
    }
}
