//! Deadline scheduler: reads first, unless the deadline of another operation has passed.

use floatgate_core::device_file::Duration;
use floatgate_core::policies::{Class, LunQueue, Queued, ReadFirst, SchedulerPolicy};
use floatgate_core::sim::id::TransactionId;
use floatgate_core::sim::time::Time;
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
            Class::Gc | Class::UrgentGc | Class::BackgroundGc | Class::Summary | Class::ReadAhead => None,
        }
    }
}

impl SchedulerPolicy for Deadline {
    fn rank(&self, class: Class) -> u8 {
        ReadFirst.rank(class)
    }

    fn picks(&self) -> bool {
        true
    }

    fn pick(&mut self, queue: &LunQueue, now: Time) -> Option<TransactionId> {
        let late = || {
            let due = queue.iter().filter_map(|queued| Some((self.due(queued)?, queued)));
            due.filter(|(due, _)| *due <= now).min_by_key(|(due, _)| *due).map(|(_, queued)| queued)
        };
        let urgent = queue.first(Class::UrgentGc).or_else(|| queue.first(Class::Summary));
        let read = || queue.first(Class::HostRead).or_else(|| queue.first(Class::MapRead));
        let chosen = urgent.or_else(late).or_else(read).or_else(|| queue.iter().next());
        chosen.map(|queued| queued.id)
    }
}
