//! Copies of units from one place in flash to another.

mod gather;

pub use gather::Gather;
