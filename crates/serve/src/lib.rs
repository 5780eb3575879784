//! The simulated SSD as a real block device, in real time.
//!
//! The only crate with sockets, threads and clocks. A request's way through it:
//!
//! 1. a front end ([`nbd`], [`vhost`]) reads it from its socket or ring, and stamps it with the clock on the wall;
//! 2. the [`engine`] puts its data where they are kept ([`payload`]), and submits it to the device at the stamp;
//! 3. the engine lets the device catch up with the clock, and learns when the request is done;
//! 4. the front end answers it then, no earlier, and notes how much later ([`lateness`]).
//!
//! A [`monitor`] beside it shows what goes on, and changes what can be changed.
//!
//! `docs/live.md` says how time works, `docs/decisions/0015-live.md` why it is like this.

pub mod address;
mod calibrate;
pub mod client;
pub mod clock;
mod cost;
pub mod engine;
mod error;
pub mod idle;
pub mod image;
pub mod lateness;
pub mod monitor;
pub mod nbd;
mod pages;
pub mod payload;
pub mod record;
mod rhythm;
pub mod roster;
pub mod server;
pub mod sockets;
mod threads;
mod turnaround;
pub mod vhost;

pub use address::Address;
pub use error::ServeError;
pub use pages::forgo_huge_pages;
pub use server::{Finished, Options, Server};
pub use sockets::{Places, Sockets};
