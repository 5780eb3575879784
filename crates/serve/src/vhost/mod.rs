//! The vhost-user front end: a virtio block device whose rings lie in the client's memory.
//!
//! A client, QEMU or a program with libblkio, sends its memory and events over a Unix socket (`connection`, whose
//! messages the `vhost` crate reads; `session` has what they say). Requests then come and go without the socket:
//! chains of descriptors in a ring (`ring`), which [`chain`] and [`blk`] make requests of. `inflight` is what
//! outlives a server that is killed.

pub mod blk;
pub mod chain;
pub mod client;
mod connection;
pub mod front;
mod inflight;
mod ring;
mod session;

use vm_memory::GuestMemoryMmap;

/// The memory of a client, which holds rings and payload.
pub type Memory = GuestMemoryMmap<()>;
