//! Weighted round robin with an urgent class.

use std::collections::VecDeque;

use super::{ArbitrationPolicy, Turn};
use crate::config::DeviceConfig;
use crate::policy::Policy;

/// Priority of a submission queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Priority {
    /// Before all others.
    Urgent,
    /// The weight `high`.
    High,
    /// The weight `medium`.
    #[default]
    Medium,
    /// The weight `low`.
    Low,
}

/// Options of weighted round robin.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WeightedRoundRobinConfig {
    /// Priority of each queue, by number. Queues beyond the end of the list are medium.
    pub priorities: Vec<Priority>,
    /// Commands of queues with high priority in a round.
    #[schemars(range(min = 1))]
    pub high: u32,
    /// Commands of queues with medium priority in a round.
    #[schemars(range(min = 1))]
    pub medium: u32,
    /// Commands of queues with low priority in a round.
    #[schemars(range(min = 1))]
    pub low: u32,
    /// Maximum number of commands in a turn of a queue (NVMe: arbitration burst).
    #[schemars(range(min = 1))]
    pub burst: u32,
}

impl Default for WeightedRoundRobinConfig {
    fn default() -> Self {
        WeightedRoundRobinConfig { priorities: Vec::new(), high: 8, medium: 4, low: 2, burst: 1 }
    }
}

/// Number of priorities.
const PRIORITIES: usize = 4;

/// Queues of one priority.
#[derive(Clone, Debug, Default)]
struct Rank {
    /// Queues that are ready, in the order of their turns.
    ready: VecDeque<u16>,
    /// Commands of a round.
    weight: u32,
    /// Commands that may still be fetched in this round.
    credits: u32,
}

/// Urgent queues go first. Then each other priority gets as many commands as its weight in a round, from the highest to
/// the lowest. A round ends when no queue that is ready has commands left in it. Within a priority, queues take turns,
/// each with up to `burst` commands.
///
/// Source: NVM Express Base Specification 2.0, Section 3.4.4.2.
#[derive(Clone, Debug)]
pub struct WeightedRoundRobin {
    /// Indexed by [`Priority`].
    ranks: [Rank; PRIORITIES],
    priorities: Vec<Priority>,
    burst: u32,
}

impl WeightedRoundRobin {
    fn rank_of(&mut self, queue: u16) -> &mut Rank {
        let priority = self.priorities.get(usize::from(queue)).copied().unwrap_or_default();
        &mut self.ranks[priority as usize]
    }

    /// Returns the first priority with a ready queue and commands left in this round.
    fn first(&mut self) -> Option<&mut Rank> {
        self.ranks.iter_mut().find(|rank| rank.credits > 0 && !rank.ready.is_empty())
    }
}

impl Policy for WeightedRoundRobin {
    type Config = WeightedRoundRobinConfig;

    fn check(options: &WeightedRoundRobinConfig, device: &DeviceConfig) -> Result<(), String> {
        let queues = device.host.queues.as_ref().map_or(0, |queues| queues.count as usize);
        if options.priorities.len() > queues {
            return Err(format!("priorities has {} entries for {queues} queues", options.priorities.len()));
        }
        Ok(())
    }

    fn new(options: &WeightedRoundRobinConfig, _: &DeviceConfig, _: u64) -> Result<Self, String> {
        let weights = [u32::MAX, options.high, options.medium, options.low];
        Ok(WeightedRoundRobin {
            ranks: weights.map(|weight| Rank { ready: VecDeque::new(), weight, credits: weight }),
            priorities: options.priorities.clone(),
            burst: options.burst,
        })
    }
}

impl ArbitrationPolicy for WeightedRoundRobin {
    fn ready(&mut self, queue: u16) {
        self.rank_of(queue).ready.push_back(queue);
    }

    fn take(&mut self) -> Option<Turn> {
        if self.first().is_none() {
            // A new round.
            for rank in &mut self.ranks {
                rank.credits = rank.weight;
            }
        }
        let burst = self.burst;
        let rank = self.first()?;
        Some(Turn { queue: rank.ready.pop_front()?, most: burst.min(rank.credits) })
    }

    fn ended(&mut self, turn: Turn, fetched: u32) {
        let rank = self.rank_of(turn.queue);
        if rank.weight < u32::MAX {
            rank.credits -= fetched;
        }
    }
}
