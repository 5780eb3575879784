//! External schedulers that choose among the waiting operations. One that follows the ranks gives the same history as
//! the queues by rank. One that chooses at random loses no request and no data.

use std::sync::Arc;

use floatgate_core::config::DeviceConfig;
use floatgate_core::external::{Cause, ExternalScheduler, Externals, Provider, Wanted};
use floatgate_core::scheduler::{Scheduler, SchedulerConfig};
use floatgate_core::sim::rng::Rng;
use floatgate_core::sim::time::Time;
use floatgate_core::work::{Class, LunQueue};

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

/// Replaces the scheduler of `config` by one that chooses among the waiting operations.
pub fn picking(mut config: DeviceConfig, picks: Picks) -> DeviceConfig {
    if picks == Picks::No {
        return config;
    }
    let built_in = config.scheduler.build(&config, 0).expect("a built-in scheduler");
    config.makers = Externals::by(Arc::new(Program { built_in, picks }));
    let external = r#"{"external":{"name":"picks"}}"#;
    config.scheduler = serde_json::from_str::<SchedulerConfig>(external).expect("the name of a policy");
    config
}

struct Program {
    built_in: Scheduler,
    picks: Picks,
}

impl Provider for Program {
    fn scheduler(&self, wanted: Wanted) -> Result<Box<dyn ExternalScheduler>, Cause> {
        let (built_in, picks) = (self.built_in.clone(), self.picks);
        Ok(Box::new(Picking { built_in, picks, rng: Rng::new(wanted.seed, "test/scheduler") }))
    }
}

#[derive(Clone)]
struct Picking {
    built_in: Scheduler,
    picks: Picks,
    rng: Rng,
}

impl ExternalScheduler for Picking {
    fn rank(&mut self, class: Class) -> Result<i64, Cause> {
        Ok(self.built_in.rank(class).into())
    }

    fn pick(&mut self, queue: &LunQueue, now: Time) -> Result<Option<i64>, Cause> {
        assert!(queue.len() > 1, "called although there is no choice");
        for queued in queue {
            assert_eq!(queued.rank, self.built_in.rank(queued.class));
            assert!(queued.since <= now, "{queued:?} has not arrived at {now:?}");
            assert_eq!(queued.request.is_some(), queued.stream.is_some());
            assert!(queued.request.is_some() || queued.class != Class::HostRead, "{queued:?}");
        }
        if self.picks == Picks::AtRandom {
            // Sometimes it leaves the choice to the ranks.
            let chosen = self.rng.below(queue.len() as u64 + 1) as usize;
            return Ok((chosen < queue.len()).then_some(chosen as i64));
        }
        let lowest = queue.iter().map(|queued| queued.rank).min();
        Ok(queue.iter().position(|queued| Some(queued.rank) == lowest).map(|position| position as i64))
    }

    fn fork(&self) -> Result<Box<dyn ExternalScheduler>, Cause> {
        Ok(Box::new(self.clone()))
    }
}
