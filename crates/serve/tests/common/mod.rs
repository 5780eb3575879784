//! Benches of the servers, and models that they are compared with.

pub mod disk;
pub mod options;
pub mod progress;
pub mod replay;
pub mod trims;
pub mod truth;
