//! The `floatgate` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(floatgate_cli::main(std::env::args_os()))
}
