//! Counters and measurements of a run, and the summary of its results.

#[macro_use]
pub mod table;

pub mod attribution;
pub mod bounds;
pub mod collections;
pub mod counters;
pub mod energy;
pub mod latency;
pub mod profile;
pub mod results;
pub mod series;
pub mod statistics;
pub mod summary;
