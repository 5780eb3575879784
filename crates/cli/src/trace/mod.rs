//! `floatgate trace`: looking at traces.

mod info;
mod text;

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
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    match &args.command {
        Command::Info(args) => info::run(args),
    }
}
