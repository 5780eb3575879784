//! Errors of the virtual machine.

/// Error: the virtual machine cannot be built, started or finished.
#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    /// A program is not installed.
    #[error("{program}, which {purpose}, is not installed; {remedy}")]
    Missing {
        /// Name of the program.
        program: String,
        /// Purpose of the program, as a predicate.
        purpose: &'static str,
        /// Remedy.
        remedy: &'static str,
    },
    /// A program failed.
    #[error("{program} failed: {said}")]
    Failed {
        /// Name of the program, with the relevant arguments.
        program: String,
        /// End of its output.
        said: String,
    },
    /// A package is unknown.
    #[error(
        "unknown package `{0}`: update the lists of apt (`apt-get update`, as root), or pass --kernel and --initrd"
    )]
    UnknownPackage(String),
    /// A package does not have the expected contents.
    #[error("{0}")]
    Unusable(String),
    /// A file cannot be read or written.
    #[error("{path}: {error}")]
    File {
        /// Path of the file.
        path: String,
        /// Cause.
        error: std::io::Error,
    },
    /// The machine did not boot.
    #[error("the guest did not boot; its last output:\n{0}")]
    NeverUp(String),
    /// The machine ended without the status of the command.
    #[error("the guest ended before the command; its last output:\n{0}")]
    Ended(String),
}

impl GuestError {
    /// Returns a function that converts an I/O error at this path.
    pub(crate) fn at(path: &std::path::Path) -> impl FnOnce(std::io::Error) -> GuestError + '_ {
        move |error| GuestError::File { path: path.display().to_string(), error }
    }
}
