//! External policies: policies of the program that runs the device, such as a Python script.
//!
//! A device file names an external policy, `gc.victim = { external = { name = "coldest" } }`, and the program passes
//! the device a [`Provider`] that builds it. The policy implements the trait of its family, like a built-in one. The
//! device checks each result of the policy before it uses it. If the policy fails or returns an invalid result, the
//! device stores a [`Fault`], and from then on makes its own choices, so that its state stays consistent. The caller
//! polls for the fault and ends the run. Devices with only built-in policies make no such checks.
//!
//! A provider can also list its policies as [offers](crate::config::Offer). Then device files name them like built-in
//! ones, `gc.victim = "coldest"`, and the schema and the suggestions in errors include them. See `examples/policies`
//! for a program with such a provider.

mod fault;
mod guard;
mod outside;
mod provider;

pub use fault::{Cause, Fault, invalid, position};
pub use guard::Guard;
pub use outside::Outside;
pub(crate) use outside::outside_policies;
pub use provider::{Built, Externals, Provider, Wanted};
