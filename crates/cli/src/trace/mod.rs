//! `floatgate trace`: work on traces.

mod convert;

use crate::failure::Failure;

/// `floatgate trace`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Write a trace in another format
    ///
    /// Times are counted from the first request. What the new format cannot hold (operations, finer times, large
    /// addresses) is counted and said.
    Convert(convert::ConvertArgs),
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    match &args.command {
        Command::Convert(args) => convert::run(args),
    }
}
