//! Policies for Floatgate in a separate crate: the victim policy `cost-age-times`, the scheduler `deadline`, and the
//! toy mapping scheme `log-blocks`.
//!
//! All use only the published interface. [`makers`] provides them to the command, to Python or to a program that loads
//! devices. Devices then name them like built-in policies.

mod cost_age_times;
mod deadline;
mod log_blocks;

use std::sync::Arc;

use cost_age_times::{CostAgeTimes, CostAgeTimesOptions};
use deadline::{Deadline, DeadlineOptions};
use floatgate_core::config::DeviceConfig;
use floatgate_core::external::{
    Cause, ExternalMapping, ExternalScheduler, ExternalVictim, Externals, Offer, Provider, Wanted,
};
use log_blocks::{LogBlocks, LogBlocksOptions};

struct Policies;

impl Provider for Policies {
    fn offers(&self) -> Vec<Offer> {
        let offers = [
            Offer::new::<CostAgeTimesOptions>(
                "gc.victim",
                "cost-age-times",
                "The block with the minimum of u / (1 - u) * erases / age (Chiang and Chang 1999).",
            ),
            Offer::new::<DeadlineOptions>(
                "scheduler",
                "deadline",
                "Reads first, unless the deadline of another operation has passed.",
            ),
            Offer::new::<LogBlocksOptions>(
                "mapping.scheme",
                "log-blocks",
                "Writes go to log blocks, which full merges reclaim (a toy after FAST, Lee et al. 2007).",
            ),
        ];
        offers.map(|offer| offer.with_source(env!("CARGO_PKG_VERSION"))).to_vec()
    }

    fn victim(&self, wanted: Wanted) -> Result<Box<dyn ExternalVictim>, Cause> {
        match wanted.config.name.as_str() {
            "cost-age-times" => Ok(Box::new(CostAgeTimes::new(wanted.options()?))),
            _ => Err(wanted.unknown()),
        }
    }

    fn mapping(&self, wanted: Wanted, device: &DeviceConfig) -> Result<Box<dyn ExternalMapping>, Cause> {
        match wanted.config.name.as_str() {
            "log-blocks" => {
                let scheme = LogBlocks::new(&wanted.options()?, device).map_err(|why| wanted.refused(why))?;
                Ok(Box::new(scheme))
            }
            _ => Err(wanted.unknown()),
        }
    }

    fn scheduler(&self, wanted: Wanted) -> Result<Box<dyn ExternalScheduler>, Cause> {
        match wanted.config.name.as_str() {
            "deadline" => Ok(Box::new(Deadline::new(wanted.options()?))),
            _ => Err(wanted.unknown()),
        }
    }
}

/// Returns the provider of the policies of this crate.
pub fn makers() -> Externals {
    Externals::by(Arc::new(Policies))
}
