//! Workloads: traces and synthetic jobs, both as a [`Source`](crate::sim::source::Source) of requests.

/// Time, random numbers, ids, requests, sources and text.
pub use floatgate_sim as sim;

pub mod file;
pub mod placed;
pub mod quantity;
pub mod synthetic;
pub mod trace;
