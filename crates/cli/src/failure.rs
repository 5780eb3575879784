//! Failures of the command: their messages and exit statuses.

use std::fmt::Display;
use std::io;

use floatgate_core::device_file::ConfigError;
use floatgate_core::sim::text::escaped_lines;
use floatgate_run::frontend::Stopped;

use crate::{color, signal};

/// Reason why the command failed.
#[derive(Debug)]
pub enum Failure {
    /// Invalid arguments or input: exit status 2, as for a wrong option.
    Mistake(anyhow::Error),
    /// Fault during the work: exit status 1.
    Fault(anyhow::Error),
    /// Stopped by the user: exit status 130 for Ctrl-C and 143 for SIGTERM, as in shells.
    Interrupted(&'static str),
    /// Stopped by the user, with a result that reports this: the exit status of `Interrupted`, without a message.
    Ended,
    /// Exit status of another command, which has printed its own error.
    #[cfg(feature = "live")]
    Status(u8),
    /// Standard output was closed by its reader, as with `| head`: exit status 0, because that is not a failure.
    NobodyListens,
}

impl Failure {
    /// Creates a mistake of the user, which `error` describes in full.
    pub fn mistake(error: impl Display) -> Failure {
        Failure::Mistake(anyhow::anyhow!("{error}"))
    }

    /// Creates a fault, which `error` describes in full.
    pub fn fault(error: impl Display) -> Failure {
        Failure::Fault(anyhow::anyhow!("{error}"))
    }

    /// Converts an error of standard output.
    pub fn of_stdout(error: io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::NobodyListens,
            _ => Failure::fault(format!("cannot write to standard output: {error}")),
        }
    }
}

impl From<floatgate_run::failure::Failure> for Failure {
    fn from(failure: floatgate_run::failure::Failure) -> Failure {
        use floatgate_run::failure::Failure as OfRun;
        match failure {
            OfRun::Mistake(error) => Failure::Mistake(error),
            OfRun::Fault(error) => Failure::Fault(error),
            OfRun::Interrupted(what) => Failure::Interrupted(what),
        }
    }
}

impl From<Stopped> for Failure {
    fn from(stopped: Stopped) -> Failure {
        stopped.failure.into()
    }
}

impl From<anyhow::Error> for Failure {
    /// Classifies an error by its causes: a broken pipe, an invalid device, or a fault.
    fn from(error: anyhow::Error) -> Failure {
        let is_pipe = |cause: &io::Error| cause.kind() == io::ErrorKind::BrokenPipe;
        if error.chain().any(|cause| cause.downcast_ref().is_some_and(is_pipe)) {
            Failure::NobodyListens
        } else if error.chain().any(|cause| cause.is::<ConfigError>()) {
            Failure::Mistake(error)
        } else {
            Failure::Fault(error)
        }
    }
}

/// Prints the error, if there is one, and returns the exit status.
pub fn exit_status(done: Result<(), Failure>) -> u8 {
    let Err(failure) = done else { return 0 };
    let prefix = if matches!(failure, Failure::Interrupted(_)) { "interrupted" } else { "error" };
    let (status, error) = parts(failure);
    let text = format!("{error:#}");
    if !text.is_empty() {
        say(&format!("{prefix}: {text}"));
    }
    status
}

/// Returns the exit status of a failure and its error, whose text is empty if there is nothing to report.
pub fn parts(failure: Failure) -> (u8, anyhow::Error) {
    let silent = || anyhow::anyhow!("");
    match failure {
        Failure::NobodyListens => (0, silent()),
        Failure::Mistake(error) => (2, error),
        Failure::Fault(error) => (1, error),
        Failure::Ended => (signal::status(), silent()),
        #[cfg(feature = "live")]
        Failure::Status(status) => (status, silent()),
        Failure::Interrupted(what) => (signal::status(), anyhow::anyhow!(what)),
    }
}

/// Prints a line to standard error, and ignores failures. Control characters, which names and paths may contain, are
/// escaped.
pub fn say(text: &str) {
    use io::Write;
    let _ = writeln!(io::stderr().lock(), "{}", color::message(&escaped_lines(text)));
}

/// Prints a warning.
pub fn warn(what: &str) {
    say(&format!("warning: {what}"));
}
