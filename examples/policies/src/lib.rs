//! Policies for Floatgate in a crate of their own: the victim policy `cost-age-times` and the scheduler `deadline`.
//!
//! Both are written against the published interface. [`makers`] hands them to the command, to Python or to a program
//! that loads devices, which then name them like built-in policies.

mod cost_age_times;
mod deadline;

use std::sync::Arc;

use cost_age_times::{CostAgeTimes, CostAgeTimesOptions};
use deadline::{Deadline, DeadlineOptions};
use floatgate_core::external::{Cause, ExternalScheduler, ExternalVictim, Externals, Offer, Provider, Wanted};

struct Policies;

impl Provider for Policies {
    fn offers(&self) -> Vec<Offer> {
        let offers = [
            Offer::new::<CostAgeTimesOptions>(
                "gc.victim",
                "cost-age-times",
                "The block with the least u / (1 - u) * erases / age (Chiang and Chang 1999).",
            ),
            Offer::new::<DeadlineOptions>(
                "scheduler",
                "deadline",
                "Reads first, but what has waited beyond its deadline goes before them.",
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

    fn scheduler(&self, wanted: Wanted) -> Result<Box<dyn ExternalScheduler>, Cause> {
        match wanted.config.name.as_str() {
            "deadline" => Ok(Box::new(Deadline::new(wanted.options()?))),
            _ => Err(wanted.unknown()),
        }
    }
}

/// Returns what makes the policies of this crate.
pub fn makers() -> Externals {
    Externals::by(Arc::new(Policies))
}
