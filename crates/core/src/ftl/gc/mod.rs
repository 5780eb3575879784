//! Cleaning: reclaiming the space of superseded units.

pub mod job;
pub mod trigger;
pub mod victim;
