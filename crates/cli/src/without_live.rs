//! Commands of live devices in a program without them: they parse, and fail with the reason.
//!
//! A program lacks them if it was built without the feature `live`, as on systems other than Linux.

use std::ffi::OsString;

use clap::Subcommand;

use crate::device::Selection;
use crate::failure::Failure;

/// A command of live devices.
#[derive(Subcommand)]
pub enum Command {
    /// Serve the SSD as a block device in real time [Linux]
    Serve(Args),
    /// Query or control a running server [Linux]
    Ctl(Args),
    /// Watch a running server in a terminal [Linux]
    Top(Args),
    /// Boot a small Linux guest with the SSD as its disk [Linux]
    Vm(Args),
}

/// Arguments, which are ignored.
#[derive(clap::Args)]
pub struct Args {
    /// Arguments of the command on Linux
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

impl Command {
    /// Returns `None`: there is no device.
    pub fn selection(&mut self) -> Option<&mut Selection> {
        None
    }

    /// Fails with the reason why the command is missing.
    pub fn run(&self) -> Result<(), Failure> {
        let word = match self {
            Command::Serve(_) => "serve",
            Command::Ctl(_) => "ctl",
            Command::Top(_) => "top",
            Command::Vm(_) => "vm",
        };
        Err(Failure::mistake(format!(
            "floatgate {word} is missing: this program was built without live devices, which need Linux; on Linux, \
             build it with the feature `live`, which is a default (docs/install.md)"
        )))
    }
}

/// Prints nothing: there are no servers.
pub fn end_help_of_serve() {}
