//! Timing diagrams: draw a span of a timeline in the style of data sheets.
//!
//! A diagram shows the command, address and data cycles of channels, the ready/busy lines of chips, and the cell
//! activity of each plane. No information is conveyed by color alone: boxes have labels, or patterns if a label does
//! not fit.

mod gather;
mod layout;
mod requested;
mod sort;
mod svg;

use std::io::Read;

use anyhow::Result;

pub use requested::{MAX_PHASES, MAX_PLANES, Requested};
use requested::{MAX_REQUEST_ROWS, MAX_REQUESTS};
use sort::Sort;

/// Draws a timeline as SVG. `name` is the name of the file, for error messages.
pub fn draw(timeline: impl Read, name: &str, requested: &Requested) -> Result<String> {
    let gathered = gather::gather(timeline, name, requested.span)?;
    Ok(svg::svg(&layout::lay_out(&gathered, requested)))
}
