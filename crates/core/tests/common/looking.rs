//! Schedulers that look, against the queues by rank: one that chooses what the ranks would choose gives the same
//! history, and one that chooses at random neither loses nor mixes up anything.

use std::sync::Arc;

use floatgate_core::config::DeviceConfig;
use floatgate_core::external::{Cause, ExternalScheduler, Externals, Provider, Wanted};
use floatgate_core::scheduler::{Scheduler, SchedulerConfig};
use floatgate_core::sim::rng::Rng;
use floatgate_core::sim::time::Time;
use floatgate_core::work::{Class, LunQueue};

/// The scheduler of a random device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Looks {
    /// The built-in one.
    #[default]
    No,
    /// It looks, and chooses what the built-in one would.
    AsRanked,
    /// It looks, and chooses at random, with the ranks of the built-in one for the channel.
    AtRandom,
}

/// Lets a scheduler that looks take the place of the built-in one of `config`.
pub fn looking(mut config: DeviceConfig, looks: Looks) -> DeviceConfig {
    if looks == Looks::No {
        return config;
    }
    let built_in = config.scheduler.build(&config, 0).expect("it has no options that could be wrong");
    config.makers = Externals::by(Arc::new(Program { built_in, looks }));
    let external = r#"{"external":{"name":"looks"}}"#;
    config.scheduler = serde_json::from_str::<SchedulerConfig>(external).expect("it names a policy");
    config
}

struct Program {
    built_in: Scheduler,
    looks: Looks,
}

impl Provider for Program {
    fn scheduler(&self, wanted: Wanted) -> Result<Box<dyn ExternalScheduler>, Cause> {
        let (built_in, looks) = (self.built_in.clone(), self.looks);
        Ok(Box::new(Looking { built_in, looks, rng: Rng::new(wanted.seed, "test/scheduler") }))
    }
}

#[derive(Clone)]
struct Looking {
    built_in: Scheduler,
    looks: Looks,
    rng: Rng,
}

impl ExternalScheduler for Looking {
    fn rank(&mut self, class: Class) -> Result<i64, Cause> {
        Ok(self.built_in.rank(class).into())
    }

    fn pick(&mut self, queue: &LunQueue, now: Time) -> Result<Option<i64>, Cause> {
        assert!(queue.len() > 1, "it is asked although there is no choice");
        for queued in queue {
            assert_eq!(queued.rank, self.built_in.rank(queued.class));
            assert!(queued.since <= now, "{queued:?} has not arrived at {now:?}");
            assert_eq!(queued.request.is_some(), queued.stream.is_some());
            assert!(queued.request.is_some() || queued.class != Class::HostRead, "{queued:?}");
        }
        if self.looks == Looks::AtRandom {
            // Now and then it leaves the choice to the ranks.
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
