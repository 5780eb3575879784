//! Policies for Floatgate in a separate crate: the victim policy `cost-age-times`, the scheduler `deadline`, and the
//! toy mapping schemes `append` and `log-block`.
//!
//! All use only the published interface. [`makers`] provides them to the command, to Python or to a program that loads
//! devices. Devices then name them like built-in policies.

mod append;
mod cost_age_times;
mod deadline;
mod log_block;

use std::sync::Arc;

use append::Append;
use cost_age_times::{CostAgeTimes, CostAgeTimesOptions};
use deadline::{Deadline, DeadlineOptions};
use floatgate_core::mapping::ExternalMapping;
use floatgate_core::policies::{Built, Cause, Externals, Offer, Provider, SchedulerPolicy, VictimPolicy, Wanted};
use log_block::LogBlock;

struct Policies;

/// Options of the mapping schemes, which have none.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct NoOptions {}

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
            Offer::new::<NoOptions>(
                "mapping.scheme",
                "append",
                "Each plane appends writes to one block, and copies the valid units of another to make room (a toy).",
            ),
            Offer::new::<NoOptions>(
                "mapping.scheme",
                "log-block",
                "Each plane writes to one log block; full merges copy its logical blocks to data blocks (a toy).",
            ),
        ];
        offers.map(|offer| offer.with_source(env!("CARGO_PKG_VERSION"))).to_vec()
    }

    fn build(&self, wanted: Wanted) -> Result<Built, Cause> {
        match (wanted.path, wanted.config.name.as_str()) {
            ("gc.victim", "cost-age-times") => Ok(Built::new::<dyn VictimPolicy>(CostAgeTimes::new(wanted.options()?))),
            ("scheduler", "deadline") => Ok(Built::new::<dyn SchedulerPolicy>(Deadline::new(wanted.options()?))),
            ("mapping.scheme", "append") => Ok(Built::new::<dyn ExternalMapping>(Append::new(wanted.device))),
            ("mapping.scheme", "log-block") => Ok(Built::new::<dyn ExternalMapping>(LogBlock::new(wanted.device))),
            _ => Err(wanted.unknown()),
        }
    }
}

/// Returns the provider of the policies of this crate.
pub fn makers() -> Externals {
    Externals::by(Arc::new(Policies))
}
