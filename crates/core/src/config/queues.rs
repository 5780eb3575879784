//! Queue pairs of the host interface.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::limits;
use super::units::Duration;
use crate::host::arbitration::ArbitrationConfig;

/// Queue pairs: each stream of the workload has a submission queue, from which the controller fetches commands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Queues {
    /// Number of queues. Stream *n* uses the queue with the remainder of *n* by this number. Streams have the numbers
    /// from 0 in the order of the jobs.
    #[schemars(range(min = 1, max = 65_535))]
    pub count: u32,
    /// Policy that chooses the queue from which the controller fetches commands.
    #[serde(default)]
    pub arbitration: ArbitrationConfig,
    /// Time of a fetch, from the doorbell to the commands in the controller. A fetch takes the commands of one turn.
    /// The next fetch waits for its end. Default: 0.
    #[serde(default, skip_serializing_if = "Duration::is_zero")]
    #[schemars(extend("x-range" = limits::TIME))]
    pub fetch: Duration,
}
