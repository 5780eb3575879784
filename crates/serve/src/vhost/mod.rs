//! The vhost-user frontend: a virtio block device whose rings are in the client's memory.
//!
//! A client (QEMU, or a program with libblkio) sends its memory and events over a Unix socket. `connection` receives
//! these messages with the `vhost` crate, and `session` applies them. Requests and replies do not pass through the
//! socket. They are descriptor chains in a ring (`ring`), which [`chain`] and [`blk`] parse. `inflight` records
//! outstanding requests, and survives the death of the server.

pub mod blk;
pub mod chain;
pub mod client;
mod connection;
pub mod frontend;
mod inflight;
mod ring;
mod session;

use vm_memory::GuestMemoryMmap;

/// Memory of a client, which contains rings and payload.
pub type Memory = GuestMemoryMmap<()>;
