//! NVMe: a controller with a namespace, over TCP.
//!
//! [`target`] is the command engine, which has no sockets: it executes commands of [`fabrics`], admin commands
//! (`admin`, `identify`, `logs`, `features`, `events`) and the checks of I/O commands ([`io`]). [`in_flight`] submits
//! these to the device. [`tcp`] is the transport: sessions without sockets, connections, and the loop that serves all
//! of them. [`supported`] lists the supported commands, log pages and features.

mod admin;
pub mod client;
pub mod controller;
mod discovery;
pub mod events;
pub mod fabrics;
mod features;
mod health;
pub mod identify;
pub mod in_flight;
pub mod io;
mod logs;
pub mod supported;
pub mod target;
pub mod tcp;
pub mod wire;

use floatgate_core::sim::request::SECTOR;

/// Maximum bytes of data in a capsule.
pub const CAPSULE_DATA: usize = 8192;

/// Maximum bytes that a command transfers.
pub const LONGEST_TRANSFER: usize = 1 << 20;

/// Maximum bytes that a Write Zeroes covers. They are programmed like data, unless they are deallocated.
pub const LONGEST_ZEROES: u64 = 32 << 20;

/// Maximum number of sectors that a request deallocates: those of 1 GiB. Longer ranges are several requests.
pub const LONGEST_TRIM: u64 = 1 << 21;

const _: () = assert!(LONGEST_TRIM * SECTOR == 1 << 30);

/// Maximum number of I/O queues of a controller.
pub const MAX_QUEUES: u16 = 64;

/// Maximum number of entries of a queue.
pub const MAX_ENTRIES: u16 = 128;

/// Maximum number of entries in the error log.
pub const ERRORS: usize = 64;

/// Unit of the keep alive timer in ms.
pub const KEEP_ALIVE_UNIT_MS: u32 = 100;

/// Temperature in kelvin from which a controller warns. The model has no temperature.
pub const WARNING_TEMPERATURE: u16 = 343;
