//! Queues of a mapping scheme: the causes of the waits in them.
//!
//! Each queue has sums that only grow. The causes of a wait are the difference of two readings, as with dies
//! (`nand/busy_time.rs`), so a wait costs the same regardless of its length and of the queue.

use crate::ftl::mapping::WaitCause;
use crate::nand::array::Array;
use crate::nand::busy_time::{BusyAccounting, Reading, Wait};
use crate::sim::id::LunId;
use crate::sim::table::Table;
use crate::sim::time::Time;

/// A reading of the sums of a queue. The time that is not in them is that of merges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shares {
    die: Time,
    channel: Time,
}

impl Shares {
    /// Returns the causes of a wait of length `waited` in the queue, from the `earlier` reading to this one.
    pub fn since(self, earlier: Shares, waited: Time) -> Wait {
        let (die, channel) = (self.die - earlier.die, self.channel - earlier.channel);
        Wait { die, channel, gc: waited - die - channel }
    }
}

/// Cause of the waits in a queue, with a reading at its start.
#[derive(Clone, Copy, Debug, Default)]
enum Cause {
    #[default]
    Merge,
    Lun(LunId, Reading),
    AsIn(u32, Shares),
}

/// A queue, and its sums up to the start of the present cause.
#[derive(Clone, Copy, Debug, Default)]
struct Queue {
    cause: Cause,
    since: Time,
    sums: Shares,
}

/// Queues of a mapping scheme, by number.
#[derive(Clone, Debug, Default)]
pub struct Queues {
    queues: Table<u32, Queue>,
}

impl Queues {
    /// Sets the cause of the waits in a queue from `now` on.
    pub fn set_cause(&mut self, array: &Array, queue: u32, cause: WaitCause, now: Time) {
        let Some(accounting) = array.accounting() else { return };
        let sums = self.reading(accounting, queue, now);
        let cause = match cause {
            WaitCause::Merge => Cause::Merge,
            WaitCause::Program(plane) => {
                let lun = array.lun_of(plane);
                Cause::Lun(lun, accounting.mark(lun, now))
            }
            WaitCause::AsIn(other) => Cause::AsIn(other, self.reading(accounting, other, now)),
        };
        *self.queues.entry(queue) = Queue { cause, since: now, sums };
    }

    /// Returns a reading of the sums of a queue.
    pub fn reading(&self, accounting: &BusyAccounting, queue: u32, now: Time) -> Shares {
        let Queue { cause, since, sums } = self.queues.get(queue).copied().unwrap_or_default();
        let wait = match cause {
            Cause::Merge => return sums,
            Cause::Lun(lun, mark) => accounting.mark(lun, now).since(mark, now - since),
            Cause::AsIn(other, mark) => self.reading(accounting, other, now).since(mark, now - since),
        };
        Shares { die: sums.die + wait.die, channel: sums.channel + wait.channel }
    }
}
