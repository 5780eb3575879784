//! Progress of the controller's own work: the rebuild, and the turns of members to collect garbage.

use floatgate_core::sim::time::Time;

use crate::config::{ArrayConfig, GcMode, Staggered};

/// Progress of the rebuild.
#[derive(Clone, Copy, Debug)]
pub struct Rebuilding {
    /// Bytes per second that may be written to a spare.
    pub rate: u64,
    /// Time at which the rebuild started.
    pub since: Time,
    /// Position in the list of failed members.
    pub at: usize,
    /// Next stripe.
    pub row: u64,
    /// Number of stripes that were rebuilt.
    pub done: u64,
    /// Time at which all members were rebuilt.
    pub finished: Option<Time>,
}

impl Rebuilding {
    /// Creates the rebuild of an array, if it has one.
    pub fn new(config: &ArrayConfig, since: Time) -> Option<Rebuilding> {
        let rate = config.options.rebuild?.rate.0;
        Some(Rebuilding { rate, since, at: 0, row: 0, done: 0, finished: None })
    }
}

/// Turns of the members.
#[derive(Clone, Copy, Debug)]
pub struct Turns {
    pub options: Staggered,
    /// First of the members that have their turn.
    pub first: u32,
    /// True if the timer of the next turn is set, which is so while requests are outstanding.
    pub is_running: bool,
    /// True if members without their turn were made to wait.
    pub has_begun: bool,
}

impl Turns {
    /// Creates the turns of an array, if its garbage collection is staggered.
    pub fn new(config: &ArrayConfig) -> Option<Turns> {
        match config.options.gc {
            GcMode::Independent => None,
            GcMode::Staggered(options) => Some(Turns { options, first: 0, is_running: false, has_begun: false }),
        }
    }

    /// Returns `true` if a member of `count` has its turn.
    #[inline]
    pub fn include(&self, member: u32, count: u32) -> bool {
        (member + count - self.first) % count < self.options.members
    }
}
