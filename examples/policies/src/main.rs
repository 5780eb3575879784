//! The `floatgate` command with the policies of this crate.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(floatgate_cli::main_with(example_policies::makers(), std::env::args_os()))
}
