//! What is made of a result: a report to look at, comparisons, columns, a timeline, timing diagrams, and the story of a
//! request.

pub mod columns;
pub mod command;
pub mod compare;
pub mod diagram;
pub mod digests;
pub mod explain;
mod figure;
pub mod html;
pub mod number;
mod page;
pub mod statistics;
pub mod timeline;
pub mod words;

pub use page::PLOTLY;
