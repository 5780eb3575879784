//! Fault part of a summary.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metrics::counters::FaultCounts;
use crate::sim::time::Time;

/// Faults that occurred.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FaultsMet {
    /// Programs that failed. Their data was programmed again elsewhere.
    pub programs_failed: u64,
    /// Erases that failed, including those of blocks that had reached `config.nand.endurance` erases.
    pub erases_failed: u64,
    /// Mapping units with data whose program failed. `flash.units.programmed` and write amplification include them.
    pub units_failed: u64,
    /// Reads of flash pages with more wrong bits than can be corrected.
    pub uncorrectable: UncorrectableReads,
    /// Mapping units of the host that were valid when they were found unreadable.
    pub units_lost: u64,
    /// Bad blocks at the end of the run.
    pub blocks_bad: BadBlocks,
    /// Simulated time from the first request until the device became read-only; null if it accepts writes.
    pub read_only_since_s: Option<f64>,
}

/// Reads with more wrong bits than can be corrected, by purpose.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UncorrectableReads {
    /// Reads for the host. Their requests ended with an error.
    pub host: u64,
    /// Reads for garbage collection. The moved units stay unreadable.
    pub gc: u64,
    /// Reads for partial writes. The units stay unreadable.
    pub rmw: u64,
}

/// Bad blocks, including those that still have to be evacuated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BadBlocks {
    /// Blocks that were bad when the device was new.
    pub factory: u64,
    /// Blocks that became bad because a program or an erase failed.
    pub grown: u64,
    /// Maximum number in one plane, of both kinds together.
    pub worst_plane: u64,
}

/// State of a device after faults.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FaultState {
    /// Blocks that were bad when the device was new.
    pub factory_bad: u64,
    /// Bad blocks of both kinds, indexed by plane.
    pub bad: Vec<u32>,
    /// Time at which the device became read-only; `None` if it accepts writes.
    pub read_only: Option<Time>,
}

impl FaultsMet {
    pub(super) fn new(state: &FaultState, counts: &FaultCounts) -> FaultsMet {
        let [host, gc, rmw] = counts.uncorrectable;
        let all: u64 = state.bad.iter().map(|bad| u64::from(*bad)).sum();
        FaultsMet {
            programs_failed: counts.programs_failed,
            erases_failed: counts.erases_failed,
            units_failed: counts.units_failed,
            uncorrectable: UncorrectableReads { host, gc, rmw },
            units_lost: counts.units_lost,
            blocks_bad: BadBlocks {
                factory: state.factory_bad,
                grown: all.saturating_sub(state.factory_bad),
                worst_plane: state.bad.iter().copied().max().unwrap_or(0).into(),
            },
            read_only_since_s: state.read_only.map(Time::as_s),
        }
    }
}
