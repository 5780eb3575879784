//! Arbitration: chooses the submission queue from which the controller fetches commands next.

use crate::policy_family;

/// Turn of a submission queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Number of the queue.
    pub queue: u16,
    /// Maximum number of commands that are fetched in this turn.
    pub most: u32,
}

/// Chooses between the submission queues that hold commands.
///
/// Each queue with commands is ready, or has its turn. The policy keeps the queues that are ready, so that a choice
/// needs no scan.
pub trait ArbitrationPolicy {
    /// Notes that a queue has become ready: it was empty and has a command, or still has some after its turn.
    fn ready(&mut self, queue: u16);

    /// Chooses a queue and starts its turn, in which at least one command is fetched. Returns `None` if no queue is
    /// ready.
    fn take(&mut self) -> Option<Turn>;

    /// Notes that `fetched` commands were fetched in a turn that has ended.
    fn ended(&mut self, _turn: Turn, _fetched: u32) {}
}

policy_family! {
    /// Policy that chooses the submission queue from which the controller fetches commands.
    Arbitration / ArbitrationConfig: dyn ArbitrationPolicy {
        /// Queues with commands take turns.
        round_robin::RoundRobin = "round-robin",
        /// Queues have priorities. Urgent queues go first. The others share the turns by weights.
        weighted_round_robin::WeightedRoundRobin = "weighted-round-robin",
    }
}

impl Default for ArbitrationConfig {
    fn default() -> Self {
        ArbitrationConfig::RoundRobin(Default::default())
    }
}
