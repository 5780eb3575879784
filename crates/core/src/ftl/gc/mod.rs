//! Garbage collection (GC): reclaims the space of invalid units.

mod assign;
mod burst;
pub mod collector;
pub mod copies;
mod functional;
mod idle;
pub mod job;
pub mod pools;
mod superblock;
pub mod trigger;
pub mod victim;
pub mod wear;

pub use idle::IdleWork;
