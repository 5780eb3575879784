//! What failed, in a result.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metrics::counters::FaultCounts;
use crate::sim::time::Time;

/// What failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FaultsMet {
    /// Programs that failed; what they were to hold was programmed again elsewhere.
    pub programs_failed: u64,
    /// Erases that failed, those of blocks that had had `config.nand.endurance` erases included.
    pub erases_failed: u64,
    /// Mapping units with data whose program failed. They are in `flash.units.programmed` and in write amplification.
    pub units_failed: u64,
    /// Reads of flash pages that brought more wrong bits than can be corrected.
    pub uncorrectable: UncorrectableReads,
    /// Mapping units of the host that were valid when they were found unreadable.
    pub units_lost: u64,
    /// Bad blocks, at the end of the run.
    pub blocks_bad: BadBlocks,
    /// Simulated seconds from the first request on after which the device took no writes; null where it still does.
    pub read_only_since_s: Option<f64>,
}

/// Reads that brought more wrong bits than can be corrected, by what the page was read for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UncorrectableReads {
    /// For the host, whose request ended with an error.
    pub host: u64,
    /// To move it: its units stay unreadable.
    pub gc: u64,
    /// To keep the rest of a unit that the host wrote in part: it stays unreadable.
    pub rmw: u64,
}

/// Blocks that are never used, or will not be when they are empty.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BadBlocks {
    /// When the device was new.
    pub factory: u64,
    /// Because a program or an erase has failed.
    pub grown: u64,
    /// The most in one plane, of both kinds.
    pub worst_plane: u64,
}

/// What a device has come to by what has failed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FaultState {
    /// Blocks that were bad when it was new.
    pub factory_bad: u64,
    /// By plane, bad blocks of all kinds.
    pub bad: Vec<u32>,
    /// Since when it takes no writes.
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
