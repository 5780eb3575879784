//! External schedulers: policies of the program that runs the device.

use super::fcfs::Fcfs;
use super::{RANKS, SchedulerPolicy};
use crate::config::DeviceConfig;
pub use crate::external::{EXTERNAL, ExternalConfig as Config};
use crate::external::{ExternalScheduler, Fault, Guard, Wanted};
use crate::sim::id::TransactionId;
use crate::sim::time::Time;
use crate::work::{Class, LunQueue};

/// Scheduler that passes the queue of a LUN to an external policy and checks its choice. If the policy fails, the ranks
/// decide. If it failed to return valid ranks, they are those of `fcfs`.
#[derive(Clone, Debug)]
pub struct External {
    guard: Guard<dyn ExternalScheduler>,
    /// Indexed by class.
    ranks: [u8; Class::COUNT],
    picks: bool,
    reconsiders: bool,
}

impl External {
    /// Builds the policy.
    pub fn new(config: &Config, device: &DeviceConfig, seed: u64) -> Result<External, String> {
        let wanted = Wanted { path: "scheduler", config, seed };
        let made = device.makers.provider(wanted)?.scheduler(wanted);
        let picks = made.as_ref().is_ok_and(|policy| policy.picks());
        let reconsiders = made.as_ref().is_ok_and(|policy| policy.reconsiders());
        let mut guard = Guard::new(wanted, made);
        let ranks = ranks(&mut guard).unwrap_or_else(|| Class::ALL.map(|class| Fcfs.rank(class)));
        Ok(External { guard, ranks, picks, reconsiders })
    }
}

/// Returns the ranks of all classes, or `None` if the policy fails.
fn ranks(guard: &mut Guard<dyn ExternalScheduler>) -> Option<[u8; Class::COUNT]> {
    let mut ranks = [0; Class::COUNT];
    for (class, rank) in Class::ALL.into_iter().zip(&mut ranks) {
        let given = guard.ask(|policy| policy.rank(class))?;
        match u8::try_from(given) {
            Ok(given) if usize::from(given) < RANKS => *rank = given,
            _ => {
                guard.refuse(format!("ranked {class} {given}: ranks are 0 to {}, and 0 goes first", RANKS - 1));
                return None;
            }
        }
    }
    Some(ranks)
}

impl SchedulerPolicy for External {
    fn rank(&self, class: Class) -> u8 {
        self.ranks[class as usize]
    }

    fn reconsiders(&self) -> bool {
        self.reconsiders
    }

    fn picks(&self) -> bool {
        self.picks
    }

    fn pick(&mut self, queue: &LunQueue, now: Time) -> Option<TransactionId> {
        let chosen = self.guard.ask(|policy| policy.pick(queue, now))??;
        let position = self.guard.position(chosen, queue.len(), "waiting operations")?;
        Some(queue.as_slice()[position].id)
    }

    fn fault(&self) -> Option<&Fault> {
        self.guard.fault()
    }
}
