//! The clock, the event queue, random numbers and ids: what any simulation needs, nothing about SSDs.

pub mod id;
pub mod list;
pub mod memory;
pub mod queue;
pub mod rng;
pub mod slab;
pub mod table;
pub mod time;
