//! `floatgate draw`: draws a timing diagram of a span of a timeline.

use std::fs::File;
use std::path::{Path, PathBuf};

use floatgate_report::diagram::{self, Requested};
use floatgate_report::digests::check_alone;
use floatgate_run::output::{self, Named, Wait, keep_apart};
use floatgate_run::span::Span;
use floatgate_workload::file::Stop;

use crate::failure::{Failure, say};

/// `floatgate draw`.
#[derive(clap::Args)]
pub struct DrawArgs {
    /// Result of `floatgate run --out DIR --timeline`, or its timeline.pftrace.gz
    #[arg(value_name = "DIR")]
    place: PathBuf,
    /// Span of simulated time to draw, such as 1.2ms..1.5ms; either end can be omitted
    #[arg(value_name = "FROM..TO")]
    span: Option<Span>,
    /// Write the diagram to FILE instead of DIR/timeline.svg
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Title of the diagram [default: the device and the span]
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
}

/// Runs the command.
pub fn run(args: &DrawArgs) -> Result<(), Failure> {
    let timeline = if args.place.is_dir() { args.place.join(output::TIMELINE) } else { args.place.clone() };
    if args.place.is_dir() && !timeline.exists() {
        return Err(Failure::mistake(format!(
            "{} has no {}: run again with --timeline, or with the span to draw, such as --timeline=10ms..12ms",
            args.place.display(),
            output::TIMELINE
        )));
    }
    let place = args.out.clone().unwrap_or_else(|| timeline.with_file_name(output::DIAGRAM));
    let mut inputs = output::data_of(timeline.parent().unwrap_or(Path::new("")));
    inputs.push(Named::new("the timeline", &timeline));
    keep_apart(&inputs, &[Named::new("the diagram", &place)])?;
    let name = timeline.display().to_string();
    check_alone(&timeline).map_err(Failure::Mistake)?;
    let file = File::open(&timeline).map_err(|error| Failure::mistake(format!("cannot read {name}: {error}")))?;
    let Span { from, to } = args.span.unwrap_or(Span::WHOLE);
    let requested = Requested { span: (from, to), title: args.title.clone() };
    let svg = diagram::draw(file, &name, &requested).map_err(Failure::Mistake)?;
    output::write_whole(&place, svg.as_bytes(), &Wait::new(Stop::default(), say)).map_err(Failure::Fault)?;
    say(&format!("wrote {}", place.display()));
    Ok(())
}
