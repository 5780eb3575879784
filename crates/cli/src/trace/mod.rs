//! `floatgate trace`: looking at traces, making workloads of them, and writing them in other formats.

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
    /// Say what a trace is like, and what is implausible about it
    Info(info::InfoArgs),
    /// Make a synthetic workload that is like a trace, and say how well it fits
    Synth(synth::SynthArgs),
    /// Write a trace in another format
    ///
    /// Times are counted from the first request. What the new format cannot hold (operations, finer times, large
    /// addresses) is counted and said.
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
