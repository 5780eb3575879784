//! External schedulers: policies of the program that runs the device.

use super::fcfs::Fcfs;
use super::{RANKS, SchedulerPolicy};
use crate::config::DeviceConfig;
pub use crate::config::external::{EXTERNAL, ExternalConfig as Config};
use crate::external::{Cause, Externals, Fault, Guard, Wanted, invalid, outside_policies};
use crate::sim::id::TransactionId;
use crate::sim::time::Time;
use crate::work::{Class, LunQueue};

outside_policies!(SchedulerPolicy);

/// Scheduler that passes the queue of a LUN to an external policy and checks its choice. If the policy fails, the ranks
/// decide. If it failed to return valid ranks, they are those of `fcfs`.
#[derive(Clone, Debug)]
pub struct External {
    guard: Guard<dyn SchedulerPolicy>,
    /// Indexed by class.
    ranks: [u8; Class::COUNT],
    picks: bool,
    reconsiders: bool,
}

impl External {
    /// Builds the policy.
    pub fn new(config: &Config, device: &DeviceConfig, seed: u64, externals: &Externals) -> Result<External, String> {
        let wanted = Wanted { path: "scheduler", config, device, seed };
        let mut guard = Guard::<dyn SchedulerPolicy>::new(externals, wanted)?;
        let picks = guard.policy().is_some_and(|policy| policy.picks());
        let reconsiders = guard.policy().is_some_and(|policy| policy.reconsiders());
        let ranks = guard.ask(|policy| Class::ALL.map(|class| policy.rank(class)));
        let check = |ranks: &[u8; Class::COUNT]| {
            let mut ranks = Class::ALL.into_iter().zip(ranks);
            ranks.try_for_each(|(class, &rank)| check_rank(class, rank.into()).map(drop))
        };
        let ranks = ranks.filter(|ranks| guard.accept(check(ranks)).is_some());
        let ranks = ranks.unwrap_or_else(|| Class::ALL.map(|class| Fcfs.rank(class)));
        Ok(External { guard, ranks, picks, reconsiders })
    }

    /// Returns the fault of the policy.
    pub fn fault(&self) -> Option<&Fault> {
        self.guard.fault()
    }
}

/// Checks the rank of a class.
pub fn check_rank(class: Class, rank: i64) -> Result<u8, Cause> {
    let rank_of = u8::try_from(rank).ok().filter(|rank| usize::from(*rank) < RANKS);
    let what = || invalid(format!("ranked {class} {rank}: ranks are 0 to {}, and 0 goes first", RANKS - 1));
    rank_of.ok_or_else(what)
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
        if queue.iter().all(|queued| queued.id != chosen) {
            self.guard.refuse(format!("chose transaction {}, which is not in the queue", chosen.0));
            return None;
        }
        Some(chosen)
    }
}
