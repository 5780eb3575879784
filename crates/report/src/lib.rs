//! What is made of a result.

pub mod columns;
pub mod story;
pub mod timeline;
