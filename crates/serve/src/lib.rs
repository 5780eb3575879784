//! Exposes the simulated SSD as a block device in real time.
//!
//! This is the only crate that uses sockets, threads and clocks. A request passes through it as follows:
//!
//! 1. A frontend ([`nbd`], [`nvme`], [`vhost`]) reads the request from its socket or ring and records the real time of
//!    its arrival.
//! 2. The [`engine`] stores its data ([`payload`]) and submits it to the device at the simulated time of its arrival.
//! 3. The engine advances the device to the current time and receives the completion time of the request.
//! 4. The frontend sends the reply at that time, never earlier, and records how late it was ([`lateness`]).
//!
//! A [`monitor`] shows the state of the device and accepts control commands.
//!
//! `docs/live-timing.md` explains the handling of time. `docs/decisions/0015-live.md` gives the reasons for this
//! design.

pub mod address;
mod budget;
mod calibrate;
pub mod client;
mod clients;
pub mod clock;
mod cost;
pub mod engine;
mod error;
mod identity;
pub mod idle;
pub mod image;
mod input;
pub mod lateness;
pub mod listen;
pub mod monitor;
pub mod nbd;
pub mod nvme;
mod pacing;
mod pages;
pub mod payload;
pub mod record;
pub mod roster;
pub mod server;
pub mod sockets;
mod stream;
mod threads;
pub mod timeline;
mod turnaround;
pub mod vhost;

pub use address::Address;
pub use cost::Cost;
pub use error::ServeError;
pub use pages::forgo_huge_pages;
pub use server::{Costs, Finished, Options, Server};
pub use sockets::{SocketAddresses, Sockets};
