//! Failures of runs.

use std::fmt::Display;

/// Reason why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The run that was specified is impossible.
    #[error("{0:#}")]
    Mistake(anyhow::Error),
    /// The run went wrong.
    #[error("{0:#}")]
    Fault(anyhow::Error),
    /// The user stopped it.
    #[error("{0}")]
    Interrupted(&'static str),
}

impl Failure {
    /// Makes a mistake of the user, which `error` describes in full.
    pub fn mistake(error: impl Display) -> Failure {
        Failure::Mistake(anyhow::anyhow!("{error}"))
    }

    /// Makes a fault, which `error` describes in full.
    pub fn fault(error: impl Display) -> Failure {
        Failure::Fault(anyhow::anyhow!("{error}"))
    }
}
