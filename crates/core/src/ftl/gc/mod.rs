//! Cleaning: reclaiming the space of superseded units.

pub mod victim;
