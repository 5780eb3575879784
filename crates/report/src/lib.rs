//! Presentation of results: HTML reports, comparisons, tables, timelines, timing diagrams, and explanations of single
//! requests.

pub mod columns;
pub mod command;
pub mod compare;
pub mod diagram;
pub mod digests;
pub mod explain;
mod figure;
pub mod html;
pub mod live;
pub mod metric;
pub mod number;
mod page;
pub mod statistics;
pub mod timeline;
pub mod words;

pub use page::PLOTLY;
