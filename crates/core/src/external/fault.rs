//! Failures of policies of other programs.

use std::fmt;
use std::sync::Arc;

/// Why an external policy has no answer.
pub type Cause = Arc<dyn std::error::Error + Send + Sync>;

/// An external policy has failed, or has answered what cannot be.
#[derive(Clone, Debug)]
pub struct Fault {
    who: String,
    cause: Cause,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}: {}", self.who, self.cause)
    }
}

impl std::error::Error for Fault {}

impl Fault {
    pub(super) fn new(who: String, cause: Cause) -> Fault {
        Fault { who, cause }
    }

    /// What the policy has raised, or what is wrong with its answer.
    pub fn cause(&self) -> &(dyn std::error::Error + 'static) {
        self.cause.as_ref()
    }
}
