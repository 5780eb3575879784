//! Linux guest for a live device: built from Debian's packages, and run by QEMU.
//!
//! 1. [`packages`] downloads a kernel, busybox and programs to a cache with `apt-get`, and unpacks them there;
//! 2. [`system`] selects the files that a machine needs ([`modules`], [`programs`]) and writes them to one [`archive`];
//! 3. [`accelerator`] tests whether KVM boots the kernel;
//! 4. [`machine`] runs it with a disk and a command, and returns the exit status of the command.
//!
//! Root privileges are not needed, and nothing is installed. `docs/decisions/0022-guest.md` has the reasons for this
//! design.

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
