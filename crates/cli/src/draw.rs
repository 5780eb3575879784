//! `floatgate draw`: draws a timing diagram of a span of a timeline.

use std::path::PathBuf;

use floatgate_run::output::Wait;
use floatgate_run::span::Span;
use floatgate_run::tool::draw::draw;
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
    let wait = Wait::new(Stop::default(), say);
    let diagram = draw(&args.place, args.span, args.title.clone(), args.out.clone(), &wait)?;
    say(&format!("wrote {}", diagram.display()));
    Ok(())
}
