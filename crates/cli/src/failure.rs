//! How the command ends, and what it says when that is not well.

use std::fmt::Display;
use std::io;

use floatgate_core::config::ConfigError;
use floatgate_core::sim::text::escaped_lines;
use floatgate_run::frontend::Stopped;

use crate::signal;

/// Why the command did not do what was asked.
#[derive(Debug)]
pub enum Failure {
    /// What was asked for cannot be: exit status 2, as for a wrong option.
    Mistake(anyhow::Error),
    /// What was asked for went wrong: exit status 1.
    Fault(anyhow::Error),
    /// The user stopped it: exit status 130 for Ctrl-C and 143 for SIGTERM, as shells have it.
    Interrupted(&'static str),
    /// The same, where the result says so.
    Ended,
    /// A command that was run has this exit status, and has said itself what was the matter.
    Status(u8),
    /// Nobody reads what is printed any more, as behind `| head`: exit status 0, for that is no failure.
    NobodyListens,
}

impl Failure {
    /// A mistake of the user, told in full by `error`.
    pub fn mistake(error: impl Display) -> Failure {
        Failure::Mistake(anyhow::anyhow!("{error}"))
    }

    /// Something that went wrong, told in full by `error`.
    pub fn fault(error: impl Display) -> Failure {
        Failure::Fault(anyhow::anyhow!("{error}"))
    }

    /// Standard output does not take any more.
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
    /// Judges an error by what is at its bottom.
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

/// Says what went wrong, and returns the status to exit with.
pub fn exit_status(done: Result<(), Failure>) -> u8 {
    let (status, text) = match done {
        Ok(()) | Err(Failure::NobodyListens) => return 0,
        Err(Failure::Mistake(error)) => (2, format!("error: {error:#}")),
        Err(Failure::Fault(error)) => (1, format!("error: {error:#}")),
        Err(Failure::Ended) => return signal::status(),
        Err(Failure::Status(status)) => return status,
        Err(Failure::Interrupted(what)) => (signal::status(), format!("interrupted: {what}")),
    };
    say(&text);
    status
}

/// Prints a line to standard error, and lets it be where that is closed. Control characters, which names and paths may
/// hold, are escaped.
pub fn say(text: &str) {
    use io::Write;
    let _ = writeln!(io::stderr().lock(), "{}", escaped_lines(text));
}
