//! Faults of external policies.

use std::fmt;
use std::sync::Arc;

/// Error that an external policy raised, or that describes its invalid result.
pub type Cause = Arc<dyn std::error::Error + Send + Sync>;

/// Failure of an external policy: it raised an error, or returned an invalid result.
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

    /// Returns the error that the policy raised, or the description of its invalid result.
    pub fn cause(&self) -> &(dyn std::error::Error + 'static) {
        self.cause.as_ref()
    }
}
