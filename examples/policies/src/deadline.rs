//! Deadline scheduler: reads first, unless the deadline of another operation has passed.

use floatgate_core::config::units::Duration;
use floatgate_core::external::{Cause, ExternalScheduler};
use floatgate_core::scheduler::SchedulerPolicy;
use floatgate_core::scheduler::read_first::ReadFirst;
use floatgate_core::sim::time::Time;
use floatgate_core::work::{Class, LunQueue, Queued};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Options of `deadline`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DeadlineOptions {
    /// Longest wait of a read until it takes priority over other operations.
    pub read: Duration,
    /// Longest wait of a write until it takes priority over other operations.
    pub write: Duration,
}

impl Default for DeadlineOptions {
    fn default() -> DeadlineOptions {
        DeadlineOptions { read: Duration(Time::from_us(2_000).0), write: Duration(Time::from_us(10_000).0) }
    }
}

/// Scheduler that starts urgent operations that free space, then the operation whose deadline passed first, then reads,
/// then the operation that arrived first. It applies the deadline scheduler of block layers to the dies of an SSD. At a
/// channel, the ranks of `read-first` decide.
#[derive(Clone, Debug)]
pub struct Deadline {
    read: Time,
    write: Time,
}

impl Deadline {
    pub fn new(options: DeadlineOptions) -> Deadline {
        Deadline { read: options.read.time(), write: options.write.time() }
    }

    /// Returns the deadline of a host operation.
    fn due(&self, queued: &Queued) -> Option<Time> {
        match queued.class {
            Class::HostRead | Class::RmwRead | Class::MapRead => Some(queued.since + self.read),
            Class::HostProgram | Class::MapProgram => Some(queued.since + self.write),
            Class::Gc | Class::UrgentGc | Class::BackgroundGc | Class::Summary => None,
        }
    }
}

impl ExternalScheduler for Deadline {
    fn rank(&mut self, class: Class) -> Result<i64, Cause> {
        Ok(ReadFirst.rank(class).into())
    }

    fn pick(&mut self, queue: &LunQueue, now: Time) -> Result<Option<i64>, Cause> {
        let first = |class| queue.iter().position(|queued| queued.class == class);
        let late = || {
            let due = queue.iter().map(|queued| self.due(queued)).zip(0..);
            let late = due.filter_map(|(due, position)| Some((due.filter(|due| *due <= now)?, position)));
            late.min().map(|(_, position)| position)
        };
        let urgent = first(Class::UrgentGc).or_else(|| first(Class::Summary));
        let chosen = urgent.or_else(late).or_else(|| first(Class::HostRead)).or_else(|| first(Class::MapRead));
        Ok(Some(chosen.unwrap_or(0) as i64))
    }

    fn fork(&self) -> Result<Box<dyn ExternalScheduler>, Cause> {
        Ok(Box::new(self.clone()))
    }
}
