//! The `floatgate` command.

mod compare;
mod device;
mod draw;
mod explain;
mod failure;
mod output;
mod report;
mod run;
mod span;
mod text;
mod trace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use failure::Failure;

/// An SSD you can take apart: a fast, deterministic simulator of flash SSDs.
#[derive(Parser)]
#[command(name = "floatgate", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a workload on a device, and say how it was served
    ///
    /// Ctrl-C ends a run early: what has been issued is completed, and the result says that it is not complete; the
    /// exit status is 130 then. A second Ctrl-C stops at once. The exit status is 2 where what was asked for cannot
    /// be, and 1 where something went wrong.
    Run(Box<run::RunArgs>),
    /// Write the report of a result again: DIR/report.html, from DIR/summary.json
    Report(report::ReportArgs),
    /// Compare results: a table, and a page with their distributions over each other
    ///
    /// The first is what the others are compared with. Runs that differ in nothing but their seed are taken together,
    /// and their figures get confidence intervals; a difference that is within noise is marked. See docs/report.md.
    Compare(compare::CompareArgs),
    /// Tell the story of one request of a result: what it waited for and behind whom
    Explain(explain::ExplainArgs),
    /// Draw a timing diagram: what channels, chips and planes did in a span of a timeline, as SVG
    ///
    /// It has boxes for command, data and cell times, ready and busy of the chips, and the requests. A diagram has room
    /// for a few hundred phases; where the span has more, one is named that has not. See docs/reference/timeline.md.
    Draw(draw::DrawArgs),
    /// The SSDs that can be simulated: list them, show one, check a file
    Device(device::Args),
    /// Traces: say what one is like, make a synthetic workload of it, or write it in another format
    Trace(Box<trace::Args>),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Run(args) => run::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Draw(args) => draw::run(&args),
        Command::Device(args) => device::run(args).map_err(Failure::from),
        Command::Trace(args) => trace::run(&args),
    };
    failure::exit_code(done)
}
