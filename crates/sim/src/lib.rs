//! What devices and workloads have in common: time, events, random numbers, ids, requests and their sources, texts.
//!
//! Ids name the parts of a device. Nothing else here is about flash, and nothing is about particular workloads. The
//! core and the workloads re-export this crate as `sim`.

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
