//! The flash array: decides *when*. It knows of channels and of what is busy, not of mappings.

pub mod array;
pub mod busy_time;
pub mod media;
pub mod parallel;
pub mod probe;
pub mod timing;
