//! Cleaning: reclaiming the space of superseded units.

mod functional;
pub mod job;
pub mod trigger;
pub mod victim;
pub mod wear;
