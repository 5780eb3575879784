//! Types shared by devices and workloads: time, events, random numbers, ids, requests and their sources, and text.
//!
//! Only the ids name parts of a device. Nothing else here depends on flash, and nothing depends on particular
//! workloads. The core and the workloads re-export this crate as `sim`.

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
