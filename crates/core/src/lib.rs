//! Floatgate's simulator: a deterministic, sans-I/O model of a flash SSD.

pub mod sim;
pub mod workload;
