//! Timing diagrams: a span of a timeline, drawn as data sheets draw it. Channels with their command, address and data
//! cycles, ready and busy of the chips, and what the cells of each plane do, over one axis of time.
//!
//! Nothing is told by colour alone: boxes have labels, and where there is no room for one a pattern.

mod asked;
mod gather;
mod layout;
mod sort;
mod svg;

use std::io::Read;

use anyhow::Result;

pub use asked::{Asked, MOST_PHASES, MOST_PLANES};
use asked::{MOST_REQUEST_ROWS, MOST_REQUESTS};
use sort::Sort;

/// Draws a timeline, which has the bytes of `name`, as SVG.
pub fn draw(timeline: impl Read, name: &str, asked: &Asked) -> Result<String> {
    let gathered = gather::gather(timeline, name, asked.span)?;
    Ok(svg::svg(&layout::lay_out(&gathered, asked)))
}
