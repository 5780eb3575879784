//! What workloads and devices have in common: time, events, random numbers, ids, and requests with their sources.

pub mod id;
pub mod list;
pub mod memory;
pub mod queue;
pub mod request;
pub mod rng;
pub mod slab;
pub mod source;
pub mod table;
pub mod time;
