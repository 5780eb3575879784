//! Floatgate's simulator: a deterministic, sans-I/O model of a flash SSD.

pub mod config;
pub mod ftl;
pub mod policy;
pub mod scheduler;
pub mod sim;
pub mod workload;
