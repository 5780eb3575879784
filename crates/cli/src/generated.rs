//! Completions and man pages, which are generated from the declaration of the command line.
//!
//! Packages contain them as files, which `scripts/shell_files.sh` writes.

use std::io;
use std::path::Path;

use anyhow::Context;
use clap::Command;
use clap_complete::Shell;

/// Name of the program.
const PROGRAM: &str = "floatgate";

/// Returns the completion script of a shell.
pub fn completions(command: &mut Command, shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, command, PROGRAM, &mut script);
    script
}

/// Writes a man page for the program and for each of its commands to a directory, which is created if it is missing.
pub fn write_man_pages(command: Command, directory: &Path) -> anyhow::Result<()> {
    let write = || -> io::Result<()> {
        std::fs::create_dir_all(directory)?;
        clap_mangen::generate_to(command, directory)
    };
    write().with_context(|| format!("cannot write man pages to {}", directory.display()))
}
