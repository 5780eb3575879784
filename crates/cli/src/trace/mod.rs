//! `floatgate trace`: analyzes traces, fits workloads to them, and converts them.

mod convert;
mod info;
mod synth;

use crate::failure::Failure;

/// `floatgate trace`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Analyze a trace, and warn of implausible values
    Info(info::InfoArgs),
    /// Fit a synthetic workload to a trace, and print how well it fits
    Synth(synth::SynthArgs),
    /// Write a trace in another format
    ///
    /// Times start at the first request. Warnings count what the new format cannot represent: operations, times of
    /// finer resolution, and large addresses.
    Convert(convert::ConvertArgs),
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    match &args.command {
        Command::Info(args) => info::run(args),
        Command::Synth(args) => synth::run(args),
        Command::Convert(args) => convert::run(args),
    }
}
