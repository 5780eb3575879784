//! Failures of the machine.

/// Why there is no machine.
#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    /// A program is not installed.
    #[error("{program} is not installed, which {purpose}; {remedy}")]
    Missing {
        /// Which.
        program: String,
        /// What it does here.
        purpose: &'static str,
        /// What helps.
        remedy: &'static str,
    },
    /// A program failed.
    #[error("{program} failed: {said}")]
    Failed {
        /// Which, with the arguments that matter.
        program: String,
        /// The end of what it printed.
        said: String,
    },
    /// A package is not known.
    #[error(
        "apt knows no package `{0}`; bring its lists up to date (apt-get update, as root), or bring --kernel and \
         --initrd"
    )]
    UnknownPackage(String),
    /// Packages are not as expected.
    #[error("{0}")]
    Unusable(String),
    /// A file cannot be read or written.
    #[error("{path}: {error}")]
    File {
        /// Which.
        path: String,
        /// Why.
        error: std::io::Error,
    },
    /// The machine did not come up.
    #[error("the guest did not come up; the last it said:\n{0}")]
    NeverUp(String),
    /// The machine ended without a word on the command.
    #[error("the guest ended before the command did; the last it said:\n{0}")]
    Ended(String),
}

impl GuestError {
    /// An error at a file.
    pub(crate) fn at(path: &std::path::Path) -> impl FnOnce(std::io::Error) -> GuestError + '_ {
        move |error| GuestError::File { path: path.display().to_string(), error }
    }
}
