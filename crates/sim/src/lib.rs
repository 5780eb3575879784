//! What devices and workloads have in common: time, events, random numbers, ids, requests and their sources, texts.
//!
//! Nothing here knows what a device does, or which workloads there are. The core re-exports this crate as `sim`.

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
