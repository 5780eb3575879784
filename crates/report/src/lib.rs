//! What is made of a result: a report to look at, and comparisons.

pub mod compare;
mod figure;
pub mod html;
mod number;
mod page;
pub mod statistics;
