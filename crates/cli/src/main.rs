//! The `floatgate` command.

mod compare;
mod device;
mod explain;
mod failure;
mod output;
mod report;
mod run;
mod serve;
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
    /// Ctrl-C or SIGTERM ends a run early: what has been issued is completed, and the result says that it is not
    /// complete; the exit status is 130 then. A second Ctrl-C stops at once. The exit status is 2 where what was asked
    /// for cannot be, and 1 where something went wrong.
    Run(Box<run::RunArgs>),
    /// Attach the SSD: serve it as a real block device, in real time, to fio, QEMU and the kernel
    ///
    /// Clients connect by NBD; what they have to be called with is printed when the device is there, and stands in
    /// docs/live.md. Ctrl-C or SIGTERM ends: what is in progress is answered, sockets are removed, and the result is
    /// printed. A second Ctrl-C stops at once. Data live in memory and go with the program.
    #[command(after_long_help = serve::clients::HELP)]
    Serve(Box<serve::ServeArgs>),
    /// Write the report of a result again: DIR/report.html, from DIR/summary.json
    Report(report::ReportArgs),
    /// Compare results: a table, and a page with their distributions over each other
    ///
    /// The first is what the others are compared with. Runs that differ in nothing but their seed are taken together,
    /// and their figures get confidence intervals; a difference that is within noise is marked. See docs/report.md.
    Compare(compare::CompareArgs),
    /// Tell the story of one request of a result: what it waited for and behind whom
    Explain(explain::ExplainArgs),
    /// The SSDs that can be simulated: list them, show one, check a file
    Device(device::Args),
    /// Traces: say what one is like, make a synthetic workload of it, or write it in another format
    Trace(Box<trace::Args>),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Run(args) => run::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Device(args) => device::run(args).map_err(Failure::from),
        Command::Trace(args) => trace::run(&args),
    };
    failure::exit_code(done)
}
