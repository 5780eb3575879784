//! Files that tests need.

pub mod genuine;
pub mod page;
