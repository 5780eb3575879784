//! Array part of a summary: operations of the array's controller.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Work of the controller of an array in the measured part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArrayUse {
    /// Array as simulated, in the format of an array file.
    pub config: serde_json::Map<String, serde_json::Value>,
    /// State after the run: `optimal`, `degraded`, or `rebuilding` if the run ended before the rebuild.
    pub state: String,
    /// Numbers of the members that have failed and are not rebuilt.
    pub failed: Vec<u32>,
    /// Writes to levels with parity, by strategy; one for each stripe, or range of a stripe, of a host write.
    pub writes: ArrayWrites,
    /// Reads whose data was computed from other members, because a member has failed or has its turn to collect
    /// garbage.
    pub reconstructed_reads: u64,
    /// Requests to members.
    pub member_operations: MemberOperations,
    /// Bytes written to members per byte that the host wrote; null without writes.
    pub write_amplification: Option<f64>,
    /// Stripe operations that waited for others of the same range.
    pub stripe_waits: u64,
    /// Sum of these waits.
    pub stripe_wait_us: f64,
    /// TRIM requests, or parts, that were dropped because they cover a stripe only partly.
    pub trims_dropped: u64,
    /// Times that uncorrectable sectors were computed from other members and written again.
    #[serde(default)]
    pub repairs: u64,
    /// Stripes whose copies or parity disagreed with their data after a power cut, and were corrected.
    #[serde(default)]
    pub stripes_corrected: u64,
    /// Time for which the parity engine worked.
    pub xor_s: f64,
    /// Rebuild; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rebuild: Option<RebuildUse>,
}

/// Writes to levels with parity, by strategy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ArrayWrites {
    /// Writes of all data of a stripe, which read nothing.
    pub full_stripe: u64,
    /// Writes that read the data that they do not overwrite.
    pub reconstruct: u64,
    /// Writes that read the data that they overwrite, and the old parity.
    pub read_modify_write: u64,
    /// Writes without parity, because all parity members of the stripe have failed.
    pub without_parity: u64,
}

/// Requests to members, by purpose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemberOperations {
    /// Reads and writes of data for the host, and its TRIM and flush requests.
    pub host: u64,
    /// Reads for parity updates and for reconstructed data.
    pub parity_reads: u64,
    /// Writes of parity.
    pub parity_writes: u64,
    /// Writes of the stripe journal.
    pub journal: u64,
    /// Reads and writes of the rebuild.
    pub rebuild: u64,
}

/// Rebuild of failed members onto spares.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RebuildUse {
    /// Stripes to rebuild, of all failed members.
    pub stripes: u64,
    /// Stripes that were rebuilt, also after the last completion of the run.
    pub stripes_done: u64,
    /// Simulated time at which the rebuild was complete; null if the run was interrupted before.
    pub finished_s: Option<f64>,
}
