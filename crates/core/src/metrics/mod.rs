//! What is counted and measured.

pub mod attribution;
pub mod bounds;
pub mod counters;
pub mod latency;
pub mod profile;
pub mod results;
pub mod series;
pub mod summary;
