//! Arrays of SSDs behind one controller, at RAID levels 0, 1, 5, 6 and 10.
//!
//! A [`SsdArray`] is an [`Ssd`](floatgate_core::simulation::Ssd) whose members are simulated
//! [`Device`](floatgate_core::simulation::Device)s. It splits each request by a [`layout`], orders operations of one
//! stripe by locks, and passes the events of its members on in the order of time. An
//! [`ArrayConfig`](config::ArrayConfig) is loaded from an array file. `docs/model/arrays.md` has the equations.

mod accept;
mod any;
mod array;
pub mod config;
mod contents;
mod counts;
mod entries;
mod events;
mod field;
mod functional;
mod gc;
mod journal;
pub mod layout;
mod locks;
mod operation;
mod probe;
mod progress;
mod rebuild;
mod repair;
mod resync;
mod state;
mod stripes;
mod summary;
mod timers;
mod tournament;
mod verify;

pub use any::AnySsd;
pub use array::{Mutant, Options, SsdArray};
pub use contents::MemberPayload;
pub use state::{ArrayHead, Inspected};
