//! The flash translation layer: decides *what* is read and written where, and knows nothing of time.

pub mod allocation;
pub mod gc;
