//! What workloads and devices have in common: time, events, random numbers, ids, requests
//! with their sources, and texts from outside.

pub mod id;
pub mod list;
pub mod memory;
pub mod queue;
pub mod request;
pub mod rng;
pub mod slab;
pub mod source;
pub mod table;
pub mod text;
pub mod time;
