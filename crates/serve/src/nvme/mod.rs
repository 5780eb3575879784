//! NVMe: a controller with a namespace, over TCP.
//!
//! [`target`] is the command engine, which has no sockets: it executes commands of [`fabrics`], admin commands
//! (`admin`, `identify`, `logs`, `features`, `events`) and the checks of I/O commands ([`io`]). [`work`] submits these
//! to the device. [`tcp`] is the transport: sessions without sockets, connections, and the loop that serves all of
//! them. [`answered`] lists what is answered.

mod admin;
pub mod answered;
pub mod client;
pub mod controller;
mod discovery;
pub mod events;
pub mod fabrics;
mod features;
mod health;
pub mod identify;
pub mod io;
mod logs;
pub mod target;
pub mod tcp;
pub mod wire;
pub mod work;

/// Maximum bytes of data in a capsule.
pub const CAPSULE_DATA: usize = 8192;

/// Maximum bytes that a command transfers.
pub const LONGEST_TRANSFER: usize = 1 << 20;
