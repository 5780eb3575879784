//! Timing diagrams of results.

use std::fs::File;
use std::path::{Path, PathBuf};

use floatgate_report::diagram::{self, Requested};
use floatgate_report::digests::check_alone;

use crate::failure::Failure;
use crate::output::{self, Named, Wait, refuse_overwrites};
use crate::span::Span;

/// Draws a span of the timeline of a result, and writes it to `out`, or next to the timeline. `place` is the directory
/// of the result, or its timeline. Returns the path of the diagram.
pub fn draw(
    place: &Path,
    span: Option<Span>,
    title: Option<String>,
    out: Option<PathBuf>,
    wait: &Wait,
) -> Result<PathBuf, Failure> {
    let timeline = if place.is_dir() { place.join(output::TIMELINE) } else { place.to_owned() };
    if place.is_dir() && !timeline.exists() {
        return Err(Failure::mistake(format!(
            "{} has no {}: run again with --timeline, or with the span to draw, such as --timeline=10ms..12ms",
            place.display(),
            output::TIMELINE
        )));
    }
    let diagram = out.unwrap_or_else(|| timeline.with_file_name(output::DIAGRAM));
    let mut inputs = output::data_of(timeline.parent().unwrap_or(Path::new("")));
    inputs.push(Named::new("the timeline", &timeline));
    refuse_overwrites(&inputs, &[Named::new("the diagram", &diagram)])?;
    let name = timeline.display().to_string();
    check_alone(&timeline).map_err(Failure::Mistake)?;
    let file = File::open(&timeline).map_err(|error| Failure::mistake(format!("cannot read {name}: {error}")))?;
    let Span { from, to } = span.unwrap_or(Span::WHOLE);
    let svg = diagram::draw(file, &name, &Requested { span: (from, to), title }).map_err(Failure::Mistake)?;
    output::write_whole(&diagram, svg.as_bytes(), wait).map_err(Failure::Fault)?;
    Ok(diagram)
}
