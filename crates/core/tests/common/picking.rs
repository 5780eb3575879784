//! External schedulers that choose among the waiting operations. One that follows the ranks gives the same history as
//! the queues by rank. One that chooses at random loses no request and no data.

use std::sync::Arc;

use floatgate_core::device_file::DeviceConfig;
use floatgate_core::internals::{Scheduler, SchedulerConfig};
use floatgate_core::policies::{Built, Cause, Class, Externals, LunQueue, Provider, SchedulerPolicy, Wanted};
use floatgate_core::sim::id::TransactionId;
use floatgate_core::sim::rng::Rng;
use floatgate_core::sim::time::Time;

/// The scheduler of a random device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Picks {
    /// The built-in scheduler of the configuration.
    #[default]
    No,
    /// Chooses the operation that the built-in scheduler would choose.
    AsRanked,
    /// Chooses at random. The channel still uses the ranks of the built-in scheduler.
    AtRandom,
}

/// Replaces the scheduler of `config` by one that chooses among the waiting operations. Returns its program, too.
pub fn picking(mut config: DeviceConfig, picks: Picks) -> (DeviceConfig, Externals) {
    if picks == Picks::No {
        return (config, Externals::default());
    }
    let built_in = config.scheduler.build(&config, 0, &Externals::default()).expect("a built-in scheduler");
    let external = r#"{"external":{"name":"picks"}}"#;
    config.scheduler = serde_json::from_str::<SchedulerConfig>(external).expect("the name of a policy");
    (config, Externals::by(Arc::new(Program { built_in, picks })))
}

struct Program {
    built_in: Scheduler,
    picks: Picks,
}

impl Provider for Program {
    fn build(&self, wanted: Wanted) -> Result<Built, Cause> {
        let (built_in, picks) = (self.built_in.clone(), self.picks);
        let rng = Rng::new(wanted.seed, "test/scheduler");
        Ok(Built::new::<dyn SchedulerPolicy>(Picking { built_in, picks, rng }))
    }
}

#[derive(Clone)]
struct Picking {
    built_in: Scheduler,
    picks: Picks,
    rng: Rng,
}

impl SchedulerPolicy for Picking {
    fn rank(&self, class: Class) -> u8 {
        self.built_in.rank(class)
    }

    fn picks(&self) -> bool {
        true
    }

    fn pick(&mut self, queue: &LunQueue, now: Time) -> Option<TransactionId> {
        assert!(queue.len() > 1, "called although there is no choice");
        for queued in queue {
            assert_eq!(queued.rank, self.built_in.rank(queued.class));
            assert!(queued.since <= now, "{queued:?} has not arrived at {now:?}");
            assert_eq!(queued.request.is_some(), queued.stream.is_some());
            assert!(queued.request.is_some() || queued.class != Class::HostRead, "{queued:?}");
        }
        let chosen = if self.picks == Picks::AtRandom {
            // Sometimes it leaves the choice to the ranks.
            queue.as_slice().get(self.rng.below(queue.len() as u64 + 1) as usize)
        } else {
            queue.iter().min_by_key(|queued| queued.rank)
        };
        chosen.map(|queued| queued.id)
    }
}
