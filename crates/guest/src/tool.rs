//! External programs: runs them and returns their output.

use std::process::{Command, Stdio};

use crate::GuestError;

/// Remedy if a program of Debian is missing.
pub const NO_APT: &str = "the guest is built from Debian packages, so pass --kernel and --initrd on other systems";

/// Returns the standard output of `command`. `purpose` completes the error if the program is not installed.
pub fn output(mut command: Command, purpose: &'static str) -> Result<String, GuestError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.env("LC_ALL", "C").stdin(Stdio::null()).output().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => GuestError::Missing { program: program.clone(), purpose, remedy: NO_APT },
        _ => GuestError::Failed { program: program.clone(), said: error.to_string() },
    })?;
    if !output.status.success() {
        return Err(GuestError::Failed { program, said: tail(&String::from_utf8_lossy(&output.stderr), 5) });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns the last `count` lines of a text that are not empty.
pub fn tail(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}
