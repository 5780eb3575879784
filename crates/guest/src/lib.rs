//! A small Linux machine for a live device: put together of Debian's packages, and run by QEMU.
//!
//! 1. [`packages`] has `apt-get` bring a kernel, busybox and programs into a cache, and unpacks them there;
//! 2. [`system`] takes from them what a machine needs ([`modules`], [`programs`]) and writes it as one [`archive`];
//! 3. [`accelerator`] finds out whether KVM boots that kernel;
//! 4. [`machine`] runs it with a disk, hands over a command, and brings its exit status back.
//!
//! Nothing here needs root, and nothing is installed. `docs/decisions/0022-guest.md` says why it is like this.

pub mod accelerator;
pub mod archive;
mod error;
pub mod machine;
pub mod modules;
pub mod packages;
pub mod programs;
pub mod qemu;
pub mod scratch;
pub mod system;
mod tool;

pub use accelerator::Accelerator;
pub use error::GuestError;
pub use machine::{Disk, Ended, Machine, Running};
pub use packages::Cache;
pub use scratch::Scratch;
pub use system::Guest;
