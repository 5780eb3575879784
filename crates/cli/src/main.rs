//! The `floatgate` command.

mod device;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use floatgate_core::config::ConfigError;

/// An SSD you can take apart: a fast, deterministic simulator of flash SSDs.
#[derive(Parser)]
#[command(name = "floatgate", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// The SSDs that can be simulated: list them, show one, check a file
    Device(device::Args),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Device(args) => device::run(args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(if is_mistake(&error) { 2 } else { 1 })
        }
    }
}

/// Whether what reads the output has gone, as `head` does when it has seen enough: no failure.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let kind = |e: &(dyn std::error::Error + 'static)| e.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
    error.chain().any(|e| kind(e) == Some(std::io::ErrorKind::BrokenPipe))
}

/// Whether what was asked for cannot be, in contrast to something that went wrong.
fn is_mistake(error: &anyhow::Error) -> bool {
    error.chain().any(|e| e.is::<ConfigError>())
}
