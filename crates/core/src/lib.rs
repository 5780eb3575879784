//! Floatgate's simulator: a deterministic, sans-I/O model of a flash SSD.

/// Base types: time, random numbers, ids, requests, sources and text formatting.
pub use floatgate_sim as sim;

pub mod cache;
pub mod config;
pub mod contract;
pub mod device;
mod dispatch;
pub mod durability;
pub mod external;
pub mod ftl;
pub mod host;
pub mod lifetime;
pub mod metrics;
pub mod nand;
pub mod observe;
pub mod policy;
pub mod precondition;
pub mod run;
pub mod scheduler;
pub mod ssd;
pub mod state;
pub mod work;
