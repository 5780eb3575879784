//! What is counted and measured.

pub mod attribution;
pub mod counters;
pub mod latency;
pub mod results;
pub mod series;
pub mod summary;
