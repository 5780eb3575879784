//! Commands of live devices: they serve an SSD, or query and control a server.

use clap::Subcommand;

use crate::device::Selection;
use crate::failure::Failure;
use crate::{ctl, serve, top, vm};

/// A command of live devices.
#[derive(Subcommand)]
pub enum Command {
    /// Serve the SSD as a block device in real time, to fio, QEMU and the kernel
    ///
    /// Clients connect over NBD, vhost-user or NVMe/TCP. Their commands are printed when the device is ready, and are
    /// explained in docs/live-clients.md. Ctrl-C or SIGTERM ends the server: outstanding requests complete, sockets are
    /// removed, and the result is printed. A second Ctrl-C stops at once. Data is kept in memory and is lost at the
    /// end, unless `--image` keeps it in a file.
    #[command(after_long_help = serve::clients::HELP)]
    Serve(Box<serve::ServeArgs>),
    /// Query or control a running server: status, speed, trim-all, power-cut, fail
    #[command(after_long_help = ctl::HELP)]
    Ctl(ctl::CtlArgs),
    /// Watch a running server in a terminal
    #[command(after_long_help = top::HELP)]
    Top(top::TopArgs),
    /// Boot a small Linux guest with the SSD as its disk, and run a command in it
    ///
    /// The guest is built from Debian packages, which apt downloads into your cache. This needs no root, and installs
    /// nothing. The command's output goes to standard output, and the result of the SSD to standard error. The exit
    /// status is that of the command. See docs/live-clients.md.
    #[command(after_long_help = vm::HELP)]
    Vm(Box<vm::VmArgs>),
}

impl Command {
    /// Returns the selected device, if the command has one.
    pub fn selection(&mut self) -> Option<&mut Selection> {
        match self {
            Command::Serve(args) => Some(&mut args.device),
            Command::Vm(args) => Some(&mut args.serve.device),
            Command::Ctl(_) | Command::Top(_) => None,
        }
    }

    /// Runs the command.
    pub fn run(&self) -> Result<(), Failure> {
        match self {
            Command::Serve(args) => serve::run(args),
            Command::Ctl(args) => ctl::run(args),
            Command::Top(args) => top::run(args),
            Command::Vm(args) => vm::run(args),
        }
    }
}

/// Prints the running servers after the long help of `floatgate serve`.
pub fn end_help_of_serve() {
    use std::io::Write;
    let _ = std::io::stdout().write_all(serve::clients::of_running().as_bytes());
}
