//! The flash array: decides *when*. It knows of channels and of what is busy, not of mappings.

pub mod array;
pub mod ledger;
pub mod media;
pub mod merged;
pub mod probe;
pub mod timing;
