//! Garbage collection (GC): reclaims the space of invalid units.

mod assign;
mod functional;
pub mod job;
pub mod pools;
pub mod trigger;
pub mod victim;
pub mod wear;
