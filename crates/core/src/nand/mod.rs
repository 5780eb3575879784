//! The flash array: decides *when* operations run. It knows channels and busy times, but not mappings.

pub mod array;
pub mod busy_time;
pub mod errors;
pub mod gauge;
pub mod media;
pub mod parallel;
pub mod probe;
pub mod timing;
