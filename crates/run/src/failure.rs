//! Failures of runs.

use std::fmt::Display;

/// Reason why a run has no result.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Invalid specification or input.
    #[error("{0:#}")]
    Mistake(anyhow::Error),
    /// Fault during the run.
    #[error("{0:#}")]
    Fault(anyhow::Error),
    /// Stopped by the user.
    #[error("{0}")]
    Interrupted(&'static str),
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
}
