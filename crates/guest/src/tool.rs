//! Calling programs.

use std::process::{Command, Stdio};

use crate::GuestError;

/// What helps where a program of Debian's is missing.
pub const NO_APT: &str =
    "a guest is put together of Debian's packages: on other systems give one by --kernel and --initrd";

/// What `command` prints.
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

/// The last lines of a text.
pub fn tail(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}
