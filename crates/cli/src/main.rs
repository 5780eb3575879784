//! The `floatgate` command.

mod device;
mod explain;
mod failure;
mod run;

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
    /// Tell the story of one request of a result: what it waited for and behind whom
    Explain(explain::ExplainArgs),
    /// The SSDs that can be simulated: list them, show one, check a file
    Device(device::Args),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Run(args) => run::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Device(args) => device::run(args).map_err(Failure::from),
    };
    failure::exit_code(done)
}
