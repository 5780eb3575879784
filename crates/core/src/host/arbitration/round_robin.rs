//! Round robin: queues take turns.

use std::collections::VecDeque;

use super::{ArbitrationPolicy, Turn};
use crate::config::DeviceConfig;
use crate::policy::Policy;

/// Options of round robin.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RoundRobinConfig {
    /// Maximum number of commands in a turn of a queue (NVMe: arbitration burst).
    #[schemars(range(min = 1))]
    pub burst: u32,
}

impl Default for RoundRobinConfig {
    fn default() -> Self {
        RoundRobinConfig { burst: 1 }
    }
}

/// Queues with commands take turns, each with up to `burst` commands. A queue that was empty goes last.
///
/// Source: NVM Express Base Specification 2.0, Section 3.4.4.1.
#[derive(Clone, Debug)]
pub struct RoundRobin {
    ready: VecDeque<u16>,
    burst: u32,
}

impl Policy for RoundRobin {
    type Config = RoundRobinConfig;

    fn new(options: &RoundRobinConfig, _: &DeviceConfig, _: u64) -> Result<Self, String> {
        Ok(RoundRobin { ready: VecDeque::new(), burst: options.burst })
    }
}

impl ArbitrationPolicy for RoundRobin {
    fn ready(&mut self, queue: u16) {
        self.ready.push_back(queue);
    }

    fn take(&mut self) -> Option<Turn> {
        Some(Turn { queue: self.ready.pop_front()?, most: self.burst })
    }
}
