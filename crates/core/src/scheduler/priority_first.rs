//! Requests with high priority before all others.

use super::SchedulerPolicy;
use crate::config::DeviceConfig;
use crate::policy::Policy;
use crate::sim::id::TransactionId;
use crate::sim::time::Time;
use crate::work::{Class, LunQueue};

/// Priority-first has no options.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PriorityFirstConfig {}

/// At a LUN, operations of requests with high priority start first, in their order. All others, and the channel, are
/// ranked as in `fcfs`: summary pages and urgent garbage collection precede all.
///
/// A write that the buffer has taken belongs to no request, so its write-back has no priority.
#[derive(Clone, Debug)]
pub struct PriorityFirst;

impl Policy for PriorityFirst {
    type Config = PriorityFirstConfig;
    fn new(_: &PriorityFirstConfig, _: &DeviceConfig, _: u64) -> Result<Self, String> {
        Ok(PriorityFirst)
    }
}

impl SchedulerPolicy for PriorityFirst {
    fn rank(&self, class: Class) -> u8 {
        super::fcfs::Fcfs.rank(class)
    }

    fn picks(&self) -> bool {
        true
    }

    fn pick(&mut self, queue: &LunQueue, _: Time) -> Option<TransactionId> {
        if queue.iter().any(|queued| queued.rank == 0) {
            return None;
        }
        queue.iter().find(|queued| queued.high_priority).map(|queued| queued.id)
    }
}
