//! Fault part of a summary.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metrics::counters::{ErrorCounts, FaultCounts, is_zero};
use crate::sim::time::Time;

section! {
    /// Faults that occurred.
    pub struct FaultsMet, of state: &FaultState, counts: &FaultCounts, rebuilt: u64 {
        /// Programs that failed. Their data was programmed again elsewhere.
        programs_failed: u64 = counts.programs_failed;
        /// Erases that failed, including those of blocks that had reached `config.nand.endurance` erases.
        erases_failed: u64 = counts.erases_failed;
        /// Mapping units with data whose program failed. `flash.units.programmed` and write amplification include them.
        units_failed: u64 = counts.units_failed;
        /// Reads of flash pages with more wrong bits than can be corrected.
        uncorrectable: UncorrectableReads = UncorrectableReads::new(&counts.uncorrectable);
        /// Uncorrectable reads of flash pages whose data were rebuilt from their stripe (`config.superblock.parity`).
        /// `uncorrectable` does not include them.
        #[serde(default, skip_serializing_if = "is_zero")]
        rebuilt: u64 = rebuilt;
        /// Mapping units of the host that were valid when they were found unreadable.
        units_lost: u64 = counts.units_lost;
        /// Bad blocks at the end of the run.
        blocks_bad: BadBlocks = BadBlocks::new(state);
        /// Simulated time from the first request until the device became read-only; null if it accepts writes.
        read_only_since_s: Option<f64> = state.read_only.map(Time::as_s);
    }
}

section! {
    /// Reads with more wrong bits than can be corrected, by purpose.
    pub struct UncorrectableReads, of counts: &[u64; FaultCounts::READS.len()] {
        /// Reads for the host. Their requests ended with an error.
        host: u64 = counts[0];
        /// Reads for garbage collection. The moved units stay unreadable.
        gc: u64 = counts[1];
        /// Reads for partial writes. The units stay unreadable.
        rmw: u64 = counts[2];
    }
}

section! {
    /// Bad blocks, including those that still have to be evacuated.
    pub struct BadBlocks, of state: &FaultState {
        /// Blocks that were bad when the device was new.
        factory: u64 = state.factory_bad;
        /// Blocks that became bad because a program or an erase failed.
        grown: u64 = state.bad.iter().map(|bad| u64::from(*bad)).sum::<u64>().saturating_sub(state.factory_bad);
        /// Maximum number in one plane, of both kinds together.
        worst_plane: u64 = state.bad.iter().copied().max().unwrap_or(0).into();
    }
}

section! {
    /// Errors of read data.
    pub struct ErrorsMet, of counts: &ErrorCounts {
        /// Reads of flash pages whose data were decoded. Retries are not counted.
        reads: u64 = counts.corrected.iter().sum::<u64>() + counts.uncorrectable;
        /// Retries. `flash.pages.read` includes them.
        retries: u64 = counts.retries;
        /// Mean number of retries of a read; null without reads.
        retries_mean: Option<f64> = counts.retries_mean();
        /// Reads with correct data by their number of retries, from 0 on.
        by_retries: Vec<u64> = {
            let used = counts.corrected.iter().rposition(|reads| *reads > 0).map_or(0, |last| last + 1);
            counts.corrected[..used].to_vec()
        };
        /// Reads that were uncorrectable after the last retry. `faults.uncorrectable` has their consequences.
        uncorrectable: u64 = counts.uncorrectable;
        /// Blocks that were refreshed (`config.errors.refresh`).
        #[serde(default, skip_serializing_if = "is_zero")]
        refreshed: u64 = counts.refreshed;
    }
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
