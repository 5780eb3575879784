//! Workloads: traces, object traces and synthetic jobs, each as a [`Source`](crate::sim::source::Source) of requests.

/// Time, random numbers, ids, requests, sources and text.
pub use floatgate_sim as sim;

pub mod file;
pub mod objects;
pub mod placed;
pub mod quantity;
pub mod synthetic;
pub mod trace;
