//! Observers of a device: they change nothing of what it does.

pub mod contents;
